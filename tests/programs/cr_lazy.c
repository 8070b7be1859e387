/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A callback that uses memory which a lazy restart has not loaded yet, and, when all is loaded,
 * memory that was never used.  The argument: MiB of memory.
 */
#include <libcr.h>

#include <sys/mman.h>

#include "tests/programs/check.h"

static char *memory;
static size_t size, used;
static volatile bool restarted;

static int callback(void *arg)
{
	int ret = cr_checkpoint(CR_CHECKPOINT_READY);

	(void)arg;
	CHECK(ret >= 0);
	if (ret <= 0)
		return 0;
	CHECK(check_filled(memory, used, 1));
	check_sleep_ms(1500);
	for (size_t i = used; i < size; i += 4096) {
		CHECK(!memory[i]);
		memory[i] = 1;
	}
	restarted = true;
	return 0;
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	NEED(argc == 4);
	size = (size_t)atoi(argv[3]) << 20;
	used = size / 2;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(memory != MAP_FAILED);
	check_fill(memory, used, 1);
	NEED(cr_init() >= 0 && cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
	check_ready();
	while (!restarted)
		check_sleep_ms(20);
	CHECK(check_filled(memory, used, 1));
	return check_end();
}
