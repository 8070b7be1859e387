// SPDX-License-Identifier: GPL-2.0
/*
 * Registers of x86-64, live in a thread that spins without system calls.
 */
#include <asm/prctl.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "check.h"

static volatile uint32_t go;
static char input[2064], output[2064];

/* While another thread is in spin, which ends when go is set. */
static void checkpoint_in(void *(*spin)(void *))
{
	pthread_t thread;

	NEED(!pthread_create(&thread, NULL, spin, NULL));
	check_sleep_ms(100);
	checkpoint_here();
	go = 1;
	CHECK(!pthread_join(thread, NULL));
}

/* ---- general ---- */

uint64_t result[13];	/* named in the assembler text */

static void *spin_general(void *argument)
{
	__asm__ volatile(
		"lea -128(%%rsp), %%rsp\n\t"	/* the red zone */
		"push %%rbp\n\t push %%rbx\n\t"
		"mov $0x1111111111111111, %%rbx\n\t mov $0x2222222222222222, %%rcx\n\t"
		"mov $0x3333333333333333, %%rdx\n\t mov $0x4444444444444444, %%rsi\n\t"
		"mov $0x5555555555555555, %%rbp\n\t mov $0x6666666666666666, %%r8\n\t"
		"mov $0x7777777777777777, %%r9\n\t mov $0x8888888888888888, %%r10\n\t"
		"mov $0x9999999999999999, %%r11\n\t mov $0xaaaaaaaaaaaaaaaa, %%r12\n\t"
		"mov $0xbbbbbbbbbbbbbbbb, %%r13\n\t mov $0xcccccccccccccccc, %%r14\n\t"
		"mov $0xdddddddddddddddd, %%r15\n\t"
		"std\n\t"
		"1: cmpl $0, %0\n\t je 1b\n\t"
		"pushfq\n\t cld\n\t"
		"mov %%rbx, result(%%rip)\n\t mov %%rcx, result+8(%%rip)\n\t"
		"mov %%rdx, result+16(%%rip)\n\t mov %%rsi, result+24(%%rip)\n\t"
		"mov %%rbp, result+32(%%rip)\n\t mov %%r8, result+40(%%rip)\n\t"
		"mov %%r9, result+48(%%rip)\n\t mov %%r10, result+56(%%rip)\n\t"
		"mov %%r11, result+64(%%rip)\n\t mov %%r12, result+72(%%rip)\n\t"
		"mov %%r13, result+80(%%rip)\n\t mov %%r14, result+88(%%rip)\n\t"
		"pop %%rax\n\t shr $10, %%rax\n\t and $1, %%rax\n\t"
		"mov %%rax, result+96(%%rip)\n\t"
		"pop %%rbx\n\t pop %%rbp\n\t"
		"lea 128(%%rsp), %%rsp"
		: : "m"(go)
		: "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
		  "memory", "cc");
	return argument;
}

/* General registers and flags, live in a loop that makes no system call. */
static void cpu_general(void)
{
	checkpoint_in(spin_general);
	for (uint64_t i = 0; i < 12; i++)
		CHECK(result[i] == 0x1111111111111111ull * (i + 1));
	CHECK(result[12] == 1);	/* the direction flag */
}

/* ---- x87 ---- */

static const double numbers[6] = { 1.5, -2.25, 1e300, 3.0000000001, 0.1, -0.0 };
static long double stored[6];
static uint16_t control_in = 0x0e7f, control_out;
static uint32_t mxcsr_in = 0x9fc0, mxcsr_out;

static void *spin_x87(void *argument)
{
	__asm__ volatile(
		"fninit\n\t fldcw %[cin]\n\t ldmxcsr %[min]\n\t"
		"fldl %[i0]\n\t fldl %[i1]\n\t fldl %[i2]\n\t"
		"fldl %[i3]\n\t fldl %[i4]\n\t fldl %[i5]\n\t"
		"1: cmpl $0, %[go]\n\t je 1b\n\t"
		"fnstcw %[cout]\n\t stmxcsr %[mout]\n\t"
		"fstpt %[o5]\n\t fstpt %[o4]\n\t fstpt %[o3]\n\t"
		"fstpt %[o2]\n\t fstpt %[o1]\n\t fstpt %[o0]"
		: [cout] "=m"(control_out), [mout] "=m"(mxcsr_out), [o0] "=m"(stored[0]),
		  [o1] "=m"(stored[1]), [o2] "=m"(stored[2]), [o3] "=m"(stored[3]),
		  [o4] "=m"(stored[4]), [o5] "=m"(stored[5])
		: [go] "m"(go), [cin] "m"(control_in), [min] "m"(mxcsr_in), [i0] "m"(numbers[0]),
		  [i1] "m"(numbers[1]), [i2] "m"(numbers[2]), [i3] "m"(numbers[3]),
		  [i4] "m"(numbers[4]), [i5] "m"(numbers[5])
		: "memory", "cc");
	return argument;
}

/* The x87 stack, its control word and MXCSR, live in a loop without system calls. */
static void cpu_x87(void)
{
	checkpoint_in(spin_x87);
	for (int i = 0; i < 6; i++)
		CHECK(stored[i] == (long double)numbers[i]);
	CHECK(control_out == control_in && mxcsr_out == mxcsr_in);
}

/* ---- sse ---- */

#define FOR_ALL(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) \
	x(14) x(15)
#define LOAD_X(n) "movdqu " #n "*16(%1), %%xmm" #n "\n\t"
#define STORE_X(n) "movdqu %%xmm" #n ", " #n "*16(%2)\n\t"

static void *spin_sse(void *argument)
{
	__asm__ volatile(FOR_ALL(LOAD_X) "1: cmpl $0, %0\n\t je 1b\n\t" FOR_ALL(STORE_X)
			 : : "m"(go), "r"(input), "r"(output)
			 : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
			   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
			   "xmm15");
	return argument;
}

/* The registers xmm0 to xmm15, live in a loop without system calls. */
static void cpu_sse(void)
{
	check_fill(input, 256, 7);
	checkpoint_in(spin_sse);
	CHECK(!memcmp(input, output, 256));
}

/* ---- avx ---- */

#define LOAD_Y(n) "vmovdqu " #n "*32(%1), %%ymm" #n "\n\t"
#define STORE_Y(n) "vmovdqu %%ymm" #n ", " #n "*32(%2)\n\t"

static void *spin_avx(void *argument)
{
	__asm__ volatile(FOR_ALL(LOAD_Y) "1: cmpl $0, %0\n\t je 1b\n\t"
			 FOR_ALL(STORE_Y) "vzeroupper\n\t"
			 : : "m"(go), "r"(input), "r"(output)
			 : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
			   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
			   "xmm15");
	return argument;
}

/* The registers ymm0 to ymm15, live in a loop without system calls. */
static void cpu_avx(void)
{
	if (!__builtin_cpu_supports("avx"))
		check_skip("no AVX here");
	check_fill(input, 512, 8);
	checkpoint_in(spin_avx);
	CHECK(!memcmp(input, output, 512));
}

/* ---- avx512 ---- */

#define FOR_Z(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) \
	x(15) x(16) x(17) x(18) x(19) x(20) x(21) x(22) x(23) x(24) x(25) x(26) x(27) x(28) x(29) \
	x(30) x(31)
#define FOR_K(x) x(1) x(2) x(3) x(4) x(5) x(6) x(7)
#define LOAD_Z(n) "vmovdqu64 " #n "*64(%1), %%zmm" #n "\n\t"
#define STORE_Z(n) "vmovdqu64 %%zmm" #n ", " #n "*64(%2)\n\t"
#define LOAD_K(n) "kmovw 2048+" #n "*2(%1), %%k" #n "\n\t"
#define STORE_K(n) "kmovw %%k" #n ", 2048+" #n "*2(%2)\n\t"

__attribute__((target("avx512f"))) static void *spin_avx512(void *argument)
{
	__asm__ volatile(FOR_Z(LOAD_Z) FOR_K(LOAD_K) "1: cmpl $0, %0\n\t je 1b\n\t"
			 FOR_Z(STORE_Z) FOR_K(STORE_K) "vzeroupper\n\t"
			 : : "m"(go), "r"(input), "r"(output)
			 : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
			   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
			   "xmm15");
	return argument;
}

/*
 * The registers zmm0 to zmm31 and the masks k1 to k7, live in a loop without system
 * calls.
 */
static void cpu_avx512(void)
{
	if (!__builtin_cpu_supports("avx512f"))
		check_skip("no AVX-512 here");
	check_fill(input, 2064, 9);
	memset(input + 2048, 0, 2);
	memset(output + 2048, 0, 2);
	checkpoint_in(spin_avx512);
	CHECK(!memcmp(input, output, 2064));
}

/* ---- segments ---- */

static uint64_t words[2] = { 0x1234567890abcdef, 0xfedcba0987654321 };
static __thread uint64_t own = 99;

static uint64_t gs_word(void)
{
	uint64_t value;

	__asm__ volatile("mov %%gs:0, %0" : "=r"(value));
	return value;
}

static void *spin_segments(void *argument)
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

/* The bases of FS and GS in two threads, one of which spins without system calls. */
static void cpu_segments(void)
{
	NEED(!syscall(SYS_arch_prctl, ARCH_SET_GS, &words[0]));
	checkpoint_in(spin_segments);
	CHECK(gs_word() == words[0] && own == 99);
}

static const struct check checks[] = {
	{ "general", cpu_general },
	{ "x87", cpu_x87 },
	{ "sse", cpu_sse },
	{ "avx", cpu_avx },
	{ "avx512", cpu_avx512 },
	{ "segments", cpu_segments },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
