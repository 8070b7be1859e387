/* SPDX-License-Identifier: GPL-2.0 */
/*
 * --run-on-*=CMD of cr_restart: a shell command for the outcome.
 */
#ifndef KCR_UTIL_HOOKS_H
#define KCR_UTIL_HOOKS_H

enum hook {
	HOOK_SUCCESS,
	HOOK_FAIL_ARGS,		/* usage, or a file that can't be opened */
	HOOK_FAIL_TEMP,		/* ENOMEM, EBUSY: may work later */
	HOOK_FAIL_ENV,		/* EACCES, EPERM, ENOENT, EEXIST, EISDIR, ENOTDIR */
	HOOK_FAIL_PERM,		/* everything else: will not work */
	HOOK_FAILURE,		/* any failure without a hook of its own */
	HOOK_COUNT,
};

void hook_set(enum hook hook, const char *command);
int hook_is_set(enum hook hook);

/* The class of a failure (-errno) after the arguments were parsed. */
enum hook hook_class(int err);

/*
 * Runs the hook of an outcome (a failure falls back to HOOK_FAILURE).
 * Returns its exit status, 128 + N for a signal N, -1 if there is no such hook.
 */
int hook_run(enum hook hook);

#endif /* KCR_UTIL_HOOKS_H */
