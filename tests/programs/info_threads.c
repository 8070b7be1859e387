// SPDX-License-Identifier: GPL-2.0
/*
 * Four threads in functions that a backtrace can name: two sleep at different
 * depths, one computes, the first waits; heap, shared memory and a global
 * variable for a debugger to look at.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "check.h"

struct node {
	struct node *next;
	int value;
};

struct node *info_list;
char *info_shared;
volatile unsigned long info_counter;

__attribute__((noinline)) static void info_deep(int depth)
{
	if (depth)
		info_deep(depth - 1);
	else
		pause();
	info_counter++;		/* not a tail call */
}

static void *info_sleep(void *depth)
{
	info_deep((intptr_t)depth);
	return NULL;
}

static void *info_compute(void *unused)
{
	(void)unused;
	for (;;)
		info_counter++;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	intptr_t i;

	check_begin(argc, argv);
	for (i = 1; i <= 3; i++) {
		struct node *node = malloc(sizeof(*node));

		NEED(node);
		node->value = 40 + i;
		node->next = info_list;
		info_list = node;
	}
	info_shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(info_shared != MAP_FAILED);
	strcpy(info_shared, "shared words");
	for (i = 1; i <= 2; i++)
		NEED(!pthread_create(&thread, NULL, info_sleep, (void *)i));
	NEED(!pthread_create(&thread, NULL, info_compute, NULL));
	check_ready();
	check_wait();
	return check_end();
}
