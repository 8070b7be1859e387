// SPDX-License-Identifier: GPL-2.0
/*
 * `park_at_once PID`: stops a process as soon as it may be saved after a restart, that
 * is once no descriptor of /dev/kcr is in it, and looks whether all of its threads have
 * their own registers then: none is in ioctl(2), where those are that rebuild it.
 */
#include <dirent.h>
#include <linux/kcr.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "check.h"

#define MAX_THREADS	400
#define TIMEOUT_MS	1000	/* threads that are not complete yet cannot be stopped */
#define ORIG_RAX	15	/* in struct user_regs_struct */

/* For who ends a program that hangs. */
static const char *volatile doing;
static volatile int last_error;

static void tell(int signal)
{
	(void)signal;
	dprintf(STDOUT_FILENO, "%s: %s\n", doing, strerror(last_error));
	_exit(1);
}

/* Is this link in /proc/PID/fd one to /dev/kcr? */
static int is_device(int dir, const char *name)
{
	char link[80];
	ssize_t n = readlinkat(dir, name, link, sizeof(link) - 1);

	link[n > 0 ? n : 0] = '\0';
	return !strcmp(link, "/dev/kcr");
}

/* Its descriptor of /dev/kcr, -1: it has none or does not exist. */
static int descriptor(int pid)
{
	struct dirent *entry;
	int number = -1;
	char path[80];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && number < 0 && (entry = readdir(dir)))
		if (is_device(dirfd(dir), entry->d_name))
			number = atoi(entry->d_name);
	if (dir)
		closedir(dir);
	return number;
}

/*
 * Waits until it has had one: if it exists without, that is over already, or has been overlooked as
 * it was given another number.
 */
static void wait_for(int pid)
{
	char path[80];
	int number;

	doing = "waiting for it";
	snprintf(path, sizeof(path), "/proc/%d", pid);
	while ((number = descriptor(pid)) < 0 && access(path, F_OK))
		;
	doing = "waiting until it is complete";
	do {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
		while (is_device(AT_FDCWD, path))
			;
		number = descriptor(pid);	/* another number may be it now */
	} while (number >= 0);
}

/* Returns a job with it, stopped; -1: it may not be saved yet. */
static int stop(int pid)
{
	struct kcr_add add = { .size = sizeof(add), .pid = pid };
	struct kcr_park park = { .size = sizeof(park), .timeout_ms = TIMEOUT_MS };
	int job = open("/dev/kcr", O_RDWR | O_CLOEXEC);
	int stopped = 0;
	char path[32];

	NEED(job >= 0);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	add.mem_fd = open(path, O_RDWR | O_CLOEXEC);
	doing = "adding it";
	if (!ioctl(job, KCR_IOC_ADD, &add)) {
		doing = "stopping it";
		stopped = !ioctl(job, KCR_IOC_PARK, &park) && descriptor(pid) < 0;
	}
	last_error = errno;
	close(add.mem_fd);
	if (stopped)
		return job;
	close(job);
	return -1;
}

int main(int argc, char **argv)
{
	struct kcr_info info = { .size = sizeof(info) };
	struct kcr_release release = { .size = sizeof(release) };
	struct kcr_threads threads = { .size = sizeof(threads), .count = MAX_THREADS };
	int job = open("/dev/kcr", O_RDWR | O_CLOEXEC);

	NEED(argc == 2 && job >= 0 && !ioctl(job, KCR_IOC_INFO, &info));
	close(job);
	signal(SIGTERM, tell);
	threads.pid = atoi(argv[1]);
	threads.stride = (sizeof(struct kcr_thread) + info.xstate_size + 7) & ~7u;
	threads.buffer = (uintptr_t)calloc(threads.count, threads.stride);
	do {
		wait_for(threads.pid);
		job = stop(threads.pid);
	} while (job < 0);
	NEED(!ioctl(job, KCR_IOC_THREADS, &threads));
	for (unsigned int i = 0; i < threads.count; i++) {
		const struct kcr_thread *t = (void *)(threads.buffer + i * threads.stride);

		CHECK(t->regs[ORIG_RAX] != SYS_ioctl);
	}
	CHECK(threads.count > 1);
	CHECK(!ioctl(job, KCR_IOC_RELEASE, &release));
	return !!check_failures;
}
