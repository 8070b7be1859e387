// SPDX-License-Identifier: GPL-2.0
/* What several attributes of a process need.  See attribute.h. */
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

#include "proc/proc.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/identity.h"

int attribute_write_self(const char *name, const char *text)
{
	int fd, err = 0;
	bool raised;

	/* The file may be root's now; permission to write is checked by write(2). */
	raised = identity_raise(true);
	fd = proc_open(PROC_SELF, name, O_WRONLY);
	identity_lower(raised);
	if (fd < 0)
		return fd;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

const char *probe_thread_status(const struct process_probe *probe, pid_t tid)
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
	if (r->restore_ids)
		return tid;
	return tid == p->pid ? rebuild_pid(r, tid) : 0;
}
