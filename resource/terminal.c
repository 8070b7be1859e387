// SPDX-License-Identifier: GPL-2.0
/*
 * Terminals.  One that is served from outside (the user's) becomes the
 * terminal of cr_restart or, if that has none, standard input, output and
 * error of cr_restart for file descriptors 0, 1, 2 and a terminal that
 * has hung up for others.  A pseudo-terminal with its master in the tree is
 * created again, with the same number if that is free.
 */
#include "resource/file.h"

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc/proc.h"
#include "proc/status.h"
#include "report/report.h"
#include "resource/attribute.h"
#include "resource/terminal.h"

#define MAX_INDEX_SEARCH	256	/* masters opened in search of the old number */

static bool is_master(const struct stat *st)
{
	return major(st->st_rdev) == 5 && minor(st->st_rdev) == 2;
}

static bool match(const struct file_probe *probe)
{
	unsigned int number = major(probe->st.st_rdev);

	if (!S_ISCHR(probe->st.st_mode) || probe->flags & O_PATH)
		return false;
	return number == 4 || number == 5 || number == 3 || (number >= 136 && number <= 143) ||
	       number == 204 || number == 188 || number == 166 || number == 229;
}

/* ---- save ------------------------------------------------------------------- */

/* The number of a pseudo-terminal, -1: not one.  /dev/tty stands for another one. */
static int pty_index(const struct file_probe *probe)
{
	dev_t dev = probe->st.st_rdev;
	unsigned int index;

	if (is_master(&probe->st))
		return ioctl(probe->fd, TIOCGPTN, &index) ? -1 : (int)index;
	if (dev == makedev(5, 0) && !ioctl(probe->fd, TIOCGDEV, &index))
		dev = index;
	return terminal_pty_index(dev);
}

/* A side of the pseudo-terminal with this number in the table; NULL: none. */
static const struct file_probe *find_side(const struct file_table *t, int index, bool master)
{
	for (uint32_t id = 1; index >= 0 && id <= file_table_count(t); id++) {
		const struct file_probe *p = file_table_probe(t, id);

		if (match(p) && is_master(&p->st) == master && pty_index(p) == index)
			return p;
	}
	return NULL;
}

/* Saves its queue, with the first file of each side, if both are in the table. */
static int save_queue(const struct file_table *t, const struct file_probe *probe, int index,
		      Kcr__Terminal *terminal)
{
	const struct file_probe *master = find_side(t, index, true);
	const struct file_probe *slave = find_side(t, index, false);
	int err;

	if (!master || !slave || file_table_is_dry(t) ||
	    probe != (terminal->pty_master ? master : slave))
		return 0;
	err = terminal_queue_save(master->fd, slave->fd, terminal->pty_master,
				  &terminal->contents);
	terminal->has_contents = terminal->contents.len;
	return err ? file_save_error(probe, err, "cannot save its queue") : 0;
}

/* Is the program in the foreground, so that the terminal's modes are its own? */
static void save_job_control(const struct file_probe *probe, Kcr__Terminal *terminal)
{
	char stat[1024];

	if (proc_read(probe->pid, "stat", stat, sizeof(stat)) < 0)
		return;
	if (stat_number(stat, 7) == (int64_t)probe->st.st_rdev ||
	    probe->st.st_rdev == makedev(5, 0)) {
		terminal->has_controlling = terminal->controlling = true;
		terminal->has_foreground = true;
		terminal->foreground = stat_number(stat, 5) == stat_number(stat, 8);
	}
}

static int save_modes(const struct file_probe *probe, Kcr__Terminal *terminal)
{
	struct termios2 modes;
	struct winsize size;
	int err = 0, value;

	if (!ioctl(probe->fd, TCGETS2, &modes)) {
		terminal->has_termios = true;
		err = file_bytes(&terminal->termios, &modes, sizeof(modes));
	}
	if (!err && !ioctl(probe->fd, TIOCGWINSZ, &size)) {
		terminal->has_winsize = true;
		err = file_bytes(&terminal->winsize, &size, sizeof(size));
	}
	if (terminal->pty_master && !ioctl(probe->fd, TIOCGPKT, &value) && value)
		terminal->has_packet_mode = terminal->packet_mode = true;
	if (terminal->pty_master && !ioctl(probe->fd, TIOCGPTLCK, &value) && value)
		terminal->has_locked = terminal->locked = true;
	return err;
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	int index = pty_index(probe);
	Kcr__Terminal *terminal = file_new_kind(file, KCR__FILE__KIND_TERMINAL, sizeof(*terminal));

	if (!terminal)
		return -ENOMEM;
	terminal->path = file_string(probe->link);
	if (!terminal->path)
		return -ENOMEM;
	terminal->has_pty_master = terminal->pty_master = is_master(&probe->st);
	if (index >= 0) {
		terminal->has_pty_index = true;
		terminal->pty_index = index;
	}
	/* Slaves of a master inside; if they are outside they hang up. */
	terminal->has_pty_inside = terminal->pty_inside =
		terminal->pty_master || find_side(t, index, true);
	save_job_control(probe, terminal);
	return save_modes(probe, terminal) ?: save_queue(t, probe, index, terminal);
}

/* ---- rebuild: pseudo-terminals of the tree ---------------------------------------- */

static bool same_pty(const Kcr__File *a, const Kcr__File *b)
{
	return b->kind_case == KCR__FILE__KIND_TERMINAL && b->terminal->pty_inside &&
	       b->terminal->has_pty_index &&
	       a->terminal->pty_index == b->terminal->pty_index;
}

static int set_modes(const Kcr__File *file, int fd)
{
	const Kcr__Terminal *terminal = file->terminal;
	struct termios2 modes;
	struct winsize size;

	if (terminal->has_termios && terminal->termios.len == sizeof(modes)) {
		memcpy(&modes, terminal->termios.data, sizeof(modes));
		if (ioctl(fd, TCSETS2, &modes))
			return rebuild_error(file, -errno, "cannot set its modes");
	}
	if (terminal->has_winsize && terminal->winsize.len == sizeof(size)) {
		memcpy(&size, terminal->winsize.data, sizeof(size));
		ioctl(fd, TIOCSWINSZ, &size);
	}
	return 0;
}

/*
 * A master, with the old number if it is free: numbers are assigned lowest
 * first, so those below it are held meanwhile.
 */
static int open_master(const Kcr__Terminal *terminal)
{
	int held[MAX_INDEX_SEARCH], count = 0, chosen = -1, err = 0;
	unsigned int index;

	while (count < MAX_INDEX_SEARCH) {
		int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);

		if (fd < 0) {
			err = -errno;
			break;
		}
		held[count++] = fd;
		if (ioctl(fd, TIOCGPTN, &index))
			break;
		if (index == terminal->pty_index)
			chosen = fd;
		if (index >= terminal->pty_index)
			break;
	}
	if (chosen < 0 && count)
		chosen = held[0];
	for (int i = 0; i < count; i++)
		if (held[i] != chosen)
			close(held[i]);
	return chosen < 0 ? err : chosen;
}

/* A new description of the slave, or the master again (for which only a duplicate will do). */
static int open_side(struct rebuild *r, const Kcr__File *file, int master)
{
	/* Only if it had O_CLOEXEC: the file keeps it. */
	int flags = (file->flags & (O_ACCMODE | O_NONBLOCK | O_APPEND | O_CLOEXEC)) | O_NOCTTY;
	int fd;

	if (file->terminal->pty_master)
		fd = fcntl(master, F_DUPFD_CLOEXEC, r->high_fd);
	else
		fd = ioctl(master, TIOCGPTPEER, flags);
	if (fd >= 0)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd < 0 ? rebuild_error(file, -errno, "it cannot be opened") :
			rebuild_put(r, file->id, fd);
}

/* Refills the queues, once all settings are restored. */
static int fill_queues(struct rebuild *r, const Kcr__File *file, int master)
{
	int slave = -1, err = 0;

	for (size_t i = 0; i < r->context->nr_files && slave < 0; i++)
		if (same_pty(file, r->context->file[i]) &&
		    !r->context->file[i]->terminal->pty_master)
			slave = r->file_fd[i];
	for (size_t i = 0; i < r->context->nr_files && slave >= 0 && !err; i++) {
		const Kcr__File *f = r->context->file[i];

		if (same_pty(file, f))
			err = terminal_queue_fill(master, slave, f->terminal->pty_master,
						  &f->terminal->contents);
	}
	return err ? rebuild_error(file, err, "cannot fill it") : 0;
}

static int open_inside(struct rebuild *r, const Kcr__File *file)
{
	int master, unlock = 0, on = 1, packets = 0, err = 0;

	master = open_master(file->terminal);
	if (master < 0)
		return rebuild_error(file, master, "cannot make a pseudo-terminal");
	ioctl(master, TIOCSPTLCK, &unlock);
	for (size_t i = 0; i < r->context->nr_files && !err; i++) {
		const Kcr__File *f = r->context->file[i];

		if (!same_pty(file, f))
			continue;
		err = open_side(r, f, master);
		if (!err && !f->terminal->pty_master)
			err = set_modes(f, r->file_fd[i]);
		packets |= f->terminal->packet_mode;
	}
	if (!err)
		err = set_modes(file, master);
	if (!err)
		err = fill_queues(r, file, master);
	if (!err && packets)	/* last: its reader would see all these changes */
		ioctl(master, TIOCPKT, &on);
	if (!err && file->terminal->locked)
		ioctl(master, TIOCSPTLCK, &on);
	close(master);
	return err;
}

/* ---- rebuild: the user's terminal -------------------------------------------------- */

/* A slave whose master is closed: reads return end of file, writes fail. */
static int open_hung_up(const Kcr__File *file)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	int slave = -1, unlock = 0;

	if (master >= 0 && !ioctl(master, TIOCSPTLCK, &unlock))
		slave = ioctl(master, TIOCGPTPEER, (file->flags & O_ACCMODE) | O_NOCTTY | O_CLOEXEC);
	if (master >= 0)
		close(master);
	return slave >= 0 ? slave : open("/dev/null", (file->flags & O_ACCMODE) | O_CLOEXEC);
}

/* Modes of the user's terminal are set only for a program that had it in the foreground. */
static void set_users_modes(const Kcr__File *file, int fd)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
	struct termios2 modes;

	if (!file->terminal->foreground || file->terminal->termios.len != sizeof(modes) ||
	    tcgetpgrp(fd) != getpgrp())
		return;
	memcpy(&modes, file->terminal->termios.data, sizeof(modes));
	sigaction(SIGTTOU, &ignore, &old);
	ioctl(fd, TCSETS2, &modes);
	sigaction(SIGTTOU, &old, NULL);
}

static int open_outside(struct rebuild *r, const Kcr__File *file)
{
	int flags = (file->flags & (O_ACCMODE | O_NONBLOCK | O_APPEND)) | O_NOCTTY | O_CLOEXEC;
	int fd = -1;

	if (!strcmp(file->terminal->path, "/dev/tty"))
		fd = open("/dev/tty", flags);
	for (int i = 0; i < 3 && fd < 0; i++)
		if (r->stdio[i] >= 0 && isatty(r->stdio[i]))
			fd = rebuild_reopen_stdio(r, i, flags);
	if (fd < 0)
		fd = open("/dev/tty", flags);
	/* A terminal that root has and its programs may not open. */
	for (int i = 0; i < 3 && fd < 0; i++)
		if (r->stdio[i] >= 0 && isatty(r->stdio[i]))
			fd = fcntl(r->stdio[i], F_DUPFD_CLOEXEC, r->high_fd);
	if (fd >= 0)
		set_users_modes(file, fd);
	else
		fd = open_hung_up(file);
	if (fd < 0)
		return rebuild_error(file, -errno, "it cannot be opened");
	r->borrowed[file->id - 1] = true;
	return rebuild_put(r, file->id, fd);
}

static int open_terminal(struct rebuild *r, const Kcr__File *file)
{
	/* With a master in the tree both are opened at the first of them. */
	for (size_t i = 0; file->terminal->pty_inside && i < r->context->nr_files; i++)
		if (same_pty(file, r->context->file[i]) &&
		    r->context->file[i]->terminal->pty_master)
			return open_inside(r, r->context->file[i]);
	return open_outside(r, file);
}

/* No terminal available: standard descriptors are those of cr_restart. */
static int install(struct rebuild *r, const Kcr__Process *process, int number,
		   const Kcr__File *file)
{
	int flags = fcntl(number, F_GETFD);

	(void)process;
	if (file->terminal->pty_inside || number > 2 || r->stdio[number] < 0 ||
	    tcgetpgrp(number) >= 0 || isatty(number))
		return 0;
	if (dup3(r->stdio[number], number, flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0)
		return rebuild_error(file, -errno, "cannot take cr_restart's instead");
	return 0;
}

const struct file_kind file_kind_terminal = {
	.kind = KCR__FILE__KIND_TERMINAL,
	.name = "terminal",
	.match = match,
	.save = save,
	.open = open_terminal,
	.install = install,
};
