// SPDX-License-Identifier: GPL-2.0
/*
 * An image written by root is believed.  One that belongs to an ordinary user may
 * claim anything: its processes get no rights that the user could not have without
 * it.  The owner is that of the open file, not of its name.  See cr_restart(1),
 * "Privileged restarts".
 */
#include "restart/trust.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/mount.h"
#include "report/report.h"

#define TRUST_IT	"restart it as that user, or use --trust"
#define TRUST_WRITER	"use --trust if you trust who wrote it"
#define GROUPS_MAX	65536		/* the kernel's limit */

/* The rights that the owner of an image has without it. */
struct owner {
	uid_t uid;
	gid_t *group;
	int nr_groups;
	uint64_t permitted, inheritable;
	uint32_t securebits;
};

/* ---- the owner ------------------------------------------------------------------ */

/* The user's groups at login; an unknown user has none. */
static int add_groups_of_user(struct owner *o)
{
	const struct passwd *user = getpwuid(o->uid);
	int count = 64;
	gid_t *group;

	if (!user)
		return 0;
	for (; count <= 2 * GROUPS_MAX; count *= 2) {
		int found = count;

		group = reallocarray(o->group, count, sizeof(*group));
		if (!group)
			return -ENOMEM;
		o->group = group;
		if (getgrouplist(user->pw_name, user->pw_gid, group, &found) >= 0) {
			o->nr_groups = found;
			return 0;
		}
	}
	return -E2BIG;
}

/* A caller with capabilities who restarts an image of his own has his rights already. */
static int add_own_rights(struct owner *o)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	int count = getgroups(0, NULL);
	gid_t *group;

	if (o->uid != getuid() || o->uid != geteuid())
		return 0;
	group = count < 0 ? NULL : reallocarray(o->group, o->nr_groups + count + 1, sizeof(*group));
	if (!group)
		return -ENOMEM;
	o->group = group;
	count = getgroups(count, group + o->nr_groups);
	if (count < 0 || syscall(SYS_capget, &header, data))
		return -errno;
	o->nr_groups += count;
	group[o->nr_groups++] = getgid();
	/* Ambient ones only: cr_restart's file capabilities do not count. */
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1)
			o->permitted |= 1ull << cap;
	o->inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
	o->securebits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
	return 0;
}

static bool is_in(const struct owner *o, gid_t group)
{
	for (int i = 0; i < o->nr_groups; i++)
		if (o->group[i] == group)
			return true;
	return false;
}

/* ---- what an image claims -------------------------------------------------------- */

/* A user ID of the process that is not the owner's; the owner's: there is none. */
static uid_t foreign_user(const struct owner *o, const Kcr__Credentials *c)
{
	const uid_t all[] = { c->uid, c->euid, c->suid, c->fsuid };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i] != o->uid)
			return all[i];
	return o->uid;
}

static int check_groups(const struct owner *o, const Kcr__Process *p, const Kcr__Credentials *c)
{
	const gid_t own[] = { c->gid, c->egid, c->sgid, c->fsgid };
	const size_t nr_own = sizeof(own) / sizeof(*own);

	for (size_t i = 0; i < nr_own + c->n_group; i++) {
		gid_t group = i < nr_own ? own[i] : c->group[i - nr_own];

		if (!is_in(o, group))
			return report_fail(-EPERM, "the image belongs to user %u, who is not in group "
					   "%u as its process %d is: " TRUST_IT, o->uid, group, p->pid);
	}
	return 0;
}

/* What it claims as a whole, or for one of its threads. */
static int check_rights(const struct owner *o, const Kcr__Process *p, const Kcr__Credentials *c,
			uint32_t securebits)
{
	uid_t user = foreign_user(o, c);

	if (user != o->uid)
		return report_fail(-EPERM, "the image belongs to user %u, and its process %d to user "
				   "%u: " TRUST_WRITER, o->uid, p->pid, user);
	if ((c->cap_permitted | c->cap_effective | c->cap_ambient) & ~o->permitted ||
	    c->cap_inheritable & ~o->inheritable ||
	    (securebits && (securebits ^ o->securebits) & ~SECBIT_KEEP_CAPS))
		return report_fail(-EPERM, "the image belongs to user %u, and its process %d has "
				   "capabilities or securebits: " TRUST_WRITER, o->uid, p->pid);
	return check_groups(o, p, c);
}

static int check_process_of(const struct owner *o, const Kcr__Process *p)
{
	int err = check_rights(o, p, p->credentials, 0);

	for (size_t i = 0; i < p->n_thread && !err; i++)
		err = check_rights(o, p, p->thread[i]->credentials ?: p->credentials,
				   p->thread[i]->securebits);
	return err;
}

static int check_claims(uid_t uid, const struct context *c)
{
	struct owner o = { .uid = uid };
	int err = add_groups_of_user(&o);

	if (!err)
		err = add_own_rights(&o);
	if (err)
		report_errno(err, "cannot find out the groups of user %u", uid);
	for (size_t i = 0; i < c->nr_processes && !err; i++)
		if (c->process[i]->credentials)
			err = check_process_of(&o, c->process[i]);
	free(o.group);
	return err;
}

/* A process without saved credentials would get those of cr_restart. */
static int check_records(const struct context *c)
{
	for (size_t i = 0; i < c->nr_processes; i++)
		if (!c->process[i]->credentials &&
		    c->process[i]->state != KCR__PROCESS__STATE__ZOMBIE)
			return report_fail(-EPERM, "the image does not say whose process %d is: restart "
					   "it as an ordinary user", c->process[i]->pid);
	return 0;
}

static int nobodys_image(void)
{
	return report_fail(-EPERM, "the image is in no regular file, and nothing says whose it is: "
			   TRUST_WRITER);
}

/* Does the file belong to whom it says it does? */
static int check_owner(int fd, const char *name)
{
	char what[512];

	if (!mount_makes_up_owners(fd, what, sizeof(what)))
		return 0;
	return report_fail(-EPERM, "nothing says whose %s is: %s: " TRUST_WRITER, name, what);
}

int trust_source(int fd, bool trust)
{
	struct stat st;

	if (trust || !identity_is_privileged())
		return 0;
	if (fstat(fd, &st))
		return report_errno(-errno, "the context file");
	return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) ? nobodys_image() : 0;
}

int trust_decide(int fd, const struct context *c, bool trust, enum identity_rule *rule)
{
	struct stat st;
	int err;

	*rule = IDENTITY_CALLER;
	if (!identity_is_privileged())
		return 0;
	*rule = IDENTITY_SAVED;
	err = check_records(c);
	if (err || trust)
		return err;
	if (fstat(fd, &st))
		return report_errno(-errno, "the context file");
	if (!S_ISREG(st.st_mode))
		return nobodys_image();
	if (st.st_mode & 022)
		return report_fail(-EPERM, "others than user %u may have written to the image (its mode "
				   "is %04o): " TRUST_WRITER, st.st_uid, st.st_mode & 07777);
	err = check_owner(fd, "the image");
	if (err || !st.st_uid)
		return err;
	*rule = IDENTITY_OWNER;
	return check_claims(st.st_uid, c);
}

int trust_chain(int fd, const struct chain *chain, bool trust)
{
	struct stat last;

	if (!chain || trust || !identity_is_privileged())
		return 0;
	if (fstat(fd, &last))
		return report_errno(-errno, "the context file");
	for (size_t i = 0; i < chain->count; i++) {
		const struct chain_member *m = &chain->member[i];
		int err = check_owner(m->fd, m->path);

		if (err)
			return err;
		if (m->st.st_uid != last.st_uid || m->st.st_mode & 022)
			return report_fail(-EPERM, "others than user %u may have written %s, which the "
					   "image needs (it belongs to user %u, its mode is %04o): "
					   TRUST_WRITER, last.st_uid, m->path, m->st.st_uid,
					   m->st.st_mode & 07777);
	}
	return 0;
}
