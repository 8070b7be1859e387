// SPDX-License-Identifier: GPL-2.0
/*
 * kcr-build: -shared -fPIC -ldl
 *
 * Preloaded into a tool: the FAULT_NTH-th allocation or copy fails (fault
 * injection, /proc/PID/fail-nth) that is made in the first call of the module
 * whose number is FAULT_CALL, or from then on in the process that the call has
 * made if FAULT_CALL is `child`.  If the fault came, the file FAULT_LOG says so.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcr.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int (*next_ioctl)(int, unsigned long, ...);
static bool done;

/* Returns the descriptor of the thread's fail-nth. */
static int arm(void)
{
	const char *nth = getenv("FAULT_NTH");
	int fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);

	if (fd < 0 || write(fd, nth, strlen(nth)) < 0)
		abort();
	done = true;
	return fd;
}

/* A read or write that fails by the very fault has not left it to the call. */
static void disarm(int fd)
{
	int log, saved = errno;
	char left[16] = "";

	if (pread(fd, left, sizeof(left) - 1, 0) > 0 && !atoi(left)) {
		log = open(getenv("FAULT_LOG"), O_WRONLY | O_CREAT, 0644);
		if (log < 0)
			abort();
		close(log);
	}
	while (write(fd, "0", 1) != 1)
		;
	close(fd);
	errno = saved;
}

static bool is_wanted(unsigned long request)
{
	const char *wanted = getenv("FAULT_CALL");

	return !done && wanted && _IOC_TYPE(request) == KCR_IOC_MAGIC &&
	       _IOC_NR(request) == strtoul(wanted, NULL, 16);
}

static bool is_child(unsigned long request, int result)
{
	const char *wanted = getenv("FAULT_CALL");

	return request == KCR_IOC_CLONE && !result && wanted && !strcmp(wanted, "child");
}

int ioctl(int fd, unsigned long request, ...)
{
	int ret, armed = -1;
	va_list list;
	void *argument;

	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	if (!next_ioctl)
		*(void **)&next_ioctl = dlsym(RTLD_NEXT, "ioctl");
	if (is_wanted(request))
		armed = arm();
	ret = next_ioctl(fd, request, argument);
	if (armed >= 0)
		disarm(armed);
	else if (is_child(request, ret))
		close(arm());
	return ret;
}
