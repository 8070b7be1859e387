// SPDX-License-Identifier: GPL-2.0
#include "proc/thread.h"

#include <signal.h>
#include <stddef.h>

int thread_start(pthread_t *thread, void *(*function)(void *), void *argument)
{
	sigset_t all, old;
	pthread_t own;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&own, NULL, function, argument);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return -err;
	if (thread)
		*thread = own;
	else
		pthread_detach(own);
	return 0;
}
