// SPDX-License-Identifier: GPL-2.0
/*
 * Readers of /proc/PID for the attributes of a process: everything is seen
 * from outside, with as few opens as can be.
 */
#include "resource/attribute.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/identity.h"

static void proc_path(char *path, size_t size, pid_t pid, const char *name)
{
	if (pid)
		snprintf(path, size, "/proc/%d/%s", pid, name);
	else
		snprintf(path, size, "/proc/self/%s", name);
}

/*
 * /proc hands out what fits into a page at a time: less than half of one was
 * all there is, and the read that would say so can be saved.
 */
static bool proc_is_whole(size_t length, size_t size)
{
	return length < 2048 && length < size - 1;
}

ssize_t proc_read(pid_t pid, const char *name, char *buffer, size_t size)
{
	char path[64];
	size_t length = 0;
	ssize_t got;
	int fd;

	proc_path(path, sizeof(path), pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		got = read(fd, buffer + length, size - 1 - length);
		if (got < 0) {
			got = -errno;
			close(fd);
			return got;
		}
		length += got;
	} while (got && length < size - 1 && !proc_is_whole(length, size));
	close(fd);
	buffer[length] = '\0';
	return length;
}

ssize_t proc_link(pid_t pid, const char *name, char *buffer, size_t size)
{
	char path[64];
	ssize_t length;

	proc_path(path, sizeof(path), pid, name);
	length = readlink(path, buffer, size - 1);
	if (length < 0)
		return -errno;
	buffer[length] = '\0';
	return length;
}

int proc_write_self(const char *name, const char *text)
{
	char path[64];
	int fd, err = 0;
	bool raised;

	proc_path(path, sizeof(path), 0, name);
	/* It may be root's now; what may be written there is asked later. */
	raised = identity_raise(true);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	err = fd < 0 ? -errno : 0;
	identity_lower(raised);
	if (fd < 0)
		return err;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

const char *proc_thread_status(const struct process_probe *probe, pid_t tid)
{
	static char *text;
	static pid_t text_pid, text_tid;
	static int text_job = -1;
	const size_t size = 512 << 10;	/* 65,536 groups fit */
	char name[40];
	ssize_t length;

	if (tid == probe->thread)
		return probe->status;
	if (text && text_tid == tid && text_pid == probe->pid && text_job == probe->job)
		return text;
	if (!text)
		text = malloc(size);
	text_tid = 0;
	if (!text) {
		report_errno(-ENOMEM, "reading the state of thread %d", tid);
		return NULL;
	}
	snprintf(name, sizeof(name), "task/%d/status", tid);
	length = proc_read(probe->pid, name, text, size);
	if (length < 0) {
		report_errno(length, "cannot read /proc/%d/%s", probe->pid, name);
		return NULL;
	}
	text_job = probe->job;
	text_pid = probe->pid;
	text_tid = tid;
	return text;
}

const char *status_value(const char *status, const char *key)
{
	size_t length = strlen(key);
	const char *line = status;

	while (line) {
		if (!strncmp(line, key, length) && line[length] == ':') {
			line += length + 1;
			return line + strspn(line, "\t ");
		}
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	return NULL;
}

uint64_t status_number(const char *status, const char *key, int base, uint64_t otherwise)
{
	const char *value = status_value(status, key);

	return value ? strtoull(value, NULL, base) : otherwise;
}

int64_t stat_number(const char *stat, int field)
{
	const char *at = strrchr(stat, ')');

	for (int i = 2; at && i < field; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoll(at, NULL, 10) : 0;
}

bool have_capability(int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	return data[capability / 32].effective & (1u << (capability % 32));
}

pid_t rebuilt_tid(const struct rebuild *r, const Kcr__Process *p, pid_t tid)
{
	const struct context *c = r->context;

	if (r->restore_ids)
		return tid;
	for (size_t i = 0; tid == p->pid && i < c->nr_processes; i++)
		if (c->process[i]->pid == tid)
			return r->new_pid[i];
	return 0;
}
