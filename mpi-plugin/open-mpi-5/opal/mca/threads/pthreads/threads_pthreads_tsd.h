/* SPDX-License-Identifier: GPL-2.0 */
/* See threads_pthreads_mutex.h: another header that Debian's package lacks. */
#ifndef KCR_OPEN_MPI_5_TSD_H
#define KCR_OPEN_MPI_5_TSD_H

#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;

#define opal_tsd_key_delete(key) pthread_key_delete(key)
#define opal_tsd_setspecific(key, value) pthread_setspecific(key, value)

static inline int opal_tsd_getspecific(opal_tsd_key_t key, void **value)
{
	*value = pthread_getspecific(key);
	return 0;
}

#endif
