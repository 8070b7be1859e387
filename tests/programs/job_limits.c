// SPDX-License-Identifier: GPL-2.0
/*
 * What one user can make the module hold.  The limits are small here (the case sets
 * the parameters): `jobs` as many as 3, `processes` 8, in a checkpoint, by forks of a
 * member, and in a restart; root has none.  `sweep`: members that have died are
 * forgotten, 200 at most at a time.  `queued`: a thread that does not come to rest,
 * however often it is asked to, costs one entry.
 */
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "job.h"

#define MANY	2000	/* processes */
#define ROUNDS	500	/* jobs */

static void jobs(void)
{
	int job[3];

	for (int i = 0; i < 3; i++) {
		job[i] = job_open();
		NEED(job[i] >= 0);
	}
	CHECK(job_open() == -EDQUOT);
	close(job[1]);
	job[1] = job_open();
	CHECK(job[1] >= 0);
	CHECK(job_open() == -EDQUOT);
}

/* A member that forks, when it is told to, children that live on. */
static void fork_when_told(int told, int done)
{
	char byte;

	NEED(read(told, &byte, 1) == 1);
	for (int i = 0; i < 8; i++)
		if (!fork())
			job_idle();
	NEED(write(done, "", 1) == 1);
	job_idle();
}

static void processes(void)
{
	int job = job_open(), other, tell[2], done[2];
	pid_t child[9], member;
	char byte;

	NEED(job >= 0 && !pipe(tell) && !pipe(done));
	for (int i = 0; i < 9; i++)
		child[i] = job_idle_child();
	for (int i = 0; i < 8; i++)
		CHECK(!job_add(job, child[i]));
	CHECK(job_add(job, child[8]) == -EDQUOT);
	other = job_open();
	CHECK(job_add(other, child[8]) == -EDQUOT);	/* all jobs of the user */
	CHECK(job_clone(other, 0) == -EDQUOT);
	CHECK(!job_park(job, 0, NULL));
	close(job);

	close(other);
	job = job_open();
	CHECK(!job_add(job, child[8]) && !job_park(job, 0, NULL));
	close(job);
	job = job_open();
	member = fork();
	if (!member)
		fork_when_told(tell[0], done[1]);
	NEED(!job_add(job, member));
	NEED(write(tell[1], "", 1) == 1 && read(done[0], &byte, 1) == 1);
	CHECK(job_park(job, 0, NULL) == -EDQUOT);	/* not silently without it */
	CHECK(!job_park(job, 0, NULL));		/* once */
	close(job);

	job = job_open();
	for (int i = 0; i < 8; i++)
		CHECK(job_clone(job, 0) > 0);
	CHECK(job_clone(job, 0) == -EDQUOT);
	close(job);
	job = job_open();
	CHECK(job_clone(job, 0) > 0);
}

/* KASAN keeps what is freed for a while, so memory tells nothing there, and all takes its time. */
static bool is_debug_kernel(void)
{
	struct utsname kernel;

	NEED(!uname(&kernel));
	return strstr(kernel.release, "-kcr-debug");
}

/* Members' children that are born and die, one after the other. */
static void sweep(void)
{
	int job = job_open(), done[2], many = is_debug_kernel() ? MANY / 4 : MANY;
	pid_t member;
	char byte;

	NEED(job >= 0 && !pipe(done));
	member = fork();
	if (!member) {
		NEED(read(done[0], &byte, 1) == 1);
		for (int i = 0; i < many; i++) {
			pid_t child = fork();

			if (!child)
				_exit(0);
			waitpid(child, NULL, 0);
			if (i % 16 == 0)
				check_sleep_ms(10);	/* for who does the forgetting */
		}
		_exit(0);
	}
	NEED(!job_add(job, member) && !job_add(job, job_idle_child()));
	NEED(write(done[1], "", 1) == 1 && waitpid(member, NULL, 0) == member);
	CHECK(!job_park(job, 0, NULL));
	CHECK(job_list(job) == 1);
}

/* Kilobytes of the kernel's own memory that can't be taken back. */
static long unreclaimable(void)
{
	static char text[8192];
	const char *line;

	NEED(check_slurp("/proc/meminfo", text, sizeof(text)));
	line = strstr(text, "SUnreclaim:");
	NEED(line);
	return atol(line + 11);
}

static void park_in_vain(pid_t member, int jobs)
{
	for (int i = 0; i < jobs; i++) {
		int job = job_open();

		NEED(job >= 0 && !job_add(job, member));
		CHECK(job_park(job, 1, NULL) == -EBUSY);
		if (i % 16 == 0)
			CHECK(job_park(job, 1, NULL) == -EBUSY);
		close(job);
	}
}

/* The parent of a vfork child waits in a way that nothing but the child ends. */
static pid_t vfork_parent(int ready)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!vfork()) {
		syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
		syscall(SYS_write, ready, "", 1);
		for (;;)
			syscall(SYS_pause);
	}
	_exit(0);
}

static void queued(void)
{
	int ready[2];
	long before;
	pid_t member;
	char byte;

	NEED(!pipe(ready));
	member = vfork_parent(ready[1]);
	NEED(read(ready[0], &byte, 1) == 1);
	park_in_vain(member, 50);
	before = unreclaimable();
	park_in_vain(member, ROUNDS);
	check_sleep_ms(500);
	/* An entry that keeps its job would be 4 kB and more, 2 MB in all. */
	CHECK(is_debug_kernel() || unreclaimable() - before < 1000);
}

int main(int argc, char **argv)
{
	NEED(argc == 3);
	if (!strcmp(argv[2], "user"))
		job_be_user();
	if (!strcmp(argv[1], "jobs"))
		jobs();
	else if (!strcmp(argv[1], "processes"))
		processes();
	else if (!strcmp(argv[1], "sweep"))
		sweep();
	else if (!strcmp(argv[1], "queued"))
		queued();
	return !!check_failures;
}
