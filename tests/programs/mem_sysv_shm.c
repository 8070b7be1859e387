// SPDX-License-Identifier: GPL-2.0
/*
 * System V shared memory: attached twice and by two processes, one segment that is
 * kept and one that is removed when the last lets go.
 */
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include "check.h"

#define LENGTH	(4 * 4096)

int main(int argc, char **argv)
{
	int kept, removed, status;
	struct shmid_ds ds;
	char *a, *again, *b;
	pid_t child;

	check_begin(argc, argv);
	kept = shmget(IPC_PRIVATE, LENGTH, IPC_CREAT | 0640);
	removed = shmget(IPC_PRIVATE, LENGTH, IPC_CREAT | 0600);
	NEED(kept >= 0 && removed >= 0);
	a = shmat(kept, NULL, 0);
	again = shmat(kept, NULL, SHM_RDONLY);
	b = shmat(removed, NULL, 0);
	NEED(a != (void *)-1 && again != (void *)-1 && b != (void *)-1);
	NEED(!shmctl(removed, IPC_RMID, NULL));
	check_fill(a, LENGTH, 60);
	check_fill(b, LENGTH, 61);
	child = fork();
	if (!child) {
		check_wait();
		while (!check_filled(again, LENGTH, 62) || !check_filled(b, LENGTH, 63))
			usleep(1000);
		_exit(0);
	}
	check_ready();
	check_wait();
	CHECK(check_filled(a, LENGTH, 60) && check_filled(again, LENGTH, 60));
	CHECK(check_filled(b, LENGTH, 61));
	CHECK(!shmctl(kept, IPC_STAT, &ds) && ds.shm_segsz == LENGTH);
	if (ds.shm_nattch != 4)
		fprintf(stderr, "# attached %lu times\n", (unsigned long)ds.shm_nattch);
	CHECK(ds.shm_nattch == 4);
	CHECK((ds.shm_perm.mode & 0777) == 0640);
	check_fill(a, LENGTH, 62);
	check_fill(b, LENGTH, 63);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(!shmdt(b) && !shmdt(again) && !shmdt(a));
	CHECK(!shmctl(kept, IPC_RMID, NULL));
	return check_end();
}
