// SPDX-License-Identifier: GPL-2.0
/*
 * Registrations for membarrier(2).  A program registers once, at its start, and takes an
 * EPERM later for a bug (liburcu aborts).  No kernel tells another process what it has
 * registered (since 6.3 it is told itself), and an address space that has registered
 * without need only takes part in a few more barriers: so every restored one registers
 * for all kinds that there are.
 */
#include "resource/attribute.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rebuild/script.h"

#ifndef MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ
#define MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ	(1 << 8)	/* since 5.10 */
#endif

/* While the address space has one thread: later each would wait for all processors. */
static int membarrier_script(struct rebuild *r, const Kcr__Process *p, struct script *s)
{
	static const int commands[] = {
		MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED,
		MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
		MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE,
		MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ,
	};
	long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	(void)r;
	for (size_t i = 0; p->mm && known > 0 && i < sizeof(commands) / sizeof(*commands); i++)
		if (known & commands[i])
			script_call(s, "membarrier", SYS_membarrier, commands[i], 0, 0, 0, 0, 0);
	return 0;
}

const struct attribute attribute_membarrier = {
	.name = "membarrier",
	.script = membarrier_script,
};
