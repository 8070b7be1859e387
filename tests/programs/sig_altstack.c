// SPDX-License-Identifier: GPL-2.0
/*
 * A thread that is in a handler on its alternate stack, and one that has only set
 * one up; both keep it.
 */
#include <pthread.h>
#include <signal.h>

#include "check.h"

static char stack[2][65536];
static char *volatile frame;

static void on_signal(int signal)
{
	char local = 42;

	(void)signal;
	frame = &local;
	if (check_ready_file) {
		check_ready();
		check_ready_file = NULL;
		check_wait();
	}
	CHECK(local == 42);
}

static void *other(void *argument)
{
	stack_t set = { .ss_sp = stack[1], .ss_size = sizeof(stack[1]) }, now;

	NEED(!sigaltstack(&set, NULL));
	check_wait();
	CHECK(!sigaltstack(NULL, &now) && now.ss_sp == stack[1] && !now.ss_flags &&
	      now.ss_size == sizeof(stack[1]));
	return argument;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	stack_t set = { .ss_sp = stack[0], .ss_size = sizeof(stack[0]) }, now;
	pthread_t thread;

	check_begin(argc, argv);
	NEED(!sigaltstack(&set, NULL) && !sigaction(SIGUSR1, &action, NULL));
	NEED(!pthread_create(&thread, NULL, other, NULL));
	check_sleep_ms(100);
	raise(SIGUSR1);
	CHECK(frame > stack[0] && frame < stack[0] + sizeof(stack[0]));
	CHECK(!sigaltstack(NULL, &now) && now.ss_sp == stack[0] && !now.ss_flags);
	frame = NULL;
	raise(SIGUSR1);
	CHECK(frame > stack[0] && frame < stack[0] + sizeof(stack[0]));
	CHECK(!pthread_join(thread, NULL));
	return check_end();
}
