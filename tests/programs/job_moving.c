// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that are not at rest any more while an ordinary user asks the module about them:
 * `late` is added to a job that is parked, and runs; `undone` are stopped, hold semaphores with
 * SEM_UNDO, and are killed.
 */
#include <linux/kcr_sysv.h>
#include <sys/ipc.h>
#include <sys/sem.h>

#include "job.h"

#define ROUNDS	40
#define SETS	8

static int job;

static int timers_of(pid_t pid)
{
	struct kcr_timer timer[4];
	struct kcr_timers timers = {
		.size = sizeof(timers), .pid = pid, .count = 4, .timers = (uintptr_t)timer,
	};

	return job_call(job, KCR_IOC_TIMERS, &timers);
}

static int requests_of(pid_t pid)
{
	struct kcr_uring_requests requests = { .size = sizeof(requests), .pid = pid, .fd = -1 };

	return job_call(job, KCR_IOC_URING_REQUESTS, &requests);
}

static void late(void)
{
	pid_t first = job_idle_child(), second = job_idle_child(), third;

	NEED(!job_add(job, first) && !job_park(job, 0, NULL));
	CHECK(job_list(job) == 1 && !timers_of(first));
	NEED(!job_add(job, second));
	CHECK(timers_of(first) == -EINVAL && timers_of(second) == -EINVAL);
	/* Without the kernel's description of its types (BTF) it knows of none. */
	CHECK(requests_of(second) == (access("/sys/kernel/btf/vmlinux", F_OK) ? -EOPNOTSUPP : -EINVAL));
	CHECK(job_list(job) == -EINVAL);
	CHECK(job_mapped_file(job, second, job_idle) == -EINVAL);
	CHECK(job_release(job, KCR_RELEASE_TEST) == -EINVAL);
	CHECK(!job_park(job, 0, NULL) && job_list(job) == 2);
	CHECK(!timers_of(first) && !timers_of(second));
	CHECK(!job_release(job, 0) && job_release(job, 0) == -EINVAL);

	/* Without another PARK, they are released as well. */
	third = job_idle_child();
	NEED(!job_park(job, 0, NULL) && !job_add(job, third));
	CHECK(!job_release(job, 0) && job_release(job, 0) == -EINVAL);
	job_kill(first);
	job_kill(second);
	job_kill(third);
}

static void hold_semaphores(const int *set)
{
	struct sembuf take = { .sem_op = 1, .sem_flg = SEM_UNDO };

	for (int i = 0; i < SETS; i++)
		NEED(!semop(set[i], &take, 1));
	raise(SIGSTOP);
	job_idle();
}

/* How many adjustments there are, or -errno. */
static int undos_of(pid_t pid)
{
	struct kcr_undo undo[SETS];
	struct kcr_undos undos = {
		.size = sizeof(undos), .pid = pid, .count = SETS, .undos = (uintptr_t)undo,
	};
	int ret = job_call(job, KCR_IOC_UNDOS, &undos);

	if (ret == -EOPNOTSUPP)
		check_skip("this kernel does not describe its types");
	return ret ? ret : (int)undos.count;
}

static void undone(void)
{
	int set[SETS];

	for (int i = 0; i < SETS; i++)
		NEED((set[i] = semget(IPC_PRIVATE, 1, 0600)) >= 0);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t member = fork();
		int count;

		if (!member)
			hold_semaphores(set);
		NEED(waitpid(member, NULL, WUNTRACED) == member);
		job = job_open();
		NEED(job >= 0 && !job_add(job, member) && !job_park(job, 0, NULL));
		CHECK(undos_of(member) == SETS);
		kill(member, SIGKILL);
		do {
			count = undos_of(member);
		} while (count == SETS);
		CHECK(count == 0);
		waitpid(member, NULL, 0);
		close(job);
	}
	for (int i = 0; i < SETS; i++)
		semctl(set[i], 0, IPC_RMID);
}

int main(int argc, char **argv)
{
	NEED(argc == 2);
	job_be_user();
	job = job_open();
	NEED(job >= 0);
	if (!strcmp(argv[1], "late"))
		late();
	else
		undone();
	return !!check_failures;
}
