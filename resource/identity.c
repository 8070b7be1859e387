// SPDX-License-Identifier: GPL-2.0
/*
 * The rights that a restart has at each moment.  Only effective IDs and
 * capabilities change: the saved user ID and the permitted capabilities stay,
 * so that others cannot send signals to cr_restart or trace it meanwhile, and
 * so that it can change back.  See identity.h.
 */
#include "resource/identity.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proc/mount.h"
#include "report/report.h"

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE	40
#endif
#define CAP(name)	(1ull << (name))
#define CAP_ANY_FILE	(CAP(CAP_DAC_OVERRIDE) | CAP(CAP_DAC_READ_SEARCH))
#define CAP_ANY_PROCESS	(CAP_ANY_FILE | CAP(CAP_SYS_PTRACE))

struct rights {
	uid_t euid, fsuid;
	gid_t egid, fsgid;
	size_t nr_groups;
	const gid_t *group;
	uint64_t effective;
};

static struct {
	enum identity_rule rule;
	bool guarding;
	bool half_way;			/* a change has failed: `now` is not valid */
	uid_t real;			/* the caller's real user ID */
	uint64_t permitted;
	struct rights own;		/* the caller's */
	struct rights base;		/* to return to: `own`, or those of identity_take() */
	struct rights now;
	struct rights lowered;		/* during identity_raise() */
} s;

/* ---- system calls: glibc's wrappers would change all threads -------------------------- */

static int read_capabilities(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &header, data) ? -errno : 0;
}

static int set_effective(uint64_t effective)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	int err = read_capabilities(data);

	if (err)
		return err;
	data[0].effective = effective & data[0].permitted;
	data[1].effective = effective >> 32 & data[1].permitted;
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static bool same_ids(const struct rights *a, const struct rights *b)
{
	return a->euid == b->euid && a->fsuid == b->fsuid && a->egid == b->egid &&
	       a->fsgid == b->fsgid && a->nr_groups == b->nr_groups &&
	       (!a->nr_groups || !memcmp(a->group, b->group, a->nr_groups * sizeof(*a->group)));
}

static int set_ids(const struct rights *to)
{
	int err = set_effective(s.permitted);	/* needed for the change */

	if (err)
		return err;
	if (syscall(SYS_setgroups, to->nr_groups, to->group) ||
	    syscall(SYS_setresgid, -1, to->egid, -1))
		return -errno;
	syscall(SYS_setfsgid, to->fsgid);
	if (syscall(SYS_setresuid, -1, to->euid, -1))
		return -errno;
	if (to->fsuid != to->euid) {	/* the last call may have dropped what this one needs */
		err = set_effective(s.permitted);
		syscall(SYS_setfsuid, to->fsuid);
	}
	if (!err && ((uid_t)syscall(SYS_setfsuid, -1) != to->fsuid ||
		     (gid_t)syscall(SYS_setfsgid, -1) != to->fsgid))
		err = -EPERM;
	return err;
}

static int set_rights(const struct rights *to)
{
	bool same = !s.half_way && same_ids(&s.now, to);
	int err = 0;

	if (same && s.now.effective == to->effective)
		return 0;
	if (!same)
		err = set_ids(to);
	if (!err)
		err = set_effective(to->effective);
	s.half_way = err;
	if (!err)
		s.now = *to;
	return err;
}

/* ---- rules ----------------------------------------------------------------------------- */

bool identity_is_privileged(void)
{
	struct __user_cap_data_struct data[2];

	return !geteuid() || read_capabilities(data) || data[0].effective || data[1].effective;
}

int identity_begin(enum identity_rule rule)
{
	struct __user_cap_data_struct data[2];
	gid_t *group = NULL;
	int count = 0, err = 0;

	free((gid_t *)s.own.group);
	s.own.group = NULL;
	s.rule = rule;
	if (rule == IDENTITY_CALLER)
		return 0;
	err = read_capabilities(data);
	if (!err)
		count = getgroups(0, NULL);
	if (count > 0)
		group = calloc(count, sizeof(*group));
	if (count < 0 || (group && getgroups(count, group) != count))
		err = -errno;
	else if (count && !group)
		err = -ENOMEM;
	if (err)
		return report_errno(err, "cannot read my own credentials");
	s.permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	s.own = (struct rights) {
		.euid = geteuid(), .fsuid = geteuid(), .egid = getegid(), .fsgid = getegid(),
		.nr_groups = count, .group = group,
		.effective = data[0].effective | (uint64_t)data[1].effective << 32,
	};
	s.base = s.now = s.own;
	s.real = getuid();
	return 0;
}

bool identity_may_be_anyone(void)
{
	return s.rule == IDENTITY_SAVED;
}

bool identity_is_owner(void)
{
	return s.rule == IDENTITY_OWNER;
}

bool identity_may_raise_limits(void)
{
	return s.rule != IDENTITY_OWNER;
}

static struct rights rights_of(const Kcr__Credentials *c)
{
	return (struct rights) {
		.euid = c->euid, .fsuid = c->fsuid, .egid = c->egid, .fsgid = c->fsgid,
		.nr_groups = c->n_group, .group = c->group,
		.effective = c->cap_effective & s.permitted,
	};
}

/* Exits on failure: cr_restart cannot go on without its rights, nor safely with others'. */
static void go_back(const struct rights *to)
{
	int err = set_rights(to);

	if (!err)
		return;
	report_errno(err, "cannot get back my own rights");
	report_print(err);
	_exit(report_exit_code(err));
}

static int enter(const struct rights *to)
{
	int err = set_rights(to);

	if (!err)
		return 0;
	go_back(&s.base);
	return report_errno(err, "cannot take the rights of user %u", to->euid);
}

int identity_enter(const Kcr__Credentials *c)
{
	struct rights to;

	if (s.rule == IDENTITY_CALLER)
		return 0;
	to = c ? rights_of(c) : s.base;
	return enter(&to);
}

void identity_leave(void)
{
	if (s.rule != IDENTITY_CALLER)
		go_back(&s.base);
}

/* For good or for a moment: the permitted capabilities stay, as the saved user ID does. */
static int set_real(uid_t uid)
{
	int err = set_effective(s.permitted);

	if (!err && syscall(SYS_setresuid, uid, -1, -1))
		err = -errno;
	syscall(SYS_setfsuid, s.now.fsuid);	/* which has become the effective one */
	return err ?: set_effective(s.now.effective);
}

int identity_show(const Kcr__Credentials *c)
{
	return s.rule == IDENTITY_CALLER || !c || c->uid == s.real ? 0 : set_real(c->uid);
}

void identity_show_own(void)
{
	if (s.rule == IDENTITY_CALLER || getuid() == s.real || !set_real(s.real))
		return;
	report_fail(-EPERM, "cannot get back my own user ID");
	report_print(-EPERM);
	_exit(report_exit_code(-EPERM));
}

static bool is_user(uid_t uid)
{
	uid_t real, effective, saved;

	return !getresuid(&real, &effective, &saved) && real == uid && effective == uid && saved == uid;
}

static bool is_group(gid_t gid)
{
	gid_t real, effective, saved;

	return !getresgid(&real, &effective, &saved) && real == gid && effective == gid && saved == gid;
}

int identity_drop(const Kcr__Credentials *c)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = {};
	bool entered;
	gid_t gid;
	int err;

	if (s.rule != IDENTITY_OWNER)
		return 0;
	if (!c)
		return -EPERM;
	/* Where it has the rights of one of its processes, these stay: groups may differ. */
	entered = s.now.euid == c->euid;
	gid = entered ? s.now.egid : c->egid;
	err = set_effective(s.permitted);
	if (!err && ((!entered && syscall(SYS_setgroups, c->n_group, c->group)) ||
		     (!is_group(gid) && syscall(SYS_setresgid, gid, gid, gid)) ||
		     (!is_user(c->uid) && syscall(SYS_setresuid, c->uid, c->uid, c->uid)) ||
		     syscall(SYS_capset, &header, none)))
		err = -errno;
	s.rule = IDENTITY_CALLER;
	return err;
}

/* Dropped for good, now: the saved process has no privileges to do it later. */
static int drop_bounding(uint64_t wanted)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (!(wanted & 1ull << cap) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
			return -errno;
	return 0;
}

int identity_take(const Kcr__Credentials *c)
{
	struct rights to;
	bool raised;
	int err;

	if (s.rule != IDENTITY_OWNER || !c)
		return 0;
	raised = identity_raise(true);
	err = drop_bounding(c->cap_bounding);
	if (!err && syscall(SYS_setresgid, c->gid, -1, c->sgid))
		err = -errno;
	identity_lower(raised);
	if (err)
		return report_errno(err, "cannot take the rights of user %u", c->euid);
	to = rights_of(c);
	to.effective |= s.permitted & CAP(CAP_CHECKPOINT_RESTORE);
	err = enter(&to);
	if (!err)
		s.base = to;
	return err;
}

void identity_forget_keys(const Kcr__Credentials *c, const Kcr__Credentials *parent)
{
	if (s.rule == IDENTITY_CALLER || !c || c->uid == getuid() ||
	    (parent && parent->uid == c->uid))
		return;
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
		report_warn("user %u has the caller's session keyring: %s", c->uid, strerror(errno));
}

bool identity_raise(bool always)
{
	if (s.rule == IDENTITY_CALLER || (s.rule == IDENTITY_OWNER && !always))
		return false;
	s.lowered = s.now;
	go_back(&s.own);
	return true;
}

bool identity_raise_to_look(void)
{
	struct rights to = s.now;

	if (s.rule == IDENTITY_CALLER)
		return false;
	to.effective |= s.permitted & CAP_ANY_PROCESS;
	s.lowered = s.now;
	go_back(&to);
	return true;
}

void identity_lower(bool raised)
{
	if (raised)
		go_back(&s.lowered);
}

/* ---- names ------------------------------------------------------------------------------- */

bool identity_guard(void)
{
	s.guarding = s.rule == IDENTITY_SAVED;
	return s.guarding;
}

bool identity_is_guarding(void)
{
	return s.guarding;
}

void identity_unguard(void)
{
	s.guarding = false;
}

/* *sticky: root must own the next component. */
static bool is_roots_folder(const struct stat *st, bool *sticky)
{
	bool others = st->st_mode & 022;

	if (!S_ISDIR(st->st_mode) || st->st_uid || (others && !(st->st_mode & S_ISVTX)))
		return false;
	*sticky = others;
	return true;
}

/* Is it a /proc/PID?  Root may own it now, and another process have the PID soon. */
static bool is_process(int at, const char *name)
{
	struct statfs fs;

	return isdigit((unsigned char)*name) && (fstatfs(at, &fs) || fs.f_type == PROC_SUPER_MAGIC);
}

/* Is it what its file system says?  A path below /proc is judged by name. */
static bool is_genuine(int folder)
{
	struct statfs fs;
	char what[256];

	return !fstatfs(folder, &fs) && (fs.f_type == PROC_SUPER_MAGIC ||
					 !mount_makes_up_owners(folder, what, sizeof(what)));
}

bool identity_is_guarded(const char *path)
{
	int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), next;
	char *copy = strdup(path), *rest = copy, *name = NULL;
	bool good = at >= 0 && copy && path[0] == '/', sticky = false;
	struct stat st;

	while (good && (name = strsep(&rest, "/"))) {
		if (!*name)
			continue;
		good = !fstat(at, &st) && is_roots_folder(&st, &sticky) && is_genuine(at) &&
		       !is_process(at, name);
		next = good ? openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
		if (next < 0) {
			/* A file that is still to be created. */
			good = good && errno == ENOENT && !rest && !sticky;
			break;
		}
		close(at);
		at = next;
		good = !fstat(at, &st) && !S_ISLNK(st.st_mode) &&
		       (!sticky || (!st.st_uid && S_ISDIR(st.st_mode)));
	}
	if (at >= 0)
		close(at);
	free(copy);
	return good;
}

uid_t identity_user(void)
{
	return s.rule == IDENTITY_CALLER ? geteuid() : s.now.fsuid;
}

int identity_open(const char *path, int flags, mode_t mode)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
	int fd;

	if (s.rule == IDENTITY_CALLER) {
		fd = open(path, flags | O_CLOEXEC, mode);
		return fd < 0 ? -errno : fd;
	}
	if (flags & O_PATH)		/* open(2) ignores other flags, openat2(2) does not */
		how.flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	else if (flags & (O_CREAT | __O_TMPFILE))
		how.mode = mode & 07777;
	if (!s.now.fsuid || s.now.effective & CAP_ANY_FILE)
		how.resolve = RESOLVE_NO_SYMLINKS;
	fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int change_folder(const char *path)
{
	int fd = identity_open(path, O_PATH | O_DIRECTORY, 0), err;

	if (fd < 0)
		return fd;
	err = fchdir(fd) ? -errno : 0;
	close(fd);
	return err;
}

int identity_chdir(const char *path, const Kcr__Credentials *c, bool at_path)
{
	int err = identity_enter(c);

	if (err)
		return err;
	err = change_folder(path);
	identity_leave();
	if (err == -EACCES && s.rule == IDENTITY_SAVED && at_path && identity_is_guarded(path))
		err = change_folder(path);
	return err;
}

static bool is_privileged(const Kcr__Credentials *c)
{
	return !c->euid || !c->fsuid || c->cap_effective;
}

bool identity_may_trace(const Kcr__Credentials *a, const Kcr__Credentials *b)
{
	if (!a || !b)
		return true;
	return b->uid == a->fsuid && b->euid == a->fsuid && b->suid == a->fsuid &&
	       b->gid == a->fsgid && b->egid == a->fsgid && b->sgid == a->fsgid &&
	       !(b->cap_permitted & ~a->cap_effective);
}

const Kcr__Credentials *identity_lesser(const Kcr__Credentials *a, const Kcr__Credentials *b)
{
	if (!a || !b)
		return a ?: b;
	return is_privileged(a) && !is_privileged(b) ? b : a;
}
