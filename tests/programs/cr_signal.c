/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Signal-context callbacks in two threads beside thread-context ones, and hooks.
 * The third argument: "plain", or how the program stands in the way of the
 * signal that libcr uses: "block", "ignore", "own" (a handler of its own).
 */
#include <libcr.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "tests/programs/check.h"

#define NR_THREADS	2

static atomic_int in_thread_context, in_own_thread, begun, ended, hooks[CR_NUM_HOOKS];
static atomic_int own_signals, rounds;
static atomic_bool stop;

struct self {
	pid_t tid;
	char order[16];
};

static int thread_callback(void *arg)
{
	int ret;

	(void)arg;
	CHECK(!begun);
	in_thread_context = 1;
	ret = cr_checkpoint(CR_CHECKPOINT_READY);
	CHECK(ret >= 0);
	return 0;
}

static int outer(void *arg)
{
	struct self *self = arg;
	int ret;

	CHECK(in_thread_context == 1);
	in_own_thread += syscall(SYS_gettid) == self->tid;	/* not after a second */
	CHECK(cr_get_checkpoint_info() && cr_status() == CR_STATE_ACTIVE);
	begun++;
	strcat(self->order, "o");
	ret = cr_checkpoint(CR_CHECKPOINT_READY);
	CHECK(ret >= 0);
	CHECK(begun == NR_THREADS);
	strcat(self->order, "O");
	CHECK(!strcmp(self->order, "oiIO"));
	self->order[0] = '\0';
	if (++ended == NR_THREADS) {
		begun = ended = in_thread_context = 0;
		rounds++;
	}
	return 0;
}

static int inner(void *arg)
{
	struct self *self = arg;

	strcat(self->order, "i");
	CHECK(cr_checkpoint(CR_CHECKPOINT_READY) >= 0);
	strcat(self->order, "I");
	return 0;
}

static void hook(cr_hook_event_t event)
{
	hooks[event]++;
}

static void *work(void *unused)
{
	static __thread struct self self;
	cr_callback_id_t id;

	(void)unused;
	NEED(cr_init() >= 0);
	self.tid = syscall(SYS_gettid);
	id = cr_register_callback(inner, &self, CR_SIGNAL_CONTEXT);
	CHECK(id == (0 | CR_SIGNAL_CONTEXT));
	CHECK(cr_register_callback(outer, &self, CR_SIGNAL_CONTEXT) == (1 | CR_SIGNAL_CONTEXT));
	CHECK(cr_replace_callback(id, inner, &self, CR_THREAD_CONTEXT) == -1 && errno == EINVAL);
	CHECK(cr_replace_callback(id + 5, inner, &self, CR_SIGNAL_CONTEXT) == -1 &&
	      errno == EINVAL);
	CHECK(cr_replace_callback(id, inner, &self, CR_SIGNAL_CONTEXT) == 0);
	begun++;
	while (!stop)
		usleep(1000);
	return NULL;
}

/* Only cr_init(). */
static void *idle(void *arg)
{
	NEED(cr_init() >= 0);
	begun++;
	while (!stop)
		usleep(1000);
	return arg;
}

static void on_signal(int number)
{
	(void)number;
	own_signals++;
}

static void stand_in_the_way(const char *how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, CR_SIGNUM);
	if (!strcmp(how, "block"))
		sigprocmask(SIG_BLOCK, &set, NULL);
	else if (!strcmp(how, "ignore"))
		signal(CR_SIGNUM, SIG_IGN);
	else if (!strcmp(how, "own"))
		signal(CR_SIGNUM, on_signal);
}

int main(int argc, char **argv)
{
	pthread_t thread[NR_THREADS + 1];

	check_begin(argc, argv);
	NEED(argc > 3);
	stand_in_the_way(argv[3]);
	CHECK(cr_register_hook(CR_HOOK_CONT_NO_CALLBACKS, hook) == CR_HOOK_FN_ERROR &&
	      errno == CR_ENOINIT);
	NEED(cr_init() >= 0);
	CHECK(cr_register_hook(CR_NUM_HOOKS, hook) == CR_HOOK_FN_ERROR && errno == EINVAL);
	CHECK(cr_register_hook((cr_hook_event_t)-1, hook) == CR_HOOK_FN_ERROR && errno == EINVAL);
	for (int i = 0; i < CR_NUM_HOOKS; i++) {
		CHECK(cr_register_hook(i, CR_HOOK_FN_ERROR) == CR_HOOK_FN_ERROR &&
		      errno == EINVAL);
		CHECK(cr_register_hook(i, hook) == NULL);
		CHECK(cr_register_hook(i, hook) == hook);
	}
	NEED(cr_register_callback(thread_callback, NULL, CR_THREAD_CONTEXT) >= 0);
	for (int i = 0; i < NR_THREADS; i++)
		NEED(!pthread_create(&thread[i], NULL, work, NULL));
	NEED(!pthread_create(&thread[NR_THREADS], NULL, idle, NULL));
	while (begun < NR_THREADS + 1)
		usleep(1000);
	begun = 0;
	check_ready();
	while (!check_gone())
		usleep(20000);
	stop = true;
	for (int i = 0; i <= NR_THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK(rounds > 0 && !own_signals);
	/* One for each thread that called cr_init(): main and idle, too, without callbacks. */
	CHECK(hooks[CR_HOOK_CONT_THREAD_CONTEXT] + hooks[CR_HOOK_RSTRT_THREAD_CONTEXT] == rounds);
	CHECK(hooks[CR_HOOK_CONT_SIGNAL_CONTEXT] + hooks[CR_HOOK_RSTRT_SIGNAL_CONTEXT] ==
	      (NR_THREADS + 2) * rounds);
	CHECK(!hooks[CR_HOOK_CONT_NO_CALLBACKS] && !hooks[CR_HOOK_RSTRT_NO_CALLBACKS]);
	CHECK(strcmp(argv[3], "plain") || in_own_thread > 0);
	if (argc > 4)
		CHECK(hooks[CR_HOOK_RSTRT_THREAD_CONTEXT] == atoi(argv[4]));
	return check_end();
}
