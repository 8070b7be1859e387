// SPDX-License-Identifier: GPL-2.0
/*
 * A little program is saved, killed, restarted and ends; see check.h.  It is a child of
 * this process with a second thread, a pipe and a TCP connection with data in them, an open
 * file and a counter that both threads keep.  All it leaves is in a folder of its own, which is removed.
 */
#include "check/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/program.h"
#include "checkpoint/checkpoint.h"
#include "device/refused.h"
#include "proc/clock.h"
#include "report/report.h"

#define PATIENCE_NS	(60 * 1000000000ull)
#define WORD		"saved"
#define GO_TRIES	60000		/* in five minutes */

struct folder {
	char path[PATH_MAX - 16];
	char ready[PATH_MAX], go[PATH_MAX], data[PATH_MAX], image[PATH_MAX];
	bool tcp;			/* the program has a connection */
};

/* ---- the program ------------------------------------------------------------------- */

static _Atomic unsigned long steps;

static void *second_thread(void *arg)
{
	for (;;) {
		atomic_fetch_add(&steps, 1);
		usleep(1000);
	}
	return arg;
}

/* A TCP connection within this process; false: not possible here, as without the interface lo. */
static bool connect_to_self(int ends[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval patience = { .tv_sec = 2 };
	socklen_t length = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ends[1] = -1;
	setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (!bind(listener, (struct sockaddr *)&at, length) && !listen(listener, 1) &&
	    !getsockname(listener, (struct sockaddr *)&at, &length) &&
	    !connect(ends[0], (struct sockaddr *)&at, length))
		ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	return ends[1] >= 0;
}

/* What was sent before the save arrives, and so does an answer in the other direction. */
static bool connection_works(const int ends[2])
{
	char word[sizeof(WORD)] = "", answer[sizeof(WORD)] = "";
	const int size = sizeof(WORD) - 1;

	return recv(ends[1], word, size, MSG_WAITALL) == size && !strcmp(word, WORD) &&
	       send(ends[1], WORD, size, MSG_NOSIGNAL) == size &&
	       recv(ends[0], answer, size, MSG_WAITALL) == size && !strcmp(answer, WORD);
}

/* Writes half of the word; the other half follows after the restart. */
static void begin(const struct folder *f, int ends[2], int connection[2], int *file)
{
	pthread_t thread;
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close_range(3, ~0u, 0);
	if (f->tcp && (!connect_to_self(connection) ||
		       send(connection[0], WORD, strlen(WORD), MSG_NOSIGNAL) < 0))
		_exit(2);
	*file = open(f->data, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (*file < 0 || pipe(ends) || write(ends[1], WORD, strlen(WORD)) < 0 ||
	    write(*file, WORD, 2) != 2 || pthread_create(&thread, NULL, second_thread, NULL) ||
	    close(open(f->ready, O_WRONLY | O_CREAT, 0600)))
		_exit(2);
}

static void be_program(const struct folder *f)
{
	char word[sizeof(WORD)] = "", text[sizeof(WORD)] = "";
	int ends[2], connection[2], file;
	unsigned long before;

	begin(f, ends, connection, &file);
	for (int i = 0; access(f->go, F_OK); i++) {
		if (i > GO_TRIES)
			_exit(5);	/* cr_check has been killed */
		usleep(5000);
	}
	before = atomic_load(&steps);
	if (read(ends[0], word, strlen(WORD)) < 0 || strcmp(word, WORD) ||
	    write(file, &WORD[2], strlen(WORD) - 2) < 0 ||
	    pread(file, text, strlen(WORD), 0) < 0 || strcmp(text, WORD))
		_exit(3);
	if (f->tcp && !connection_works(connection))
		_exit(4);
	while (atomic_load(&steps) == before)
		usleep(5000);
	_exit(0);
}

/* ---- the test ---------------------------------------------------------------------- */

static bool has_tcp(void)
{
	int ends[2];
	bool has = connect_to_self(ends);

	close(ends[0]);
	close(ends[1]);
	return has;
}

static int make_folder(struct folder *f)
{
	const char *place = getenv("TMPDIR");

	if (snprintf(f->path, sizeof(f->path), "%s/cr_check.XXXXXX", place ? place : "/tmp") >=
	    (int)sizeof(f->path) || !mkdtemp(f->path))
		return report_errno(-errno, "cannot create a folder in %s", place ? place : "/tmp");
	snprintf(f->ready, sizeof(f->ready), "%s/ready", f->path);
	snprintf(f->go, sizeof(f->go), "%s/go", f->path);
	snprintf(f->data, sizeof(f->data), "%s/data", f->path);
	snprintf(f->image, sizeof(f->image), "%s/image", f->path);
	return 0;
}

static void remove_folder(const struct folder *f)
{
	unlink(f->ready);
	unlink(f->go);
	unlink(f->data);
	unlink(f->image);
	rmdir(f->path);
}

/* Has the child ended in time?  Its status, or -ETIMEDOUT: it has been killed. */
static int wait_for_end(pid_t child)
{
	uint64_t deadline = now_ns() + PATIENCE_NS;
	int status;

	while (now_ns() < deadline) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		usleep(5000);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return -ETIMEDOUT;
}

static int wait_until_ready(const struct folder *f)
{
	uint64_t deadline = now_ns() + PATIENCE_NS;

	while (access(f->ready, F_OK)) {
		if (now_ns() > deadline)
			return report_fail(-ETIMEDOUT, "the test program does not start");
		usleep(5000);
	}
	return 0;
}

/* Saves and kills it.  0 or -errno with a message; the child is gone in any case. */
static int save(const struct folder *f, pid_t child)
{
	const struct checkpoint_options o = {
		.scope = CHECKPOINT_TREE, .target = child, .path = f->image, .fd = -1,
		.signal = SIGKILL, .timeout_s = 60,
	};
	struct checkpoint_result result;
	int err = wait_until_ready(f);

	if (!err)
		err = checkpoint_run(&o, &result);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return err;
}

static int restart(const struct folder *f)
{
	const struct program_restart how = { .path = f->image, .new_ids = refused_all_ids() && geteuid() };
	pid_t leader, ends;
	int status, err = program_restart(&how, &leader, &ends);

	if (err)
		return report_fail(err, "the restart of the test program failed, cr_restart has said why");
	close(open(f->go, O_WRONLY | O_CREAT, 0600));
	status = wait_for_end(leader);
	if (status < 0)
		return report_fail(status, "the restarted test program does not end");
	return status ? report_fail(-EIO, "the restarted test program has lost something (status %d)",
				    status) : 0;
}

static int run_test(const struct folder *f)
{
	int err = program_adopt();
	pid_t child = err ? -1 : fork();

	if (!child)
		be_program(f);
	if (!err && child < 0)
		err = report_errno(-errno, "cannot start the test program");
	if (!err)
		err = save(f, child);
	return err ? err : restart(f);
}

void check_self(struct check_answer *answer)
{
	uint64_t start = now_ns();
	struct folder f = {};
	int err = make_folder(&f);

	f.tcp = has_tcp();
	if (!err) {
		err = run_test(&f);
		remove_folder(&f);
	}
	if (err)
		check_failed(answer, err);
	else
		check_answer(answer, CHECK_OK, "", "a program with threads, a pipe%s was saved and "
			     "restarted in %.2f s", f.tcp ? ", a file and a TCP connection" :
			     " and a file (no TCP connection, as none can be made to 127.0.0.1)",
			     (double)(now_ns() - start) / 1e9);
}
