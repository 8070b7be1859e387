// SPDX-License-Identifier: GPL-2.0
/* Functions of a vdso.  See arch/vdso.h. */
#include "arch/vdso.h"

#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#define PREFIX	"__vdso_"	/* each has a weak name without it */

long arch_vdso_call(const char *name)
{
	static const struct { const char *name; long nr; } calls[] = {
		{ "clock_gettime", SYS_clock_gettime }, { "gettimeofday", SYS_gettimeofday },
		{ "clock_getres", SYS_clock_getres }, { "time", SYS_time },
		{ "getcpu", SYS_getcpu }, { "getrandom", SYS_getrandom },
	};

	if (!strncmp(name, PREFIX, strlen(PREFIX)))
		name += strlen(PREFIX);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(name, calls[i].name))
			return calls[i].nr;
	return -1;
}

/* movabs $target, %rax; jmp *%rax */
void arch_put_jump(uint8_t *at, uint64_t target)
{
	at[0] = 0x48;
	at[1] = 0xb8;
	memcpy(at + 2, &target, sizeof(target));
	at[10] = 0xff;
	at[11] = 0xe0;
}

/* mov $nr, %eax; syscall; ret */
void arch_put_stub(uint8_t *at, uint32_t nr)
{
	at[0] = 0xb8;
	memcpy(at + 1, &nr, sizeof(nr));
	at[5] = 0x0f;
	at[6] = 0x05;
	at[7] = 0xc3;
}

uint64_t arch_far_target(const uint8_t *at, uint64_t address)
{
	int32_t distance;

	memcpy(&distance, at + 1, sizeof(distance));
	return address + ARCH_FAR_LENGTH + (uint64_t)(int64_t)distance;
}
