// SPDX-License-Identifier: GPL-2.0
/*
 * Devices without a state of their own: /dev/null, zero, full, random,
 * urandom.  All others, except terminals, are treated as hardware.
 * A process with /dev/kcr open is being restarted, or saves or restarts
 * others: it can be saved later, but not now.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/kcr.h>

#include "proc/proc.h"
#include "report/report.h"

static const struct { unsigned int minor; const char *path; } devices[] = {
	{ 3, "/dev/null" }, { 5, "/dev/zero" }, { 7, "/dev/full" },
	{ 8, "/dev/random" }, { 9, "/dev/urandom" },
};

const char *device_usual_path(uint64_t rdev)
{
	if (major(rdev) != 1)
		return NULL;
	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++)
		if (devices[i].minor == minor(rdev))
			return devices[i].path;
	return NULL;
}

static bool match(const struct file_probe *probe)
{
	return (S_ISCHR(probe->st.st_mode) || S_ISBLK(probe->st.st_mode)) &&
	       !(probe->flags & O_PATH);
}

static bool is_kcr(const struct stat *st)
{
	struct stat kcr;

	return S_ISCHR(st->st_mode) && !stat(KCR_DEVICE, &kcr) && kcr.st_rdev == st->st_rdev;
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	const char *usual = S_ISCHR(probe->st.st_mode) ? device_usual_path(probe->st.st_rdev) : NULL;
	Kcr__Device *device;

	if (!usual && is_kcr(&probe->st))
		return report_fail(-EBUSY, "process %d is being restarted, or saves or restarts "
				   "others, and has " KCR_DEVICE " open: try again later",
				   probe->pid);
	if (!usual)
		return file_unsupported(t, "a device (%s %u:%u)",
					S_ISBLK(probe->st.st_mode) ? "block" : "character",
					major(probe->st.st_rdev), minor(probe->st.st_rdev));
	device = file_new_kind(file, KCR__FILE__KIND_DEVICE, sizeof(*device));
	if (!device)
		return -ENOMEM;
	device->has_deleted = device->deleted = probe_is_deleted(probe);
	device->path = probe_path(probe, device->deleted);
	device->rdev = probe->st.st_rdev;
	if (device->deleted) {
		device->has_mode = device->has_uid = device->has_gid = true;
		device->mode = probe->st.st_mode & 07777;
		device->uid = probe->st.st_uid;
		device->gid = probe->st.st_gid;
	}
	return device->path ? 0 : -ENOMEM;
}

/*
 * Makes a deleted node for a moment, as it was: only root can, and only the harmless
 * devices above are ever made.
 */
static int open_deleted(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__Device *device = file->device;
	char name[NAME_MAX + 1];
	int folder = rebuild_open_folder(r, device->path, name), node = -1, fd;
	bool made = folder >= 0 && !mknodat(folder, name, S_IFCHR | 0600, device->rdev);
	struct stat st;

	if (made) {
		node = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		unlinkat(folder, name, 0);
	}
	if (folder >= 0)
		close(folder);
	if (node < 0)
		return -ENOENT;
	/* Users may have replaced it, by what waits when it is opened: another type is not ours. */
	if (fstat(node, &st) || !S_ISCHR(st.st_mode) || st.st_rdev != device->rdev) {
		close(node);
		return -ENOENT;
	}
	fd = proc_fd_reopen(node, rebuild_open_flags(file) & ~O_NOFOLLOW);
	/* Nor is what has another name. */
	if (fd >= 0 && !fstat(node, &st) && !st.st_nlink) {
		rebuild_give(node, device->uid, device->gid, device->path);
		rebuild_set_mode(node, device->mode & 0777);
	}
	close(node);
	return fd;
}

static int open_device(struct rebuild *r, const Kcr__File *file)
{
	const char *usual = device_usual_path(file->device->rdev);
	struct stat st;
	int fd;

	if (!usual)
		return rebuild_error(file, -EINVAL, "not a device that is ever saved");
	if (file->device->deleted)
		fd = open_deleted(r, file);
	else
		fd = rebuild_open_node(r, file->device->path, rebuild_open_flags(file), &st, S_IFCHR);
	if (fd >= 0 && (fstat(fd, &st) || st.st_rdev != file->device->rdev)) {
		close(fd);
		fd = -ENODEV;
	}
	if (fd < 0) {
		report_clear();
		fd = open(usual, rebuild_open_flags(file));
		if (fd < 0)
			return rebuild_error(file, -errno, "it cannot be opened");
	}
	return rebuild_put(r, file->id, fd);
}

const struct file_kind file_kind_device = {
	.kind = KCR__FILE__KIND_DEVICE,
	.name = "device",
	.match = match,
	.save = save,
	.open = open_device,
};
