/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Standing for a program towards whoever started us, as cr_restart does after the restart:
 * passing signals on and ending as the program ends.
 */
#ifndef KCR_UTIL_FOLLOW_H
#define KCR_UTIL_FOLLOW_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Blocks the signals that follow_leader() passes on; call before the restart
 * so that none is lost meanwhile.  Those that interrupt a restart act at once
 * until follow_commit().  The old mask is kept for follow_end().
 */
void follow_begin(void);

/* From here on all wait for follow_leader(): the program is about to run. */
void follow_commit(void);

/* The program will not run: discards the signals, then as follow_end(). */
void follow_fail(void);

/* Restores the signal mask. */
void follow_end(void);

/*
 * Waits until the leader ends, passing signals to it.  Returns its status as
 * of waitpid(2), or -errno (ECHILD: another process reaped it).  If the
 * terminal is shared (foreground.h), it stops when the leader stops.
 */
int follow_leader(pid_t leader);

/*
 * For one that does more than follow_leader(): waits for a signal, SIGCHLD included, for
 * timeout_ns at most (UINT64_MAX: for ever).  Has there been one?
 */
bool follow_wait(siginfo_t *info, uint64_t timeout_ns);
/*
 * Passes a signal on to the leader as follow_leader() does: not what came from our own writing, to a
 * pipe without a reader or beyond RLIMIT_FSIZE.
 */
void follow_pass_on(const siginfo_t *info, pid_t leader);

/* Ends this process as in `status`: with the same exit code or by the same signal. */
void follow_mimic(int status) __attribute__((noreturn));

#endif /* KCR_UTIL_FOLLOW_H */
