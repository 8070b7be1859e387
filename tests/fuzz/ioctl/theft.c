// SPDX-License-Identifier: GPL-2.0
/*
 * A process that inherited the file descriptor of a parked job requests files of its
 * members, while another one flips the PID in the request: if the module reads it
 * twice, it may check one PID and use another.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"

#define TRIES	300
#define PLACES	16		/* in the arena's first page, which is never unmapped */

static void flip(volatile int32_t *pid, pid_t member)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		*pid = member;
		*pid = 0;
	}
}

static void take(struct actor *actor, int job, struct kcr_mapped_file *request)
{
	int i, fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(fd, FUZZ_FD + 2);
	actor->owner = false;
	actor->cover = NULL;
	for (i = 0; i < TRIES; i++)
		call(actor, job, KCR_IOC_MAPPED_FILE, request);
	_exit(0);
}

void steal(struct actor *actor, int job, pid_t member)
{
	char *place = actor->world->arena + 2048 + 64 * (actor->tid % PLACES);
	struct kcr_mapped_file *request = (struct kcr_mapped_file *)place;
	uint64_t end = now_ns() + 200000000 * setting->slow;
	pid_t flipper, thief;

	*request = (struct kcr_mapped_file){ .size = sizeof(*request),
					     .address = (uintptr_t)TOKEN };
	flipper = fork();
	if (!flipper)
		flip(&request->pid, member);
	thief = fork();
	if (!thief)
		take(actor, job, request);
	while (thief > 0 && !waitpid(thief, NULL, WNOHANG) && now_ns() < end)
		nap_us(2000);
	if (flipper > 0)
		kill(flipper, SIGKILL);
}
