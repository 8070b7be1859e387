// SPDX-License-Identifier: GPL-2.0
/*
 * Time namespaces.  /proc/PID/timens_offsets is about the one for the children of a process;
 * it can be written as long as nobody is in there.  See time_namespace.h.
 */
#include "proc/time_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/proc.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x00000080
#endif

#define OWN		"ns/time"
#define CHILDREN	"ns/time_for_children"
#define OFFSETS		"timens_offsets"
#define NS_PER_S	1000000000ll
#define STACK_SIZE	(64u << 10)

/* "time:[4026531834]"; *id 0: there are none in this kernel. */
static int read_id(pid_t pid, const char *name, uint64_t *id)
{
	char text[64];
	ssize_t err = proc_link(pid, name, text, sizeof(text));

	*id = 0;
	if (err == -ENOENT && proc_link(pid, "ns/mnt", text, sizeof(text)) >= 0)
		return 0;
	if (err < 0)
		return err == -ENOENT ? -ESRCH : (int)err;
	*id = strtoull(text + strcspn(text, "0123456789"), NULL, 10);
	return 0;
}

int time_namespace_id(pid_t pid, uint64_t *id)
{
	return read_id(pid, OWN, id);
}

bool time_namespace_is_left(pid_t pid)
{
	uint64_t own, children;

	return !read_id(pid, OWN, &own) && !read_id(pid, CHILDREN, &children) && own != children;
}

int time_namespace_offsets(pid_t pid, struct time_offsets *out)
{
	long long s[2], ns[2];
	char text[256];
	uint64_t id;
	ssize_t err = read_id(pid, OWN, &id);

	*out = (struct time_offsets){ 0 };
	if (err || !id)
		return err;
	if (time_namespace_is_left(pid))
		return -EINVAL;
	err = proc_read(pid, OFFSETS, text, sizeof(text));
	if (err < 0)
		return err == -ENOENT ? -ESRCH : (int)err;
	if (sscanf(text, "monotonic %lld %lld boottime %lld %lld", &s[0], &ns[0], &s[1], &ns[1]) != 4)
		return -EINVAL;
	out->monotonic_ns = s[0] * NS_PER_S + ns[0];
	out->boottime_ns = s[1] * NS_PER_S + ns[1];
	return 0;
}

/* ---- making one -------------------------------------------------------------------- */

struct maker {
	char text[128];		/* for timens_offsets */
	int fd;			/* of the namespace, or -errno */
};

/* The file wants 0 to 999999999 nanoseconds. */
static int64_t seconds(int64_t ns)
{
	return ns / NS_PER_S - (ns % NS_PER_S < 0);
}

static int write_offsets(const char *text)
{
	int fd = proc_open(PROC_SELF, OFFSETS, O_WRONLY), err = 0;

	if (fd < 0)
		return fd;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int make(void *arg)
{
	struct maker *m = arg;

	m->fd = unshare(CLONE_NEWTIME) ? -errno : write_offsets(m->text);
	if (!m->fd)
		m->fd = proc_open(PROC_SELF, CHILDREN, O_RDONLY);
	return 0;
}

/*
 * In a child, which shares memory and descriptors: the caller's own children stay in its
 * namespace, into which it could not return without the rights of whoever made that.
 */
int time_namespace_make(const struct time_offsets *offsets)
{
	static char stack[STACK_SIZE] __attribute__((aligned(16)));
	int64_t monotonic_s = seconds(offsets->monotonic_ns);
	int64_t boottime_s = seconds(offsets->boottime_ns);
	struct maker m = { .fd = -ENOMEM };
	sigset_t all, old;
	pid_t child;

	snprintf(m.text, sizeof(m.text), "monotonic %lld %lld\nboottime %lld %lld\n",
		 (long long)monotonic_s, (long long)(offsets->monotonic_ns - monotonic_s * NS_PER_S),
		 (long long)boottime_s, (long long)(offsets->boottime_ns - boottime_s * NS_PER_S));
	sigfillset(&all);		/* a handler would run in both */
	sigprocmask(SIG_BLOCK, &all, &old);
	child = clone(make, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | CLONE_FILES, &m);
	if (child < 0)
		m.fd = -errno;
	else
		waitpid(child, NULL, __WALL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return m.fd;
}
