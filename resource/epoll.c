// SPDX-License-Identifier: GPL-2.0
/*
 * epoll(7): the files watched, each with the file descriptor it had when it was
 * added.  kcmp(2) finds which file that was, as the descriptor may refer to
 * another file by now.  The files are added again by a process that has
 * them under these descriptors; what is ready is reported (again) then, also by
 * edge-triggered watches.  Only a watch with EPOLLONESHOT that was spent must
 * report nothing, not even that its connection has hung up with the restart.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/family.h"

#ifndef EPIOCSPARAMS			/* Linux 6.9 */
struct epoll_params {
	uint32_t busy_poll_usecs;
	uint16_t busy_poll_budget;
	uint8_t prefer_busy_poll;
	uint8_t __pad;
};
#define EPIOCSPARAMS	_IOW(0x8a, 1, struct epoll_params)
#define EPIOCGPARAMS	_IOR(0x8a, 2, struct epoll_params)
#endif

static bool match(const struct file_probe *probe)
{
	return probe_is_anon(probe, "[eventpoll]");
}

/* ---- save ------------------------------------------------------------------- */

/* Is file `id` the one that is watched by the nth entry with descriptor tfd? */
static bool is_watched(const struct file_table *t, uint32_t id, int epoll, int tfd,
		       unsigned int nth)
{
	struct kcmp_epoll_slot slot = { .efd = epoll, .tfd = tfd, .toff = nth };
	const struct file_probe *p = file_table_probe(t, id);
	pid_t self = getpid();

	return p && p->fd >= 0 &&
	       !syscall(SYS_kcmp, self, self, KCMP_EPOLL_TFD, (unsigned long)p->fd, &slot);
}

static uint32_t find_watched(const struct file_table *t, const struct file_probe *probe, int tfd,
			     unsigned int nth, ino_t ino)
{
	uint32_t id = file_table_find_fd(t, probe->pid, tfd);

	if (id && is_watched(t, id, probe->fd, tfd, nth))
		return id;
	for (id = 1; id <= file_table_count(t); id++)
		if (file_table_probe(t, id)->st.st_ino == ino &&
		    is_watched(t, id, probe->fd, tfd, nth))
			return id;
	return 0;
}

static int add_entry(Kcr__Epoll *epoll, const Kcr__EpollEntry *entry)
{
	Kcr__EpollEntry **more;

	if (!(epoll->n_entry & (epoll->n_entry - 1))) {
		more = realloc(epoll->entry, (epoll->n_entry ? 2 * epoll->n_entry : 1) *
			       sizeof(*more));
		if (!more)
			return report_errno(-ENOMEM, "saving an epoll");
		epoll->entry = more;
	}
	epoll->entry[epoll->n_entry] = malloc(sizeof(*entry));
	if (!epoll->entry[epoll->n_entry])
		return report_errno(-ENOMEM, "saving an epoll");
	*epoll->entry[epoll->n_entry++] = *entry;
	return 0;
}

/* How many entries before this one have its descriptor? */
static unsigned int count_same(const int *numbers, size_t count, int tfd)
{
	unsigned int same = 0;

	for (size_t i = 0; i < count; i++)
		same += numbers[i] == tfd;
	return same;
}

static int save_busy_poll(const struct file_probe *probe, Kcr__Epoll *epoll)
{
	struct epoll_params set = { 0 };

	if (ioctl(probe->fd, EPIOCGPARAMS, &set) ||
	    (!set.busy_poll_usecs && !set.busy_poll_budget && !set.prefer_busy_poll))
		return 0;
	epoll->busy_poll = malloc(sizeof(*epoll->busy_poll));
	if (!epoll->busy_poll)
		return report_errno(-ENOMEM, "saving an epoll");
	kcr__epoll_busy_poll__init(epoll->busy_poll);
	epoll->busy_poll->usecs = set.busy_poll_usecs;
	epoll->busy_poll->budget = set.busy_poll_budget;
	epoll->busy_poll->prefer = set.prefer_busy_poll;
	return 0;
}

static void warn_of_outside(const struct file_probe *probe, int tfd)
{
	report_warn("process %d, descriptor %d: the epoll watches a file (once descriptor %d) that only "
		    "processes have which are not saved: no events of it come any more after a restart",
		    probe->pid, probe->number, tfd);
}

static int save_entries(struct file_table *t, const struct file_probe *probe, Kcr__Epoll *epoll)
{
	size_t lines = 0, count = 0;
	const char *line = probe->fdinfo;
	int *numbers, err = 0;

	for (const char *at = line; (at = strstr(at, "tfd:")); at++)
		lines++;
	numbers = malloc((lines + 1) * sizeof(*numbers));
	if (!numbers)
		return report_errno(-ENOMEM, "saving an epoll");
	while (!err && (line = strstr(line, "tfd:"))) {
		Kcr__EpollEntry entry = KCR__EPOLL_ENTRY__INIT;
		unsigned long long data, ino;
		unsigned int events;
		int tfd;

		if (sscanf(line, "tfd: %d events: %x data: %llx pos:%*d ino:%llx",
			   &tfd, &events, &data, &ino) == 4) {
			entry.fd = tfd;
			entry.events = events;
			entry.data = data;
			entry.file_id = find_watched(t, probe, tfd,
						     count_same(numbers, count, tfd), ino);
			entry.has_gone = true;
			entry.gone = file_table_find_fd(t, probe->pid, tfd) != entry.file_id;
			numbers[count++] = tfd;
			/* A file that no process of the tree has any more is not restored. */
			if (entry.file_id)
				err = add_entry(epoll, &entry);
			else if (!file_table_is_dry(t))
				warn_of_outside(probe, tfd);
		}
		line++;
	}
	free(numbers);
	return err;
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	Kcr__Epoll *epoll = file_new_kind(file, KCR__FILE__KIND_EPOLL, sizeof(*epoll));

	if (!epoll)
		return -ENOMEM;
	return save_busy_poll(probe, epoll) ?: save_entries(t, probe, epoll);
}

/* ---- rebuild ------------------------------------------------------------------ */

/* Without it a program waits as others do. */
static void set_busy_poll(int fd, const Kcr__File *file)
{
	const Kcr__EpollBusyPoll *saved = file->epoll->busy_poll;
	struct epoll_params set = {
		.busy_poll_usecs = saved->usecs, .busy_poll_budget = (uint16_t)saved->budget,
		.prefer_busy_poll = saved->prefer,
	};

	if (ioctl(fd, EPIOCSPARAMS, &set))
		report_warn("%s does not poll busily any more (EPIOCSPARAMS): %s",
			    file->description ?: "an epoll", strerror(errno));
}

static int open_epoll(struct rebuild *r, const Kcr__File *file)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0)
		return rebuild_error(file, -errno, "epoll_create1");
	if (file->epoll->busy_poll)
		set_busy_poll(fd, file);
	return rebuild_put(r, file->id, fd);
}

/* cr_restart may have a regular file in place of a terminal, which cannot be watched. */
static int watch(struct rebuild *r, int epoll, const Kcr__EpollEntry *entry,
		 const Kcr__File *file)
{
	struct epoll_event event = { .events = entry->events, .data.u64 = entry->data };

	if (!epoll_ctl(epoll, EPOLL_CTL_ADD, entry->fd, &event) || errno == EEXIST)
		return 0;
	if (errno == EPERM && r->borrowed[entry->file_id - 1]) {
		report_verbose("descriptor %d is not watched: it is a file now", entry->fd);
		return 0;
	}
	return rebuild_error(file, -errno, "cannot watch descriptor %d", entry->fd);
}

/*
 * EPOLL_CTL_ADD arms every watch for errors and hang-up.  An event that is ready now,
 * usually writing, spends it; if there is none, it will only report the connection's end.
 */
static int spend(struct rebuild *r, int epoll, const Kcr__EpollEntry *entry,
		 const Kcr__File *file)
{
	struct epoll_event event = { .events = entry->events, .data.u64 = entry->data }, got;
	Kcr__EpollEntry armed = *entry;
	int err;

	armed.events |= EPOLLIN | EPOLLOUT;
	err = watch(r, epoll, &armed, file);
	if (!err && epoll_wait(epoll, &got, 1, 0) <= 0)
		epoll_ctl(epoll, EPOLL_CTL_MOD, entry->fd, &event);
	return err;
}

/* Adds a file under a descriptor that this process does not have for it. */
static int watch_gone(struct rebuild *r, int epoll, const Kcr__EpollEntry *entry,
		      const Kcr__File *file,
		      int (*add)(struct rebuild *r, int epoll, const Kcr__EpollEntry *entry,
				 const Kcr__File *file))
{
	int flags = fcntl(entry->fd, F_GETFD);
	int aside = flags < 0 ? -1 : fcntl(entry->fd, F_DUPFD_CLOEXEC, r->high_fd);
	int err;

	if (flags >= 0 && aside < 0)
		return rebuild_error(file, -errno, "descriptor");
	if (dup2(r->file_fd[entry->file_id - 1], entry->fd) < 0)
		err = rebuild_error(file, -errno, "cannot watch descriptor %d", entry->fd);
	else
		err = add(r, epoll, entry, file);
	if (aside >= 0) {
		dup3(aside, entry->fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
		close(aside);
	} else {
		close(entry->fd);
	}
	return err;
}

/* With EPOLLONESHOT, a reported event clears all event bits. */
static bool is_spent(const Kcr__EpollEntry *entry)
{
	return entry->events & EPOLLONESHOT &&
	       !(entry->events & ~(EPOLLONESHOT | EPOLLET | EPOLLWAKEUP));
}

/* Pipes and sockets may; others may need to be added by the process that has them. */
static bool may_hang_up(const struct rebuild *r, const Kcr__EpollEntry *entry)
{
	Kcr__File__KindCase kind = context_file(r->context, entry->file_id)->kind_case;

	return kind == KCR__FILE__KIND_PIPE || kind == KCR__FILE__KIND_UNIX_SOCKET ||
	       kind == KCR__FILE__KIND_INET_SOCKET;
}

/* While the epoll is empty, and no other process has it. */
static int complete(struct rebuild *r, const Kcr__File *file)
{
	int epoll = r->file_fd[file->id - 1], err = 0;
	struct epoll_event event;

	for (size_t i = 0; i < file->epoll->n_entry && !err; i++) {
		const Kcr__EpollEntry *entry = file->epoll->entry[i];

		if (r->file_fd[entry->file_id - 1] >= 0 && is_spent(entry) &&
		    may_hang_up(r, entry))
			err = watch_gone(r, epoll, entry, file, spend);
	}
	while (!err && epoll_wait(epoll, &event, 1, 0) > 0)
		;			/* an entry that hung up in between */
	return err;
}

/*
 * The first process, an ancestor of others, that has both the epoll and the file under its descriptor;
 * NULL: none.  One that shares its memory has no part in its making (sharer.c).
 */
static const Kcr__Process *first_with_pair(const struct rebuild *r, uint32_t epoll,
					   const Kcr__EpollEntry *entry)
{
	for (size_t i = 0; i < r->context->nr_processes; i++) {
		const Kcr__Process *p = r->context->process[i];

		if (!process_is_sharer(p) && process_has_number(p, epoll, -1) &&
		    process_has_number(p, entry->file_id, entry->fd))
			return p;
	}
	return NULL;
}

/*
 * Does each process get a file of its own, of which the epoll, that they share, is to watch one?  Of a
 * signalfd it tells the signals of the process that has added it, whoever waits.
 */
static bool is_own(const struct rebuild *r, const Kcr__File *file)
{
	switch (file->kind_case) {
	case KCR__FILE__KIND_SIGNALFD:
	case KCR__FILE__KIND_PIDFD:
		return true;
	case KCR__FILE__KIND_REGULAR:
		return own_proc_has(r, file->regular->path);
	case KCR__FILE__KIND_DIRECTORY:
		return own_proc_has(r, file->directory->path);
	default:
		return false;
	}
}

static bool is_for_another(const struct rebuild *r, const Kcr__Process *process, uint32_t epoll,
			   const Kcr__EpollEntry *entry)
{
	const Kcr__Process *first = first_with_pair(r, epoll, entry);

	return first && first != process && is_own(r, context_file(r->context, entry->file_id));
}

static int install(struct rebuild *r, const Kcr__Process *process, int number,
		   const Kcr__File *file)
{
	bool first = rebuild_first_owner(r, file->id) == process;
	int err = 0;

	for (size_t i = 0; i < file->epoll->n_entry && !err; i++) {
		const Kcr__EpollEntry *entry = file->epoll->entry[i];

		if (r->file_fd[entry->file_id - 1] < 0 ||	/* restored as closed */
		    is_for_another(r, process, file->id, entry))
			continue;
		if (process_has_number(process, entry->file_id, entry->fd))
			err = watch(r, number, entry, file);
		else if (first && !first_with_pair(r, file->id, entry))
			err = user_fault_bring(r, context_file(r->context, entry->file_id)) ?:
			      watch_gone(r, number, entry, file, watch);
	}
	return err;
}

const struct file_kind file_kind_epoll = {
	.kind = KCR__FILE__KIND_EPOLL,
	.name = "epoll",
	.match = match,
	.save = save,
	.open = open_epoll,
	.complete = complete,
	.install = install,
};
