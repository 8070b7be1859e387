/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checkpoints requested by a program.  The third argument says which:
 *	self		itself, to the file `image`; notes in `log` how it ended
 *	section		itself, from within a critical section
 *	other PID	another process
 *	errors PID	what is refused, and with which error
 *	unsupported PID	one that cannot be saved
 *	restarts	restarts `image1` and `image2`, one while the other is under way
 *	restart		restarts `image`, whose processes become its children
 *	ways		restarts a child with all flags, with its file in another folder
 */
#include <libcr.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/programs/check.h"

#define CHILD_FILE	9		/* its descriptor */
#define MOVED		"/c=\\/file"

static int log_fd;
static volatile int sigchlds;

static void say(const char *text)
{
	dprintf(log_fd, "%s\n", text);
}

static void on_child(int signal_number)
{
	(void)signal_number;
	sigchlds++;
}

static int open_image(void)
{
	int fd = open("image", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	NEED(fd >= 0);
	return fd;
}

static void init(cr_checkpoint_args_t *args, cr_scope_t scope, pid_t target, int fd)
{
	NEED(!cr_initialize_checkpoint_args_t(args));
	CHECK(args->cr_fd == -1 && (int)args->cr_scope == -1 && !args->cr_flags);
	args->cr_scope = scope;
	args->cr_target = target;
	args->cr_fd = fd;
}

/* Of this process: done when the call returns; the handle tells of a restart. */
static void request_self(void)
{
	cr_checkpoint_handle_t handle;
	cr_checkpoint_args_t args;
	struct timeval soon = {};
	int fd = open_image(), ret, err;
	char text[] = "text";

	init(&args, CR_SCOPE_PROC, 0, fd);
	CHECK(cr_request_checkpoint(&args, &handle) == 0);
	close(fd);
	CHECK(fcntl((int)handle, F_GETFD) >= 0);
	CHECK(cr_wait_checkpoint(&handle, &soon) == 1);
	CHECK(cr_log_checkpoint(&handle, 0, NULL) == 0);
	CHECK(cr_log_checkpoint(&handle, sizeof(text), text) == 0 && !text[0]);
	ret = cr_reap_checkpoint(&handle);
	err = ret ? errno : 0;
	CHECK(err == 0 || err == CR_ERESTARTED);
	say(err ? "restarted" : "saved");
	CHECK(cr_reap_checkpoint(&handle) == -1 && errno == EINVAL);
	CHECK(!sigchlds && waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void request_in_section(void)
{
	cr_checkpoint_handle_t handle;
	cr_checkpoint_args_t args;
	struct timeval soon = { .tv_usec = 300000 }, late = { .tv_sec = 1000 };
	cr_client_id_t id = cr_init();
	int fd = open_image(), ret, err;

	CHECK(cr_enter_cs(id) == 0);
	init(&args, CR_SCOPE_PROC, getpid(), fd);
	CHECK(cr_request_checkpoint(&args, &handle) == 0);
	CHECK(cr_wait_checkpoint(&handle, &soon) == 0);
	CHECK(!soon.tv_sec && !soon.tv_usec);
	CHECK(cr_reap_checkpoint(&handle) == -1 && errno == EAGAIN);
	CHECK(cr_log_checkpoint(&handle, 0, NULL) == -1 && errno == EAGAIN);
	CHECK(cr_leave_cs(id) == 0);
	ret = cr_poll_checkpoint(&handle, &late);
	err = errno;
	CHECK(late.tv_sec > 500 && late.tv_sec < 1000);
	CHECK(ret == 1 || (ret == CR_POLL_CHKPT_ERR_POST && err == CR_ERESTARTED));
	close(fd);
}

static void request_other(pid_t pid)
{
	cr_checkpoint_handle_t handle;
	cr_checkpoint_args_t args;
	char *message = (char *)1;
	int fd = open_image();

	init(&args, CR_SCOPE_TREE, pid, fd);
	CHECK(cr_request_checkpoint(&args, &handle) == 0);
	CHECK(cr_poll_checkpoint_msg(&handle, NULL, &message) == 1);
	CHECK(!message);
	close(fd);
}

static int try_request(cr_checkpoint_args_t *args)
{
	cr_checkpoint_handle_t handle;
	int ret = cr_request_checkpoint(args, &handle);

	return ret < 0 ? errno : 0;
}

static int in_callback;

static int callback(void *arg)
{
	cr_checkpoint_args_t args;

	(void)arg;
	init(&args, CR_SCOPE_PROC, 0, CR_DEST_CWD);
	in_callback = try_request(&args);
	CHECK(cr_get_checkpoint_info()->requester == getpid());
	CHECK(cr_checkpoint(CR_CHECKPOINT_READY) == 0);
	CHECK(try_request(&args) == EBUSY);
	return 0;
}

static void request_wrongly(pid_t pid)
{
	cr_checkpoint_handle_t handle;
	cr_checkpoint_args_t args;
	int fd = open_image(), read_only = open("image", O_RDONLY);
	struct rlimit limit, few;
	struct stat st;
	char text[200];

	init(&args, CR_SCOPE_PROC, 1234567, fd);
	CHECK(try_request(&args) == ESRCH);
	init(&args, CR_SCOPE_PROC, 2, fd);
	CHECK(try_request(&args) == EPERM);
	init(&args, CR_SCOPE_PROC, pid, -1);
	CHECK(try_request(&args) == EBADF);
	init(&args, CR_SCOPE_PROC, pid, read_only);
	CHECK(try_request(&args) == EBADF);
	init(&args, (cr_scope_t)-1, pid, fd);
	CHECK(try_request(&args) == EINVAL);
	init(&args, CR_SCOPE_PROC, pid, fd);
	args.cr_version = 2;
	CHECK(try_request(&args) == EINVAL);
	init(&args, CR_SCOPE_TREE, 0, fd);
	args.cr_flags = CR_CHKPT_PROHIBIT_SELF;
	CHECK(try_request(&args) == EDEADLK);
	CHECK(cri_init_checkpoint_args_t(2, &args) == -1 && errno == EINVAL);
	NEED(!link("image", "image2"));
	init(&args, CR_SCOPE_PROC, pid, fd);
	CHECK(try_request(&args) == EMLINK);
	NEED(!unlink("image2"));

	/* No room for the tool's descriptors: it must not take ours for its own. */
	init(&args, CR_SCOPE_PROC, pid, fd);
	NEED(!getrlimit(RLIMIT_NOFILE, &limit));
	few = (struct rlimit){ 8, limit.rlim_max };
	NEED(!setrlimit(RLIMIT_NOFILE, &few));
	CHECK(try_request(&args) == EAGAIN);
	NEED(!setrlimit(RLIMIT_NOFILE, &limit));
	CHECK(!fstat(log_fd, &st) && !st.st_size);

	/* Told by the handle, with a message. */
	init(&args, CR_SCOPE_PROC, 1234567, fd);
	args.cr_flags = CR_CHKPT_ASYNC_ERR;
	CHECK(cr_request_checkpoint(&args, &handle) == 0);
	CHECK(cr_wait_checkpoint(&handle, NULL) == 1);
	CHECK(cr_log_checkpoint(&handle, sizeof(text), text) > 1 && strstr(text, "1234567"));
	CHECK(cr_reap_checkpoint(&handle) == -1 && errno == ESRCH);

	/* In a callback, whatever is asked for. */
	NEED(cr_init() == 0 && cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
	init(&args, CR_SCOPE_PROC, 0, fd);
	CHECK(cr_request_checkpoint(&args, &handle) == 0);
	CHECK(cr_poll_checkpoint(&handle, NULL) == 1);
	CHECK(in_callback == EBUSY);
	close(fd);
}

static void request_unsupported(pid_t pid)
{
	cr_checkpoint_args_t args;
	int fd = open_image();

	init(&args, CR_SCOPE_PROC, pid, fd);
	CHECK(try_request(&args) == CR_ENOSUPPORT);
	close(fd);
}

static void begin_restart(int fd, cr_restart_handle_t *handle)
{
	cr_restart_args_t args;

	NEED(fd >= 0 && !cr_initialize_restart_args_t(&args));
	args.cr_fd = fd;
	args.cr_flags |= CR_RSTRT_ASYNC_ERR;
	CHECK(cr_request_restart(&args, handle) == 0);
	close(fd);
}

/* The second one's file comes by a pipe, when the first is over. */
static void feed(int to, const char *name)
{
	int from = open(name, O_RDONLY | O_CLOEXEC);
	char buffer[4096];
	ssize_t got;

	NEED(from >= 0);
	while ((got = read(from, buffer, sizeof(buffer))) > 0)
		NEED(write(to, buffer, got) == got);
	close(from);
	close(to);
}

static void request_two_restarts(void)
{
	cr_restart_handle_t handle[2];
	int ends[2], pid[2], reaper = -1;

	NEED(!pipe2(ends, O_CLOEXEC));
	begin_restart(open("image1", O_RDONLY | O_CLOEXEC), &handle[0]);
	begin_restart(ends[0], &handle[1]);
	pid[0] = cr_poll_restart(&handle[0], NULL);
	feed(ends[1], "image2");
	pid[1] = cr_poll_restart(&handle[1], NULL);
	for (int i = 0; i < 2; i++) {
		CHECK(pid[i] > 0 && waitpid(pid[i], NULL, WNOHANG) == 0);
		NEED(pid[i] > 0 && !kill(pid[i], SIGKILL));
		CHECK(waitpid(pid[i], NULL, 0) == pid[i]);
	}
	CHECK(!prctl(PR_GET_CHILD_SUBREAPER, &reaper) && !reaper);
}

static void request_restart(void)
{
	cr_restart_handle_t handle;
	cr_restart_args_t args;
	int fd = open("image", O_RDONLY | O_CLOEXEC), status, pid;

	NEED(fd >= 0);
	NEED(!cr_initialize_restart_args_t(&args));
	CHECK(args.cr_flags == CR_RSTRT_RESTORE_PID);
	args.cr_fd = log_fd;
	CHECK(cr_request_restart(&args, &handle) == -1 && errno == EBADF);
	args.cr_fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	CHECK(cr_request_restart(&args, &handle) == -1 && errno == EINVAL);
	args.cr_fd = fd;
	CHECK(cr_request_restart(&args, &handle) == 0);
	pid = cr_poll_restart(&handle, NULL);
	CHECK(pid > 0);
	close(fd);
	/* It is the only child, and nothing was heard of any other. */
	CHECK(!sigchlds && waitpid(-1, NULL, WNOHANG | __WALL) == 0);
	say("child");
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(sigchlds == 1 && waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A process in the group of another one, with a file open. */
static pid_t start_child(pid_t group, const char *file)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (!pid) {
		if (file && dup2(open(file, O_RDWR | O_CREAT, 0600), CHILD_FILE) != CHILD_FILE)
			_exit(2);
		if (setpgid(0, group))
			_exit(2);
		for (;;)
			pause();
	}
	while (getpgid(pid) != (group ? group : pid))
		check_sleep_ms(1);
	return pid;
}

static void end_child(pid_t pid)
{
	CHECK(!kill(pid, SIGKILL));
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static void save_child(pid_t pid)
{
	cr_checkpoint_handle_t handle;
	cr_checkpoint_args_t args;
	int fd = open_image();

	init(&args, CR_SCOPE_PROC, pid, fd);
	CHECK(cr_request_checkpoint(&args, &handle) == 0);
	CHECK(cr_poll_checkpoint(&handle, NULL) == 1);
	close(fd);
}

/* Each call is made in some of the turns.  The PID of what was restored. */
static pid_t outcome_of(cr_restart_handle_t *handle, bool poll)
{
	struct timeval late = { .tv_sec = 1000 };
	char text[100], *message = text;
	pid_t pid;

	if (poll) {
		pid = cr_poll_restart_msg(handle, &late, &message);
		CHECK(!message);
	} else {
		CHECK(cr_wait_restart(handle, &late) == 1);
		CHECK(cr_log_restart(handle, sizeof(text), text) == 0 && !*text);
		pid = cr_reap_restart(handle);
		CHECK(cr_reap_restart(handle) == -1 && errno == EINVAL);
	}
	CHECK(late.tv_sec > 500 && late.tv_sec < 1000);
	return pid;
}

static void check_child(pid_t pid, pid_t old, pid_t group, unsigned int flags)
{
	char link[64], file[200], expected[200];
	ssize_t length;

	CHECK((pid == old) == !!(flags & CR_RSTRT_RESTORE_PID));
	CHECK(getpgid(pid) == (flags & CR_RSTRT_RESTORE_PGID ? group : getpgrp()));
	CHECK(getsid(pid) == getsid(0));
	sprintf(link, "/proc/%d/fd/%d", pid, CHILD_FILE);
	length = readlink(link, file, sizeof(file) - 1);
	CHECK(length > 0);
	file[length > 0 ? length : 0] = '\0';
	NEED(getcwd(expected, sizeof(expected) - sizeof(MOVED)));
	strcat(expected, MOVED);
	CHECK(!strcmp(file, expected));
}

static void restart_in_all_ways(void)
{
	struct cr_rstrt_relocate *moved = malloc(CR_RSTRT_RELOCATE_SIZE(2));
	char absent[] = "/a=b\\", before[200], after[200], file[200];
	pid_t group = start_child(0, NULL), child, pid;
	cr_restart_handle_t handle;
	cr_restart_args_t args;

	NEED(moved && getcwd(before, 150) && strcpy(after, before));
	NEED(!mkdir(strcat(before, "/a=b"), 0700));
	child = start_child(group, strcat(strcpy(file, before), "/file"));
	save_child(child);
	end_child(child);
	NEED(!rename(before, strcat(after, "/c=\\")));
	NEED(!cr_initialize_restart_args_t(&args));
	args.cr_fd = open("image", O_RDONLY | O_CLOEXEC);
	CHECK(cr_request_restart(&args, &handle) == -1 && errno == ENOENT);
	moved->count = 2;
	moved->path[0] = (struct cr_rstrt_relocate_pair){ absent, absent };
	moved->path[1] = (struct cr_rstrt_relocate_pair){ before, after };
	args.cr_relocate = moved;
	for (unsigned int flags = 0; flags < 16; flags += CR_RSTRT_RESTORE_PID) {
		NEED(!lseek(args.cr_fd, 0, SEEK_SET));
		args.cr_flags = flags;
		CHECK(cr_request_restart(&args, &handle) == 0);
		pid = outcome_of(&handle, flags & CR_RSTRT_RESTORE_PID);
		NEED(pid > 0);
		check_child(pid, child, group, flags);
		end_child(pid);
	}
	end_child(group);
	close(args.cr_fd);
	free(moved);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_child, .sa_flags = SA_RESTART };
	const char *what;

	check_begin(argc, argv);
	NEED(argc > 3);
	what = argv[3];
	sigaction(SIGCHLD, &action, NULL);
	NEED((log_fd = open("log", O_WRONLY | O_CREAT | O_APPEND, 0666)) >= 0);
	if (!strcmp(what, "self"))
		request_self();
	else if (!strcmp(what, "section"))
		request_in_section();
	else if (!strcmp(what, "other"))
		request_other(atoi(argv[4]));
	else if (!strcmp(what, "errors"))
		request_wrongly(atoi(argv[4]));
	else if (!strcmp(what, "unsupported"))
		request_unsupported(atoi(argv[4]));
	else if (!strcmp(what, "restarts"))
		request_two_restarts();
	else if (!strcmp(what, "restart"))
		request_restart();
	else if (!strcmp(what, "ways"))
		restart_in_all_ways();
	check_ready();
	check_wait();
	return check_end();
}
