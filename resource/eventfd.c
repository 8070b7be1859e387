// SPDX-License-Identifier: GPL-2.0
/*
 * eventfd(2): its count and whether it is a semaphore.  Kernels before 6.5 do
 * not report the latter: one read() of the counter shows it, and what that took
 * is written back, while the program is stopped.
 */
#include "resource/file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

static bool match(const struct file_probe *probe)
{
	return probe_is_anon(probe, "[eventfd]");
}

static bool take(int fd, uint64_t *value)
{
	struct iovec v = { value, sizeof(*value) };

	return preadv2(fd, &v, 1, -1, RWF_NOWAIT) == sizeof(*value);
}

static bool give(int fd, uint64_t value)
{
	return write(fd, &value, sizeof(value)) == sizeof(value);
}

/* With a count of two or more, a semaphore returns 1 and a counter all. */
static bool is_semaphore(int fd, uint64_t count)
{
	uint64_t value, more = count < 2 ? 2 : 0, rest;
	bool semaphore;

	if (more && !give(fd, more))
		return false;
	if (!take(fd, &value))
		return false;
	semaphore = value == 1;
	/* Put back what is missing, or remove the excess. */
	rest = count + more - value;
	if (semaphore)
		for (; rest > count && take(fd, &value); rest--)
			;
	if (rest < count)
		give(fd, count - rest);
	return semaphore;
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	const char *count = fdinfo_value(probe->fdinfo, "eventfd-count:");
	const char *semaphore = fdinfo_value(probe->fdinfo, "eventfd-semaphore:");
	Kcr__EventFd *eventfd = file_new_kind(file, KCR__FILE__KIND_EVENTFD, sizeof(*eventfd));

	if (!eventfd)
		return -ENOMEM;
	if (!count)
		return file_unsupported(t, "an eventfd that this kernel gives no information on");
	eventfd->count = strtoull(count, NULL, 16);
	eventfd->has_semaphore = true;
	if (semaphore)
		eventfd->semaphore = atoi(semaphore);
	else if (!file_table_is_dry(t) && eventfd->count < UINT64_MAX - 3)
		eventfd->semaphore = is_semaphore(probe->fd, eventfd->count);
	return 0;
}

static int open_eventfd(struct rebuild *r, const Kcr__File *file)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK |
				    (file->eventfd->semaphore ? EFD_SEMAPHORE : 0));

	if (fd < 0)
		return rebuild_error(file, -errno, "eventfd");
	if (file->eventfd->count && !give(fd, file->eventfd->count)) {
		int err = rebuild_error(file, -errno, "cannot set its count");

		close(fd);
		return err;
	}
	return rebuild_put(r, file->id, fd);
}

const struct file_kind file_kind_eventfd = {
	.kind = KCR__FILE__KIND_EVENTFD,
	.name = "eventfd",
	.match = match,
	.save = save,
	.open = open_eventfd,
};
