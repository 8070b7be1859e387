// SPDX-License-Identifier: GPL-2.0
/*
 * cr_init() without the module, with another version of it, in several threads;
 * registering until there is no memory.  The module is made to look otherwise by
 * an open(2) and ioctl(2) of the program's own, which libcr calls.
 */
#include <libcr.h>

#include <pthread.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/kcr.h>

#include "tests/programs/check.h"

static bool no_module, other_version;

int open(const char *path, int flags, ...)
{
	va_list list;
	int mode;

	va_start(list, flags);
	mode = va_arg(list, int);
	va_end(list);
	if (no_module && !strcmp(path, KCR_DEVICE)) {
		errno = ENOENT;
		return -1;
	}
	return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int ioctl(int fd, unsigned long request, ...)
{
	struct kcr_info *info;
	va_list list;
	int ret;

	va_start(list, request);
	info = va_arg(list, void *);
	va_end(list);
	ret = syscall(SYS_ioctl, fd, request, info);
	if (!ret && other_version && request == KCR_IOC_INFO)
		info->abi++;
	return ret;
}

static int callback(void *arg)
{
	return arg == NULL;
}

static void *init(void *arg)
{
	cr_client_id_t id = cr_init();

	CHECK(cr_init() == id);
	return (char *)arg + id;
}

/* In a child, which then ends. */
static void exhaust(void)
{
	int registered = 0, status, err;
	struct rlimit limit;
	char text[256];
	pid_t pid = fork();

	if (!pid) {
		NEED(cr_init() == 0);
		NEED(cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
		limit.rlim_cur = strtoul(check_slurp("/proc/self/statm", text, sizeof(text)), NULL,
					 10) * 4096 + (8 << 20);
		limit.rlim_max = limit.rlim_cur;
		NEED(!setrlimit(RLIMIT_AS, &limit));
		while (registered < 1 << 24 &&
		       cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0)
			registered++;
		err = errno;
		CHECK(err == ENOMEM && registered > 1000 && registered < 1 << 24);
		_exit(check_end());
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *id;

	check_begin(argc, argv);
	no_module = true;
	CHECK(cr_init() < 0 && errno == ENOSYS);
	no_module = false;
	other_version = true;
	CHECK(cr_init() < 0 && errno == CR_EVERSION);
	other_version = false;
	CHECK(cr_status() == -1 && errno == CR_ENOINIT);
	CHECK(cr_init() == 0);
	for (long i = 1; i < 4; i++) {
		NEED(!pthread_create(&thread, NULL, init, NULL) && !pthread_join(thread, &id));
		CHECK((long)id == i);
	}
	CHECK(cr_init() == 0);
	exhaust();
	check_ready();
	check_wait();
	return check_end();
}
