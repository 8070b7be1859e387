// SPDX-License-Identifier: GPL-2.0
/*
 * Characters on their way through a pseudo-terminal.  There is no way to look
 * at them but to take them out; they are put back at once, from the other
 * side, with all conversions and special characters off meanwhile.  No signal
 * may come in between.  A line not yet complete only shows when the terminal
 * is not in canonical mode; put back in that mode, lines are lines again.
 */
#include "resource/terminal.h"

#include <asm/termbits.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Input goes through as it is, except that ends of lines count in canonical mode. */
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

static struct termios2 raw_input(const struct termios2 *modes)
{
	struct termios2 raw = quiet_input(modes);

	raw.c_lflag = 0;
	raw.c_cc[VMIN] = raw.c_cc[VTIME] = 0;
	return raw;
}

static int take(int fd, ProtobufCBinaryData *data)
{
	int length = 0;
	ssize_t got;

	data->len = 0;
	data->data = NULL;
	if (ioctl(fd, FIONREAD, &length) || length <= 0)
		return 0;
	data->data = malloc(length);
	if (!data->data)
		return -ENOMEM;
	got = read(fd, data->data, length);
	if (got < 0)
		return -errno;
	data->len = got;
	return 0;
}

static int put(int fd, const uint8_t *data, size_t length)
{
	for (size_t at = 0; at < length; ) {
		ssize_t n = write(fd, data + at, length - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			at += n;
	}
	return 0;
}

/* What was written to the other side arrives in the background: poll(2) waits for that. */
static void settle(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (int i = 0; i < 3; i++)
		if (poll(&p, 1, 1) > 0)
			usleep(1000);
}

/* To the slave's readers, through the master. The end of a file is kept as a NUL. */
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
	settle(slave);
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

static int save_slave(int master, int slave, ProtobufCBinaryData *data)
{
	struct termios2 modes, raw;
	int err;

	if (ioctl(slave, TCGETS2, &modes))
		return -errno;
	raw = raw_input(&modes);
	if (ioctl(slave, TCSETS2, &raw))
		return -errno;
	err = take(slave, data);
	ioctl(slave, TCSETS2, &modes);
	return err ?: terminal_queue_fill(master, slave, false, data);
}

int terminal_queue_save(int master, int slave, bool of_master, ProtobufCBinaryData *data)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	if (of_master) {
		err = take(master, data);
		if (!err)
			err = terminal_queue_fill(master, slave, true, data);
	} else {
		err = save_slave(master, slave, data);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}
