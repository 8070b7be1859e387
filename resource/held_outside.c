// SPDX-License-Identifier: GPL-2.0
/*
 * Open files that a restart must have for itself, in processes that are not saved: an object of POSIX
 * shared memory is written again only if nobody else has it, and what listens at a name or port
 * keeps others from it.  No count tells of them: /proc is searched, as far as the caller may look,
 * and only for files of these kinds.
 */
#include "resource/resource.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc/proc.h"
#include "proc/status.h"
#include "report/report.h"
#include "resource/family.h"
#include "resource/file.h"
#include "resource/inet_socket.h"

struct exclusive {
	const struct file_probe *probe;
	const Kcr__File *file;
	char what[160];			/* for a message */
	bool told;
};

/* False: a restart does not mind others that have it. */
static bool describe_unix(const Kcr__UnixSocket *u, char *what, size_t size)
{
	bool abstract = u->name.len && !u->name.data[0];

	if (!u->name.len || u->unlinked || u->pending ||
	    !(u->listening || u->type == SOCK_DGRAM || (abstract && !u->connected)))
		return false;
	snprintf(what, size, "the Unix socket %s%.*s", abstract ? "@" : "", (int)u->name.len - abstract,
		 (const char *)u->name.data + abstract);
	return true;
}

static bool describe(const Kcr__File *file, char *what, size_t size)
{
	unsigned int port;

	switch (file->kind_case) {
	case KCR__FILE__KIND_REGULAR:
		snprintf(what, size, "%s", file->regular->path);
		return file->regular->shared_memory;
	case KCR__FILE__KIND_UNIX_SOCKET:
		return describe_unix(file->unix_socket, what, size);
	case KCR__FILE__KIND_INET_SOCKET:
		port = inet_bind_alone(file->inet_socket);
		snprintf(what, size, "the socket of port %u", port);
		return port;
	default:
		return false;
	}
}

/* malloc()ed; *count: how many there are.  NULL: none, or no memory. */
static struct exclusive *find_exclusive(const struct file_table *t, size_t *count)
{
	struct exclusive *list = NULL, *more, one = {};

	*count = 0;
	for (uint32_t id = 1; id <= file_table_count(t); id++) {
		one.probe = file_table_probe(t, id);
		one.file = file_table_get(t, id);
		if (!describe(one.file, one.what, sizeof(one.what)))
			continue;
		more = realloc(list, (*count + 1) * sizeof(*list));
		if (!more)
			break;
		list = more;
		list[(*count)++] = one;
	}
	return list;
}

static void tell(struct exclusive *e, pid_t pid)
{
	if (!e->told)
		report_warn("process %d, which is not saved, has %s of process %d, too: no restart is "
			    "possible beside it on this machine", pid, e->what,
			    e->probe->pid);
	e->told = true;
}

/* Looks at no other files than those of interest: the server of one may be silent. */
static bool is_same(const struct exclusive *e, const char *link, pid_t pid, const char *name)
{
	char path[PROC_PATH];
	struct stat st;

	if (strcmp(link, e->probe->link))
		return false;
	return e->file->kind_case != KCR__FILE__KIND_REGULAR ||
	       (!stat(proc_path(path, pid, name), &st) && st.st_ino == e->probe->st.st_ino &&
		st.st_dev == e->probe->st.st_dev);
}

static void search_descriptors(pid_t pid, struct exclusive *list, size_t count)
{
	DIR *all = proc_list(pid, "fd");
	char name[32], link[PATH_MAX];
	int number;

	while ((number = proc_next(all)) >= 0) {
		snprintf(name, sizeof(name), "fd/%d", number);
		if (proc_link(pid, name, link, sizeof(link)) < 0)
			continue;
		for (size_t i = 0; i < count; i++)
			if (is_same(&list[i], link, pid, name))
				tell(&list[i], pid);
	}
	if (all)
		closedir(all);
}

static bool has_objects(const struct exclusive *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].file->kind_case == KCR__FILE__KIND_REGULAR)
			return true;
	return false;
}

static void search_mappings(pid_t pid, struct exclusive *list, size_t count)
{
	FILE *maps = has_objects(list, count) ? proc_stream(pid, "maps") : NULL;
	unsigned int major, minor;
	unsigned long long ino;
	char *line = NULL;
	size_t size = 0;

	while (maps && getline(&line, &size, maps) > 0) {
		if (sscanf(line, "%*x-%*x %*s %*x %x:%x %llu", &major, &minor, &ino) != 3)
			continue;
		for (size_t i = 0; i < count; i++)
			if (list[i].file->kind_case == KCR__FILE__KIND_REGULAR &&
			    ino == list[i].probe->st.st_ino &&
			    makedev(major, minor) == list[i].probe->st.st_dev)
				tell(&list[i], pid);
	}
	free(line);
	if (maps)
		fclose(maps);
}

static bool was_there(pid_t pid, uint64_t time_ns)
{
	char stat[1024];

	return proc_read(pid, "stat", stat, sizeof(stat)) > 0 &&
	       (uint64_t)stat_number(stat, STAT_START_TIME) < time_ns / (1000000000 / sysconf(_SC_CLK_TCK));
}

void held_outside_warn(const struct file_table *t, Kcr__Process *const *process, size_t count,
		       uint64_t time_ns)
{
	size_t nr_exclusive;
	struct exclusive *list = find_exclusive(t, &nr_exclusive);
	DIR *all = nr_exclusive ? proc_list(PROC_ROOT, "") : NULL;
	int pid;

	while ((pid = proc_next(all)) > 0) {
		if (pid == getpid() || process_is_among(process, count, pid) ||
		    !was_there(pid, time_ns))
			continue;
		search_descriptors(pid, list, nr_exclusive);
		search_mappings(pid, list, nr_exclusive);
	}
	if (all)
		closedir(all);
	free(list);
}
