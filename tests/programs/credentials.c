// SPDX-License-Identifier: GPL-2.0
/*
 * User and group ids of all four kinds, groups, capabilities, bounding set,
 * no_new_privs and dumpable, as a daemon sets them that gives up root.
 */
#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"

static void caps(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	NEED(!syscall(SYS_capget, &header, data));
}

int main(int argc, char **argv)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct set[2] = {
		{ 1 << CAP_CHOWN, 1 << CAP_CHOWN | 1 << CAP_KILL, 1 << CAP_CHOWN | 1 << CAP_KILL },
	}, now[2];
	const gid_t groups[] = { 7, 8, 4000 };
	gid_t got[8];
	uid_t r, e, s;

	check_begin(argc, argv);
	if (geteuid())
		check_skip("needs root");
	NEED(!prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT));
	NEED(!prctl(PR_SET_KEEPCAPS, 1));
	NEED(!setgroups(3, groups));
	NEED(!setresgid(1001, 1002, 1003));
	NEED(!setresuid(2001, 2001, 2003));
	NEED(!syscall(SYS_capset, &header, set));
	NEED(!prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0));
	NEED(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	NEED(!prctl(PR_SET_DUMPABLE, 1));
	umask(0);
	caps(set);
	check_ready();
	check_wait();
	CHECK(!getresuid(&r, &e, &s) && r == 2001 && e == 2001 && s == 2003);
	CHECK(!getresgid(&r, &e, &s) && r == 1001 && e == 1002 && s == 1003);
	CHECK(setfsuid(-1) == 2001 && setfsgid(-1) == 1002);
	CHECK(getgroups(8, got) == 3 && !memcmp(got, groups, sizeof(groups)));
	caps(now);
	CHECK(!memcmp(set, now, sizeof(set)));
	CHECK(prctl(PR_CAPBSET_READ, CAP_SYS_BOOT) == 0 && prctl(PR_CAPBSET_READ, CAP_CHOWN) == 1);
	CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_KILL, 0, 0) == 1);
	CHECK(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	CHECK(prctl(PR_GET_KEEPCAPS) == 1);
	CHECK(prctl(PR_GET_DUMPABLE) == 1);
	CHECK(setresuid(-1, 2003, -1) == 0 && geteuid() == 2003);
	CHECK(setuid(0) < 0);
	return check_end();
}
