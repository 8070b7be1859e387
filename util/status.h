/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a tool says to the program that runs it; without the options nothing happens.
 *
 * To libcr (--status-fd): lines that begin with a byte 1, among the messages.
 * libcr/request.c is the reader.
 *
 * To the daemon of an MPI job, job/coordinator/dump.c (--hold-fd, with --snapshot): no rank
 * is stopped before all have passed the checks and the job is at rest, and no copy is
 * written before all ranks have one, so that nobody who writes keeps others from being
 * copied.
 */
#ifndef KCR_UTIL_STATUS_H
#define KCR_UTIL_STATUS_H

#include <stdbool.h>
#include <sys/types.h>

/* From the argument of --status-fd: 0, or -EINVAL with a message. */
int status_open(const char *number);
/*
 * checkpoint_options.begun: the request is accepted, all that can be checked beforehand was
 * checked.  With --hold-fd it waits for a byte.
 */
int status_begun(void);
/* It is over: 0 or an error number; pid: of the restarted leader, 0: none.  Async-signal-safe. */
void status_done(int error, pid_t pid);
/* Nothing more will be written: who reads until the end need not wait for ours. */
void status_close(void);
/* Was --status-fd given, and is it still read? */
int status_is_open(void);

/* From the argument of --hold-fd: 0, or -EINVAL with a message.  The parent's end ends this process. */
int hold_open(const char *number);
/* Likewise that of --hold-end-fd. */
int hold_end_open(const char *number);
/* Waits for a byte from it: 0, or -ECANCELED with a message. */
int hold_end_wait(void);
/* checkpoint_options.released: with --hold-fd it prints the event and waits for a byte. */
int status_released(bool copied);

#endif /* KCR_UTIL_STATUS_H */
