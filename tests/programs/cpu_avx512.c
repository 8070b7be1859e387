// SPDX-License-Identifier: GPL-2.0
/*
 * The registers zmm0 to zmm31 and the masks k1 to k7, live in a loop without system
 * calls.
 */
#include <pthread.h>

#include "check.h"

#define FOR_Z(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) \
	x(15) x(16) x(17) x(18) x(19) x(20) x(21) x(22) x(23) x(24) x(25) x(26) x(27) x(28) x(29) \
	x(30) x(31)
#define FOR_K(x) x(1) x(2) x(3) x(4) x(5) x(6) x(7)
#define LOAD_Z(n) "vmovdqu64 " #n "*64(%1), %%zmm" #n "\n\t"
#define STORE_Z(n) "vmovdqu64 %%zmm" #n ", " #n "*64(%2)\n\t"
#define LOAD_K(n) "kmovw 2048+" #n "*2(%1), %%k" #n "\n\t"
#define STORE_K(n) "kmovw %%k" #n ", 2048+" #n "*2(%2)\n\t"

static volatile uint32_t go;
static char input[2064], output[2064];

__attribute__((target("avx512f"))) static void *spin(void *argument)
{
	__asm__ volatile(FOR_Z(LOAD_Z) FOR_K(LOAD_K) "1: cmpl $0, %0\n\t je 1b\n\t"
			 FOR_Z(STORE_Z) FOR_K(STORE_K) "vzeroupper\n\t"
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
	if (!__builtin_cpu_supports("avx512f"))
		check_skip("no AVX-512 here");
	check_fill(input, sizeof(input), 9);
	memset(input + 2048, 0, 2);
	memset(output + 2048, 0, 2);
	NEED(!pthread_create(&thread, NULL, spin, NULL));
	check_sleep_ms(100);
	check_ready();
	check_wait();
	go = 1;
	CHECK(!pthread_join(thread, NULL));
	CHECK(!memcmp(input, output, sizeof(input)));
	return check_end();
}
