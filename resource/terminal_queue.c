// SPDX-License-Identifier: GPL-2.0
/*
 * Characters in transit through a pseudo-terminal.  The only way to see
 * them is to read them; they are written back at once, from the other
 * side, with all conversions and special characters off meanwhile (file_save.c
 * blocks signals).  An incomplete line is only visible when the terminal is not
 * in canonical mode; written back in that mode, lines are lines again.
 */
#include "resource/terminal.h"

#include <asm/termbits.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_ROOM	4096	/* bytes: of the line discipline; no line is longer */
#define ARRIVAL_MS	500	/* for all that was written back, if the machine is busy */

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

static int put(int fd, const uint8_t *data, size_t length)
{
	for (size_t at = 0; at < length;) {
		ssize_t n = write(fd, data + at, length - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			at += n;
	}
	return 0;
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

/* In packet mode every read would begin with a status byte. */
static int save_master(int master, int slave, ProtobufCBinaryData *data)
{
	int packets = 0, off = 0, err;

	ioctl(master, TIOCGPKT, &packets);
	if (packets)
		ioctl(master, TIOCPKT, &off);
	/* Input still in transit is echoed first: poll(2) waits for that. */
	poll(&(struct pollfd){ .fd = slave, .events = POLLIN }, 1, 0);
	err = take(master, NULL, data);
	if (!err)
		err = terminal_queue_fill(master, slave, true, data);
	if (packets)
		ioctl(master, TIOCPKT, &packets);
	return err;
}

int terminal_queue_save(int master, int slave, bool of_master, ProtobufCBinaryData *data)
{
	data->len = 0;
	data->data = NULL;
	return of_master ? save_master(master, slave, data) : save_slave(master, slave, data);
}
