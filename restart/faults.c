// SPDX-License-Identifier: GPL-2.0
/*
 * The calls of userfaultfd(2).  A copy from an address that cannot be read tells whether
 * one to the target would succeed, and changes nothing: the target is looked at first.
 */
#include "restart/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report/report.h"

#define PAGE	4096u

#ifndef UFFD_FEATURE_EXACT_ADDRESS
#define UFFD_FEATURE_EXACT_ADDRESS (1 << 11)
#endif

/*
 * The last one is not needed, but came (5.18) after a fix (5.16): before, the end of one event
 * hid that others are outstanding.
 */
#define FEATURES (UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | \
		  UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EXACT_ADDRESS)

int faults_open(void)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int faults_begin(int fd)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };

	return ioctl(fd, UFFDIO_API, &api) ? -errno : 0;
}

int faults_check(void)
{
	int fd = faults_open(), err = fd < 0 ? fd : faults_begin(fd);

	if (fd >= 0)
		close(fd);
	if (!err)
		return 0;
	if (err == -EPERM)
		return report_fail(err, "--lazy needs the capability CAP_SYS_PTRACE, to learn of the "
				   "program's forks (userfaultfd): restart as root, or without --lazy");
	if (err == -EINVAL || err == -ENOSYS)
		return report_fail(-EOPNOTSUPP, "--lazy needs Linux 5.18 or later, with userfaultfd: "
				   "restart without --lazy");
	return report_errno(err, "--lazy: userfaultfd");
}

int faults_register(int fd, uint64_t start, uint64_t end)
{
	struct uffdio_register range = {
		.range = { .start = start, .len = end - start },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	return ioctl(fd, UFFDIO_REGISTER, &range) ? -errno : 0;
}

ssize_t faults_copy(int fd, uint64_t address, const void *data, size_t length)
{
	struct uffdio_copy copy = {
		.dst = address, .src = (uintptr_t)data, .len = length,
	};

	if (!ioctl(fd, UFFDIO_COPY, &copy))
		return length;
	/* EAGAIN: what is outstanding, or an error behind the first page. */
	return errno == EAGAIN && copy.copy > 0 ? copy.copy : -errno;
}

int faults_zero(int fd, uint64_t address)
{
	struct uffdio_zeropage zero = { .range = { .start = address, .len = PAGE } };

	return ioctl(fd, UFFDIO_ZEROPAGE, &zero) ? -errno : 0;
}

void faults_wake(int fd, uint64_t address)
{
	struct uffdio_range range = { .start = address, .len = PAGE };

	ioctl(fd, UFFDIO_WAKE, &range);
}

int faults_look(int fd, uint64_t address)
{
	static void *unreadable = MAP_FAILED;
	struct uffdio_copy copy = {
		.dst = address, .len = PAGE, .mode = UFFDIO_COPY_MODE_DONTWAKE,
	};

	if (unreadable == MAP_FAILED)
		unreadable = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (unreadable == MAP_FAILED)
		return -ENOMEM;
	copy.src = (uintptr_t)unreadable;
	if (!ioctl(fd, UFFDIO_COPY, &copy) || errno == EFAULT || errno == EEXIST)
		return 0;
	return -errno;
}
