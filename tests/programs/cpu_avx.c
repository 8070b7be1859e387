// SPDX-License-Identifier: GPL-2.0
/*
 * The registers ymm0 to ymm15, live in a loop without system calls.
 */
#include <pthread.h>

#include "check.h"

#define FOR_ALL(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15)
#define LOAD(n) "vmovdqu " #n "*32(%1), %%ymm" #n "\n\t"
#define STORE(n) "vmovdqu %%ymm" #n ", " #n "*32(%2)\n\t"

static volatile uint32_t go;
static char input[512], output[512];

static void *spin(void *argument)
{
	__asm__ volatile(FOR_ALL(LOAD) "1: cmpl $0, %0\n\t je 1b\n\t" FOR_ALL(STORE) "vzeroupper\n\t"
			 : : "m"(go), "r"(input), "r"(output)
			 : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
			   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
			   "xmm15");
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	check_begin(argc, argv);
	if (!__builtin_cpu_supports("avx"))
		check_skip("no AVX here");
	check_fill(input, sizeof(input), 8);
	NEED(!pthread_create(&thread, NULL, spin, NULL));
	check_sleep_ms(100);
	check_ready();
	check_wait();
	go = 1;
	CHECK(!pthread_join(thread, NULL));
	CHECK(!memcmp(input, output, sizeof(input)));
	return check_end();
}
