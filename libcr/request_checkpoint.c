// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cr_request_checkpoint() and related calls: from arguments to a command
 * line of cr_checkpoint(1).
 */
#include "libcr/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KNOWN_FLAGS	(CR_CHKPT_PROHIBIT_SELF | CR_CHKPT_PTRACED_ALLOW | \
			 CR_CHKPT_PTRACED_SKIP | CR_CHKPT_PTRACER_SKIP | \
			 CR_CHKPT_ASYNC_ERR | CR_CHKPT_DUMP_ALL)
#define MAX_OPTIONS	24

struct command {
	const char *option[MAX_OPTIONS];
	int count;
	char target[16], signal[16], timeout[16], self[16];
};

static void add(struct command *command, const char *option)
{
	command->option[command->count++] = option;
}

static const char *number(char *buffer, long value)
{
	sprintf(buffer, "%ld", value);
	return buffer;
}

/* 0 or an errno. */
static int check_destination(int fd)
{
	struct stat st;
	int mode;

	if (fd == CR_DEST_CWD)
		return 0;
	mode = fcntl(fd, F_GETFL);
	if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY || fstat(fd, &st))
		return EBADF;
	return S_ISREG(st.st_mode) && st.st_nlink > 1 ? EMLINK : 0;
}

static pid_t target_of(const cr_checkpoint_args_t *args)
{
	if (args->cr_target)
		return args->cr_target;
	switch (args->cr_scope) {
	case CR_SCOPE_PGRP:
		return getpgrp();
	case CR_SCOPE_SESS:
		return getsid(0);
	default:
		return getpid();
	}
}

/* The parent of a process, or 0. */
static pid_t parent_of(pid_t pid)
{
	char path[32], text[1024];
	const char *after;
	ssize_t length;
	int fd, parent;
	char state;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	after = strrchr(text, ')');
	return after && sscanf(after + 1, " %c %d", &state, &parent) == 2 ? parent : 0;
}

/* Is the caller part of it? */
static bool includes_self(const cr_checkpoint_args_t *args)
{
	pid_t target = target_of(args), pid = getpid();

	switch (args->cr_scope) {
	case CR_SCOPE_PROC:
		return target == pid;
	case CR_SCOPE_PGRP:
		return target == getpgrp();
	case CR_SCOPE_SESS:
		return target == getsid(0);
	default:
		while (pid > 0 && pid != target)
			pid = parent_of(pid);
		return pid == target;
	}
}

static int check(const cr_checkpoint_args_t *args)
{
	if (args->cr_version != CR_CHECKPOINT_ARGS_VERSION || args->cr_target < 0 ||
	    (unsigned int)args->cr_scope > CR_SCOPE_TREE || args->cr_flags & ~KNOWN_FLAGS ||
	    args->cr_signal < 0 || args->cr_signal > 64 || args->cr_timeout > INT32_MAX)
		return EINVAL;
	if (cri_is_busy())
		return EBUSY;
	return check_destination(args->cr_fd);
}

static void add_flags(struct command *command, unsigned int flags)
{
	static const struct {
		unsigned int flag;
		const char *option;
	} options[] = {
		{ CR_CHKPT_PTRACED_ALLOW, "--ptraced-allow" },
		{ CR_CHKPT_PTRACED_SKIP, "--ptraced-skip" },
		{ CR_CHKPT_PTRACER_SKIP, "--ptracer-skip" },
		{ CR_CHKPT_DUMP_EXEC, "--save-exe" },
		{ CR_CHKPT_DUMP_PRIVATE, "--save-private" },
		{ CR_CHKPT_DUMP_SHARED, "--save-shared" },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (flags & options[i].flag)
			add(command, options[i].option);
}

static void fill(struct command *command, const cr_checkpoint_args_t *args)
{
	static const char *const scopes[] = { "--process", "--group", "--session", "--tree" };

	add(command, scopes[args->cr_scope]);
	add(command, "--requester");
	add(command, number(command->self, getpid()));
	if (args->cr_fd == CR_DEST_CWD) {
		add(command, "--cwd");
	} else {
		add(command, "--fd");
		add(command, "4");		/* CRI_TOOL_FD */
	}
	if (args->cr_signal) {
		add(command, "--signal");
		add(command, number(command->signal, args->cr_signal));
	}
	if (args->cr_timeout) {
		add(command, "--time");
		add(command, number(command->timeout, args->cr_timeout));
	}
	if (args->cr_flags & CR_CHKPT_PROHIBIT_SELF) {
		add(command, "--prohibit");
		add(command, command->self);
	}
	add_flags(command, args->cr_flags);
	add(command, number(command->target, target_of(args)));
	add(command, NULL);
}

static int start(const cr_checkpoint_args_t *args, bool self)
{
	struct command command = {};
	int handle, err;

	fill(&command, args);
	handle = cri_job_start("cr_checkpoint", command.option,
			       args->cr_fd == CR_DEST_CWD ? -1 : args->cr_fd, false,
			       self);
	if (handle < 0)
		return -1;
	if (!(args->cr_flags & CR_CHKPT_ASYNC_ERR)) {
		err = cri_job_accepted(handle);
		if (err) {
			errno = err;
			return -1;
		}
	}
	if (!self)
		return handle;
	/* Not to the end from within a critical section: it would deadlock. */
	if (cri_self.generation == cri.generation && cri_self.depth)
		cri_job_pending(handle);
	else
		while (cri_job_wait(handle, NULL, false) < 0 && errno == EINTR)
			;
	return handle;
}

int cr_request_checkpoint(cr_checkpoint_args_t *args, cr_checkpoint_handle_t *handle)
{
	bool self;
	int fd, err = args && handle ? check(args) : EINVAL;

	self = !err && includes_self(args);
	if (self && args->cr_flags & CR_CHKPT_PROHIBIT_SELF)
		err = EDEADLK;
	if (err) {
		errno = err;
		return -1;
	}
	fd = start(args, self);
	if (fd < 0)
		return -1;
	*handle = fd;
	return 0;
}

int cr_wait_checkpoint(cr_checkpoint_handle_t *handle, struct timeval *timeout)
{
	return cri_job_wait(*handle, timeout, false);
}

int cr_log_checkpoint(cr_checkpoint_handle_t *handle, unsigned int len, char *buf)
{
	return cri_job_log(*handle, len, buf, false);
}

int cr_reap_checkpoint(cr_checkpoint_handle_t *handle)
{
	return cri_job_reap(*handle, false);
}

int cr_poll_checkpoint(cr_checkpoint_handle_t *handle, struct timeval *timeout)
{
	return cri_job_poll(*handle, timeout, NULL, false);
}

int cr_poll_checkpoint_msg(cr_checkpoint_handle_t *handle, struct timeval *timeout, char **msg)
{
	return cri_job_poll(*handle, timeout, msg, false);
}
