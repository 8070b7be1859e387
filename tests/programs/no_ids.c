// SPDX-License-Identifier: GPL-2.0
/*
 * A family that never looks at a number: children are waited for by wait(2), threads
 * wake each other, and signals are sent to the own group.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool go;

static void *work(void *argument)
{
	pthread_mutex_lock(&mutex);
	while (!go)
		pthread_cond_wait(&condition, &mutex);
	pthread_mutex_unlock(&mutex);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread[4];
	int status, sum = 0;

	check_begin(argc, argv);
	for (int i = 0; i < 3; i++)
		if (!fork()) {
			check_wait();
			if (i == 2)
				raise(SIGTERM);
			_exit(10 + i);
		}
	for (int i = 0; i < 4; i++)
		NEED(!pthread_create(&thread[i], NULL, work, thread));
	check_ready();
	for (int i = 0; i < 3; i++) {
		CHECK(wait(&status) > 0);
		sum += WIFEXITED(status) ? WEXITSTATUS(status) : 1000 * WTERMSIG(status);
	}
	CHECK(sum == 10 + 11 + 1000 * SIGTERM);
	pthread_mutex_lock(&mutex);
	go = true;
	pthread_cond_broadcast(&condition);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(thread[i], NULL));
	if (!fork())
		_exit(getppid() > 1 ? 4 : 5);
	CHECK(wait(&status) > 0 && WEXITSTATUS(status) == 4);
	return check_end();
}
