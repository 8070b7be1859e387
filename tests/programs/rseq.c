// SPDX-License-Identifier: GPL-2.0
/*
 * Restartable sequences: the area that the C library registered for each thread
 * still gets the number of the processor, and can be unregistered; a thread within a
 * sequence is taken out of it.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/rseq.h>
#include <sys/syscall.h>

#include "check.h"

static volatile bool leave;

static struct rseq *own_area(void)
{
	return (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/*
 * A restart writes the number of the processor, and must then end the sequence.  Task works may
 * write it without that, but take no time.
 */
enum end { ENDED_BY_KERNEL, INTERRUPTED, LEFT };

#define GAP	200000000ull	/* in cycles: that of a restart */

static enum end stay_within(struct rseq *area, uint64_t *last, uint64_t *now)
{
	enum end how;

	__asm__ volatile(
		"	.pushsection __rseq_cs, \"aw\"\n"
		"	.balign 32\n"
		"3:	.long 0, 0\n"
		"	.quad 1f, 2f - 1f, 4f\n"
		"	.popsection\n"
		"	.pushsection .text.rseq, \"ax\"\n"
		"	.byte 0x0f, 0xb9, 0x3d\n"
		"	.long %c[signature]\n"
		"4:	mov %[by_kernel], %[how]\n"
		"	jmp 2f\n"
		"	.popsection\n"
		"	lea 3b(%%rip), %%rax\n"
		"	mov %%rax, 8(%[area])\n"
		"1:	movl $12345, 4(%[area])\n"
		"5:	rdtsc\n"
		"	shl $32, %%rdx\n"
		"	or %%rdx, %%rax\n"
		"	mov %%rax, %[now]\n"
		"	cmpl $12345, 4(%[area])\n"
		"	mov %[interrupted], %[how]\n"
		"	jne 2f\n"
		"	mov %%rax, %[last]\n"
		"	cmpb $0, %[leave]\n"
		"	mov %[left], %[how]\n"
		"	je 5b\n"
		"2:	movq $0, 8(%[area])\n"
		: [how] "=&r"(how), [last] "+m"(*last), [now] "+m"(*now)
		: [area] "r"(area), [leave] "m"(leave), [signature] "i"(RSEQ_SIG),
		  [by_kernel] "i"(ENDED_BY_KERNEL), [interrupted] "i"(INTERRUPTED), [left] "i"(LEFT)
		: "rax", "rdx", "memory", "cc");
	return how;
}

static void *stay(void *argument)
{
	uint64_t last = __builtin_ia32_rdtsc(), now = last;
	enum end how;

	while ((how = stay_within(own_area(), &last, &now)) != LEFT) {
		CHECK(how == ENDED_BY_KERNEL || now - last < GAP);
		last = __builtin_ia32_rdtsc();
	}
	return argument;
}

static void *look(void *argument)
{
	struct rseq *area = own_area();

	check_wait();
	area->cpu_id_start = area->cpu_id = 12345;
	for (int i = 0; i < 100 && *(volatile uint32_t *)&area->cpu_id == 12345; i++)
		check_sleep_ms(5);
	CHECK(area->cpu_id < 12345);
	CHECK(syscall(SYS_rseq, area, 32, 1, RSEQ_SIG) == 0);
	CHECK(syscall(SYS_rseq, area, 32, 0, RSEQ_SIG) == 0);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t thread, within;

	check_begin(argc, argv);
	if (!__rseq_size)
		check_skip("the C library has not registered a restartable sequence");
	NEED(!pthread_create(&thread, NULL, look, NULL));
	NEED(!pthread_create(&within, NULL, stay, NULL));
	check_ready();
	look(NULL);
	leave = true;
	CHECK(!pthread_join(thread, NULL) && !pthread_join(within, NULL));
	return check_end();
}
