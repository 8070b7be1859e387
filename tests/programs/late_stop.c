// SPDX-License-Identifier: GPL-2.0
/*
 * kcr-build: -shared -fPIC -ldl
 *
 * Preloaded into cr_checkpoint: the process LATE_STOP gets SIGSTOP as soon as it
 * is parked, before its queued signals are read.  Those of LATE_CONT, which are stopped and
 * bound to processor 0, get SIGCONT right before they are parked, and no time to leave
 * their stop.
 */
#include <dlfcn.h>
#include <linux/kcr.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>

/* Nothing else runs on the processor before the ioctl sleeps. */
static void continue_all(const char *pids)
{
	struct sched_param first = { .sched_priority = 1 };
	cpu_set_t set;
	char *end;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	if (sched_setaffinity(0, sizeof(set), &set) || sched_setscheduler(0, SCHED_FIFO, &first))
		abort();
	for (; *pids; pids = end)
		if (kill((pid_t)strtol(pids, &end, 10), SIGCONT))
			abort();
}

int ioctl(int fd, unsigned long request, ...)
{
	static int (*next_ioctl)(int, unsigned long, ...);
	const char *stop = getenv("LATE_STOP"), *cont = getenv("LATE_CONT");
	struct sched_param normal = {};
	va_list list;
	void *argument;
	int ret;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	if (!next_ioctl)
		*(void **)&next_ioctl = dlsym(RTLD_NEXT, "ioctl");
	if (cont && request == KCR_IOC_PARK)
		continue_all(cont);
	ret = next_ioctl(fd, request, argument);
	if (cont && request == KCR_IOC_PARK && sched_setscheduler(0, SCHED_OTHER, &normal))
		abort();
	if (stop && request == KCR_IOC_THREADS && !ret && kill(atoi(stop), SIGSTOP))
		abort();
	return ret;
}
