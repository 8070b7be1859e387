/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Critical sections.  One thread is inside until there is a file `leave`;
 * another one then finds that it may not enter.  Threads that come and go all
 * the time make two numbers differ only inside; the callback finds them equal.
 * A signal handler enters and leaves between any two instructions of a leave.
 */
#include <libcr.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "tests/programs/check.h"

static volatile long one[4], other[4];
static atomic_bool stop, was_refused, at_door[4];
static atomic_int called;

static int callback(void *arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++)
		CHECK(one[i] == other[i]);
	CHECK(cr_enter_cs(CR_ID_CALLBACK) == 0 && cr_leave_cs(CR_ID_CALLBACK) == 0);
	CHECK(cr_init() == 0 && cr_enter_cs(cr_init()) == 0 && cr_leave_cs(cr_init()) == 0);
	called++;
	CHECK(cr_checkpoint(CR_CHECKPOINT_READY) >= 0);
	for (int i = 0; i < 4; i++)
		CHECK(one[i] == other[i]);
	return 0;
}

static void *come_and_go(void *arg)
{
	long i = (long)arg;
	cr_client_id_t id = cr_init();

	while (!stop) {
		at_door[i] = true;
		CHECK(cr_enter_cs(id) == 0);
		at_door[i] = false;
		one[i]++;
		CHECK(cr_enter_cs(id) == 0);
		sched_yield();
		CHECK(cr_leave_cs(id) == 0);
		other[i]++;
		CHECK(cr_leave_cs(id) == 0);
	}
	return NULL;
}

/* Ends inside: that must keep no checkpoint away. */
static void *end_inside(void *arg)
{
	CHECK(cr_enter_cs(cr_init()) == 0);
	return arg;
}

static void *try(void *arg)
{
	cr_client_id_t id = cr_init();

	while (!stop) {
		int ret = cr_tryenter_cs(id);

		CHECK(ret == 0 || ret == 1);
		if (ret == 1 && cr_status() == CR_STATE_PENDING)
			was_refused = !close(open("refused", O_CREAT | O_WRONLY, 0600));
		if (ret == 0)
			CHECK(cr_leave_cs(id) == 0);
		check_sleep_ms(1);
	}
	return arg;
}

static cr_client_id_t main_id;
static volatile int steps;

static void on_step(int number)
{
	(void)number;
	steps++;
	CHECK(cr_enter_cs(main_id) == 0 && cr_leave_cs(main_id) == 0);
}

/* Leaves with a handler between any two instructions: the processor's single steps. */
static int leave_in_steps(void)
{
	struct sigaction action = { .sa_handler = on_step };
	int ret;

	main_id = cr_init();
	NEED(!sigaction(SIGTRAP, &action, NULL));
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | 0x100);
	ret = cr_leave_cs(main_id);
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~0x100ull);
	CHECK(steps > 5);
	return ret;
}

int main(int argc, char **argv)
{
	pthread_t thread[6];
	cr_client_id_t id;

	check_begin(argc, argv);
	CHECK(cr_enter_cs(0) == -1 && errno == CR_ENOINIT);
	NEED((id = cr_init()) >= 0);
	NEED(cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
	CHECK(cr_leave_cs(id) == -1 && errno == EINVAL);
	CHECK(cr_tryenter_cs(id) == 0);
	for (long i = 0; i < 4; i++)
		NEED(!pthread_create(&thread[i], NULL, come_and_go, (void *)i));
	NEED(!pthread_create(&thread[4], NULL, try, NULL));
	NEED(!pthread_create(&thread[5], NULL, end_inside, NULL) && !pthread_join(thread[5], NULL));
	check_ready();
	while (access("leave", F_OK))
		check_sleep_ms(10);
	CHECK(!called);
	CHECK(cr_status() == CR_STATE_PENDING);
	CHECK(was_refused);
	/* Only the last that leaves waits for the checkpoint. */
	for (int i = 0; i < 4; i++)
		while (!at_door[i])
			check_sleep_ms(10);
	/* The pending checkpoint happens before this returns. */
	CHECK(leave_in_steps() == 0);
	CHECK(called >= 1);
	check_wait();
	stop = true;
	for (int i = 0; i < 5; i++)
		pthread_join(thread[i], NULL);
	CHECK(called >= 1);
	return check_end();
}
