/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clients and processes that come and go: a forked child that takes no part, one
 * that calls cr_init() anew, one that is added by a callback of its parent
 * (cr_forward_checkpoint) or may not be (prohibited), one that callbacks of many threads
 * add at once (crowd), another user's that may not be either (foreign, and its number),
 * exec(2), threads that end, a program that closes all its descriptors.  The third argument
 * says which.
 */
#include <libcr.h>

#include <pthread.h>
#include <stdatomic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/programs/check.h"

#define NR_CROWD	8

/* Shared by the processes. */
static struct shared {
	atomic_int parent, child, forwarded, error, known;
} *shared;

static pid_t forward_to;
static bool refused;

static int count(void *arg)
{
	(*(atomic_int *)arg)++;
	if (forward_to) {
		CHECK(cr_forward_checkpoint(CR_SCOPE_PROC, 1234567) == -1 && errno == ESRCH);
		CHECK(cr_forward_checkpoint((cr_scope_t)9, 1) == -1 && errno == EINVAL);
		CHECK(cr_forward_checkpoint(CR_SCOPE_PROC, -1) == -1 && errno == EINVAL);
		CHECK(cr_forward_checkpoint(CR_SCOPE_PROC, 1) == -1 && errno == EPERM);
		if (cr_forward_checkpoint(CR_SCOPE_TREE, forward_to))
			shared->error = errno;
		/* Once more does no harm. */
		CHECK(refused || cr_forward_checkpoint(CR_SCOPE_PROC, forward_to) == 0);
	}
	CHECK(cr_checkpoint(CR_CHECKPOINT_READY) >= 0);
	CHECK(cr_forward_checkpoint(CR_SCOPE_PROC, getpid()) == -1 && errno == CR_ENOTCB);
	return 0;
}

static void wait_for_go(void)
{
	while (!check_gone())
		usleep(10000);
}

/* The child is a member of the tree, and none of the module's clients. */
static void plain_child(void)
{
	pid_t pid = fork();
	int status;

	NEED(pid >= 0);
	if (!pid) {
		CHECK(cr_status() == -1 && errno == CR_ENOINIT);
		CHECK(cr_enter_cs(0) == -1 && errno == CR_ENOINIT);
		wait_for_go();
		_exit(check_end());
	}
	check_ready();
	wait_for_go();
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(shared->parent > 0 && !shared->child);
}

static void client_child(bool forward)
{
	pid_t pid = fork();
	int status;

	NEED(pid >= 0);
	if (!pid) {
		setsid();
		NEED(cr_init() == 0);
		NEED(cr_register_callback(count, &shared->child, CR_THREAD_CONTEXT) >= 0);
		while (!shared->known)
			usleep(1000);
		check_ready();
		wait_for_go();
		_exit(check_end());
	}
	if (forward)
		forward_to = pid;
	shared->known = 1;
	wait_for_go();
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	if (refused)
		CHECK(shared->parent > 0 && !shared->child && shared->error == EDEADLK);
	else
		CHECK(shared->parent > 0 && shared->child == shared->parent && !shared->error);
}

static void foreign(pid_t pid)
{
	forward_to = pid;
	refused = true;
	check_ready();
	wait_for_go();
	CHECK(shared->parent > 0 && shared->error == EPERM);
}

/* Each gets its own answer. */
static int forward_from_thread(void *arg)
{
	CHECK(cr_forward_checkpoint(CR_SCOPE_PROC, 1234567) == -1 && errno == ESRCH);
	CHECK(cr_forward_checkpoint(CR_SCOPE_PROC, 1) == -1 && errno == EPERM);
	CHECK(cr_forward_checkpoint(CR_SCOPE_PROC, *(pid_t *)arg) == 0);
	return 0;
}

static void *wait_with_callback(void *arg)
{
	CHECK(cr_init() >= 0);
	CHECK(cr_register_callback(forward_from_thread, arg, CR_SIGNAL_CONTEXT) >= 0);
	shared->known++;
	wait_for_go();
	return NULL;
}

static void crowd(void)
{
	pthread_t thread[NR_CROWD];
	pid_t pid = fork();
	int status;

	NEED(pid >= 0);
	if (!pid) {
		wait_for_go();
		_exit(check_end());
	}
	for (int i = 0; i < NR_CROWD; i++)
		NEED(!pthread_create(&thread[i], NULL, wait_with_callback, &pid));
	while (shared->known < NR_CROWD)
		usleep(1000);
	check_ready();
	for (int i = 0; i < NR_CROWD; i++)
		pthread_join(thread[i], NULL);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

static void *end_at_once(void *arg)
{
	CHECK(cr_init() >= 0);
	CHECK(cr_register_callback(count, &shared->child, CR_SIGNAL_CONTEXT) >= 0);
	CHECK(cr_enter_cs(0) == 0);
	return arg;
}

static void ended_threads(void)
{
	pthread_t thread;

	for (int i = 0; i < 50; i++)
		NEED(!pthread_create(&thread, NULL, end_at_once, NULL) &&
		     !pthread_join(thread, NULL));
	check_ready();
	wait_for_go();
	CHECK(shared->parent > 0 && !shared->child);
}

static void closed_descriptors(void)
{
	for (int i = 3; i < 1024; i++)
		close(i);
	while (fcntl(200, F_GETFD) < 0)		/* libcr's: HIGH_FD of libcr/service.c */
		usleep(10000);
	check_ready();
	wait_for_go();
	CHECK(shared->parent > 0);
}

int main(int argc, char **argv)
{
	const char *what;

	check_begin(argc, argv);
	NEED(argc > 3);
	what = argv[3];
	if (!strcmp(what, "execed")) {	/* by the following */
		CHECK(cr_status() == -1 && errno == CR_ENOINIT);
		check_ready();
		wait_for_go();
		return check_end();
	}
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(shared != MAP_FAILED);
	NEED(cr_init() == 0);
	NEED(cr_register_callback(count, &shared->parent, CR_THREAD_CONTEXT) >= 0);
	if (!strcmp(what, "fork"))
		plain_child();
	else if (!strcmp(what, "init"))
		client_child(false);
	else if (!strcmp(what, "forward"))
		client_child(true);
	else if (!strcmp(what, "prohibited"))
		client_child(refused = true);
	else if (!strcmp(what, "crowd"))
		crowd();
	else if (!strcmp(what, "foreign"))
		foreign(atoi(argv[4]));
	else if (!strcmp(what, "threads"))
		ended_threads();
	else if (!strcmp(what, "close"))
		closed_descriptors();
	else if (!strcmp(what, "exec"))
		execl("/proc/self/exe", argv[0], argv[1], argv[2], "execed", NULL);
	return check_end();
}
