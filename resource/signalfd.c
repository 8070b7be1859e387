// SPDX-License-Identifier: GPL-2.0
/*
 * signalfd(2): a mask.  The signals themselves are pending in the processes
 * that read it.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool match(const struct file_probe *probe)
{
	return probe_is_anon(probe, "[signalfd]");
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	const char *mask = fdinfo_value(probe->fdinfo, "sigmask:");
	Kcr__SignalFd *signalfd = file_new_kind(file, KCR__FILE__KIND_SIGNALFD, sizeof(*signalfd));

	if (!signalfd)
		return -ENOMEM;
	if (!mask)
		return file_unsupported(t, "a signalfd that this kernel gives no information on");
	signalfd->mask = strtoull(mask, NULL, 16);
	return 0;
}

static int open_signalfd(struct rebuild *r, const Kcr__File *file)
{
	uint64_t mask = file->signalfd->mask;
	int fd = syscall(SYS_signalfd4, -1, &mask, sizeof(mask), O_CLOEXEC);

	if (fd < 0)
		return rebuild_error(file, -errno, "signalfd");
	return rebuild_put(r, file->id, fd);
}

const struct file_kind file_kind_signalfd = {
	.kind = KCR__FILE__KIND_SIGNALFD,
	.name = "signalfd",
	.match = match,
	.save = save,
	.open = open_signalfd,
};
