// SPDX-License-Identifier: GPL-2.0
/*
 * Files of /proc/PID, open in a program of user 1: "pages" opens its own
 * /proc/PID/pagemap, which tells physical addresses to root alone; "child" keeps the
 * memory, opened as root, of a child that stays root's; "task" opens its own name and
 * folder as those of a thread, "thread" those of a second thread.
 */
#include <grp.h>
#include <pthread.h>
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

static void expect_name(int fd, const char *name)
{
	char text[20] = "";

	CHECK(pread(fd, text, sizeof(text) - 1, 0) > 0);
	CHECK(!strcmp(strtok(text, "\n"), name));
}

/* Its ID may be another one after the restart. */
static void task(void)
{
	char path[48];
	int name, folder;

	snprintf(path, sizeof(path), "/proc/self/task/%d", getpid());
	folder = open(path, O_RDONLY | O_DIRECTORY);
	name = openat(folder, "comm", O_RDWR);
	NEED(folder >= 0 && name >= 0);
	NEED(!prctl(PR_SET_NAME, "before"));
	check_ready();
	check_wait();
	expect_name(name, "before");
	CHECK(write(name, "after", 5) == 5);
	expect_name(name, "after");
	name = openat(folder, "comm", O_RDONLY);
	CHECK(name >= 0);
	expect_name(name, "after");
}

static void *name_thread(void *folder)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/self/task/%d%s", gettid(), folder ? "" : "/comm");
	NEED(open(path, O_RDONLY) >= 0);
	check_ready();
	check_wait();
	return NULL;
}

static void thread(void *folder)
{
	pthread_t second;

	NEED(!pthread_create(&second, NULL, name_thread, folder));
	pthread_join(second, NULL);
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	if (!strcmp(argv[3], "pages"))
		pages();
	else if (!strcmp(argv[3], "task"))
		task();
	else if (!strcmp(argv[3], "thread"))
		thread(argv[4]);
	else
		child();
	return check_end();
}
