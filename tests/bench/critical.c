/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cost of entering and leaving a critical section without a checkpoint, with
 * one thread and with two; needs no module.  First it is done under a seccomp
 * filter that kills on any system call except exit: it makes none.
 */
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libcr/internal.h"

#define COUNT	10000000

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void pretend(void)
{
	cri.client = 0;			/* there is a service */
	cri_self.generation = cri.generation;
}

static void loop(void)
{
	for (int i = 0; i < COUNT; i++) {
		cr_enter_cs(0);
		cr_leave_cs(0);
	}
}

static void *beside(void *arg)
{
	pretend();
	loop();
	return arg;
}

/* In a child, which a system call would kill. */
static void check_silent(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		pretend();
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		loop();
		syscall(SYS_exit, 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "critical: a system call was made\n");
		exit(1);
	}
}

static double alone(void)
{
	double start = seconds();

	pretend();
	loop();
	return seconds() - start;
}

static double together(void)
{
	pthread_t thread;
	double start = seconds();

	pthread_create(&thread, NULL, beside, NULL);
	pretend();
	loop();
	pthread_join(thread, NULL);
	return seconds() - start;
}

int main(void)
{
	check_silent();
	printf("critical section, enter and leave, no system call: %.1f ns alone (limit 30), "
	       "%.1f ns beside another thread\n", alone() / COUNT * 1e9,
	       together() / COUNT * 1e9);
	return 0;
}
