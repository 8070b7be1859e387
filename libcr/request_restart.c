// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cr_request_restart() and related calls: from arguments to a command
 * line of cr_restart(1).  While it runs the program is a subreaper
 * (PR_SET_CHILD_SUBREAPER): when cr_restart ends, its children become ours.
 */
#include "libcr/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KNOWN_FLAGS	(CR_RSTRT_ASYNC_ERR | CR_RSTRT_RESTORE_PID | CR_RSTRT_RESTORE_PGID | \
			 CR_RSTRT_RESTORE_SID)
#define MAX_OPTIONS	(CR_MAX_RSTRT_RELOC + 12)

struct command {
	const char *option[MAX_OPTIONS];
	int count;
	char signal[16], self[32];
	char *relocate[CR_MAX_RSTRT_RELOC];
	int nr_relocate;
};

static void add(struct command *command, const char *option)
{
	command->option[command->count++] = option;
}

/* OLD with its '=' and '\' escaped, '=', NEW likewise. */
static char *relocation(const char *old, const char *new)
{
	static const char option[] = "--relocate=";
	char *text = malloc(sizeof(option) + 2 * strlen(old) + 2 * strlen(new) + 2), *to = text;

	if (!text)
		return NULL;
	to = stpcpy(to, option);
	for (; *old; *to++ = *old++)
		if (*old == '=' || *old == '\\')
			*to++ = '\\';
	*to++ = '=';
	for (; *new; *to++ = *new++)
		if (*new == '=' || *new == '\\')
			*to++ = '\\';
	*to = '\0';
	return text;
}

/* 0 or an errno. */
static int add_relocations(struct command *command, const struct cr_rstrt_relocate *relocate)
{
	for (unsigned int i = 0; relocate && i < relocate->count; i++) {
		char *text = relocation(relocate->path[i].oldpath, relocate->path[i].newpath);

		if (!text)
			return ENOMEM;
		command->relocate[command->nr_relocate++] = text;
		add(command, text);
	}
	return 0;
}

static bool is_absolute(const char *path)
{
	return path && *path == '/';
}

static bool can_relocate(const struct cr_rstrt_relocate *relocate)
{
	if (relocate->count > CR_MAX_RSTRT_RELOC)
		return false;
	for (unsigned int i = 0; i < relocate->count; i++)
		if (!is_absolute(relocate->path[i].oldpath) ||
		    !is_absolute(relocate->path[i].newpath))
			return false;
	return true;
}

static int check(const cr_restart_args_t *args)
{
	struct stat st;
	int mode;

	if (args->cr_version != CR_RESTART_ARGS_VERSION || args->cr_flags & ~KNOWN_FLAGS ||
	    args->cr_signal < 0 || args->cr_signal > 64 ||
	    (args->cr_relocate && !can_relocate(args->cr_relocate)))
		return EINVAL;
	if (cri_is_busy())
		return EBUSY;
	mode = fcntl(args->cr_fd, F_GETFL);
	if (mode < 0 || (mode & O_ACCMODE) == O_WRONLY || fstat(args->cr_fd, &st))
		return EBADF;
	return S_ISDIR(st.st_mode) ? EISDIR : 0;
}

static int fill(struct command *command, const cr_restart_args_t *args)
{
	add(command, "--fd=4");			/* CRI_TOOL_FD */
	sprintf(command->self, "--requester=%d", getpid());
	add(command, command->self);
	if (args->cr_signal) {
		sprintf(command->signal, "-S%d", args->cr_signal);
		add(command, command->signal);
	}
	add(command, args->cr_flags & CR_RSTRT_RESTORE_PID ? "--restore-pid" :
							      "--no-restore-pid");
	if (args->cr_flags & CR_RSTRT_RESTORE_PGID)
		add(command, "--restore-pgid");
	if (args->cr_flags & CR_RSTRT_RESTORE_SID)
		add(command, "--restore-sid");
	return add_relocations(command, args->cr_relocate);
}

int cr_request_restart(cr_restart_args_t *args, cr_restart_handle_t *handle)
{
	struct command command = {};
	int fd = -1, err = args && handle ? check(args) : EINVAL;

	if (!err)
		err = fill(&command, args);
	if (!err) {
		fd = cri_job_start("cr_restart", command.option, args->cr_fd, true, false);
		err = fd < 0 ? errno : 0;
	}
	for (int i = 0; i < command.nr_relocate; i++)
		free(command.relocate[i]);
	/* A restart is accepted only when it is complete. */
	if (!err && !(args->cr_flags & CR_RSTRT_ASYNC_ERR))
		err = cri_job_accepted(fd);
	if (err) {
		errno = err;
		return -1;
	}
	*handle = fd;
	return 0;
}

int cr_wait_restart(cr_restart_handle_t *handle, struct timeval *timeout)
{
	return cri_job_wait(*handle, timeout, true);
}

int cr_log_restart(cr_restart_handle_t *handle, unsigned int len, char *buf)
{
	return cri_job_log(*handle, len, buf, true);
}

int cr_reap_restart(cr_restart_handle_t *handle)
{
	return cri_job_reap(*handle, true);
}

int cr_poll_restart(cr_restart_handle_t *handle, struct timeval *timeout)
{
	return cri_job_poll(*handle, timeout, NULL, true);
}

int cr_poll_restart_msg(cr_restart_handle_t *handle, struct timeval *timeout, char **msg)
{
	return cri_job_poll(*handle, timeout, msg, true);
}
