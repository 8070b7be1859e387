// SPDX-License-Identifier: GPL-2.0
/*
 * Files of /proc/PID, open in a program of user 1: "pages" opens its own
 * /proc/PID/pagemap, which tells physical addresses to root alone; "child" keeps the
 * memory, opened as root, of a child that stays root's.
 */
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

#define USER 1
#define FRAME ((1ull << 55) - 1)

static void become_user(void)
{
	NEED(!setgroups(0, NULL));
	NEED(!setresgid(USER, USER, USER));
	NEED(!setresuid(USER, USER, USER));
	NEED(!prctl(PR_SET_DUMPABLE, 1));
}

static void pages(void)
{
	static volatile char mine[4096];
	uint64_t entry = 0;
	off_t at = (uintptr_t)mine / 4096 * 8;
	int fd;

	become_user();
	fd = open("/proc/self/pagemap", O_RDONLY);
	NEED(fd >= 0);
	check_ready();
	check_wait();
	mine[0] = 1;
	CHECK(pread(fd, &entry, sizeof(entry), at) == sizeof(entry));
	CHECK(entry >> 63);
	CHECK(!(entry & FRAME));
}

static void child(void)
{
	pid_t pid = fork();
	char path[32];

	NEED(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	NEED(open(path, O_RDWR) >= 0);
	become_user();
	check_ready();
	check_wait();
	CHECK(!"restarted with the memory of root's process");
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	if (!strcmp(argv[3], "pages"))
		pages();
	else
		child();
	return check_end();
}
