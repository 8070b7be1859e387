/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Thread-context callbacks: nested in reverse order of registration, told of
 * checkpoint and restart, in a thread of their own with all signals blocked.
 * Checkpoints and restarts are counted in the file `log`: a line per event.
 */
#include <libcr.h>

#include <signal.h>
#include <sys/syscall.h>

#include "tests/programs/check.h"

static char order[64];
static int log_fd;

static void note(const char *text)
{
	strcat(order, text);
}

static void check_context(void)
{
	sigset_t set;

	CHECK(syscall(SYS_gettid) != getpid());
	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &set));
	CHECK(sigismember(&set, SIGTERM) && sigismember(&set, SIGUSR1));
	CHECK(cr_status() == CR_STATE_ACTIVE);
	CHECK(cr_register_callback(NULL, NULL, CR_THREAD_CONTEXT) == -1 && errno == EBUSY);
}

static void say(const char *text)
{
	CHECK(write(log_fd, text, strlen(text)) == (ssize_t)strlen(text));
}

/* Registered first: runs inside of the other one. */
static int inner(void *arg)
{
	const struct cr_checkpoint_info *info = cr_get_checkpoint_info();
	const struct cr_restart_info *restart;
	int ret;

	CHECK(arg == order);
	check_context();
	CHECK(info && info->target == getpid() && info->scope == CR_SCOPE_TREE);
	CHECK(info && info->dest[0] == '/' && strstr(info->dest, "/image"));
	CHECK(info && info->requester > 0 && info->requester != getpid());
	CHECK(!cr_get_restart_info());
	note("i");
	ret = cr_checkpoint(CR_CHECKPOINT_READY);
	note("I");
	CHECK(cr_checkpoint(CR_CHECKPOINT_READY) == -CR_ENOTCB);
	restart = cr_get_restart_info();
	CHECK(!cr_get_checkpoint_info());
	CHECK(ret >= 0 && !!restart == (ret > 0));
	if (ret > 0)
		CHECK(restart->requester == ret && strstr(restart->src, "/image"));
	say(ret > 0 ? "restarted\n" : "continued\n");
	return 0;
}

static int outer(void *arg)
{
	(void)arg;
	check_context();
	note("o");
	CHECK(cr_checkpoint(CR_CHECKPOINT_READY) >= 0);
	note("O");
	CHECK(!strcmp(order, "oiIO"));
	order[0] = '\0';
	return 0;
}

/* Does not call cr_checkpoint(): that is done for it. */
static int silent(void *arg)
{
	(void)arg;
	CHECK(!*order);
	return 0;
}

int main(int argc, char **argv)
{
	cr_callback_id_t id;

	check_begin(argc, argv);
	NEED((log_fd = open("log", O_WRONLY | O_CREAT | O_APPEND, 0666)) >= 0);
	CHECK(cr_register_callback(inner, NULL, CR_THREAD_CONTEXT) == -1 && errno == CR_ENOINIT);
	NEED(cr_init() == 0);
	CHECK(cr_init() == 0);
	CHECK(cr_register_callback(inner, NULL, 0) == -1 && errno == EINVAL);
	id = cr_register_callback(inner, order, CR_THREAD_CONTEXT);
	CHECK(id == (0 | CR_THREAD_CONTEXT));
	id = cr_register_callback(outer, NULL, CR_THREAD_CONTEXT);
	CHECK(id == (1 | CR_THREAD_CONTEXT));
	CHECK(cr_register_callback(silent, NULL, CR_THREAD_CONTEXT) == (2 | CR_THREAD_CONTEXT));
	CHECK(cr_checkpoint(0) == -CR_ENOTCB);
	CHECK(!cr_get_checkpoint_info() && errno == CR_ENOTCB);
	CHECK(cr_status() == CR_STATE_IDLE);
	check_ready();
	check_wait();
	CHECK(cr_status() == CR_STATE_IDLE);
	return check_end();
}
