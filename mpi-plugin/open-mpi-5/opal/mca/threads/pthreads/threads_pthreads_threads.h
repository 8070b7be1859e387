/* SPDX-License-Identifier: GPL-2.0 */
/* See threads_pthreads_mutex.h: another header that Debian's package lacks. */
#ifndef KCR_OPEN_MPI_5_THREADS_H
#define KCR_OPEN_MPI_5_THREADS_H

#include <pthread.h>
#include <sched.h>

static inline void opal_thread_yield(void)
{
	sched_yield();
}

#endif
