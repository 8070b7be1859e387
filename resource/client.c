// SPDX-License-Identifier: GPL-2.0
/*
 * The descriptor by which libcr takes part in checkpoints.  It belongs to the
 * process that created it, so it is created again in that process: there it
 * reports that the process was restarted, and the thread that sleeps on it goes on
 * with its callbacks.  Other processes cannot use their copies; they get
 * /dev/null instead.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcr.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/report.h"

static bool match(const struct file_probe *probe)
{
	return probe_is_anon(probe, "[kcr_client]");
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	const char *pid = fdinfo_value(probe->fdinfo, "kcr-client:");
	Kcr__Client *client = file_new_kind(file, KCR__FILE__KIND_CLIENT, sizeof(*client));

	if (!client)
		return -ENOMEM;
	if (!pid)
		return file_unsupported(t, "of libcr, which the module does not report");
	client->pid = atoi(pid);
	return 0;
}

static int open_client(struct rebuild *r, const Kcr__File *file)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return rebuild_error(file, -errno, "/dev/null");
	return rebuild_put(r, file->id, fd);
}

/* The lowest file descriptor of the process for it. */
static int first_number(const Kcr__Process *process, uint32_t id)
{
	int first = -1;

	for (size_t i = 0; i < process->n_descriptor; i++)
		if (process->descriptor[i]->file_id == id &&
		    (first < 0 || process->descriptor[i]->fd < first))
			first = process->descriptor[i]->fd;
	return first;
}

/* Called in the order of descriptors: the first one is created, the others are copies. */
static int install(struct rebuild *r, const Kcr__Process *process, int number,
		   const Kcr__File *file)
{
	struct kcr_client_new request = {
		.size = sizeof(request), .flags = KCR_CLIENT_RESTARTED,
		.path = (uintptr_t)r->source,
	};
	int first = first_number(process, file->id), flags = fcntl(number, F_GETFD), fd;

	if (file->client->pid != process->pid || flags < 0)
		return 0;
	fd = number == first ? ioctl(r->job, KCR_IOC_CLIENT, &request) : first;
	if (fd < 0)
		return rebuild_error(file, -errno, "the kernel module");
	if (dup3(fd, number, flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0)
		return rebuild_error(file, -errno, "descriptor %d", number);
	if (number == first)
		close(fd);
	return 0;
}

const struct file_kind file_kind_client = {
	.kind = KCR__FILE__KIND_CLIENT,
	.name = "libcr",
	.match = match,
	.save = save,
	.open = open_client,
	.install = install,
};
