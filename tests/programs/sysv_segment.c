/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keeps a System V segment of two pages: with the key given as third argument (0: a private
 * one) and the mode given as fourth, and removed at once if there is a fifth.
 */
#include <stdlib.h>
#include <sys/shm.h>

#include "tests/programs/check.h"

#define LENGTH	8192

int main(int argc, char **argv)
{
	char *memory;
	int id;

	check_begin(argc, argv);
	NEED(argc > 4);
	id = shmget((key_t)strtol(argv[3], NULL, 0), LENGTH,
		    IPC_CREAT | IPC_EXCL | (int)strtol(argv[4], NULL, 8));
	NEED(id >= 0);
	memory = shmat(id, NULL, 0);
	NEED(memory != (void *)-1);
	NEED(argc < 6 || !shmctl(id, IPC_RMID, NULL));
	memset(memory, 'p', LENGTH);
	check_ready();
	check_wait();
	for (int i = 0; i < LENGTH; i++)
		CHECK(memory[i] == 'p');
	return check_end();
}
