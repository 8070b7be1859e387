// SPDX-License-Identifier: GPL-2.0
/*
 * Who gets the signals of a descriptor: a thread, the process, its group (F_SETOWN_EX).
 */
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "check.h"

static pthread_barrier_t barrier;
static pid_t tid;

static void *idle(void *argument)
{
	tid = syscall(SYS_gettid);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);		/* who has ended owns nothing */
	return argument;
}

static bool is_owned(int fd, int type, pid_t pid)
{
	struct f_owner_ex owner = { };

	return !fcntl(fd, F_GETOWN_EX, &owner) && (int)owner.type == type && owner.pid == pid;
}

int main(int argc, char **argv)
{
	pid_t pids[4];
	const int types[] = { F_OWNER_TID, F_OWNER_TID, F_OWNER_PID, F_OWNER_PGRP };
	pthread_t thread;
	int fd[4];

	check_begin(argc, argv);
	NEED(!pthread_barrier_init(&barrier, NULL, 2));
	NEED(!pthread_create(&thread, NULL, idle, NULL));
	pthread_barrier_wait(&barrier);
	pids[0] = tid;
	pids[1] = pids[2] = getpid();
	pids[3] = getpgrp();
	for (int i = 0; i < 4; i++) {
		struct f_owner_ex owner = { types[i], pids[i] };

		fd[i] = socket(AF_UNIX, SOCK_DGRAM, 0);
		NEED(fd[i] >= 0 && !fcntl(fd[i], F_SETOWN_EX, &owner));
	}
	check_ready();
	check_wait();
	for (int i = 0; i < 4; i++)
		CHECK(is_owned(fd[i], types[i], pids[i]));
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	return check_end();
}
