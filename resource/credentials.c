// SPDX-License-Identifier: GPL-2.0
/*
 * User and group IDs, groups, capabilities, securebits and no_new_privs.
 *
 * A restart gives a process nothing that the caller of cr_restart could not
 * have: credentials_rebuild() compares what was saved with what the caller has
 * and refuses before anything is built.  Each thread then sets its own, when
 * it needs no privileges any more; a thread that has the right ones already
 * (the usual case of an unprivileged caller) makes no call at all.
 *
 * Grid Engine gives all processes of a job one more group, whose ID has no name, to tell them
 * from others; it is another one in the job's next run.  So for a caller who may not set groups,
 * those without a name are marks of a job, and the caller's count.
 */
#include "resource/attribute.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/proc.h"
#include "proc/status.h"
#include "rebuild/script.h"
#include "report/report.h"

/* ---- save --------------------------------------------------------------------- */

static int save_groups(const char *status, Kcr__Credentials *c)
{
	const char *at = status_value(status, "Groups");
	size_t room = 0;

	while (at && *at >= '0' && *at <= '9') {
		char *end;

		if (c->n_group == room) {
			uint32_t *larger = realloc(c->group, (room += 32) * sizeof(*larger));

			if (!larger)
				return -ENOMEM;
			c->group = larger;
		}
		c->group[c->n_group++] = strtoul(at, &end, 10);
		at = end + strspn(end, " \t");
	}
	return 0;
}

static Kcr__Credentials *read_credentials(const char *status)
{
	const char *uid = status_value(status, "Uid"), *gid = status_value(status, "Gid");
	Kcr__Credentials *c = malloc(sizeof(*c));

	if (!c)
		return NULL;
	kcr__credentials__init(c);
	if (!uid || sscanf(uid, "%u %u %u %u", &c->uid, &c->euid, &c->suid, &c->fsuid) != 4 ||
	    !gid || sscanf(gid, "%u %u %u %u", &c->gid, &c->egid, &c->sgid, &c->fsgid) != 4 ||
	    save_groups(status, c)) {
		kcr__credentials__free_unpacked(c, NULL);
		return NULL;
	}
	c->cap_inheritable = status_number(status, "CapInh", 16, 0);
	c->cap_permitted = status_number(status, "CapPrm", 16, 0);
	c->cap_effective = status_number(status, "CapEff", 16, 0);
	c->cap_bounding = status_number(status, "CapBnd", 16, 0);
	c->cap_ambient = status_number(status, "CapAmb", 16, 0);
	c->has_no_new_privs = true;
	c->no_new_privs = status_number(status, "NoNewPrivs", 10, 0);
	return c;
}

static int credentials_save(const struct process_probe *probe, Kcr__Process *p)
{
	p->credentials = read_credentials(probe->status);
	if (!p->credentials)
		return report_fail(-EIO, "process %d: cannot read its credentials", probe->pid);
	return 0;
}

/* Do two status texts have the same IDs, groups, capabilities and no_new_privs? */
static bool same_credentials(const char *a, const char *b)
{
	static const char *const keys[] = { "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff",
					    "CapBnd", "CapAmb", "NoNewPrivs" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const char *x = status_value(a, keys[i]), *y = status_value(b, keys[i]);
		size_t length = x ? strcspn(x, "\n") : 0;

		if (!x != !y || (x && strncmp(x, y, length + 1)))
			return false;
	}
	return true;
}

static int credentials_save_thread(const struct process_probe *probe, Kcr__Thread *t)
{
	const char *status = probe_thread_status(probe, t->tid);

	if (!status)
		return -EIO;
	if (same_credentials(status, probe->status))
		return 0;
	t->credentials = read_credentials(status);
	if (!t->credentials)
		return report_fail(-EIO, "thread %d: cannot read its credentials", t->tid);
	return 0;
}

/* ---- rebuild ------------------------------------------------------------------ */

/* Those of the calling process; NULL: cannot be read. */
static Kcr__Credentials *own_credentials(void)
{
	const size_t size = 512 << 10;
	char *text = malloc(size);
	Kcr__Credentials *c = NULL;

	if (text && proc_read(PROC_SELF, "status", text, size) > 0)
		c = read_credentials(text);
	free(text);
	if (c)
		c->securebits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
	return c;
}

static bool one_of(uint32_t id, uint32_t a, uint32_t b, uint32_t c)
{
	return id == a || id == b || id == c;
}

static bool same_uids(const Kcr__Credentials *a, const Kcr__Credentials *b)
{
	return a->uid == b->uid && a->euid == b->euid && a->suid == b->suid && a->fsuid == b->fsuid;
}

static bool same_gids(const Kcr__Credentials *a, const Kcr__Credentials *b)
{
	return a->gid == b->gid && a->egid == b->egid && a->sgid == b->sgid && a->fsgid == b->fsgid;
}

static bool same_groups(const Kcr__Credentials *a, const Kcr__Credentials *b)
{
	return a->n_group == b->n_group &&
	       (!a->n_group || !memcmp(a->group, b->group, a->n_group * sizeof(*a->group)));
}

/* The next group from `at` on that the group database knows; c->n_group: there is none. */
static size_t named_group(const Kcr__Credentials *c, size_t at)
{
	while (at < c->n_group && !getgrgid(c->group[at]))
		at++;
	return at;
}

static bool same_named_groups(const Kcr__Credentials *a, const Kcr__Credentials *b)
{
	size_t i = named_group(a, 0), j = named_group(b, 0);

	while (i < a->n_group && j < b->n_group && a->group[i] == b->group[j]) {
		i = named_group(a, i + 1);
		j = named_group(b, j + 1);
	}
	return i == a->n_group && j == b->n_group;
}

/* Are the caller's groups right for the process? */
static bool keeps_groups(const Kcr__Credentials *c, const Kcr__Credentials *own)
{
	return same_groups(c, own) || (!have_capability(CAP_SETGID) && same_named_groups(c, own));
}

static bool same_caps(const Kcr__Credentials *a, const Kcr__Credentials *b)
{
	return a->cap_inheritable == b->cap_inheritable && a->cap_permitted == b->cap_permitted &&
	       a->cap_effective == b->cap_effective && a->cap_ambient == b->cap_ambient;
}

/* Those of a thread; of one whose own are not saved, as it has ended: of the first one. */
static uint32_t saved_securebits(const Kcr__Process *p, const Kcr__Thread *t)
{
	const Kcr__Thread *from = !t->has_securebits && p->n_thread ? p->thread[0] : t;

	return from->has_securebits ? from->securebits : 0;
}

static const Kcr__Credentials *credentials_of(const Kcr__Process *p, const Kcr__Thread *t)
{
	return t->credentials ?: p->credentials;
}

/* Describes what the caller may not give to a thread; NULL: nothing. */
static const char *forbidden(const Kcr__Process *p, const Kcr__Thread *t,
			     const Kcr__Credentials *own)
{
	const Kcr__Credentials *c = credentials_of(p, t);

	if (!same_uids(c, own) && !have_capability(CAP_SETUID) &&
	    !(one_of(c->uid, own->uid, own->euid, own->suid) &&
	      one_of(c->euid, own->uid, own->euid, own->suid) &&
	      one_of(c->suid, own->uid, own->euid, own->suid)))
		return c->uid != c->euid ? "is a set-user-ID program" : "belongs to another user";
	if (!same_gids(c, own) && !have_capability(CAP_SETGID) &&
	    !(one_of(c->gid, own->gid, own->egid, own->sgid) &&
	      one_of(c->egid, own->gid, own->egid, own->sgid) &&
	      one_of(c->sgid, own->gid, own->egid, own->sgid)))
		return c->gid != c->egid ? "is a set-group-ID program" : "belongs to another group";
	if (!keeps_groups(c, own) && !have_capability(CAP_SETGID))
		return "has other supplementary groups";
	if ((c->cap_permitted & ~own->cap_permitted) ||
	    (c->cap_inheritable & ~(own->cap_inheritable | own->cap_permitted)))
		return "has capabilities that you do not have";
	if ((own->cap_bounding & ~c->cap_bounding ||
	     (saved_securebits(p, t) ^ own->securebits) & ~SECBIT_KEEP_CAPS) &&
	    !have_capability(CAP_SETPCAP))
		return "has restricted its capabilities further";
	return NULL;
}

/* May the caller restore all threads?  0, or -EPERM, reported. */
static int check_threads(const Kcr__Process *p, const Kcr__Credentials *own)
{
	for (size_t i = 0; i < p->n_thread; i++) {
		const char *why = forbidden(p, p->thread[i], own);

		if (why)
			return report_fail(-EPERM, "process %d (user %u) %s: restart it as that user "
					   "or as root", p->pid,
					   credentials_of(p, p->thread[i])->euid, why);
	}
	return 0;
}

static int credentials_rebuild(struct rebuild *r, const Kcr__Process *p)
{
	Kcr__Credentials *own;
	int err;

	(void)r;
	if (!p->credentials)
		return 0;
	own = own_credentials();
	if (!own)
		return report_fail(-EIO, "cannot read my own credentials");
	err = check_threads(p, own);
	if (!err && p->credentials->cap_bounding & ~own->cap_bounding)
		report_warn("process %d: its capability bounding set cannot be as large as it was",
			    p->pid);
	if (!err && p->credentials->n_group != own->n_group && keeps_groups(p->credentials, own))
		report_warn("process %d: it gets your supplementary groups: its own differ in such as "
			    "have no name here, which are taken for marks of a batch job", p->pid);
	if (!err && own->no_new_privs && !p->credentials->no_new_privs)
		report_warn("process %d: it cannot gain privileges by exec any more, as you cannot",
			    p->pid);
	kcr__credentials__free_unpacked(own, NULL);
	return err;
}

static void script_ids(const Kcr__Credentials *c, const Kcr__Credentials *own, struct script *s)
{
	if (!keeps_groups(c, own))
		script_call(s, "setgroups", SYS_setgroups, c->n_group,
			    c->n_group ? script_data(s, c->group, c->n_group * sizeof(*c->group)) : 0,
			    0, 0, 0, 0);
	if (!same_gids(c, own)) {
		script_call(s, "setresgid", SYS_setresgid, c->gid, c->egid, c->sgid, 0, 0, 0);
		script_call_try(s, "setfsgid", SYS_setfsgid, c->fsgid, 0, 0, 0, 0, 0);
		script_call_expect(s, "setfsgid", c->fsgid, SYS_setfsgid, -1, 0, 0, 0, 0, 0);
	}
	if (!same_uids(c, own)) {
		script_call(s, "setresuid", SYS_setresuid, c->uid, c->euid, c->suid, 0, 0, 0);
		script_call_try(s, "setfsuid", SYS_setfsuid, c->fsuid, 0, 0, 0, 0, 0);
		script_call_expect(s, "setfsuid", c->fsuid, SYS_setfsuid, -1, 0, 0, 0, 0, 0);
	}
}

static void script_capset(struct script *s, uint64_t effective, uint64_t permitted,
			  uint64_t inheritable)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ effective, permitted, inheritable },
		{ effective >> 32, permitted >> 32, inheritable >> 32 },
	};

	script_call(s, "capset", SYS_capset, script_data(s, &header, sizeof(header)),
		    script_data(s, data, sizeof(data)), 0, 0, 0, 0);
}

static void script_ambient(struct script *s, uint64_t wanted, uint64_t now)
{
	if (now & ~wanted)
		script_call(s, "prctl(PR_CAP_AMBIENT)", SYS_prctl, PR_CAP_AMBIENT,
			    PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0);
	for (int cap = 0; cap < 64; cap++)
		if (wanted & 1ull << cap)
			script_call(s, "prctl(PR_CAP_AMBIENT)", SYS_prctl, PR_CAP_AMBIENT,
				    PR_CAP_AMBIENT_RAISE, cap, 0, 0, 0);
}

/*
 * While IDs change, SECBIT_NO_SETUID_FIXUP keeps the capabilities that the
 * following steps need.  Without CAP_SETPCAP the IDs cannot change in a way
 * that affects capabilities, and the bits are left alone.
 */
static void script_credentials(const Kcr__Credentials *c, uint32_t securebits,
			       const Kcr__Credentials *own, struct script *s)
{
	bool ids = !same_uids(c, own) || !same_gids(c, own) || !keeps_groups(c, own);
	bool master = have_capability(CAP_SETPCAP);
	uint32_t bits = own->securebits;

	for (int cap = 0; cap < 64; cap++)
		if (own->cap_bounding & ~c->cap_bounding & 1ull << cap)
			script_call(s, "prctl(PR_CAPBSET_DROP)", SYS_prctl, PR_CAPBSET_DROP, cap,
				    0, 0, 0, 0);
	if (ids && master && !(bits & SECBIT_NO_SETUID_FIXUP)) {
		bits |= SECBIT_NO_SETUID_FIXUP;
		script_call(s, "prctl(PR_SET_SECUREBITS)", SYS_prctl, PR_SET_SECUREBITS, bits,
			    0, 0, 0, 0);
	}
	if (ids)
		script_ids(c, own, s);
	if (ids || !same_caps(c, own)) {
		/* Without `master` a change of IDs may have dropped the rest already. */
		if (c->cap_ambient) {
			script_capset(s, own->cap_effective, own->cap_permitted, c->cap_inheritable);
			script_ambient(s, c->cap_ambient, own->cap_ambient);
		} else if (own->cap_ambient) {
			script_ambient(s, 0, own->cap_ambient);
		}
	}
	if (bits != securebits && !master)	/* this one takes no privilege */
		script_call(s, "prctl(PR_SET_KEEPCAPS)", SYS_prctl, PR_SET_KEEPCAPS,
			    !!(securebits & SECBIT_KEEP_CAPS), 0, 0, 0, 0);
	else if (bits != securebits)
		script_call(s, "prctl(PR_SET_SECUREBITS)", SYS_prctl, PR_SET_SECUREBITS, securebits,
			    0, 0, 0, 0);
	if (ids || !same_caps(c, own))
		script_capset(s, c->cap_effective, c->cap_permitted, c->cap_inheritable);
	if (c->no_new_privs && !own->no_new_privs)
		script_call(s, "prctl(PR_SET_NO_NEW_PRIVS)", SYS_prctl, PR_SET_NO_NEW_PRIVS, 1,
			    0, 0, 0, 0);
}

static int credentials_script_thread(struct rebuild *r, const Kcr__Process *p,
				     const Kcr__Thread *t, struct script *s)
{
	/* The same for all threads of a process: the caller does not change meanwhile. */
	static Kcr__Credentials *own;

	(void)r;
	if (!p->credentials)
		return 0;
	if (!own)
		own = own_credentials();
	if (!own)
		return report_fail(-EIO, "cannot read my own credentials");
	script_credentials(credentials_of(p, t), saved_securebits(p, t), own, s);
	return 0;
}

const struct attribute attribute_credentials = {
	.name = "credentials",
	.save = credentials_save,
	.save_thread = credentials_save_thread,
	.rebuild = credentials_rebuild,
	.script_thread = credentials_script_thread,
};
