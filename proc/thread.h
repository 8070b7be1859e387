/* SPDX-License-Identifier: GPL-2.0 */
/* Threads beside the one that the program is. */
#ifndef KCR_PROC_THREAD_H
#define KCR_PROC_THREAD_H

#include <pthread.h>

/*
 * Starts a thread that has all signals blocked: they go to the others, whose handlers clean up.
 * thread: NULL: nobody will join it.  0 or -errno.
 */
int thread_start(pthread_t *thread, void *(*function)(void *), void *argument);

#endif /* KCR_PROC_THREAD_H */
