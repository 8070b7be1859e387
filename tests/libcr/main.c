/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The processes and their threads: as the seed says, few or as many as LinuxThreads could
 * have, and a child if that is asked for.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/libcr/random.h"

#define STACK_SIZE	(256 << 10)

struct shared *shared;
unsigned int nr_workers;
pid_t child_pid;
bool is_child;
uint64_t seed;

static pthread_t thread[NR_GROUPS];

static void start(unsigned int group)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	NEED(!pthread_create(&thread[group], &attributes, worker_run, (void *)(uintptr_t)group));
	pthread_attr_destroy(&attributes);
}

static void join(unsigned int group)
{
	NEED(!pthread_join(thread[group], NULL));
	slot_forget(group);
	STORE(groups[group].life, (unsigned int)NONE);
	ADD(groups[group].changes, 1);
}

/* Is it ending?  (One that begins is, too, as long as it has no callbacks.) */
static bool has_ended(unsigned int group)
{
	return LOAD(groups[group].life) == CHANGES && !pthread_tryjoin_np(thread[group], NULL);
}

static void set_up(uint64_t *random)
{
	NEED(cr_init() == 0);
	for (int i = 0; i < CR_NUM_HOOKS; i++)
		round_change_hook((cr_hook_event_t)i, true);
	groups[0].random = mix(*random);
	for (unsigned int n = 1 + any(random, MAX_SLOTS - 1); n; n--)
		slot_add(0, random);
	for (unsigned int i = 1; i <= nr_workers; i++) {
		groups[i].random = mix(*random + i);
		start(i);
	}
}

static void run(void)
{
	while (!check_gone()) {
		for (unsigned int i = 1; i <= nr_workers; i++)
			if (has_ended(i)) {
				slot_forget(i);
				start(i);
			}
		usleep(50000);
	}
	STORE(stop, true);
	for (unsigned int i = 1; i <= nr_workers; i++)
		join(i);
	CHECK(cr_enter_cs(0) == 0);
	round_audit();
	CHECK(cr_leave_cs(0) == 0);
	CHECK(cr_status() == CR_STATE_IDLE);
}

static void child(uint64_t *random)
{
	is_child = true;
	child_pid = 0;
	nr_workers = 2;
	set_up(random);
	STORE(shared->child_is_ready, 1u);
	run();
	_exit(check_end());
}

int main(int argc, char **argv)
{
	bool with_child = false;
	uint64_t random;
	int status;

	check_begin(argc, argv);
	NEED(argc > 3);
	seed = random = strtoull(argv[3], NULL, 0);
	for (int i = 4; i < argc; i++) {
		aborts |= !strcmp(argv[i], "aborts");
		with_child |= !strcmp(argv[i], "child");
	}
	shared = (struct shared *)mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(shared != MAP_FAILED);
	nr_workers = any(&random, 3) ? 2 + any(&random, 10) : 64 + any(&random, MAX_WORKERS - 64);
	if (with_child) {
		child_pid = fork();
		NEED(child_pid >= 0);
		if (!child_pid)
			child(&random);
		while (!LOAD(shared->child_is_ready))
			usleep(1000);
	}
	set_up(&random);
	check_ready();
	run();
	if (child_pid) {
		CHECK(waitpid(child_pid, &status, 0) == child_pid && !status);
		CHECK(shared->saved[0] == shared->saved[1]);
	}
	printf("# %u threads%s: %u checkpoints, %u saved, %u restarts\n", nr_workers,
	       child_pid ? " and a child" : "", round_now.number, round_now.saved,
	       round_now.restarted);
	return check_end();
}
