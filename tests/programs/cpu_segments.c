// SPDX-License-Identifier: GPL-2.0
/*
 * The bases of FS and GS in two threads, one of which spins without system calls.
 */
#include <asm/prctl.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "check.h"

static volatile uint32_t go;
static uint64_t words[2] = { 0x1234567890abcdef, 0xfedcba0987654321 };
static __thread uint64_t own = 99;

static uint64_t gs_word(void)
{
	uint64_t value;

	__asm__ volatile("mov %%gs:0, %0" : "=r"(value));
	return value;
}

static void *spin(void *argument)
{
	unsigned long fs_before, fs_after, gs;

	syscall(SYS_arch_prctl, ARCH_SET_GS, &words[1]);
	syscall(SYS_arch_prctl, ARCH_GET_FS, &fs_before);
	own = 100;
	while (!go)
		;
	CHECK(gs_word() == words[1] && own == 100);
	CHECK(!syscall(SYS_arch_prctl, ARCH_GET_FS, &fs_after) && fs_after == fs_before);
	CHECK(!syscall(SYS_arch_prctl, ARCH_GET_GS, &gs) && gs == (uintptr_t)&words[1]);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	check_begin(argc, argv);
	NEED(!syscall(SYS_arch_prctl, ARCH_SET_GS, &words[0]));
	NEED(!pthread_create(&thread, NULL, spin, NULL));
	check_sleep_ms(100);
	check_ready();
	check_wait();
	go = 1;
	CHECK(gs_word() == words[0] && own == 99);
	CHECK(!pthread_join(thread, NULL));
	return check_end();
}
