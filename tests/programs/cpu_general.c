// SPDX-License-Identifier: GPL-2.0
/*
 * General registers and flags, live in a loop that makes no system call.
 */
#include <pthread.h>

#include "check.h"

static volatile uint32_t go;
uint64_t result[13];	/* named in the assembler text */

static void *spin(void *argument)
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

int main(int argc, char **argv)
{
	pthread_t thread;

	check_begin(argc, argv);
	NEED(!pthread_create(&thread, NULL, spin, NULL));
	check_sleep_ms(100);
	check_ready();
	check_wait();
	go = 1;
	CHECK(!pthread_join(thread, NULL));
	for (uint64_t i = 0; i < 12; i++)
		CHECK(result[i] == 0x1111111111111111ull * (i + 1));
	CHECK(result[12] == 1);	/* the direction flag */
	return check_end();
}
