// SPDX-License-Identifier: GPL-2.0
/*
 * Makes, all the time, the calls that kernels break off with EINTR for any
 * signal, even one without a handler: fallocate on tmpfs, pread of /dev/zero and
 * tcdrain, a thread each.  None of them may see EINTR.
 */
#include <pthread.h>
#include <pty.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <termios.h>

#include "check.h"

#define SIZE	(24 << 20)

static volatile bool over;
static volatile unsigned long rounds[3];
static int memory, zero, terminal;

static void *allocate(void *unused)
{
	(void)unused;
	for (; !over; rounds[0]++) {
		CHECK(!fallocate(memory, 0, 0, SIZE));
		CHECK(!fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE));
	}
	return NULL;
}

static void *read_zeros(void *unused)
{
	char *buffer = malloc(SIZE);

	(void)unused;
	NEED(buffer);
	for (; !over; rounds[1]++)
		CHECK(pread(zero, buffer, SIZE, 0) > 0);
	free(buffer);
	return NULL;
}

static void *drain(void *unused)
{
	(void)unused;
	for (; !over; rounds[2]++)
		CHECK(!tcdrain(terminal));
	return NULL;
}

int main(int argc, char **argv)
{
	void *(*const work[])(void *) = { allocate, read_zeros, drain };
	pthread_t thread[3];
	int master;

	check_begin(argc, argv);
	memory = memfd_create("eintr", 0);
	zero = open("/dev/zero", O_RDONLY);
	NEED(memory >= 0 && zero >= 0 && !openpty(&master, &terminal, NULL, NULL, NULL));
	for (int i = 0; i < 3; i++)
		NEED(!pthread_create(&thread[i], NULL, work[i], NULL));
	while (!rounds[0] || !rounds[1] || !rounds[2])
		usleep(1000);
	check_ready();
	check_wait();
	over = true;
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_join(thread[i], NULL));
	return check_end();
}
