// SPDX-License-Identifier: GPL-2.0
/* The coordinator of a job in a process of its own.  See mpirun.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "job/coordinator/greeting.h"
#include "job/coordinator/root.h"
#include "mpirun.h"

struct access job;
pid_t mpirun;
struct root_settings mpirun_settings;

static int said = -1;			/* what it says; -1: to this process's own */

static void be_mpirun(int out)
{
	static struct snapshot snapshot = { .openmpi = "4.1.4", .kcr = KCR_VERSION, .cwd = "/" };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (said >= 0)
		dup2(said, STDERR_FILENO);
	if (root_start(&snapshot, &mpirun_settings, job.address, sizeof(job.address), job.secret) ||
	    write(out, &job, sizeof(job)) != sizeof(job))
		_exit(1);
	for (;;)
		pause();
}

int start_mpirun(void **state)
{
	int ends[2];

	(void)state;
	if (pipe(ends))
		return -1;
	mpirun = fork();
	if (mpirun < 0)
		return -1;
	if (!mpirun)
		be_mpirun(ends[1]);
	close(ends[1]);
	if (read(ends[0], &job, sizeof(job)) != sizeof(job))
		return -1;
	close(ends[0]);
	return 0;
}

int start_heard_mpirun(void **state)
{
	said = memfd_create("said", MFD_CLOEXEC);
	return said < 0 ? -1 : start_mpirun(state);
}

int end_mpirun(void **state)
{
	int status;

	(void)state;
	if (said >= 0)
		close(said);
	said = -1;
	/* It has to be alive. */
	if (waitpid(mpirun, &status, WNOHANG))
		return -1;
	kill(mpirun, SIGKILL);
	waitpid(mpirun, NULL, 0);
	return 0;
}

bool mpirun_has_said(const char *text)
{
	char all[4096] = "";

	assert_true(pread(said, all, sizeof(all) - 1, 0) >= 0);
	return strstr(all, text);
}

void mpirun_says(const char *text)
{
	double end = now() + 10;

	while (!mpirun_has_said(text)) {
		assert_true(now() < end);
		usleep(10000);
	}
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int try_connect(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_port = htons(atoi(strrchr(job.address, ':') + 1));
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

int come(void)
{
	int fd = try_connect();

	assert_true(fd >= 0);
	return fd;
}

void daemon_comes(struct wire *w, const char *secret, double patience)
{
	double end = now() + patience;
	int fd, err;

	do {
		fd = come();
		err = greeting_daemon(w, fd, secret, "node");
		if (err)
			close(fd);
	} while ((err == -ECONNRESET || err == -ETIMEDOUT) && now() < end);
	assert_int_equal(err, 0);
}
