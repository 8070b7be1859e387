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

#include "report/report.h"

union argument {
	int value;
	struct semid_ds *status;
	unsigned short *values;
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

/* The first saved process that has used one of them last; *others: one that is not saved has. */
static Kcr__Process *last_user(const struct sysv_users *users, const Kcr__SemaphoreSet *set,
			       bool *others)
{
	Kcr__Process *found = NULL;

	*others = false;
	for (size_t i = 0; i < set->n_pid; i++) {
		found = found ?: sysv_user(users, set->pid[i]);
		*others |= !found && set->pid[i] && sysv_lives(set->pid[i]);
	}
	return found;
}

static int read_pids(Kcr__SemaphoreSet *set, int id)
{
	for (set->n_pid = 0; set->n_pid < set->n_value; set->n_pid++) {
		int pid = semctl(id, (int)set->n_pid, GETPID);

		if (pid < 0)
			return -errno;
		set->pid[set->n_pid] = pid;
	}
	return 0;
}

static int read_values(Kcr__SemaphoreSet *set, int id)
{
	unsigned short *values = calloc(set->n_value, sizeof(*values));
	union argument argument = { .values = values };
	int err = -ENOMEM;

	if (values)
		err = semctl(id, 0, GETALL, argument) < 0 ? -errno : 0;
	for (size_t i = 0; !err && i < set->n_value; i++)
		set->value[i] = values[i];
	free(values);
	return err;
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
		set->n_value = line->length;
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
static int examine(const struct sysv_users *users, const struct sysv_line *line,
		   Kcr__SemaphoreSet *set, Kcr__Process **p)
{
	bool others;
	int err;

	*p = undoer(users, line->id);
	err = read_pids(set, line->id);
	/* One that we may not read is another user's, unless the end of a process changes it. */
	if (err)
		return *p || err != -EACCES ? err : 0;
	*p = *p ?: last_user(users, set, &others);
	set->identity->used = *p != NULL;
	if (!*p && !others)
		*p = sysv_maker(users, line);
	return *p ? read_values(set, line->id) : 0;
}

static int describe(const struct sysv_users *users, const struct sysv_line *line)
{
	Kcr__SemaphoreSet *set = new_set(line);
	Kcr__Process *p = NULL;
	int err = -ENOMEM;

	if (set)
		err = examine(users, line, set, &p);
	if (!err && p)
		err = keep(p, set);
	if (set && (err || !p))
		kcr__semaphore_set__free_unpacked(set, NULL);
	if (err == -EIDRM || err == -EINVAL)	/* it has just been removed */
		return 0;
	return err ? report_errno(err, "System V semaphore set %d, which process %d uses", line->id,
				  p ? p->pid : 0) : 0;
}

int sysv_semaphores_describe(const struct sysv_users *users)
{
	return sysv_each(users, "sysvipc/sem", describe);
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

/* None of the saved processes exists yet. */
static bool others_use(const Kcr__SemaphoreSet *set)
{
	for (size_t i = 0; i < set->n_value; i++) {
		int pid = semctl(set->identity->id, (int)i, GETPID);

		if (pid > 0 && sysv_lives(pid))
			return true;
	}
	return false;
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

/* Are the values those that the processes have left at their ends? */
static int has_values(const struct context *c, const Kcr__SemaphoreSet *set, bool *same)
{
	unsigned short *values = calloc(set->n_value, sizeof(*values));
	union argument argument = { .values = values };
	int err = -ENOMEM;

	if (values)
		err = semctl(set->identity->id, 0, GETALL, argument) < 0 ? -errno : 0;
	*same = !err;
	for (size_t i = 0; *same && i < set->n_value; i++)
		*same = values[i] == (int)set->value[i] + undone(c, set->identity->id, i);
	free(values);
	return err;
}

static int set_values(const Kcr__SemaphoreSet *set)
{
	unsigned short *values = calloc(set->n_value, sizeof(*values));
	union argument argument = { .values = values };
	int err = -ENOMEM;

	for (size_t i = 0; values && i < set->n_value; i++)
		values[i] = set->value[i];
	if (values)
		err = semctl(set->identity->id, 0, SETALL, argument) < 0 ? -errno : 0;
	free(values);
	return err;
}


static int fill_old(const struct context *c, const Kcr__SemaphoreSet *set)
{
	bool same, others = others_use(set);
	int err;

	if (!others && set->identity->used)
		return set_values(set);
	err = has_values(c, set, &same) ?: leave(set->identity->id);
	if (!err && !same)
		report_warn("the values of System V semaphore set %d have changed since the checkpoint, "
			    "and are left as they are, as %s", set->identity->id, others ?
			    "another program uses it" : "it may be another program's");
	return err;
}

int sysv_semaphores_make(const struct context *c, const Kcr__Process *p)
{
	int err = 0;

	for (size_t i = 0; !err && i < p->n_semaphore_set; i++) {
		const Kcr__SemaphoreSet *set = p->semaphore_set[i];

		err = sysv_get(&sysv_semaphores, set->identity, set->n_value);
		if (!err && sysv_is_made(&sysv_semaphores, set->identity->id))
			err = set_values(set) ?: sysv_give(&sysv_semaphores, set->identity);
		else if (!err)
			err = fill_old(c, set);
		if (err)
			report_errno(err, "System V semaphore set %d cannot be restored",
				     set->identity->id);
	}
	return err;
}

/* ---- rebuild: in the process that is to become the saved one ------------------------------ */

static int redo(const Kcr__SemaphoreUndo *undo)
{
	short operation = (short)-undo->adjustment;
	struct sembuf up = { (unsigned short)undo->number, 0, IPC_NOWAIT }, down = up;
	struct sembuf both[2];
	int err;

	if (is_left(undo->set)) {	/* whoever undid it at its end has given it back */
		up.sem_op = operation;
		up.sem_flg |= SEM_UNDO;
		err = semop(undo->set, &up, 1) ? -errno : 0;
	} else {
		up.sem_op = (short)abs(operation);
		down.sem_op = (short)-up.sem_op;
		*(operation > 0 ? &up.sem_flg : &down.sem_flg) |= SEM_UNDO;
		both[0] = up;
		both[1] = down;
		err = semop(undo->set, both, 2) ? -errno : 0;
	}
	if (err == -EAGAIN)
		return report_fail(-EBUSY, "semaphore %u of System V set %d is in use by another program",
				   undo->number, undo->set);
	return err ? report_errno(err, "semaphore %u of System V set %d cannot be taken again",
				  undo->number, undo->set) : 0;
}

/* The order in which both fit between 0 and the highest value depends on the present one. */
static void use(int id, size_t number)
{
	struct sembuf up = { (unsigned short)number, 1, IPC_NOWAIT };
	struct sembuf down = { (unsigned short)number, -1, IPC_NOWAIT };

	struct sembuf first[] = { up, down }, otherwise[] = { down, up };

	if (semop(id, first, 2) && semop(id, otherwise, 2))
		report_verbose("System V semaphore set %d: its last user cannot be set", id);
}

/* `keeper`: the process that the set is saved with stands for those that are not saved. */
static void use_set(const struct context *c, const Kcr__Process *p, const Kcr__SemaphoreSet *set,
		    bool keeper)
{
	int id = set->identity->id;
	bool own = set->identity->used || sysv_is_made(&sysv_semaphores, id);

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

	for (size_t i = 0; i < c->nr_processes; i++)
		for (size_t k = 0; k < c->process[i]->n_semaphore_set; k++)
			use_set(c, p, c->process[i]->semaphore_set[k], c->process[i] == p);
	return 0;
}

const struct attribute attribute_sysv_semaphores = {
	.name = "System V semaphores",
	.prepare = prepare,
	.rebuild = rebuild,
};
