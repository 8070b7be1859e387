// SPDX-License-Identifier: GPL-2.0
/*
 * The outcome of a restart, and the user's command for it.  See hooks.h.
 */
#include "hooks.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

static const char *commands[HOOK_COUNT];

void hook_set(enum hook hook, const char *command)
{
	commands[hook] = command;
}

int hook_is_set(enum hook hook)
{
	return commands[hook] != NULL;
}

enum hook hook_class(int err)
{
	switch (-err) {
	case ENOMEM:
	case EBUSY:
		return HOOK_FAIL_TEMP;
	case EACCES:
	case EPERM:
	case ENOENT:
	case EEXIST:
	case EISDIR:
	case ENOTDIR:
		return HOOK_FAIL_ENV;
	default:
		return HOOK_FAIL_PERM;
	}
}

int hook_run(enum hook hook)
{
	const char *command = commands[hook];
	int status;

	if (!command && hook != HOOK_SUCCESS)
		command = commands[HOOK_FAILURE];
	if (!command)
		return -1;
	status = system(command);
	if (status == -1)
		return 127;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
