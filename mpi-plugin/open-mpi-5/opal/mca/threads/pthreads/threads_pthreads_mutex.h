/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Debian's libopenmpi-dev 5.0 names this header in opal_config.h but does not
 * ship it.  It maps Open MPI's internal locks to POSIX threads; what is here
 * must agree with the libraries in the types (they are embedded in others).
 */
#ifndef KCR_OPEN_MPI_5_MUTEX_H
#define KCR_OPEN_MPI_5_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER PTHREAD_COND_INITIALIZER

static inline int opal_thread_internal_mutex_init(opal_thread_internal_mutex_t *mutex,
						  bool recursive)
{
	pthread_mutexattr_t attributes;
	int rc;

	pthread_mutexattr_init(&attributes);
	if (recursive)
		pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	rc = pthread_mutex_init(mutex, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return rc;
}

#define opal_thread_internal_mutex_lock(mutex) ((void)pthread_mutex_lock(mutex))
#define opal_thread_internal_mutex_trylock(mutex) pthread_mutex_trylock(mutex)
#define opal_thread_internal_mutex_unlock(mutex) ((void)pthread_mutex_unlock(mutex))
#define opal_thread_internal_mutex_destroy(mutex) ((void)pthread_mutex_destroy(mutex))

#define opal_thread_internal_cond_init(cond) pthread_cond_init(cond, NULL)
#define opal_thread_internal_cond_wait(cond, mutex) ((void)pthread_cond_wait(cond, mutex))
#define opal_thread_internal_cond_broadcast(cond) ((void)pthread_cond_broadcast(cond))
#define opal_thread_internal_cond_signal(cond) ((void)pthread_cond_signal(cond))
#define opal_thread_internal_cond_destroy(cond) ((void)pthread_cond_destroy(cond))

#endif
