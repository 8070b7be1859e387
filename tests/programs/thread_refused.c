// SPDX-License-Identifier: GPL-2.0
/*
 * A thread that has what no restart can bring back: `ports` (ioperm(2)), `all_ports` (iopl(2)),
 * `segments` (modify_ldt(2)), `own_segment` (set_thread_area(2)), `code32` (it runs 32-bit code) or
 * `landlock` (it may not make block devices).  The argument `thread`: another thread than the first
 * has it.
 */
#include <asm/ldt.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"

#define PORT	0x80		/* for codes of the BIOS: what is written there is lost */
#define INDEX	1		/* of the segment */
#define SET_THREAD_AREA_32	243	/* its number in 32-bit programs */

static void use_port(void)
{
	outb(0, PORT);
}

static unsigned long limit_of(unsigned int selector)
{
	unsigned long limit = 0;

	asm volatile("lsl %1, %0" : "+r"(limit) : "r"((unsigned long)selector) : "cc");
	return limit;
}

static void ports(void)
{
	if (ioperm(PORT, 1, 1))
		check_skip("this kernel has no ioperm");
	checkpoint_here();
	use_port();
}

static void all_ports(void)
{
	if (iopl(3))
		check_skip("this kernel has no iopl");
	checkpoint_here();
	use_port();
}

static void segments(void)
{
	struct user_desc segment = { .entry_number = INDEX, .base_addr = 0, .limit = 1234,
				     .seg_32bit = 1 };
	unsigned int selector = INDEX << 3 | 7;

	if (syscall(SYS_modify_ldt, 1, &segment, sizeof(segment)))
		check_skip("this kernel has no modify_ldt");
	NEED(limit_of(selector) == 1234);
	checkpoint_here();
	CHECK(limit_of(selector) == 1234);
}

/* The call is one of 32-bit programs, whose entry takes addresses below 4 GiB. */
static void own_segment(void)
{
	struct user_desc *segment = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	unsigned int selector;
	long ret;

	NEED(segment != MAP_FAILED);
	*segment = (struct user_desc) { .entry_number = -1, .limit = 1234, .seg_32bit = 1 };
	asm volatile("int $0x80" : "=a"(ret) : "a"(SET_THREAD_AREA_32), "b"(segment)
		     : "memory", "r8", "r9", "r10", "r11");
	if (ret)
		check_skip("this kernel has no system calls for 32-bit programs");
	selector = segment->entry_number << 3 | 3;
	NEED(limit_of(selector) == 1234);
	checkpoint_here();
	CHECK(limit_of(selector) == 1234);
}

struct counter {		/* at the second page of the code */
	volatile uint32_t count, end;
	uint64_t stack;		/* of the code, in 64-bit mode */
	uint32_t start;		/* of its 32-bit part, and the segment */
	uint16_t segment;
};

/* Counts until it is to end, in the 32-bit code segment. */
static const char counting[] =
	"\x53\x55"			/* push %rbx, push %rbp */
	"\xb8\x2b\0\0\0\x8e\xd8"		/* mov $USER_DS, %ds */
	"\x48\x89\xfb"			/* mov %rdi, %rbx: the counter */
	"\x48\x89\x67\x08"		/* mov %rsp, 8(%rdi) */
	"\xff\x6b\x10"			/* ljmp *16(%rbx) */
	"\xff\x03"			/* 1: incl (%ebx) */
	"\x83\x7b\x04\0"		/* cmpl $0, 4(%ebx) */
	"\x74\xf8"			/* je 1b */
	"\xea\0\0\0\0\x33\0"		/* ljmp $USER_CS, $2f */
	"\x48\x8b\x63\x08"		/* 2: mov 8(%rbx), %rsp */
	"\x5d\x5b\xc3";		/* pop %rbp, pop %rbx, ret */
#define USER32_CS	0x23
#define START		19		/* of 1 */
#define OPERAND		28		/* of the second ljmp */
#define BACK		34		/* to 2 */

static void *count(void *page)
{
	((void (*)(void *))page)((uint8_t *)page + 4096);
	return NULL;
}

static void code32(void)
{
	uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	struct counter *counter = (void *)(page + 4096);
	uint32_t back = (uintptr_t)page + BACK, before;
	pthread_t thread;

	NEED(page != MAP_FAILED);
	memcpy(page, counting, sizeof(counting));
	memcpy(page + OPERAND, &back, sizeof(back));
	counter->start = (uintptr_t)page + START;
	counter->segment = USER32_CS;
	NEED(!pthread_create(&thread, NULL, count, page));
	while (!counter->count)
		check_sleep_ms(1);
	checkpoint_here();
	before = counter->count;
	check_sleep_ms(100);
	CHECK(counter->count != before);
	counter->end = 1;
	CHECK(!pthread_join(thread, NULL));
}

static void landlock(void)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK };
	int rules = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	if (rules < 0)
		check_skip("this kernel has no Landlock");
	NEED(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	NEED(!syscall(SYS_landlock_restrict_self, rules, 0) && !close(rules));
	checkpoint_here();
}

static const struct check checks[] = {
	{ "landlock", landlock },
	{ "ports", ports },
	{ "all_ports", all_ports },
	{ "segments", segments },
	{ "own_segment", own_segment },
	{ "code32", code32 },
	{ }
};

struct arguments { int argc; char **argv; int result; };

static void *run(void *arg)
{
	struct arguments *a = arg;

	a->result = check_one(a->argc, a->argv, checks);
	return NULL;
}

int main(int argc, char **argv)
{
	struct arguments a = { argc, argv, 0 };
	pthread_t thread;

	if (argc < 5)
		return check_one(argc, argv, checks);
	NEED(!pthread_create(&thread, NULL, run, &a) && !pthread_join(thread, NULL));
	return a.result;
}
