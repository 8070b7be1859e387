// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that may not be touched keeps its contents and its protection; and a
 * handler that opens it on a fault works on.
 */
#include <signal.h>
#include <sys/mman.h>

#include "check.h"

#define LENGTH	(8 * 4096)

static char *map;
static volatile int faults;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	faults++;
	if ((char *)info->si_addr < map || (char *)info->si_addr >= map + LENGTH ||
	    mprotect(map, LENGTH, PROT_READ | PROT_WRITE))
		_exit(1);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	check_begin(argc, argv);
	NEED(!sigaction(SIGSEGV, &action, NULL));
	map = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(map != MAP_FAILED);
	check_fill(map, LENGTH, 90);
	NEED(!mprotect(map, LENGTH, PROT_NONE));
	check_ready();
	check_wait();
	CHECK(!faults);
	CHECK(check_filled(map, LENGTH, 90));
	CHECK(faults == 1);
	return check_end();
}
