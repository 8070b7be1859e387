// SPDX-License-Identifier: GPL-2.0
/*
 * Requests that are refused or fail, and the calls around them: debugged
 * processes, overlap, time limit, interrupted waits, full disks, messages,
 * groups and sessions; a tool that is killed (the script does that); restarts;
 * the deprecated calls.
 */
#include <libcr.h>

#include <signal.h>
#include <sys/inotify.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/programs/check.h"

static pid_t child;
static cr_checkpoint_handle_t handle;

static int request_of(cr_scope_t scope, pid_t target, int fd, unsigned int flags,
		      unsigned int timeout)
{
	cr_checkpoint_args_t args;

	NEED(!cr_initialize_checkpoint_args_t(&args));
	CHECK(!args.cr_target && !args.cr_signal && !args.cr_timeout);
	args.cr_scope = scope;
	args.cr_target = target;
	args.cr_fd = fd;
	args.cr_flags = flags;
	args.cr_timeout = timeout;
	return cr_request_checkpoint(&args, &handle) ? errno : 0;
}

/* It comes to this: 0 or an error number. */
static void outcome(int expected)
{
	char *message;
	int ret = cr_poll_checkpoint_msg(&handle, NULL, &message), err = ret == 1 ? 0 : errno;

	CHECK(ret == 1 || ret == CR_POLL_CHKPT_ERR_POST);
	if (err != expected)
		fprintf(stderr, "# error %d instead of %d: %s\n", err, expected, message);
	CHECK(err == expected);
	free(message);
}

static void start_child(void)
{
	child = fork();
	NEED(child >= 0);
	while (!child)
		pause();
}

static void debugged(int null)
{
	CHECK(!ptrace(PTRACE_SEIZE, child, 0, 0));
	CHECK(request_of(CR_SCOPE_PROC, child, null, 0, 0) == CR_EPTRACED);
	CHECK(request_of(CR_SCOPE_PROC, 0, null, 0, 0) == CR_EPTRACER);
	CHECK(request_of(CR_SCOPE_PROC, child, null, CR_CHKPT_PTRACED_SKIP, 0) == ESRCH);
	CHECK(request_of(CR_SCOPE_PROC, 0, null, CR_CHKPT_PTRACER_SKIP, 0) == ESRCH);
	CHECK(request_of(CR_SCOPE_PROC, child, null, CR_CHKPT_PTRACED_ALLOW, 0) == 0);
	outcome(0);
	kill(child, SIGKILL);
	CHECK(waitpid(child, NULL, 0) == child);
	start_child();
}

static void scopes(int null)
{
	CHECK(request_of(CR_SCOPE_PGRP, 0, null, 0, 0) == 0);
	outcome(0);
	CHECK(request_of(CR_SCOPE_SESS, 0, null, 0, 0) == 0);
	outcome(0);
	CHECK(request_of(CR_SCOPE_TREE, 0, null, CR_CHKPT_DUMP_ALL, 0) == 0);
	outcome(0);
}

static void on_alarm(int number)
{
	(void)number;
}

/* The request can't be accepted or end before the section is left. */
static void pending(int null)
{
	struct sigaction action = { .sa_handler = on_alarm };
	cr_checkpoint_handle_t first;
	struct itimerval often = { { 0, 500000 }, { 0, 500000 } }, never = {};
	struct timeval none = {};

	NEED(cr_enter_cs(cr_init()) == 0);
	CHECK(request_of(CR_SCOPE_PROC, 0, null, 0, 0) == 0);
	first = handle;
	CHECK(request_of(CR_SCOPE_PROC, 0, null, 0, 0) == EBUSY);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	CHECK(cr_wait_checkpoint(&first, NULL) == -1 && errno == EINTR);
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(cr_wait_checkpoint(&first, &none) == 0);
	CHECK(cr_poll_checkpoint(&first, &none) == 0);
	CHECK(cr_leave_cs(cr_init()) == 0);
	CHECK(cr_poll_checkpoint(&first, NULL) == 1);
	NEED(cr_enter_cs(cr_init()) == 0);
	CHECK(request_of(CR_SCOPE_PROC, 0, null, 0, 5) == 0);
	outcome(ETIMEDOUT);
	CHECK(cr_leave_cs(cr_init()) == 0);
}

/* The script kills the tool of this one. */
static void tool_killed(int null)
{
	NEED(cr_enter_cs(cr_init()) == 0);
	CHECK(request_of(CR_SCOPE_PROC, 0, null, 0, 0) == 0);
	close(open("pending", O_CREAT | O_WRONLY, 0600));
	outcome(EIO);
	CHECK(cr_leave_cs(cr_init()) == 0);
}

static void messages(void)
{
	char whole[300], again[300], part[5];
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC), length;

	NEED(full >= 0);
	CHECK(request_of(CR_SCOPE_PROC, child, full, CR_CHKPT_ASYNC_ERR, 0) == 0);
	CHECK(cr_wait_checkpoint(&handle, NULL) == 1);
	length = cr_log_checkpoint(&handle, 0, NULL);
	CHECK(length > 5 && length < 300);
	CHECK(cr_log_checkpoint(&handle, sizeof(whole), whole) == length);
	CHECK((int)strlen(whole) == length - 1 && whole[length - 2] == '\n');
	CHECK(cr_log_checkpoint(&handle, sizeof(again), again) == length && !strcmp(whole, again));
	CHECK(cr_log_checkpoint(&handle, sizeof(part), part) == length);
	CHECK(strlen(part) == 4 && !strncmp(part, whole, 4));
	CHECK(cr_log_checkpoint(&handle, 5, NULL) == -1 && errno == EINVAL);
	CHECK(cr_reap_checkpoint(&handle) == -1 && errno == ENOSPC);
	close(full);

	handle = 9999;
	CHECK(cr_wait_checkpoint(&handle, NULL) == -1 && errno == EINVAL);
	CHECK(cr_log_checkpoint(&handle, 0, NULL) == -1 && errno == EINVAL);
	CHECK(cr_reap_checkpoint(&handle) == -1 && errno == EINVAL);
	CHECK(cr_poll_checkpoint(&handle, NULL) == CR_POLL_CHKPT_ERR_PRE && errno == EINVAL);
}

void *__libc_malloc(size_t size);
static bool no_memory;

/* Instead of the C library's, for libcr, too. */
void *malloc(size_t size)
{
	return no_memory ? NULL : __libc_malloc(size);
}

/* The request is complete; a message is in its log, but there is no room for it. */
static void lost_message(int null)
{
	int events = inotify_init1(IN_CLOEXEC), ret;
	char *message = NULL;

	/* Its event will not have been read: that is worth a warning. */
	NEED(events >= 0 && inotify_add_watch(events, ".", IN_CREATE) >= 0);
	close(open("created", O_CREAT | O_WRONLY, 0600));
	for (int turn = 0; turn < 2; turn++) {
		CHECK(request_of(CR_SCOPE_PROC, 0, null, 0, 0) == 0);
		no_memory = turn == 0;
		ret = cr_poll_checkpoint_msg(&handle, NULL, &message);
		no_memory = false;
		CHECK(ret == (turn ? 1 : CR_POLL_CHKPT_ERR_LOG) && !message == !turn);
		CHECK(cr_reap_checkpoint(&handle) == -1 && errno == EINVAL);
		free(message);
	}
	close(events);
}

static int restart_of(cr_restart_args_t *args, int fd)
{
	cr_restart_handle_t restart;

	args->cr_fd = fd;
	return cr_request_restart(args, &restart) ? errno : 0;
}

static void restarts(void)
{
	int fd = open("other", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct cr_rstrt_relocate *many = calloc(1, CR_RSTRT_RELOCATE_SIZE(17));
	char absolute[] = "/a", relative[] = "a";
	cr_restart_args_t args;

	NEED(fd >= 0 && here >= 0 && many);
	CHECK(cri_init_restart_args_t(2, &args) == -1 && errno == EINVAL);
	NEED(!cr_initialize_restart_args_t(&args));
	CHECK(args.cr_fd == -1 && args.cr_flags == CR_RSTRT_RESTORE_PID && !args.cr_signal &&
	      !args.cr_relocate);
	CHECK(restart_of(&args, here) == EISDIR);
	CHECK(restart_of(&args, -1) == EBADF);
	CHECK(restart_of(&args, fd) == EINVAL);		/* an empty file */
	CHECK(request_of(CR_SCOPE_PROC, child, fd, 0, 0) == 0);
	outcome(0);
	NEED(!lseek(fd, 0, SEEK_SET));
	CHECK(restart_of(&args, fd) == EBUSY);		/* it lives */
	args.cr_version = 2;
	CHECK(restart_of(&args, fd) == EINVAL);
	args.cr_version = CR_RESTART_ARGS_VERSION;
	args.cr_flags = 0x100;
	CHECK(restart_of(&args, fd) == EINVAL);
	args.cr_flags = CR_RSTRT_RESTORE_PID;
	args.cr_relocate = many;
	many->count = 17;
	CHECK(restart_of(&args, fd) == EINVAL);
	many->count = 1;
	many->path[0].oldpath = many->path[0].newpath = absolute;
	NEED(!lseek(fd, 0, SEEK_SET));
	CHECK(restart_of(&args, fd) == EBUSY);
	many->path[0].oldpath = relative;
	CHECK(restart_of(&args, fd) == EINVAL);
	many->path[0] = (struct cr_rstrt_relocate_pair){ absolute, relative };
	CHECK(restart_of(&args, fd) == EINVAL);
	free(many);
	close(here);
	close(fd);
}

static int answer;

static int callback(void *arg)
{
	(void)arg;
	cr_checkpoint(answer);
	return 0;
}

/* What fails when it is accepted leaves no file, and the program goes on. */
static void deprecated_that_fail(void)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	cr_callback_id_t id = cr_register_callback(callback, NULL, CR_THREAD_CONTEXT);

	NEED(full >= 0 && id >= 0);
	answer = CR_CHECKPOINT_TEMP_FAILURE;
	cr_request_file("dep3");
	CHECK(access("dep3", F_OK));
	cr_request();
	NEED(cr_enter_cs(cr_init()) == 0);
	cr_request_file("dep3");
	CHECK(cr_leave_cs(cr_init()) == 0);
	answer = CR_CHECKPOINT_READY;
	cr_request_fd(full);
	CHECK(access("dep3", F_OK));
	NEED(!cr_replace_callback(id, NULL, NULL, CR_THREAD_CONTEXT));
	close(full);
}

/* They happen when the section is left; the next call reaps the handle. */
static void deprecated_in_sections(void)
{
	int first = -1, last = -1;

	for (int i = 0; i < 3; i++) {
		NEED(cr_enter_cs(cr_init()) == 0);
		cr_request_file("dep4");
		last = dup(0);
		CHECK(cr_leave_cs(cr_init()) == 0);
		first = i ? first : last;
		close(last);
	}
	CHECK(last == first);
	cr_request_file("dep5");
}

/* They abort if a request is not accepted. */
static void deprecated(void)
{
	char name[64];
	int status, fd = open("dep2", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	pid_t pid = fork();

	if (!pid) {
		cr_request_file("/nowhere/at/all");
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	cr_request_file("dep1");
	cr_request_fd(fd);
	cr_request();
	CHECK(lseek(fd, 0, SEEK_END) > 0);
	snprintf(name, sizeof(name), "context.%d", getpid());
	CHECK(!access(name, F_OK));
	close(fd);
	deprecated_that_fail();
	deprecated_in_sections();
}

int main(int argc, char **argv)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	check_begin(argc, argv);
	NEED(null >= 0);
	start_child();
	debugged(null);
	scopes(null);
	pending(null);
	tool_killed(null);
	messages();
	lost_message(null);
	restarts();
	deprecated();
	check_ready();
	check_wait();
	kill(child, SIGKILL);
	return check_end();
}
