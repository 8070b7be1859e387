// SPDX-License-Identifier: GPL-2.0
/*
 * Terminals.  One that is served from outside (the user's) becomes the
 * terminal of cr_restart or, if that has none, standard input, output and
 * error of cr_restart for file descriptors 0, 1, 2 and a terminal that
 * has hung up for others.  A pseudo-terminal with its master in the tree is
 * created again, with the same number if that is free.  A line (serial, console) that
 * is not the program's own terminal is a device like others: it is opened by its name.
 */
#include "resource/file.h"

#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tty.h>
#include <poll.h>
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

/* Another than the usual one has a state that nobody tells: of a connection, say. */
static int refuse_discipline(struct file_table *t, const struct file_probe *probe)
{
	static const char *const names[] = {
		[N_SLIP] = "SLIP", [N_PPP] = "PPP", [N_HDLC] = "HDLC", [N_HCI] = "Bluetooth",
		[N_SLCAN] = "CAN", [N_NULL] = "null",
	};
	int number = N_TTY;

	if (ioctl(probe->fd, TIOCGETD, &number) || number == N_TTY)
		return 0;
	if (number > 0 && number < (int)(sizeof(names) / sizeof(*names)) && names[number])
		return file_unsupported(t, "a terminal with the line discipline %s", names[number]);
	return file_unsupported(t, "a terminal with line discipline %d", number);
}

/* The terminal itself: /dev/tty and /dev/console stand for another one. */
static dev_t device_of(const struct file_probe *probe)
{
	unsigned int dev;

	if (major(probe->st.st_rdev) == 5 && !ioctl(probe->fd, TIOCGDEV, &dev))
		return dev;
	return probe->st.st_rdev;
}

/* The number of a pseudo-terminal, -1: not one. */
static int pty_index(const struct file_probe *probe)
{
	unsigned int index;

	if (is_master(&probe->st))
		return ioctl(probe->fd, TIOCGPTN, &index) ? -1 : (int)index;
	return terminal_pty_index(device_of(probe));
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

/*
 * Saves its queue, with the first file of each side, if both are in the table.  What was
 * written to a slave that nobody has open any more is still read from the master.
 */
static int save_queue(const struct file_table *t, const struct file_probe *probe, int index,
		      Kcr__Terminal *terminal)
{
	const struct file_probe *master = find_side(t, index, true);
	const struct file_probe *slave = find_side(t, index, false);
	uint32_t stopped;
	int again = -1, err;

	if (!master || file_table_is_dry(t) || probe != (terminal->pty_master ? master : slave))
		return 0;
	if (!slave && terminal->slave_closed)
		again = ioctl(master->fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (!slave && again < 0)
		return 0;
	err = terminal_queue_save(master->fd, slave ? slave->fd : again, terminal->pty_master,
				  &terminal->contents, &stopped);
	terminal->has_contents = terminal->contents.len;
	terminal->has_stopped = terminal->pty_master && stopped;
	terminal->stopped = terminal->has_stopped ? stopped : 0;
	if (again >= 0)
		close(again);
	return err ? file_save_error(probe, err, "cannot save its queue") : 0;
}

/* Owner and mode of the slave's node, and whether the slave has hung up. */
static void save_node(const struct file_probe *probe, Kcr__Terminal *terminal)
{
	struct pollfd hang_up = { .fd = probe->fd };
	int node = ioctl(probe->fd, TIOCGPTPEER, O_PATH | O_CLOEXEC);
	struct stat st;

	if (node >= 0 && !fstat(node, &st)) {
		terminal->has_mode = terminal->has_uid = terminal->has_gid = true;
		terminal->mode = st.st_mode & 07777;
		terminal->uid = st.st_uid;
		terminal->gid = st.st_gid;
	}
	if (node >= 0)
		close(node);
	terminal->has_slave_closed = terminal->slave_closed =
		poll(&hang_up, 1, 0) > 0 && hang_up.revents & POLLHUP;
}

/* Is the program in the foreground, so that the terminal's modes are its own? */
static void save_job_control(const struct file_probe *probe, Kcr__Terminal *terminal)
{
	char stat[1024];

	if (proc_read(probe->pid, "stat", stat, sizeof(stat)) < 0)
		return;
	if (stat_number(stat, 7) == (int64_t)device_of(probe) ||
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

	if (!ioctl(probe->fd, TIOCGEXCL, &value) && value)
		terminal->has_exclusive = terminal->exclusive = true;
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
	int index = pty_index(probe), err = refuse_discipline(t, probe);
	Kcr__Terminal *terminal;

	if (err)
		return err;
	terminal = file_new_kind(file, KCR__FILE__KIND_TERMINAL, sizeof(*terminal));
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
	if (terminal->pty_master)
		save_node(probe, terminal);
	save_job_control(probe, terminal);
	if (!terminal->pty_master && !terminal->controlling &&
	    terminal_pty_index(probe->st.st_rdev) < 0) {
		terminal->has_rdev = true;
		terminal->rdev = probe->st.st_rdev;
	}
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
	if (chosen < 0 && count) {
		chosen = held[0];
		if (!ioctl(chosen, TIOCGPTN, &index))
			report_warn("the pseudo-terminal %u is number %u now, as the old number is in use "
				    "or too high", terminal->pty_index, index);
	}
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

/* Refills the queues and stops them, once all settings are restored. */
static int fill_queues(struct rebuild *r, const Kcr__File *file, int master)
{
	int slave = -1, again = -1, err = 0;

	for (size_t i = 0; i < r->context->nr_files && slave < 0; i++)
		if (same_pty(file, r->context->file[i]) &&
		    !r->context->file[i]->terminal->pty_master)
			slave = r->file_fd[i];
	if (slave < 0 && file->terminal->slave_closed)
		slave = again = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	for (size_t i = 0; i < r->context->nr_files && slave >= 0 && !err; i++) {
		const Kcr__File *f = r->context->file[i];

		if (same_pty(file, f))
			err = terminal_queue_fill(master, slave, f->terminal->pty_master,
						  &f->terminal->contents);
	}
	if (slave >= 0 && !err)
		err = terminal_queue_stop(master, slave, file->terminal->stopped);
	if (again >= 0)			/* the master's readers find that it has hung up */
		close(again);
	return err ? rebuild_error(file, err, "cannot fill it") : 0;
}

/* Owner and mode of the slave's node: mesg(1), and who else may write to it. */
static void set_node(const Kcr__File *file, int master)
{
	const Kcr__Terminal *terminal = file->terminal;
	int node = terminal->has_mode ? ioctl(master, TIOCGPTPEER, O_PATH | O_CLOEXEC) : -1;
	struct stat st;

	if (node < 0)
		return;
	if (!fstat(node, &st) && (st.st_uid != terminal->uid || st.st_gid != terminal->gid))
		rebuild_give(node, terminal->uid, terminal->gid, terminal->path);
	if (rebuild_set_mode(node, terminal->mode & 0777))
		report_verbose("cannot set the mode of %s", terminal->path);
	close(node);
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
	if (!err)
		set_node(file, master);
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

/* Consoles are shared: their modes are left as they are. */
static bool is_console(dev_t line)
{
	return major(line) == 5 || (major(line) == 4 && minor(line) < 64);
}

/* A line by its name; without O_NONBLOCK it could wait for a carrier. */
static int open_line(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__Terminal *terminal = file->terminal;
	struct stat st;
	int fd = rebuild_open_node(r, terminal->path, rebuild_open_flags(file) | O_NONBLOCK, &st,
				   S_IFCHR), err = 0;

	if (fd < 0)
		return fd;
	if (st.st_rdev != terminal->rdev)
		err = -ENODEV;
	else if (!is_console(terminal->rdev))
		err = set_modes(file, fd);
	if (err) {
		close(fd);
		return err;
	}
	return rebuild_put(r, file->id, fd);
}

static bool is_standard(const struct rebuild *r, const Kcr__File *file)
{
	return rebuild_has_number(r, file->id, 0) || rebuild_has_number(r, file->id, 1) ||
	       rebuild_has_number(r, file->id, 2);
}

static int open_outside(struct rebuild *r, const Kcr__File *file)
{
	int flags = (file->flags & (O_ACCMODE | O_NONBLOCK | O_APPEND)) | O_NOCTTY | O_CLOEXEC;
	int fd = file->terminal->has_rdev ? open_line(r, file) : -1;
	enum borrowed borrowed = REOPENED;

	if (fd == 0)
		return 0;
	if (file->terminal->has_rdev) {
		report_clear();
		report_warn("%s cannot be opened again (%s): %s", file->terminal->path,
			    strerror(-fd), is_standard(r, file) ?
			    "the program gets cr_restart's terminal" : "it comes back hung up");
		fd = is_standard(r, file) ? -1 : open_hung_up(file);
	}
	if (!strcmp(file->terminal->path, "/dev/tty"))
		fd = open("/dev/tty", flags);
	for (int i = 0; i < 3 && fd < 0; i++)
		if (r->stdio[i] >= 0 && isatty(r->stdio[i]))
			fd = rebuild_reopen_stdio(r, i, flags);
	if (fd < 0)
		fd = open("/dev/tty", flags);
	/* A terminal that root has and its programs may not open. */
	for (int i = 0; i < 3 && fd < 0; i++)
		if (r->stdio[i] >= 0 && isatty(r->stdio[i])) {
			fd = fcntl(r->stdio[i], F_DUPFD_CLOEXEC, r->high_fd);
			borrowed = BORROWED;
		}
	if (fd >= 0)
		set_users_modes(file, fd);
	else
		fd = open_hung_up(file);
	if (fd < 0)
		return rebuild_error(file, -errno, "it cannot be opened");
	r->borrowed[file->id - 1] = borrowed;
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

/* Once all are open, as ordinary users could not open it any more.  Never cr_restart's own. */
static int complete(struct rebuild *r, const Kcr__File *file)
{
	if (file->terminal->exclusive && !r->borrowed[file->id - 1] &&
	    ioctl(r->file_fd[file->id - 1], TIOCEXCL))
		return rebuild_error(file, -errno, "cannot make it exclusive");
	return 0;
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
	.complete = complete,
	.install = install,
};
