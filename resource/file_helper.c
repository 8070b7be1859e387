// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers for the kinds of open files: building the messages of a save,
 * recognising what a probe is, and what descriptors become at a restart.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"
#include "resource/identity.h"
#include "resource/silly_name.h"

/* ---- save ------------------------------------------------------------------- */

int file_bytes(ProtobufCBinaryData *out, const void *data, size_t length)
{
	uint8_t *copy = malloc(length + 1);

	if (!copy)
		return report_errno(-ENOMEM, "saving open files");
	if (length)
		memcpy(copy, data, length);
	free(out->data);
	out->data = copy;
	out->len = length;
	return 0;
}

char *file_string(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		report_errno(-ENOMEM, "saving open files");
	return copy;
}

void *file_new_kind(Kcr__File *file, Kcr__File__KindCase tag, size_t size)
{
	const struct file_kind *kind = file_kind_of(tag);
	const ProtobufCFieldDescriptor *field;
	void *message = calloc(1, size);

	field = protobuf_c_message_descriptor_get_field(&kcr__file__descriptor, tag);
	if (!message || !kind || !field) {
		free(message);
		report_errno(-ENOMEM, "saving open files");
		return NULL;
	}
	protobuf_c_message_init(field->descriptor, message);
	file->kind_case = tag;
	file->regular = message;	/* all members of the union are pointers */
	return message;
}

const char *fdinfo_value(const char *fdinfo, const char *key)
{
	size_t length = strlen(key);
	const char *line = fdinfo;

	while (line) {
		if (!strncmp(line, key, length)) {
			line += length;
			return line + strspn(line, "\t ");
		}
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	return NULL;
}

bool probe_is_anon(const struct file_probe *probe, const char *name)
{
	static const char prefix[] = "anon_inode:";

	return !strncmp(probe->link, prefix, sizeof(prefix) - 1) &&
	       !strcmp(probe->link + sizeof(prefix) - 1, name);
}

static bool ends_deleted(const char *link)
{
	static const char suffix[] = " (deleted)";
	size_t length = strlen(link);

	return length >= sizeof(suffix) && !strcmp(link + length - sizeof(suffix) + 1, suffix);
}

bool probe_is_deleted(const struct file_probe *probe)
{
	struct stat st;

	if (!ends_deleted(probe->link))
		return silly_name_is(probe->link, probe->fs.f_type);
	return lstat(probe->link, &st) || st.st_ino != probe->st.st_ino ||
	       st.st_dev != probe->st.st_dev;
}

bool probe_is_at_path(const struct file_probe *probe)
{
	struct stat st;

	return probe->link[0] == '/' && !lstat(probe->link, &st) &&
	       st.st_ino == probe->st.st_ino && st.st_dev == probe->st.st_dev;
}

char *probe_path(const struct file_probe *probe, bool deleted)
{
	char *path = file_string(probe->link);

	if (path && deleted && ends_deleted(path))
		path[strlen(path) - strlen(" (deleted)")] = '\0';
	return path;
}

/* ---- rebuild ------------------------------------------------------------------ */

static int take_high(struct rebuild *r, int fd, int *out)
{
	int high;

	if (*out >= 0)			/* of a failed attempt */
		close(*out);
	*out = -1;
	if (fd >= r->high_fd) {
		*out = fd;
		return 0;
	}
	high = fcntl(fd, F_DUPFD_CLOEXEC, r->high_fd);
	if (high < 0) {
		high = -errno;
		close(fd);
		return report_errno(high, "restoring open files");
	}
	close(fd);
	*out = high;
	return 0;
}

int rebuild_put(struct rebuild *r, uint32_t id, int fd)
{
	return take_high(r, fd, &r->file_fd[id - 1]);
}

int rebuild_put_content(struct rebuild *r, uint32_t id, int fd)
{
	return take_high(r, fd, &r->content_fd[id - 1]);
}

/* The file is the caller's, not named by the image; but an untrusted image chooses the flags. */
int rebuild_reopen_stdio(const struct rebuild *r, int number, int flags)
{
	bool raised = identity_raise(false);
	int fd = proc_fd_reopen(r->stdio[number], flags);

	identity_lower(raised);
	return fd;
}

int rebuild_put_stdio(struct rebuild *r, uint32_t id, int number, uint32_t flags)
{
	enum borrowed borrowed = REOPENED;
	struct stat st;
	int fd = -1;

	if (r->stdio[number] < 0 || fstat(r->stdio[number], &st))
		return -EBADF;
	if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))
		fd = rebuild_reopen_stdio(r, number,
					  (flags & (O_ACCMODE | O_NONBLOCK | O_APPEND)) | O_NOCTTY);
	if (fd < 0) {
		fd = fcntl(r->stdio[number], F_DUPFD_CLOEXEC, r->high_fd);
		borrowed = BORROWED;
	}
	if (fd < 0)
		return -errno;
	r->borrowed[id - 1] = borrowed;
	return rebuild_put(r, id, fd);
}

int rebuild_error(const Kcr__File *file, int err, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return report_errno(err, "cannot restore %s: %s", file->description ?: "an open file",
			    what);
}

int rebuild_open_flags(const Kcr__File *file)
{
	/* Not O_DIRECTORY: it is half of O_TMPFILE. */
	const int keep = O_ACCMODE | O_APPEND | O_NONBLOCK | O_DSYNC | O_SYNC | O_DIRECT |
			 O_NOFOLLOW | O_NOATIME | O_PATH;

	return (file->flags & keep) | O_NOCTTY | O_CLOEXEC;
}

bool rebuild_has_user(const struct rebuild *r, uid_t uid)
{
	for (size_t i = 0; i < r->context->nr_processes; i++) {
		const Kcr__Credentials *c = r->context->process[i]->credentials;

		if (c && (c->uid == uid || c->euid == uid || c->fsuid == uid))
			return true;
	}
	return false;
}

int rebuild_own(const struct rebuild *r, int fd, uid_t uid, gid_t gid, const char *name)
{
	struct stat st;

	if (!fchownat(fd, "", uid, gid, AT_EMPTY_PATH))
		return 0;
	if (identity_may_be_anyone() && !fstat(fd, &st) && st.st_uid != uid &&
	    rebuild_has_user(r, uid))
		return report_fail(-EPERM, "%s belonged to user %u, and could only be made for user %u, "
				   "whose process has it, too", name, uid, st.st_uid);
	report_verbose("%s has another owner than before", name);
	return 0;
}

void rebuild_give(int fd, uid_t uid, gid_t gid, const char *name)
{
	bool raised = identity_raise(false);

	if (fchownat(fd, "", uid, gid, AT_EMPTY_PATH))
		report_verbose("%s has another owner than before", name);
	identity_lower(raised);
}

int rebuild_set_mode(int fd, mode_t mode)
{
	bool raised = identity_raise(false);
	char path[PROC_PATH];
	int err = chmod(proc_fd_path(path, fd), mode) ? -errno : 0;

	identity_lower(raised);
	return err;
}

bool rebuild_has_number(const struct rebuild *r, uint32_t id, int number)
{
	for (size_t i = 0; i < r->context->nr_processes; i++)
		if (process_has_number(r->context->process[i], id, number))
			return true;
	return false;
}

const Kcr__Process *rebuild_first_owner(const struct rebuild *r, uint32_t id)
{
	for (size_t i = 0; i < r->context->nr_processes; i++)
		if (process_has_number(r->context->process[i], id, -1))
			return r->context->process[i];
	return NULL;
}
