// SPDX-License-Identifier: GPL-2.0
/*
 * The controlling terminal of a session whose terminal is in the image too
 * (both ends of a pseudo-terminal).  Sessions and groups themselves are made
 * by restart/skeleton.c; a program whose terminal is outside gets that of
 * cr_restart.
 */
#include "resource/attribute.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "report/report.h"
#include "restart/script.h"

#define STAT_TTY	7
#define STAT_FOREGROUND	8

static int terminal_save(const struct process_probe *probe, Kcr__Process *p)
{
	if (stat_number(probe->stat, STAT_TTY)) {
		p->has_tty_foreground = true;
		p->tty_foreground = stat_number(probe->stat, STAT_FOREGROUND);
	}
	return 0;
}

/* A descriptor of its that is a slave whose master is in the image; -1: none. */
static int inner_terminal(const struct rebuild *r, const Kcr__Process *p)
{
	for (size_t i = 0; i < p->n_descriptor; i++) {
		const Kcr__File *file = context_file(r->context, p->descriptor[i]->file_id);

		if (file && file->kind_case == KCR__FILE__KIND_TERMINAL &&
		    file->terminal->pty_inside && !file->terminal->pty_master)
			return p->descriptor[i]->fd;
	}
	return -1;
}

static int terminal_rebuild(struct rebuild *r, const Kcr__Process *p)
{
	int fd;

	if (p->pid != p->sid || !p->has_tty_foreground)
		return 0;
	fd = inner_terminal(r, p);
	if (fd >= 0 && ioctl(fd, TIOCSCTTY, 0) < 0)
		return report_errno(-errno, "process %d: cannot get back its terminal", p->pid);
	return 0;
}

static int terminal_script_last(struct rebuild *r, const Kcr__Process *p, struct script *s)
{
	int fd = -1;

	if (p->pid == p->sid && p->has_tty_foreground && p->tty_foreground > 0 && r->restore_ids)
		fd = inner_terminal(r, p);
	if (fd >= 0)
		script_call_try(s, "ioctl(TIOCSPGRP)", SYS_ioctl, fd, TIOCSPGRP,
				script_data(s, &p->tty_foreground, sizeof(p->tty_foreground)),
				0, 0, 0);
	return 0;
}

const struct attribute attribute_terminal = {
	.name = "terminal",
	.save = terminal_save,
	.rebuild = terminal_rebuild,
	.script_last = terminal_script_last,
};
