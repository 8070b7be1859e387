// SPDX-License-Identifier: GPL-2.0
/* What System V objects have in common: who uses them, their IDs and keys.  See sysv.h. */
#include "resource/sysv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proc/proc.h"
#include "proc/status.h"
#include "report/report.h"
#include "resource/identity.h"

/*
 * To get an ID by counting up to it: the kernel takes 64 places in turn, each round with the next
 * of 65536 numbers.  10 to 20 s at most.
 */
#define TRIES		(64 * 65537)
#define TRIES_SUPPOSED	(1 << 16)	/* of what is only supposed to be the program's */
#define TRIES_CHOSEN	10		/* another program may use up the choice */
#define LOOKS		(1u << 18)	/* at semaphores, in a checkpoint: half a second at most */

/* ---- save --------------------------------------------------------------------- */

/* One in the memory of another is made too late in a restart for what is saved with it. */
static Kcr__Process *with_memory(const struct sysv_users *users, Kcr__Process *p)
{
	for (size_t i = 0; !p->mm && i < users->count; i++)
		if (users->process[i]->mm && users->process[i]->mm_id == p->mm_id)
			return users->process[i];
	return p;
}

Kcr__Process *sysv_user(const struct sysv_users *users, pid_t pid)
{
	for (size_t i = 0; pid && i < users->count; i++)
		if (users->process[i]->pid == pid &&
		    users->process[i]->state != KCR__PROCESS__STATE__ZOMBIE)
			return with_memory(users, users->process[i]);
	return NULL;
}

/* Seconds since the epoch, rounded down; UINT64_MAX: it has ended. */
static uint64_t start_of(pid_t pid)
{
	struct timespec now, since_boot;
	char stat[1024];
	int64_t ticks;

	if (proc_read(pid, "stat", stat, sizeof(stat)) <= 0)
		return UINT64_MAX;
	ticks = stat_number(stat, STAT_START_TIME);
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &since_boot);
	return now.tv_sec - since_boot.tv_sec + ticks / sysconf(_SC_CLK_TCK) - 1;
}

Kcr__Process *sysv_maker(const struct sysv_users *users, const struct sysv_line *line)
{
	for (size_t i = 0; i < users->count; i++) {
		Kcr__Process *p = users->process[i];

		if (p->mm && p->credentials && p->credentials->euid == line->cuid &&
		    line->uid == line->cuid && users->start[i] <= line->changed)
			return p;
	}
	return NULL;
}

bool sysv_permits(const Kcr__Credentials *c, const struct sysv_line *line, unsigned int way)
{
	bool in_group;

	if (!c || c->cap_effective & 1ull << CAP_IPC_OWNER)
		return true;
	if (c->euid == line->uid || c->euid == line->cuid)
		return line->mode & way << 6;
	in_group = c->egid == line->gid || c->egid == line->cgid;
	for (size_t i = 0; i < c->n_group; i++)
		in_group |= c->group[i] == line->gid || c->group[i] == line->cgid;
	return line->mode & (in_group ? way << 3 : way);
}

Kcr__SysvIdentity *sysv_identity(const struct sysv_line *line, bool used)
{
	Kcr__SysvIdentity *identity = malloc(sizeof(*identity));

	if (!identity)
		return NULL;
	kcr__sysv_identity__init(identity);
	identity->id = line->id;
	identity->key = line->key;
	identity->mode = line->mode & 0777;
	identity->uid = line->uid;
	identity->gid = line->gid;
	identity->used = used;
	return identity;
}

/* Lines of the two lists that are used differ in the middle. */
static bool parse(const char *text, bool queues, struct sysv_line *line)
{
	uint64_t received = 0;
	int n = queues ?
		sscanf(text, "%d %d %o %" SCNu64 " %" SCNu64 " %d %d %u %u %u %u %" SCNu64 " %" SCNu64
		       " %" SCNu64, &line->key, &line->id, &line->mode, &line->bytes, &line->length,
		       &line->sender, &line->receiver, &line->uid, &line->gid, &line->cuid, &line->cgid,
		       &line->operated, &received, &line->changed) :
		sscanf(text, "%d %d %o %" SCNu64 " %u %u %u %u %" SCNu64 " %" SCNu64, &line->key,
		       &line->id, &line->mode, &line->length, &line->uid, &line->gid, &line->cuid,
		       &line->cgid, &line->operated, &line->changed);

	line->operated = received > line->operated ? received : line->operated;
	return n == (queues ? 14 : 10);
}

/* Once there is an object to be asked about. */
static int find_starts(struct sysv_users *users)
{
	if (users->start)
		return 0;
	users->start = calloc(users->count + 1, sizeof(*users->start));
	if (!users->start)
		return report_errno(-ENOMEM, "System V objects");
	users->earliest = UINT64_MAX;
	for (size_t i = 0; i < users->count; i++) {
		users->start[i] = start_of(users->process[i]->pid);
		if (users->start[i] < users->earliest)
			users->earliest = users->start[i];
	}
	return 0;
}

int sysv_each(struct sysv_users *users, const char *list,
	      int (*describe)(struct sysv_users *users, const struct sysv_line *line))
{
	FILE *in = proc_stream(PROC_ROOT, list);
	bool queues = !strcmp(list, "sysvipc/msg");
	char text[512];
	int err = 0;

	/* A kernel without them, or a container that hides them. */
	if (!in)
		return 0;
	while (!err && fgets(text, sizeof(text), in)) {
		struct sysv_line line = { 0 };

		if (!parse(text, queues, &line))	/* the head */
			continue;
		err = find_starts(users);
		if (!err)
			err = describe(users, &line);
	}
	fclose(in);
	return err;
}

int sysv_describe(Kcr__Process *const *process, size_t count)
{
	struct sysv_users users = { .process = process, .count = count, .looks = LOOKS };
	int err = sysv_semaphores_describe(&users) ?: sysv_queues_describe(&users);

	free(users.start);
	return err;
}

/* ---- rebuild ------------------------------------------------------------------ */

/* What this restart has made or found; the former for sysv_drop(). */
static struct known {
	const struct sysv_kind *kind;
	int id;
	bool made;
	struct known *next;
} *all_known;

bool sysv_choose_id(const char *next_id, int id)
{
	bool raised = identity_raise(false), chosen;
	int fd = proc_open(PROC_ROOT, next_id, O_WRONLY);
	char text[16];

	chosen = fd >= 0 && write(fd, text, snprintf(text, sizeof(text), "%d", id)) > 0;
	if (fd >= 0)
		close(fd);
	identity_lower(raised);
	return chosen;
}

bool sysv_is_same(const struct ipc_perm *now, key_t key, uid_t uid, gid_t gid)
{
	return now->__key == key && now->uid == uid && now->gid == gid &&
	       (now->cuid == now->uid || !now->cuid);
}

static int key_is_taken(const struct sysv_kind *kind, const Kcr__SysvIdentity *saved)
{
	return report_fail(-EEXIST, "another %s has the key %#x of the saved one: ipcrm(1) removes it",
			   kind->name, (unsigned int)saved->key);
}

/* 1: it is there; 0: it can be made, as far as is known; -errno, reported. */
static int find(const struct sysv_kind *kind, const Kcr__SysvIdentity *saved, uint64_t length)
{
	struct ipc_perm now;
	uint64_t now_length;
	int err = kind->look(saved->id, &now, &now_length);

	if (!err && now_length == length && sysv_is_same(&now, saved->key, saved->uid, saved->gid))
		return 1;
	if (!err || err == -EACCES)
		return report_fail(-EEXIST, "another %s has the ID %d of the saved one: ipcrm(1) "
				   "removes it", kind->name, saved->id);
	if (saved->key == IPC_PRIVATE)
		return 0;
	err = kind->get(saved->key, 0, 0);
	return err == -ENOENT ? 0 : key_is_taken(kind, saved);
}

static int check(const struct sysv_kind *kind, const Kcr__SysvIdentity *saved, uint64_t length)
{
	int found = find(kind, saved, length);

	return found < 0 ? sysv_forgive(saved, found) : 0;
}

static int not_made(const struct sysv_kind *kind, const Kcr__SysvIdentity *saved, int err)
{
	return report_errno(err, "%s %d cannot be made again (see %s)", kind->name, saved->id,
			    kind->limits);
}

static int remember(const struct sysv_kind *kind, int id, bool made)
{
	struct known *known = malloc(sizeof(*known));

	if (!known) {
		if (made)
			kind->remove(id);
		return report_errno(-ENOMEM, "%s %d", kind->name, id);
	}
	*known = (struct known){ kind, id, made, all_known };
	all_known = known;
	return 0;
}

/*
 * Who may not choose an ID makes and removes objects until the old one comes up; not for ever, as
 * the place for it may be taken.  -EAGAIN, without a message: the key is taken by now.
 */
static int make(const struct sysv_kind *kind, const Kcr__SysvIdentity *saved, uint64_t length)
{
	const int flags = IPC_CREAT | IPC_EXCL | 0600;

	int most = saved->used ? TRIES : TRIES_SUPPOSED;

	for (int i = 0, tries = most; i < tries; i++) {
		int id;

		if (tries == TRIES_CHOSEN || !i)
			tries = sysv_choose_id(kind->next_id, saved->id) ? TRIES_CHOSEN : most;
		id = kind->get(saved->key, length, flags);
		if (id < 0)
			return id == -EEXIST ? -EAGAIN : not_made(kind, saved, id);
		if (id == saved->id)
			return remember(kind, id, true);
		kind->remove(id);
	}
	return report_fail(-EEXIST, "%s %d cannot get its ID back: another one has its place, which "
			   "ipcrm(1) makes free, or only root can choose it", kind->name, saved->id);
}

int sysv_give(const struct sysv_kind *kind, const Kcr__SysvIdentity *saved)
{
	struct ipc_perm permissions = {
		.uid = saved->uid, .gid = saved->gid, .mode = (unsigned short)saved->mode,
	};

	return kind->set(saved->id, &permissions);
}

void sysv_renew(const struct sysv_kind *kind, int id)
{
	struct ipc_perm permissions;
	uint64_t length;

	if (kind->look(id, &permissions, &length) || kind->set(id, &permissions))
		report_verbose("%s %d is not renewed", kind->name, id);
}

bool sysv_is_made(const struct sysv_kind *kind, int id)
{
	for (const struct known *known = all_known; known; known = known->next)
		if (known->kind == kind && known->id == id)
			return known->made;
	return false;
}

bool sysv_is_known(const struct sysv_kind *kind, int id)
{
	for (const struct known *known = all_known; known; known = known->next)
		if (known->kind == kind && known->id == id)
			return true;
	return false;
}

int sysv_forgive(const Kcr__SysvIdentity *saved, int err)
{
	char text[512];

	if (!err || saved->used)
		return err;
	snprintf(text, sizeof(text), "%s", report_message() ?: "");
	report_clear();
	report_warn("%s; the program may do without it", text);
	return 0;
}

int sysv_get(const struct sysv_kind *kind, const Kcr__SysvIdentity *saved, uint64_t length)
{
	int err = find(kind, saved, length);

	if (!err)
		err = make(kind, saved, length);
	/* The restart of another rank of the same job may have just made it. */
	if (err == -EAGAIN)
		err = find(kind, saved, length) ?: key_is_taken(kind, saved);
	return err > 0 ? remember(kind, saved->id, false) : err;
}

static int check_all(const struct context *c, const Kcr__Process *p)
{
	int err = 0;

	(void)c;
	for (size_t i = 0; !err && i < p->n_semaphore_set; i++)
		err = check(&sysv_semaphores, p->semaphore_set[i]->identity,
			    p->semaphore_set[i]->n_value);
	for (size_t i = 0; !err && i < p->n_sysv_queue; i++)
		err = check(&sysv_queues, p->sysv_queue[i]->identity, 0);
	return err;
}

static int with_rights(const struct rebuild *r, int (*step)(const struct context *c, const Kcr__Process *p))
{
	int err = 0;

	for (size_t i = 0; !err && i < r->context->nr_processes; i++) {
		const Kcr__Process *p = r->context->process[i];

		if (!p->n_semaphore_set && !p->n_sysv_queue)
			continue;
		err = identity_enter(p->credentials);
		if (!err)
			err = step(r->context, p);
		identity_leave();
	}
	return err;
}

static int make_all(const struct context *c, const Kcr__Process *p)
{
	return sysv_semaphores_make(c, p) ?: sysv_queues_make(p);
}

int sysv_could_rebuild(struct rebuild *r)
{
	return with_rights(r, check_all);
}

int sysv_rebuild(struct rebuild *r)
{
	return with_rights(r, make_all);
}

void sysv_drop(void)
{
	while (all_known) {
		struct known *known = all_known;

		if (known->made)
			known->kind->remove(known->id);
		all_known = known->next;
		free(known);
	}
}
