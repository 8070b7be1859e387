// SPDX-License-Identifier: GPL-2.0
/*
 * kcr-build: -shared -fPIC -ldl
 *
 * Preloaded into cr_checkpoint: the process LATE_STOP gets SIGSTOP as soon as it
 * is parked, before its queued signals are read.
 */
#include <dlfcn.h>
#include <linux/kcr.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>

int ioctl(int fd, unsigned long request, ...)
{
	static int (*next_ioctl)(int, unsigned long, ...);
	const char *pid = getenv("LATE_STOP");
	va_list list;
	void *argument;
	int ret;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	if (!next_ioctl)
		*(void **)&next_ioctl = dlsym(RTLD_NEXT, "ioctl");
	if (!pid)
		abort();
	ret = next_ioctl(fd, request, argument);
	if (request == KCR_IOC_THREADS && !ret && kill(atoi(pid), SIGSTOP))
		abort();
	return ret;
}
