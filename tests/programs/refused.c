// SPDX-License-Identifier: GPL-2.0
/* Has what no checkpoint can take along: `files`, a thread with descriptors of its own. */
#include <pthread.h>
#include <sched.h>

#include "check.h"

static void *part(void *unused)
{
	NEED(!unshare(CLONE_FILES));
	check_ready();
	for (;;)
		pause();
	return unused;
}

static void files(void)
{
	pthread_t thread;

	NEED(!pthread_create(&thread, NULL, part, NULL));
	check_wait();
}

int main(int argc, char **argv)
{
	static const struct check kinds[] = { { "files", files }, { NULL, NULL } };

	return check_one(argc, argv, kinds);
}
