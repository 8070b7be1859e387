// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that differ from their process: in the working folder and file mode mask, or in
 * users, groups and capabilities, as servers of files have them.
 */
#include <limits.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"

#define NR_THREADS	3

static pthread_barrier_t set_up, go_on;
static void (*differ)(int number);
static void (*check_different)(int number);

static void *part(void *number)
{
	differ((int)(intptr_t)number);
	pthread_barrier_wait(&set_up);
	pthread_barrier_wait(&go_on);
	check_different((int)(intptr_t)number);
	return NULL;
}

/* `last` is for the process itself, when the threads are set up. */
static void among_threads(void (*last)(void))
{
	pthread_t thread[NR_THREADS];

	NEED(!pthread_barrier_init(&set_up, NULL, NR_THREADS + 1));
	NEED(!pthread_barrier_init(&go_on, NULL, NR_THREADS + 1));
	for (intptr_t i = 0; i < NR_THREADS; i++)
		NEED(!pthread_create(&thread[i], NULL, part, (void *)i));
	pthread_barrier_wait(&set_up);
	if (last)
		last();
	checkpoint_here();
	pthread_barrier_wait(&go_on);
	for (int i = 0; i < NR_THREADS; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

/* ---- folders: two threads of their own, and one that shares the process's ---- */

static const char *const name[] = { "first", "second", "process" };

static bool is_in(const char *folder)
{
	char now[PATH_MAX];

	return getcwd(now, sizeof(now)) && !strcmp(strrchr(now, '/') + 1, folder);
}

static void take_folder(int i)
{
	if (i < 2) {
		NEED(!unshare(CLONE_FS) && !chdir(name[i]));
		umask(07 * i);
	}
}

static void take_last_folder(void)
{
	NEED(!chdir(name[2]));
	umask(0127);
}

static void check_folder(int i)
{
	const mode_t mask = i < 2 ? 07 * i : 0127;
	struct stat st;
	char file[16];
	int fd;

	snprintf(file, sizeof(file), "file %d", i);
	fd = open(file, O_CREAT | O_WRONLY, 0777);
	CHECK(is_in(name[i]) && fd >= 0 && !fstat(fd, &st) && (st.st_mode & 0777) == (0777 & ~mask));
	if (i < 2)		/* and it goes nowhere with the others */
		CHECK(!chdir("/"));
}

static void folders(void)
{
	for (int i = 0; i < 3; i++)
		NEED(!mkdir(name[i], 0777) || errno == EEXIST);
	differ = take_folder;
	check_different = check_folder;
	among_threads(take_last_folder);
	CHECK(is_in(name[2]) && umask(0) == 0127);
}

/* ---- credentials: as root ---- */

static void capabilities(uint64_t set[2])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	CHECK(!syscall(SYS_capget, &header, data));
	set[0] = data[0].effective | (uint64_t)data[1].effective << 32;
	set[1] = data[0].permitted | (uint64_t)data[1].permitted << 32;
}

static void drop_effective(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	NEED(!syscall(SYS_capget, &header, data));
	data[0].effective = 1u << CAP_CHOWN;
	data[1].effective = 0;
	NEED(!syscall(SYS_capset, &header, data));
}

/* Another effective user, for good another user, and the same with fewer capabilities. */
static void take_credentials(int i)
{
	const gid_t groups[] = { 2000, 2001 };

	switch (i) {
	case 0:
		NEED(!syscall(SYS_setgroups, 2, groups));
		NEED(!syscall(SYS_setresgid, -1, 1000, -1) && !syscall(SYS_setresuid, -1, 1000, -1));
		break;
	case 1:
		NEED(!syscall(SYS_setgroups, 0, groups));
		NEED(!syscall(SYS_setresgid, 1001, 1001, 1001));
		NEED(!syscall(SYS_setresuid, 1001, 1001, 1001));
		break;
	default:
		NEED(!prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS));
		drop_effective();
	}
}

static void check_ids(uid_t user, uid_t effective)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;

	CHECK(!getresuid(&r, &e, &s) && r == user && e == effective && s == user);
	CHECK(!getresgid(&rg, &eg, &sg) && rg == user && eg == effective && sg == user);
}

static void check_credentials(int i)
{
	gid_t groups[8];
	uint64_t set[2];

	capabilities(set);
	switch (i) {
	case 0:
		check_ids(0, 1000);
		CHECK(getgroups(8, groups) == 2 && groups[0] == 2000 && groups[1] == 2001);
		CHECK(!set[0] && set[1] & 1 << CAP_CHOWN);
		CHECK(!syscall(SYS_setresuid, -1, 0, -1));
		break;
	case 1:
		check_ids(1001, 1001);
		CHECK(getgroups(8, groups) == 0 && !set[0] && !set[1]);
		CHECK(syscall(SYS_setresuid, -1, 0, -1) && errno == EPERM);
		break;
	default:
		check_ids(0, 0);
		CHECK(set[0] == 1 << CAP_CHOWN && set[1] & 1 << CAP_KILL);
		CHECK(prctl(PR_GET_SECUREBITS) == SECBIT_KEEP_CAPS);
	}
}

static void credentials(void)
{
	uint64_t set[2];

	if (geteuid())
		check_skip("needs root");
	differ = take_credentials;
	check_different = check_credentials;
	among_threads(NULL);
	check_ids(0, 0);
	capabilities(set);
	CHECK(set[0] & 1 << CAP_KILL && !prctl(PR_GET_SECUREBITS));
}

static const struct check checks[] = {
	{ "folders", folders },
	{ "credentials", credentials },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
