// SPDX-License-Identifier: GPL-2.0
/*
 * System V semaphore sets, and what the end of a process undoes of its operations on them
 * (SEM_UNDO).
 *
 * semop(2) changes nothing if what it adds and takes away of a semaphore in one call is the same,
 * but makes the caller the one that has used it last, and counts for SEM_UNDO what bears that flag
 * alone.  So each process gets back its adjustments and its place as the last user, with the saved
 * values in the set from the beginning.
 */
#include "resource/sysv.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/sem.h>

#include "proc/status.h"
#include "report/report.h"
#include "resource/identity.h"

#define LIFE_COST	20	/* of asking whether a process lives, in looks at semaphores */

union argument {
	int value;
	struct semid_ds *status;
};

/* ---- save --------------------------------------------------------------------- */

/* A process whose end changes one of them; NULL: none. */
static Kcr__Process *undoer(const struct sysv_users *users, int set)
{
	for (size_t i = 0; i < users->count; i++)
		for (size_t k = 0; k < users->process[i]->n_semaphore_undo; k++)
			if (users->process[i]->semaphore_undo[k]->set == set)
				return users->process[i];
	return NULL;
}

static bool lives(struct sysv_users *users, pid_t pid)
{
	if (pid != users->asked) {
		users->asked = pid;
		users->lives = stat_lives(pid);
		users->looks -= users->looks > LIFE_COST ? LIFE_COST : users->looks;
	}
	return users->lives;
}

/*
 * One by one: GETALL would write as many as there are by then, if the set has been replaced.
 * The first saved process that has used one of them last, and else, in *others, whether one that is
 * not saved has.  0 or -errno.
 */
static int read_set(struct sysv_users *users, Kcr__SemaphoreSet *set, Kcr__Process **p, bool *others)
{
	int id = set->identity->id;

	*others = false;
	for (size_t i = 0; i < set->n_value; i++) {
		int pid = semctl(id, (int)i, GETPID), value = semctl(id, (int)i, GETVAL);

		if (pid < 0 || value < 0)
			return -errno;
		set->pid[i] = pid;
		set->value[i] = value;
		*p = *p ?: sysv_user(users, pid);
		if (!*p && !*others && pid)
			*others = lives(users, pid);
	}
	return 0;
}

static Kcr__SemaphoreSet *new_set(const struct sysv_line *line)
{
	Kcr__SemaphoreSet *set = malloc(sizeof(*set));

	if (!set)
		return NULL;
	kcr__semaphore_set__init(set);
	set->identity = sysv_identity(line, false);
	set->value = calloc(line->length, sizeof(*set->value));
	set->pid = calloc(line->length, sizeof(*set->pid));
	if (set->identity && set->value && set->pid) {
		set->n_value = set->n_pid = line->length;
		return set;
	}
	kcr__semaphore_set__free_unpacked(set, NULL);
	return NULL;
}

static int keep(Kcr__Process *p, Kcr__SemaphoreSet *set)
{
	Kcr__SemaphoreSet **larger = realloc(p->semaphore_set,
					     (p->n_semaphore_set + 1) * sizeof(Kcr__SemaphoreSet *));

	if (!larger)
		return -ENOMEM;
	p->semaphore_set = larger;
	p->semaphore_set[p->n_semaphore_set++] = set;
	return 0;
}

/* *p: the process to save it with; NULL: none. */
static int examine(struct sysv_users *users, const struct sysv_line *line, Kcr__SemaphoreSet *set,
		   Kcr__Process **p)
{
	bool others, undone = *p;
	int err = read_set(users, set, p, &others);

	/* One that we may not read is another user's, unless the end of a process changes it. */
	if (err == -EACCES && !undone) {
		*p = NULL;
		return 0;
	}
	if (err)
		return err;
	set->identity->used = *p != NULL;
	if (!*p && !others)
		*p = sysv_maker(users, line);
	return 0;
}

/* Could one of the processes have used it, or made it? */
static bool may_be_theirs(const struct sysv_users *users, const struct sysv_line *line)
{
	if (line->changed < users->earliest && line->operated < users->earliest)
		return false;
	for (size_t i = 0; i < users->count; i++)
		if (sysv_permits(users->process[i]->credentials, line, 4) ||
		    sysv_permits(users->process[i]->credentials, line, 2))
			return true;
	return false;
}

/* Any user can make sets of many semaphores: the processes do not stand still for all of them. */
static bool can_look(struct sysv_users *users, const struct sysv_line *line)
{
	bool before = users->looks;

	users->looks -= line->length < users->looks ? line->length : users->looks;
	if (before && !users->looks)
		report_warn("there are too many System V semaphores: not all sets from %d on are saved",
			    line->id);
	return users->looks;
}

static int describe(struct sysv_users *users, const struct sysv_line *line)
{
	Kcr__Process *p = undoer(users, line->id);
	Kcr__SemaphoreSet *set;
	int err = -ENOMEM;

	if (!p && (!may_be_theirs(users, line) || !can_look(users, line)))
		return 0;
	set = new_set(line);
	if (set)
		err = examine(users, line, set, &p);
	if (!err && p)
		err = keep(p, set);
	if (set && (err || !p))
		kcr__semaphore_set__free_unpacked(set, NULL);
	if (err == -EIDRM || err == -EINVAL)	/* it has just been removed, or replaced */
		return 0;
	return err ? report_errno(err, "System V semaphore set %d, which process %d uses", line->id,
				  p ? p->pid : 0) : 0;
}

static bool is_kept(const struct sysv_users *users, int id)
{
	for (size_t i = 0; i < users->count; i++)
		for (size_t k = 0; k < users->process[i]->n_semaphore_set; k++)
			if (users->process[i]->semaphore_set[k]->identity->id == id)
				return true;
	return false;
}

/* Another program may have removed the set since; else it must have been found. */
static int check_undos(const struct sysv_users *users, Kcr__Process *p)
{
	struct semid_ds status;
	union argument argument = { .status = &status };
	size_t kept = 0;

	for (size_t i = 0; i < p->n_semaphore_undo; i++) {
		Kcr__SemaphoreUndo *undo = p->semaphore_undo[i];

		if (is_kept(users, undo->set)) {
			p->semaphore_undo[kept++] = undo;
			continue;
		}
		if (!semctl(undo->set, 0, IPC_STAT, argument) || errno == EACCES)
			return report_fail(-EOPNOTSUPP, "process %d has used SEM_UNDO with semaphore set %d, "
					   "which cannot be read", p->pid, undo->set);
		p->semaphore_undo[i] = NULL;
		kcr__semaphore_undo__free_unpacked(undo, NULL);
	}
	p->n_semaphore_undo = kept;
	return 0;
}

int sysv_semaphores_describe(struct sysv_users *users)
{
	int err = sysv_each(users, "sysvipc/sem", describe);

	for (size_t i = 0; !err && i < users->count; i++)
		err = check_undos(users, users->process[i]);
	return err;
}

/* ---- rebuild: in cr_restart --------------------------------------------------------- */

static int look(int id, struct ipc_perm *permissions, uint64_t *length)
{
	struct semid_ds status;
	union argument argument = { .status = &status };

	if (semctl(id, 0, IPC_STAT, argument) < 0)
		return -errno;
	*permissions = status.sem_perm;
	*length = status.sem_nsems;
	return 0;
}

static int get(key_t key, uint64_t length, int flags)
{
	int id = semget(key, (int)length, flags);

	return id < 0 ? -errno : id;
}

static int set_permissions(int id, const struct ipc_perm *permissions)
{
	struct semid_ds status = { .sem_perm = *permissions };
	union argument argument = { .status = &status };

	return semctl(id, 0, IPC_SET, argument) ? -errno : 0;
}

static int remove_set(int id)
{
	return semctl(id, 0, IPC_RMID) ? -errno : 0;
}

const struct sysv_kind sysv_semaphores = {
	.name = "System V semaphore set",
	.next_id = "sys/kernel/sem_next_id",
	.limits = "sysctl kernel.sem",
	.look = look,
	.get = get,
	.set = set_permissions,
	.remove = remove_set,
};

/* IDs of sets that others use by now, whose values are theirs. */
static struct left {
	int id;
	struct left *next;
} *all_left;

static bool is_left(int id)
{
	for (const struct left *l = all_left; l; l = l->next)
		if (l->id == id)
			return true;
	return false;
}

static int leave(int id)
{
	struct left *l = malloc(sizeof(*l));

	if (!l)
		return report_errno(-ENOMEM, "semaphore set %d", id);
	*l = (struct left){ id, all_left };
	all_left = l;
	return 0;
}

/* What the ends of the saved processes have added to one of them, or will. */
static int undone(const struct context *c, int set, size_t number)
{
	int sum = 0;

	for (size_t i = 0; i < c->nr_processes; i++)
		for (size_t k = 0; k < c->process[i]->n_semaphore_undo; k++)
			if (c->process[i]->semaphore_undo[k]->set == set &&
			    c->process[i]->semaphore_undo[k]->number == number)
				sum += c->process[i]->semaphore_undo[k]->adjustment;
	return sum;
}

/* What has become of a set that is still there. */
struct change {
	bool others;		/* a process that is not saved has used it last */
	bool values;		/* they are not those that the processes have left at their ends */
};

/*
 * None of the saved processes exists yet.  Processes of other PID namespaces have the number 0
 * here, as those of nobody.
 */
static int find_change(const struct context *c, const Kcr__SemaphoreSet *set, struct change *change)
{
	*change = (struct change){};
	for (size_t i = 0; i < set->n_value; i++) {
		int id = set->identity->id;
		int pid = semctl(id, (int)i, GETPID), value = semctl(id, (int)i, GETVAL);
		bool same = value == (int)set->value[i] + undone(c, id, i);

		if (pid < 0 || value < 0)
			return -errno;
		change->values |= !same;
		change->others |= pid ? stat_lives(pid) : set->pid[i] || !same;
	}
	return 0;
}

/*
 * By operations, as SETVAL and SETALL forget what the ends of all processes undo.  -EAGAIN: others
 * are at it.
 */
static int set_values(const Kcr__SemaphoreSet *set)
{
	for (size_t i = 0; i < set->n_value; i++) {
		int id = set->identity->id, value = semctl(id, (int)i, GETVAL);
		struct sembuf operation = { (unsigned short)i, (short)((int)set->value[i] - value),
					    IPC_NOWAIT };

		if (value < 0 || (operation.sem_op && semop(id, &operation, 1)))
			return -errno;
	}
	return 0;
}

static int fill_old(const struct context *c, const Kcr__SemaphoreSet *set)
{
	struct change change;
	int id = set->identity->id, err = find_change(c, set, &change);
	const char *why = change.others || set->identity->used ? "another program uses it" :
			  "it may be another program's";

	if (!err && !change.others && set->identity->used) {
		err = set_values(set);
		if (err != -EACCES && err != -EAGAIN)
			return err;
		change.values = true;
		why = err == -EACCES ? "the program may not change them" : why;
		err = 0;
	}
	if (!err)
		err = leave(id);
	if (!err && change.values)
		report_warn("the values of System V semaphore set %d have changed since the checkpoint, "
			    "and are left as they are, as %s", id, why);
	return err;
}

static int make(const struct context *c, const Kcr__SemaphoreSet *set)
{
	const Kcr__SysvIdentity *saved = set->identity;
	int err = sysv_get(&sysv_semaphores, saved, set->n_value);

	if (err)
		return sysv_forgive(saved, err);
	if (sysv_is_made(&sysv_semaphores, saved->id))
		err = set_values(set) ?: sysv_give(&sysv_semaphores, saved);
	else
		err = fill_old(c, set);
	return err ? report_errno(err, "System V semaphore set %d cannot be restored", saved->id) : 0;
}

int sysv_semaphores_make(const struct context *c, const Kcr__Process *p)
{
	int err = 0;

	for (size_t i = 0; !err && i < p->n_semaphore_set; i++)
		err = make(c, p->semaphore_set[i]);
	return err;
}

/* ---- rebuild: in the process that is to become the saved one ------------------------------ */

/* Both in one call; the order in which they fit between 0 and the highest value depends on the present one. */
static int both(int id, struct sembuf up, struct sembuf down)
{
	struct sembuf first[] = { up, down }, otherwise[] = { down, up };

	return !semop(id, first, 2) || !semop(id, otherwise, 2) ? 0 : -errno;
}

static int redo(const Kcr__SemaphoreUndo *undo)
{
	short operation = (short)-undo->adjustment;
	struct sembuf up = { (unsigned short)undo->number, (short)abs(operation), IPC_NOWAIT };
	struct sembuf down = { up.sem_num, (short)-up.sem_op, IPC_NOWAIT };
	struct sembuf *own = operation > 0 ? &up : &down;
	int err;

	own->sem_flg |= SEM_UNDO;
	if (!is_left(undo->set))
		err = both(undo->set, up, down);
	else	/* its end has given it back */
		err = semop(undo->set, own, 1) ? -errno : 0;
	if (err == -EAGAIN)
		return report_fail(-EBUSY, "semaphore %u of System V set %d is in use by another program",
				   undo->number, undo->set);
	return err ? report_errno(err, "semaphore %u of System V set %d cannot be taken again",
				  undo->number, undo->set) : 0;
}

static void use(int id, size_t number)
{
	struct sembuf up = { (unsigned short)number, 1, IPC_NOWAIT };
	struct sembuf down = { (unsigned short)number, -1, IPC_NOWAIT };

	if (both(id, up, down))
		report_verbose("System V semaphore set %d: its last user cannot be set", id);
}

/* `keeper`: the process that the set is saved with stands for those that are not saved. */
static void use_set(const struct context *c, const Kcr__Process *p, const Kcr__SemaphoreSet *set,
		    bool keeper)
{
	int id = set->identity->id;
	bool own = set->identity->used || sysv_is_made(&sysv_semaphores, id);

	if (!sysv_is_known(&sysv_semaphores, id))
		return;
	if (keeper && !own)
		sysv_renew(&sysv_semaphores, id);
	keeper &= own && !is_left(id);
	for (size_t i = 0; i < set->n_pid; i++)
		if (set->pid[i] == p->pid || (keeper && !context_process(c, set->pid[i])))
			use(id, i);
}

static int prepare(struct rebuild *r, const Kcr__Process *p)
{
	int err = 0;

	(void)r;
	for (size_t i = 0; !err && i < p->n_semaphore_undo; i++)
		err = redo(p->semaphore_undo[i]);
	return err;
}

/* Once each has its adjustments, as that made it the last user, too. */
static int rebuild(struct rebuild *r, const Kcr__Process *p)
{
	const struct context *c = r->context;
	int err = identity_enter(p->credentials);

	for (size_t i = 0; !err && i < c->nr_processes; i++)
		for (size_t k = 0; k < c->process[i]->n_semaphore_set; k++)
			use_set(c, p, c->process[i]->semaphore_set[k], c->process[i] == p);
	identity_leave();
	return err;
}

const struct attribute attribute_sysv_semaphores = {
	.name = "System V semaphores",
	.prepare = prepare,
	.rebuild = rebuild,
};
