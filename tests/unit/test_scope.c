// SPDX-License-Identifier: GPL-2.0
/*
 * Which processes belong to a checkpoint (checkpoint/scope.c).  A family is
 * made; a cousin of it, forked from here, does the looking, since a process
 * never sees itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/scope.h"

enum { PARENT, CHILD, GRANDCHILD, ZOMBIE, OTHER_GROUP, FAMILY };

static volatile pid_t *family;		/* shared */

static void sleep_forever(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static void wait_for(int who)
{
	while (!family[who])
		usleep(1000);
}

static void *idle(void *arg)
{
	sleep_forever();
	return arg;
}

static void be_parent(int nr_threads)
{
	pthread_t thread;
	siginfo_t end;
	pid_t child;

	setsid();
	family[PARENT] = getpid();
	for (int i = 0; i < nr_threads; i++)
		if (pthread_create(&thread, NULL, idle, NULL))
			_exit(2);
	if (!fork()) {
		family[CHILD] = getpid();
		if (!fork()) {
			family[GRANDCHILD] = getpid();
			sleep_forever();
		}
		sleep_forever();
	}
	wait_for(GRANDCHILD);
	if (!fork()) {
		setpgid(0, 0);
		family[OTHER_GROUP] = getpid();
		sleep_forever();
	}
	child = fork();
	if (!child)
		_exit(3);
	waitid(P_PID, child, &end, WEXITED | WNOWAIT);
	family[ZOMBIE] = child;
	sleep_forever();
}

static pid_t start_family(int nr_threads)
{
	pid_t parent;

	family = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	parent = fork();
	if (!parent)
		be_parent(nr_threads);
	for (int i = 0; i < FAMILY; i++)
		wait_for(i);
	return parent;
}

static void end_family(pid_t parent)
{
	kill(family[GRANDCHILD], SIGKILL);
	kill(family[CHILD], SIGKILL);
	kill(family[OTHER_GROUP], SIGKILL);
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	munmap((void *)family, 4096);
}

/* Position in the scope, or -1. */
static int place(const struct scope *s, int who)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->process[i].pid == family[who])
			return i;
	return -1;
}

/* In a cousin: 0, or the line that is wrong. */
#define MUST(condition) do { if (!(condition)) return __LINE__; } while (0)

static int look_at_tree(void)
{
	const struct scope_process *zombie;
	struct scope s = {};
	pid_t member;

	MUST(!scope_collect(&s, CHECKPOINT_TREE, family[PARENT], NULL, 0));
	MUST(s.count == FAMILY);
	MUST(place(&s, PARENT) == 0);
	MUST(place(&s, CHILD) >= 0 && place(&s, CHILD) < place(&s, GRANDCHILD));
	zombie = scope_find(&s, family[ZOMBIE]);
	MUST(zombie && zombie->zombie && zombie->exit_code == 3 << 8);
	MUST(!scope_find(&s, family[CHILD])->zombie);

	MUST(!scope_collect(&s, CHECKPOINT_TREE, family[CHILD], NULL, 0));
	MUST(s.count == 2);
	member = family[PARENT];	/* known to belong to it: all of its family does */
	MUST(!scope_collect(&s, CHECKPOINT_TREE, family[CHILD], &member, 1));
	MUST(s.count == FAMILY);
	MUST(place(&s, PARENT) < place(&s, CHILD) && place(&s, CHILD) < place(&s, GRANDCHILD));
	scope_free(&s);
	return 0;
}

static int look_at_others(void)
{
	struct scope s = {};

	MUST(!scope_collect(&s, CHECKPOINT_PROCESS, family[CHILD], NULL, 0));
	MUST(s.count == 1 && place(&s, CHILD) == 0);
	MUST(!scope_collect(&s, CHECKPOINT_GROUP, family[OTHER_GROUP], NULL, 0));
	MUST(s.count == 1 && place(&s, OTHER_GROUP) == 0);
	MUST(!scope_collect(&s, CHECKPOINT_GROUP, family[PARENT], NULL, 0));
	MUST(s.count == FAMILY - 1 && place(&s, OTHER_GROUP) < 0 && place(&s, PARENT) == 0);
	MUST(!scope_collect(&s, CHECKPOINT_SESSION, family[PARENT], NULL, 0));
	MUST(s.count == FAMILY);
	/* Itself and its own children never. */
	MUST(!scope_collect(&s, CHECKPOINT_PROCESS, getpid(), NULL, 0) && !s.count);
	MUST(!scope_collect(&s, CHECKPOINT_TREE, getpid(), NULL, 0) && !s.count);
	MUST(!scope_collect(&s, CHECKPOINT_TREE, getppid(), NULL, 0) && s.count == FAMILY + 1);
	MUST(!scope_find(&s, getpid()));
	scope_free(&s);
	return 0;
}

static int look_at_nobody(void)
{
	struct scope_process p;
	struct scope s = {};

	MUST(scope_look(0x7ffffffe, &p) == -ESRCH);
	for (int kind = CHECKPOINT_PROCESS; kind <= CHECKPOINT_TREE; kind++)
		MUST(!scope_collect(&s, kind, 0x7ffffffe, NULL, 0) && !s.count);
	MUST(!scope_look(1, &p) && p.ppid == 0 && !p.zombie);
	scope_free(&s);
	return 0;
}

static void run(int (*look)(void), int nr_threads)
{
	pid_t parent = start_family(nr_threads), cousin;
	int status;

	cousin = fork();
	if (!cousin) {
		int line = look();

		if (line)
			print_error("not so in line %d\n", line);
		_exit(line != 0);
	}
	assert_int_equal(waitpid(cousin, &status, 0), cousin);
	end_family(parent);
	assert_int_equal(status, 0);
}

static void test_tree(void **state)
{
	(void)state;
	run(look_at_tree, 0);
}

/* So many threads that all of /proc is looked at. */
static void test_tree_with_threads(void **state)
{
	(void)state;
	run(look_at_tree, 100);
}

static void test_others(void **state)
{
	(void)state;
	run(look_at_others, 0);
}

static void test_nobody(void **state)
{
	(void)state;
	run(look_at_nobody, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_tree_with_threads),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
