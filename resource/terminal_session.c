// SPDX-License-Identifier: GPL-2.0
/*
 * The controlling terminal of a session whose terminal is in the image too
 * (both ends of a pseudo-terminal).  Sessions and groups themselves are created
 * by restart/skeleton.c; a program whose terminal is outside gets that of
 * cr_restart.
 */
#include "resource/attribute.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "proc/status.h"
#include "rebuild/script.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/terminal.h"

#define STAT_TTY	7
#define STAT_FOREGROUND	8

static int terminal_save(const struct process_probe *probe, Kcr__Process *p)
{
	if (stat_number(probe->stat, STAT_TTY)) {
		p->has_tty_foreground = true;
		p->tty_foreground = stat_number(probe->stat, STAT_FOREGROUND);
		p->has_tty_device = true;
		p->tty_device = stat_number(probe->stat, STAT_TTY);
	}
	return 0;
}

/* Is this file the terminal that the leader of a session had, or the master of it? */
static bool is_terminal_of(const Kcr__Process *p, const Kcr__File *file)
{
	const Kcr__Terminal *terminal = file->terminal;

	if (file->kind_case != KCR__FILE__KIND_TERMINAL || !terminal->pty_inside)
		return false;
	if (!p->has_tty_device)		/* not in older context files */
		return !terminal->pty_master && process_has_number(p, file->id, -1);
	return terminal->has_pty_index &&
	       (int)terminal->pty_index == terminal_pty_index(p->tty_device);
}

/*
 * The terminal of the session that p leads, whichever process has it open; -1: it has
 * none, or not one from the image.  The kernel requires a readable descriptor, and takes
 * that of the master as well: a session keeps its terminal when nobody has it open.
 */
static int inner_terminal(const struct rebuild *r, const Kcr__Process *p)
{
	int fd = -1;

	if (p->pid != p->sid || !p->has_tty_foreground)
		return -1;
	for (size_t i = 0; i < r->context->nr_files; i++) {
		const Kcr__File *file = r->context->file[i];

		if (r->file_fd[i] < 0 || !is_terminal_of(p, file))
			continue;
		fd = r->file_fd[i];
		if ((file->flags & O_ACCMODE) != O_WRONLY)
			break;
	}
	return fd;
}

int terminal_take(const struct rebuild *r, const Kcr__Process *p)
{
	int fd = inner_terminal(r, p);

	if (fd < 0 && p->pid == p->sid && p->has_tty_device)
		report_warn("process %d led the session of a terminal that is not in the context "
			    "file, and has no controlling terminal now", p->pid);
	return fd >= 0 && ioctl(fd, TIOCSCTTY, 0) < 0 ? -errno : 0;
}

/*
 * Not earlier: the foreground group may be that of a process that shares another's
 * memory, which is created by script.
 */
static int terminal_script_last(struct rebuild *r, const Kcr__Process *p, struct script *s)
{
	int fd = inner_terminal(r, p);
	int32_t group = p->tty_foreground;

	if (fd >= 0 && group > 0 && !r->restore_ids)
		group = rebuild_group(r, group);
	if (fd >= 0 && group > 0)
		script_call_try(s, "ioctl(TIOCSPGRP)", SYS_ioctl, fd, TIOCSPGRP,
				script_data(s, &group, sizeof(group)), 0, 0, 0);
	return 0;
}

const struct attribute attribute_terminal = {
	.name = "terminal",
	.save = terminal_save,
	.script_last = terminal_script_last,
};
