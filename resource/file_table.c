// SPDX-License-Identifier: GPL-2.0
/*
 * The register of open files of a checkpoint.  Every open file description is
 * held once, by a duplicate of our own, however many descriptors and mappings
 * share it: they are looked up in an index ordered by device, inode and, as
 * anonymous inodes are all the same one, kcmp(2).  Duplicates share offset and status
 * flags with the program, so nothing here or in a save() may change either.
 */
#include "resource/file_table.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"

#define DESCRIPTORS_MAX	(1 << 20)	/* what kernels allow unless told otherwise (fs.nr_open) */

/* Every file of every process is open here until it is saved. */
static void raise_limit(void)
{
	struct rlimit limit, wider = { DESCRIPTORS_MAX, DESCRIPTORS_MAX };

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= DESCRIPTORS_MAX)
		return;
	if (limit.rlim_max < DESCRIPTORS_MAX && !setrlimit(RLIMIT_NOFILE, &wider))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

struct file_table *file_table_new(bool skip_unsupported)
{
	struct file_table *t = calloc(1, sizeof(*t));

	if (!t) {
		report_errno(-ENOMEM, "the register of open files");
		return NULL;
	}
	t->skip_unsupported = skip_unsupported;
	t->diag = -1;
	t->job = -1;
	raise_limit();
	return t;
}

void file_table_use_job(struct file_table *t, int job)
{
	t->job = job;
}

static void entry_free(struct entry *e)
{
	if (!e)
		return;
	if (e->probe.fd >= 0)
		close(e->probe.fd);
	free((char *)e->probe.link);
	free((char *)e->probe.fdinfo);
	if (e->file)
		kcr__file__free_unpacked(e->file, NULL);
	if (e->unread)
		kcr__unix_socket__free_unpacked(e->unread, NULL);
	free(e);
}

void file_table_close(struct file_table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		struct file_probe *p = &t->entry[i]->probe;

		if (p->fd < 0 || p->number < 0)
			continue;	/* not a duplicate of the program's: may be closed later */
		close(p->fd);
		p->fd = -1;
	}
	if (t->diag >= 0)
		close(t->diag);
	t->diag = -1;
}

void file_table_free(struct file_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->count; i++)
		entry_free(t->entry[i]);
	if (t->diag >= 0)
		close(t->diag);
	free(t->entry);
	free(t->index);
	free(t->place);
	free(t->locks.entry);
	free(t->inet_ends);
	free(t);
}

/* ---- registering -------------------------------------------------------------- */

/* A total order of open file descriptions; 0: they are the same one. */
static int compare(const struct file_probe *a, const struct file_probe *b)
{
	pid_t self;
	long order;

	if (a->st.st_dev != b->st.st_dev)
		return a->st.st_dev < b->st.st_dev ? -1 : 1;
	if (a->st.st_ino != b->st.st_ino)
		return a->st.st_ino < b->st.st_ino ? -1 : 1;
	self = getpid();
	order = syscall(SYS_kcmp, self, self, KCMP_FILE, (unsigned long)a->fd,
			(unsigned long)b->fd);
	return order == 1 ? -1 : order != 0;
}

/* The position of `p` in the index; *found: it is there already. */
static size_t index_search(const struct file_table *t, const struct file_probe *p, bool *found)
{
	size_t low = 0, high = t->count;

	*found = false;
	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = compare(p, &t->entry[t->index[middle] - 1]->probe);

		if (!order) {
			*found = true;
			return middle;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The first position in the index whose inode is not less than this one. */
static size_t index_inode(const struct file_table *t, dev_t dev, ino_t ino)
{
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct stat *st = &t->entry[t->index[middle] - 1]->probe.st;

		if (st->st_dev < dev || (st->st_dev == dev && st->st_ino < ino))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * A mapping may use any description of its file with the same flags: otherwise
 * every program that maps a library would add its own.
 */
static uint32_t find_mappable(const struct file_table *t, const struct file_probe *p)
{
	char link[4096];
	ssize_t length = -1;

	for (size_t i = index_inode(t, p->st.st_dev, p->st.st_ino); i < t->count; i++) {
		const struct file_probe *q = &t->entry[t->index[i] - 1]->probe;

		if (q->st.st_dev != p->st.st_dev || q->st.st_ino != p->st.st_ino)
			break;
		if (!q->mapped || q->flags != fcntl(p->fd, F_GETFL))
			continue;
		if (length < 0)
			length = proc_fd_link(p->fd, link, sizeof(link));
		if (length == (ssize_t)strlen(q->link) && !memcmp(link, q->link, length))
			return t->index[i];
	}
	return 0;
}

static int grow(void **array, size_t *room, size_t count, size_t size)
{
	size_t wanted = *room ? *room * 2 : 64;
	void *more;

	if (count < *room)
		return 0;
	more = realloc(*array, wanted * size);
	if (!more)
		return -ENOMEM;
	*array = more;
	*room = wanted;
	return 0;
}

static int add_place(struct file_table *t, pid_t pid, int number, uint32_t id)
{
	if (number < 0)
		return 0;
	if (grow((void **)&t->place, &t->place_room, t->nr_places, sizeof(*t->place)))
		return -ENOMEM;
	t->place[t->nr_places++] = (struct place){ pid, number, id };
	t->places_sorted = false;
	return 0;
}

/* Close-on-exec belongs to the descriptor: /proc shows it in its flags. */
static void note_cloexec(struct file_table *t, const char *fdinfo)
{
	const char *flags = strstr(fdinfo, "flags:");

	t->cloexec = flags && strtoul(flags + 6, NULL, 8) & O_CLOEXEC;
}

/* Another descriptor or mapping of a file that is registered already. */
static int add_again(struct file_table *t, uint32_t id, const struct file_probe *p)
{
	struct entry *e = t->entry[id - 1];
	char *fdinfo;
	int err;

	e->probe.mapped |= p->mapped;
	e->probe.mapped_exec_or_private |= p->mapped_exec_or_private;
	e->probe.keep_contents |= p->keep_contents;
	if (p->number < 0)
		return 0;
	fdinfo = file_probe_fdinfo(p);
	if (!fdinfo)
		return -ENOMEM;
	note_cloexec(t, fdinfo);
	if (e->probe.number < 0) {
		e->probe.pid = p->pid;
		e->probe.thread = p->thread;
		e->probe.number = p->number;
		free((char *)e->probe.fdinfo);
		e->probe.fdinfo = fdinfo;
		err = 0;
	} else {
		err = locks_parse(fdinfo, p->pid, p->number, NULL, &t->locks);
		free(fdinfo);
	}
	return err ?: add_place(t, p->pid, p->number, id);
}

static int add_new(struct file_table *t, const struct file_probe *p, size_t at, uint32_t *id)
{
	struct entry *e;
	size_t room = t->room;
	int err;

	if (grow((void **)&t->entry, &room, t->count, sizeof(*t->entry)) ||
	    grow((void **)&t->index, &t->room, t->count, sizeof(*t->index)))
		return -ENOMEM;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->probe = *p;
	err = file_probe_fill(&e->probe);
	if (!err)
		note_cloexec(t, e->probe.fdinfo);
	if (!err && !p->passed)
		err = add_place(t, p->pid, p->number, t->count + 1);
	if (err) {
		e->probe.fd = -1;	/* closed by the caller */
		entry_free(e);
		return err;
	}
	memmove(t->index + at + 1, t->index + at, (t->count - at) * sizeof(*t->index));
	t->entry[t->count++] = e;
	t->index[at] = *id = t->count;
	return 0;
}

int file_table_add(struct file_table *t, int fd, pid_t pid, pid_t thread, int number,
		   enum file_mapping mapped, uint32_t *id)
{
	struct file_probe p = {
		.fd = fd, .pid = pid, .thread = thread, .number = number,
		.mapped = mapped != FILE_NOT_MAPPED,
		.mapped_exec_or_private = mapped == FILE_MAPPED,
		.keep_contents = mapped == FILE_MAPPED_KEPT,
	};
	uint32_t same = 0;
	bool found;
	size_t at;
	int err;

	if (fstat(fd, &p.st)) {
		err = -errno;
		close(fd);
		return file_save_error(&p, err, "cannot examine the open file");
	}
	at = index_search(t, &p, &found);
	if (found)
		same = t->index[at];
	else if (p.mapped && number < 0)
		same = find_mappable(t, &p);
	if (same) {
		err = add_again(t, same, &p);
		close(fd);
		if (!err)
			*id = same;
	} else {
		err = add_new(t, &p, at, id);
		if (err)
			close(fd);
	}
	return err ? file_save_error(&p, err, "cannot examine the open file") : 0;
}

int file_table_add_passed(struct file_table *t, int fd, const struct file_probe *via, uint32_t *id)
{
	struct file_probe p = {
		.fd = fd, .pid = via->pid, .thread = getpid(), .number = fd, .passed = true,
	};
	bool found = false;
	size_t at = 0;
	int err = fstat(fd, &p.st) ? -errno : 0;

	if (!err)
		at = index_search(t, &p, &found);
	if (!err && !found)
		err = add_new(t, &p, at, id);
	if (found)
		*id = t->index[at];
	if (err || found)
		close(fd);
	return err ? file_save_error(via, err, "cannot examine an open file in flight") : 0;
}

bool file_table_cloexec(const struct file_table *t)
{
	return t->cloexec;
}

/* ---- looking up --------------------------------------------------------------- */

size_t file_table_count(const struct file_table *t)
{
	return t->count;
}

const Kcr__File *file_table_get(const struct file_table *t, uint32_t id)
{
	return id && id <= t->count ? t->entry[id - 1]->file : NULL;
}

bool file_table_left_out(const struct file_table *t, uint32_t id)
{
	const Kcr__File *file = file_table_get(t, id);

	return file && file->kind_case == KCR__FILE__KIND_CLOSED;
}

const struct file_probe *file_table_probe(const struct file_table *t, uint32_t id)
{
	return id && id <= t->count ? &t->entry[id - 1]->probe : NULL;
}

uint32_t file_table_find_inode(const struct file_table *t, dev_t dev, ino_t ino)
{
	uint32_t lowest = 0;

	for (size_t i = index_inode(t, dev, ino); i < t->count; i++) {
		uint32_t id = t->index[i];
		const struct stat *st = &t->entry[id - 1]->probe.st;

		if (st->st_dev != dev || st->st_ino != ino)
			break;
		if (!lowest || id < lowest)
			lowest = id;
	}
	return lowest;
}

bool file_table_is_read(const struct file_table *t, const struct stat *file)
{
	for (size_t i = index_inode(t, file->st_dev, file->st_ino); i < t->count; i++) {
		const struct file_probe *p = &t->entry[t->index[i] - 1]->probe;

		if (p->st.st_dev != file->st_dev || p->st.st_ino != file->st_ino)
			break;
		if ((p->flags & O_ACCMODE) != O_WRONLY)
			return true;
	}
	return false;
}

/* The next entry with the same inode as `probe`, from *i on, which is index_inode() at first; NULL. */
static const struct entry *next_with_inode(const struct file_table *t, const struct file_probe *probe,
					   size_t *i, uint32_t *id)
{
	const struct entry *e;

	if (*i >= t->count)
		return NULL;
	*id = t->index[(*i)++];
	e = t->entry[*id - 1];
	return e->probe.st.st_dev == probe->st.st_dev && e->probe.st.st_ino == probe->st.st_ino ? e : NULL;
}

uint32_t file_table_first_with_inode(const struct file_table *t, const struct file_probe *probe,
				     const Kcr__File *file,
				     bool (*has_contents)(const Kcr__File *file))
{
	size_t i = index_inode(t, probe->st.st_dev, probe->st.st_ino);
	uint32_t lowest = file->id, id;
	const struct entry *e;

	while ((e = next_with_inode(t, probe, &i, &id)))
		if (id < lowest && e->file && e->file->kind_case == file->kind_case &&
		    (!has_contents || has_contents(e->file)))
			lowest = id;
	return lowest;
}

bool file_table_keeps(const struct file_table *t, const struct file_probe *probe)
{
	size_t i = index_inode(t, probe->st.st_dev, probe->st.st_ino);
	const struct entry *e;
	uint32_t id;

	while ((e = next_with_inode(t, probe, &i, &id)))
		if (e->probe.keep_contents)
			return true;
	return false;
}

char *file_table_other_path(const struct file_table *t, const struct file_probe *probe)
{
	size_t i = index_inode(t, probe->st.st_dev, probe->st.st_ino);
	const struct entry *e;
	uint32_t id;

	while ((e = next_with_inode(t, probe, &i, &id)))
		if (!probe_is_deleted(&e->probe) && probe_is_at_path(&e->probe))
			return strdup(e->probe.link);
	return NULL;
}

static int compare_places(const void *a, const void *b)
{
	const struct place *p = a, *q = b;

	if (p->pid != q->pid)
		return p->pid < q->pid ? -1 : 1;
	return (p->number > q->number) - (p->number < q->number);
}

uint32_t file_table_find_fd(const struct file_table *t, pid_t pid, int number)
{
	struct file_table *writable = (struct file_table *)t;	/* sorting is not visible outside */
	struct place key = { .pid = pid, .number = number }, *found;

	if (!t->places_sorted) {
		qsort(writable->place, t->nr_places, sizeof(*t->place), compare_places);
		writable->places_sorted = true;
	}
	found = t->nr_places ? bsearch(&key, t->place, t->nr_places, sizeof(*t->place),
				       compare_places) : NULL;
	return found ? found->id : 0;
}

bool file_table_is_dry(const struct file_table *t)
{
	return t->dry;
}

int file_table_diag(struct file_table *t)
{
	if (t->diag < 0)
		t->diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	return t->diag < 0 ? -errno : t->diag;
}

bool file_table_await_sent(struct file_table *t)
{
	return t->awaited_ms < FILE_SEND_MS && !usleep(1000) && ++t->awaited_ms;
}

Kcr__UnixSocket **file_table_unread(const struct file_probe *probe)
{
	return &((struct entry *)((char *)probe - offsetof(struct entry, probe)))->unread;
}

void **file_table_inet_ends(struct file_table *t)
{
	return &t->inet_ends;
}
