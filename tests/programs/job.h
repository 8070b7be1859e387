/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For programs that use /dev/kcr themselves: its calls, as short as they get.
 * What returns int returns 0 (or a number above) or -errno.
 */
#ifndef KCR_TESTS_JOB_H
#define KCR_TESTS_JOB_H

#include <linux/kcr.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

static inline int job_open(void)
{
	int job = open("/dev/kcr", O_RDWR | O_CLOEXEC);

	return job < 0 ? -errno : job;
}

static inline int job_call(int job, unsigned long number, void *request)
{
	int ret = ioctl(job, number, request);

	return ret < 0 ? -errno : ret;
}

static inline int job_add(int job, pid_t pid)
{
	struct kcr_add add = { .size = sizeof(add), .pid = pid };
	char path[32];
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	add.mem_fd = open(path, O_RDWR | O_CLOEXEC);
	NEED(add.mem_fd >= 0);
	ret = job_call(job, KCR_IOC_ADD, &add);
	close(add.mem_fd);
	return ret;
}

/* timeout_ms 0: long enough.  *failed, if not NULL: who did not come to rest. */
static inline int job_park(int job, unsigned int timeout_ms, pid_t *failed)
{
	struct kcr_park park = { .size = sizeof(park), .timeout_ms = timeout_ms };
	int ret = job_call(job, KCR_IOC_PARK, &park);

	if (failed)
		*failed = park.failed_pid;
	return ret;
}

static inline int job_release(int job, unsigned int flags)
{
	struct kcr_release release = { .size = sizeof(release), .flags = flags };

	return job_call(job, KCR_IOC_RELEASE, &release);
}

/* How many processes there are, at most 4. */
static inline int job_list(int job)
{
	struct kcr_process process[4];
	struct kcr_list list = { .size = sizeof(list), .count = 4, .processes = (uintptr_t)process };
	int ret = job_call(job, KCR_IOC_LIST, &list);

	return ret ? ret : (int)list.count;
}

static inline int job_mapped_file(int job, pid_t pid, const void *address)
{
	struct kcr_mapped_file ask = {
		.size = sizeof(ask), .pid = pid, .address = (uintptr_t)address,
	};

	return job_call(job, KCR_IOC_MAPPED_FILE, &ask);
}

static inline int job_descriptor(int job, pid_t pid, int number)
{
	struct kcr_descriptor ask = { .size = sizeof(ask), .pid = pid, .fd = number };

	return job_call(job, KCR_IOC_DESCRIPTOR, &ask);
}

/* A child of this job's that ends at once, with this number (0: any), and is waited for. */
static inline int job_clone(int job, pid_t number)
{
	struct kcr_clone request = {
		.size = sizeof(request), .exit_signal = SIGCHLD, .tid = number,
	};
	int ret = job_call(job, KCR_IOC_CLONE, &request);

	if (!ret)
		_exit(0);
	if (ret > 0)
		waitpid(ret, NULL, 0);
	return ret;
}

/* Waits, until it is killed or its parent ends. */
static inline void job_idle(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static inline pid_t job_idle_child(void)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (!pid)
		job_idle();
	return pid;
}

static inline void job_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The caller is an ordinary user from now on, who may be looked at by his own. */
static inline void job_be_user(void)
{
	NEED(!setgid(1000) && !setuid(1000) && !prctl(PR_SET_DUMPABLE, 1));
}

#endif /* KCR_TESTS_JOB_H */
