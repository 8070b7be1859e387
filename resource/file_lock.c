// SPDX-License-Identifier: GPL-2.0
/*
 * File locks, as /proc/PID/fdinfo shows them.  flock and OFD locks belong
 * to the open file and are restored with it; POSIX locks belong to a process
 * and are restored by its script, after its last close() of the file.
 * Leases belong to the open file as well.  /proc/locks names the process that took a
 * lock: if that is in the image and has the file, it takes it again.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "rebuild/script.h"
#include "report/report.h"

#ifndef F_GETDELEG			/* Linux 6.19 */
#define F_GETDELEG	1039
struct delegation {
	uint32_t d_flags;
	uint16_t d_type;
	uint16_t __pad;
};
#endif

static int add_posix(struct lock_list *list, const struct lock_entry *lock)
{
	struct lock_entry *more;

	for (size_t i = 0; i < list->count; i++) {
		const struct lock_entry *l = &list->entry[i];

		if (l->pid == lock->pid && l->number == lock->number && l->start == lock->start)
			return 0;	/* found by a dry run already */
	}
	more = realloc(list->entry, (list->count + 1) * sizeof(*more));
	if (!more)
		return report_errno(-ENOMEM, "saving locks");
	list->entry = more;
	list->entry[list->count++] = *lock;
	return 0;
}

static int add_ofd(Kcr__File *file, const struct lock_entry *lock)
{
	Kcr__RangeLock **more;

	more = realloc(file->ofd_lock, (file->n_ofd_lock + 1) * sizeof(*more));
	if (!more)
		return report_errno(-ENOMEM, "saving locks");
	file->ofd_lock = more;
	more[file->n_ofd_lock] = malloc(sizeof(**more));
	if (!more[file->n_ofd_lock])
		return report_errno(-ENOMEM, "saving locks");
	kcr__range_lock__init(more[file->n_ofd_lock]);
	more[file->n_ofd_lock]->type = lock->type;
	more[file->n_ofd_lock]->start = lock->start;
	more[file->n_ofd_lock]->len = lock->len;
	file->n_ofd_lock++;
	return 0;
}

static int add_flock(Kcr__File *file, const struct lock_entry *lock)
{
	if (file->flock)
		return 0;
	file->flock = malloc(sizeof(*file->flock));
	if (!file->flock)
		return report_errno(-ENOMEM, "saving locks");
	kcr__flock__init(file->flock);
	file->flock->type = lock->type == F_WRLCK ? LOCK_EX : LOCK_SH;
	file->flock->has_pid = true;
	file->flock->pid = lock->owner;
	return 0;
}

/* "1: POSIX  ADVISORY  WRITE 123 08:01:77 0 EOF": false if it is not a held lock. */
static bool parse_line(const char *line, char class[8], struct lock_entry *lock)
{
	char type[8], end[24];
	long long start;

	if (sscanf(line, "%*[^:]: %7s %*s %7s %d %*s %lld %23s", class, type, &lock->owner, &start,
		   end) != 5)
		return false;		/* also "1: -> …": a waiter */
	lock->type = !strcmp(type, "WRITE") ? F_WRLCK : F_RDLCK;
	lock->start = start;
	lock->len = !strcmp(end, "EOF") ? 0 : strtoll(end, NULL, 10) - start + 1;
	return true;
}

int locks_parse(const char *fdinfo, pid_t pid, int number, Kcr__File *file,
		struct lock_list *list)
{
	struct lock_entry lock = { .pid = pid, .number = number };
	const char *line = fdinfo;
	char class[8];
	int err = 0;

	while (!err && (line = strstr(line, "lock:"))) {
		line += strlen("lock:");
		if (!parse_line(line, class, &lock))
			continue;
		if (!strcmp(class, "POSIX"))
			err = add_posix(list, &lock);
		else if (file && !strcmp(class, "FLOCK"))
			err = add_flock(file, &lock);
		else if (file && !strcmp(class, "OFDLCK"))
			err = add_ofd(file, &lock);
		else if (file && file->has_lease && !strcmp(class, "LEASE")) {
			file->has_lease_pid = true;
			file->lease_pid = lock.owner;
		}
	}
	return err;
}

int locks_of_process(const struct lock_list *list, Kcr__Process *p)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct lock_entry *l = &list->entry[i];
		Kcr__PosixLock **more, *lock;

		if (l->pid != p->pid)
			continue;
		more = realloc(p->posix_lock, (p->n_posix_lock + 1) * sizeof(*more));
		if (more)
			p->posix_lock = more;
		lock = malloc(sizeof(*lock));
		if (!more || !lock) {
			free(lock);
			return report_errno(-ENOMEM, "saving locks");
		}
		kcr__posix_lock__init(lock);
		lock->fd = l->number;
		lock->type = l->type;
		lock->start = l->start;
		lock->len = l->len;
		more[p->n_posix_lock++] = lock;
	}
	return 0;
}

bool lease_is_delegated(int fd)
{
	struct delegation held = { .d_type = F_UNLCK };

	return !fcntl(fd, F_GETDELEG, &held) && held.d_type != F_UNLCK;
}

void lease_save(const struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	int lease = S_ISREG(probe->st.st_mode) ? fcntl(probe->fd, F_GETLEASE) : F_UNLCK;

	if (!file_table_is_dry(t) && lease_is_delegated(probe->fd))
		report_warn("process %d: its delegation of %s (F_SETDELEG) is lost at a restart",
			    probe->pid, probe->link);
	if (lease == F_RDLCK || lease == F_WRLCK) {
		file->has_lease = true;
		file->lease = lease;
	}
}

static int lease_rebuild(int fd, const Kcr__File *file)
{
	if (!fcntl(fd, F_SETLEASE, file->lease))
		return 0;
	if (errno == EAGAIN)
		return rebuild_error(file, -EBUSY, "another process has it open, which its lease "
				     "does not allow");
	return rebuild_error(file, -errno, "cannot take its lease");
}

static int flock_rebuild(int fd, const Kcr__File *file)
{
	if (!flock(fd, file->flock->type | LOCK_NB))
		return 0;
	if (errno == EWOULDBLOCK)
		return rebuild_error(file, -EBUSY, "another process has locked it");
	return rebuild_error(file, -errno, "cannot lock it");
}

/*
 * Is this process in the image, and can it take a lock of the file itself?  One in the
 * memory of another gets its descriptors by script.
 */
static bool takes_itself(const struct rebuild *r, pid_t pid, const Kcr__File *file)
{
	const Kcr__Process *p = pid ? context_process(r->context, pid) : NULL;

	return p && p->mm && process_has_number(p, file->id, -1);
}

int locks_rebuild(const struct rebuild *r, int fd, const Kcr__File *file)
{
	int err = 0;

	if (file->flock && !takes_itself(r, file->flock->pid, file))
		err = flock_rebuild(fd, file);
	for (size_t i = 0; i < file->n_ofd_lock && !err; i++) {
		const Kcr__RangeLock *l = file->ofd_lock[i];
		struct flock lock = {
			.l_type = l->type, .l_whence = SEEK_SET,
			.l_start = l->start, .l_len = l->len,
		};

		if (!fcntl(fd, F_OFD_SETLK, &lock))
			continue;
		if (errno == EAGAIN || errno == EACCES)
			return rebuild_error(file, -EBUSY, "another process has locked it");
		return rebuild_error(file, -errno, "cannot lock it");
	}
	if (!err && file->has_lease && !takes_itself(r, file->lease_pid, file))
		err = lease_rebuild(fd, file);
	return err;
}

int locks_install(const Kcr__Process *process, int number, const Kcr__File *file)
{
	int err = 0;

	if (file->flock && file->flock->pid == process->pid)
		err = flock_rebuild(number, file);
	if (!err && file->has_lease && file->lease_pid == process->pid)
		err = lease_rebuild(number, file);
	return err;
}

void locks_script(const Kcr__Process *process, struct script *s)
{
	for (size_t i = 0; i < process->n_posix_lock; i++) {
		const Kcr__PosixLock *l = process->posix_lock[i];
		struct flock lock = {
			.l_type = l->type, .l_whence = SEEK_SET,
			.l_start = l->start, .l_len = l->len,
		};

		script_call(s, "fcntl(F_SETLK)", SYS_fcntl, l->fd, F_SETLK,
			    script_data(s, &lock, sizeof(lock)), 0, 0, 0);
	}
}
