// SPDX-License-Identifier: GPL-2.0
/*
 * Characters in transit through a pseudo-terminal.  The only way to see
 * them is to read them; they are written back at once, from the other
 * side, with all conversions and special characters off meanwhile, by a process of its own
 * (apart.h).  An incomplete line is only visible when the terminal is not in canonical mode;
 * written back in that mode, lines are lines again.
 *
 * A terminal whose output is stopped, by Ctrl-S or tcflow(3), takes nothing: it is started
 * meanwhile.  No write here waits for ever, as nobody could end that.
 */
#include "resource/terminal.h"

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "resource/apart.h"

#define LINE_ROOM	4096	/* bytes: of the line discipline; no line is longer */
#define ARRIVAL_MS	500	/* for all that was written back, if the machine is busy */
#define ROOM_MS		10000	/* for room to write, which the kernel makes in the background */
#define CTRL_S		'\x13'

/* Input passes unchanged, except that line ends count in canonical mode. */
static struct termios2 quiet_input(const struct termios2 *modes)
{
	static const int off[] = { VINTR, VQUIT, VERASE, VKILL, VSTART, VSTOP, VSUSP, VREPRINT,
				   VDISCARD, VWERASE, VLNEXT };
	struct termios2 quiet = *modes;

	quiet.c_iflag = 0;
	quiet.c_lflag &= ICANON;
	for (size_t i = 0; i < sizeof(off) / sizeof(*off); i++)
		quiet.c_cc[off[i]] = 0;
	return quiet;
}

/* An incomplete line can be read too, and reading does not block. */
static struct termios2 without_lines(const struct termios2 *modes)
{
	struct termios2 plain = *modes;

	plain.c_lflag &= ~ICANON;
	plain.c_cc[VMIN] = plain.c_cc[VTIME] = 0;
	return plain;
}

static bool ends_line(uint8_t c, const struct termios2 *modes)
{
	return c == '\n' || (c && (c == modes->c_cc[VEOL] || c == modes->c_cc[VEOL2]));
}

/*
 * Appends all that can be read to *data.  By poll(2), not FIONREAD: if there is
 * nothing, poll waits for what is still in transit inside the terminal.
 * `lines`: the modes, if the reader sees lines; a line that was ended by an
 * end-of-file character gets a NUL.
 */
static int take(int fd, const struct termios2 *lines, ProtobufCBinaryData *data)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (poll(&p, 1, 0) > 0 && p.revents & POLLIN) {
		uint8_t *grown = realloc(data->data, data->len + LINE_ROOM + 1);
		ssize_t got;

		if (!grown)
			return -ENOMEM;
		data->data = grown;
		got = read(fd, data->data + data->len, LINE_ROOM);
		if (got < 0)
			return -errno;
		if (!got && (!lines || p.revents & POLLHUP))
			break;
		data->len += got;
		if (lines && (!got || !ends_line(data->data[data->len - 1], lines)))
			data->data[data->len++] = '\0';
	}
	return 0;
}

/* O_NONBLOCK is the program's, too, which has the same open file. */
static int put(int fd, const uint8_t *data, size_t length)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	int flags = fcntl(fd, F_GETFL), err = 0;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	for (size_t at = 0; at < length && !err;) {
		ssize_t n = write(fd, data + at, length - at);

		if (n >= 0)
			at += n;
		else if (errno == EAGAIN)
			err = poll(&room, 1, ROOM_MS) > 0 ? 0 : -ETIMEDOUT;
		else if (errno != EINTR)
			err = -errno;
	}
	fcntl(fd, F_SETFL, flags);
	return err;
}

static bool has_room(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, 0) > 0 && p.revents & POLLOUT;
}

/*
 * Starts what is stopped, and says what that was (enum terminal_stop); nothing is unread at
 * the master, so that the slave has no room only if it is stopped.  TCOON alone does not
 * start what a character has stopped; that IXON is turned off does, and lets out the echo
 * of what was typed meanwhile.
 */
static uint32_t start_all(int master, int slave, const struct termios2 *modes)
{
	struct termios2 with = *modes, without = *modes;
	uint32_t stopped = 0;

	if (!has_room(master)) {
		ioctl(master, TCXONC, TCOON);
		stopped |= has_room(master) ? TERMINAL_INPUT_STOPPED : 0;
	}
	if (has_room(slave))
		return stopped;
	ioctl(slave, TCXONC, TCOON);
	stopped |= has_room(slave) ? TERMINAL_OUTPUT_STOPPED : TERMINAL_STOPPED_BY_CHARACTER;
	with.c_iflag |= IXON;
	without.c_iflag &= ~IXON;
	ioctl(slave, TCSETS2, &with);
	ioctl(slave, TCSETS2, &without);
	ioctl(slave, TCSETS2, modes);
	return stopped;
}

/* Such a stop is ended by the start character: so it takes the stop character to make it. */
static int stop_by_character(int master, int slave)
{
	struct termios2 modes, with;
	uint8_t stop;
	int err;

	if (ioctl(slave, TCGETS2, &modes))
		return -errno;
	with = modes;
	with.c_iflag |= IXON;
	if (!with.c_cc[VSTOP])
		with.c_cc[VSTOP] = CTRL_S;
	stop = with.c_cc[VSTOP];
	err = ioctl(slave, TCSETS2, &with) ? -errno : put(master, &stop, 1);
	for (int i = 0; i < ARRIVAL_MS && !err && has_room(slave); i++)
		usleep(1000);
	ioctl(slave, TCSETS2, &modes);
	return err;
}

int terminal_queue_stop(int master, int slave, uint32_t stopped)
{
	int err = 0;

	if (stopped & TERMINAL_STOPPED_BY_CHARACTER)
		err = stop_by_character(master, slave);
	if (stopped & TERMINAL_OUTPUT_STOPPED && ioctl(slave, TCXONC, TCOOFF))
		err = -errno;
	if (stopped & TERMINAL_INPUT_STOPPED && ioctl(master, TCXONC, TCOOFF))
		err = -errno;
	return err;
}

/* What FIONREAD returns when all has arrived: whole lines, without end-of-file characters. */
static size_t readable(const ProtobufCBinaryData *data, const struct termios2 *modes)
{
	size_t ended = 0, ends = 0, marks = 0;

	if (!(modes->c_lflag & ICANON))
		return data->len;
	for (size_t i = 0; i < data->len; i++) {
		marks += !data->data[i];
		if (data->data[i] && !ends_line(data->data[i], modes))
			continue;
		ended = i + 1;
		ends = marks;
	}
	return ended - ends;
}

/*
 * What was written to the other side arrives in the background; for an incomplete line
 * one can only wait a while, and what exceeds the line discipline's buffer waits for
 * its reader.
 */
static void settle(int fd, size_t expected)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int count = 0;

	for (int i = 0; i < ARRIVAL_MS && !ioctl(fd, FIONREAD, &count) &&
	     (size_t)count < expected && count < LINE_ROOM - 1; i++)
		usleep(1000);
	for (int i = 0; i < 3; i++)
		if (poll(&p, 1, 1) > 0)
			usleep(1000);
}

/* For the slave's readers, through the master.  A NUL stands for end of file. */
static int fill_slave(int master, int slave, const struct termios2 *modes,
		      const ProtobufCBinaryData *data)
{
	struct termios2 quiet = quiet_input(modes);
	uint8_t *copy = malloc(data->len + 1);
	int err;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, data->data, data->len);
	for (size_t i = 0; i < data->len && modes->c_lflag & ICANON; i++)
		if (!copy[i])
			copy[i] = modes->c_cc[VEOF];
	err = ioctl(slave, TCSETS2, &quiet) ? -errno : put(master, copy, data->len);
	settle(slave, readable(data, modes));
	ioctl(slave, TCSETS2, modes);
	free(copy);
	return err;
}

static int fill_master(int slave, const struct termios2 *modes, const ProtobufCBinaryData *data)
{
	struct termios2 plain = *modes;
	int err;

	plain.c_oflag &= ~OPOST;
	err = ioctl(slave, TCSETS2, &plain) ? -errno : put(slave, data->data, data->len);
	ioctl(slave, TCSETS2, modes);
	return err;
}

int terminal_queue_fill(int master, int slave, bool of_master, const ProtobufCBinaryData *data)
{
	struct termios2 modes;

	if (!data->len)
		return 0;
	if (ioctl(slave, TCGETS2, &modes))
		return -errno;
	return of_master ? fill_master(slave, &modes, data) :
			   fill_slave(master, slave, &modes, data);
}

/*
 * Whole lines first, with the modes that they were written for: nothing is in transit
 * any more when these change.
 */
static int save_slave(int master, int slave, ProtobufCBinaryData *data)
{
	struct termios2 modes, plain;
	int err = 0;

	if (ioctl(slave, TCGETS2, &modes))
		return -errno;
	if (modes.c_lflag & ICANON)
		err = take(slave, &modes, data);
	plain = without_lines(&modes);
	if (!err && ioctl(slave, TCSETS2, &plain))
		return -errno;
	if (!err)
		err = take(slave, NULL, data);
	ioctl(slave, TCSETS2, &modes);
	return err ?: terminal_queue_fill(master, slave, false, data);
}

/*
 * What is unread at the master comes out first and goes back last, for either side: only so
 * is it known whether the output is stopped.  In packet mode every read would begin with a
 * status byte.
 */
static int save(int master, int slave, bool of_master, ProtobufCBinaryData *data, uint32_t *stopped)
{
	ProtobufCBinaryData output = {}, *queue = of_master ? data : &output;
	int packets = 0, off = 0, err, filled, halted;
	struct termios2 modes;

	*stopped = 0;
	*data = output;
	if (ioctl(slave, TCGETS2, &modes))
		return -errno;
	ioctl(master, TIOCGPKT, &packets);
	if (packets)
		ioctl(master, TIOCPKT, &off);
	/* Input still in transit is echoed first: poll(2) waits for that. */
	poll(&(struct pollfd){ .fd = slave, .events = POLLIN }, 1, 0);
	err = take(master, NULL, queue);
	if (!err) {
		*stopped = start_all(master, slave, &modes);
		err = take(master, NULL, queue);
	}
	if (!err && !of_master)
		err = save_slave(master, slave, data);
	filled = terminal_queue_fill(master, slave, true, queue);
	halted = terminal_queue_stop(master, slave, *stopped);
	if (packets)
		ioctl(master, TIOCPKT, &packets);
	free(output.data);
	return err ?: filled ?: halted;
}

struct step {
	int master, slave;
	bool of_master;
	uint32_t stopped;
};

static int save_apart(void *arg, ProtobufCBinaryData *data)
{
	struct step *step = arg;

	return save(step->master, step->slave, step->of_master, data, &step->stopped);
}

int terminal_queue_save(int master, int slave, bool of_master, ProtobufCBinaryData *data,
			uint32_t *stopped)
{
	struct step step = { .master = master, .slave = slave, .of_master = of_master };
	int err = apart_do(save_apart, &step, sizeof(step), data);

	*stopped = step.stopped;
	return err;
}
