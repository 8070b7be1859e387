// SPDX-License-Identifier: GPL-2.0
/*
 * PR_SET_SYSCALL_USER_DISPATCH: a thread whose system calls a selector in its memory blocks, and
 * one that may make those of the C library only; they get SIGSYS for others, the first thread
 * none.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH	59
#define PR_SYS_DISPATCH_ON		1
#endif
#define ALLOW	0
#define BLOCK	1

static volatile int ready, go;
static __thread volatile char selector;
static __thread volatile int caught;

static void on_signal(int signal)
{
	(void)signal;
	caught++;
	selector = ALLOW;
}

/* Not by the C library. */
static long call(long number)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
	return result;
}

/* The kernel leaves the number of a call that it does not make. */
static void expect_signal(void)
{
	CHECK(call(SYS_getpid) == SYS_getpid && caught == 1);
}

static void *with_selector(void *unused)
{
	NEED(!prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector));
	selector = BLOCK;
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	while (!go)
		;
	expect_signal();
	CHECK(call(SYS_getpid) == getpid());
	selector = BLOCK;
	CHECK(call(SYS_getppid) == SYS_getppid && caught == 2);
	return unused;
}

static void find_library(unsigned long *start, unsigned long *end)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long function = (unsigned long)nanosleep;
	char line[512];

	NEED(f);
	while (fgets(line, sizeof(line), f) && (sscanf(line, "%lx-%lx", start, end) != 2 ||
						function < *start || function >= *end))
		;
	fclose(f);
	NEED(function >= *start && function < *end);
}

static void *with_range(void *unused)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	unsigned long start, end;

	find_library(&start, &end);
	NEED(!prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, start, end - start, NULL));
	__atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
	while (!go)
		nanosleep(&pause, NULL);
	expect_signal();
	return unused;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t thread[2];

	check_begin(argc, argv);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0))
		check_skip("this kernel has no PR_SET_SYSCALL_USER_DISPATCH");
	NEED(!sigaction(SIGSYS, &action, NULL));
	NEED(!pthread_create(&thread[0], NULL, with_selector, NULL));
	NEED(!pthread_create(&thread[1], NULL, with_range, NULL));
	while (ready < 2)
		check_sleep_ms(1);
	checkpoint_here();
	CHECK(call(SYS_getpid) == getpid());
	go = 1;
	NEED(!pthread_join(thread[0], NULL) && !pthread_join(thread[1], NULL));
	CHECK(!caught);
	return check_end();
}
