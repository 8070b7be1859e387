// SPDX-License-Identifier: GPL-2.0
/*
 * A thread that has what no restart can bring back: `ports` (ioperm(2)), `all_ports` (iopl(2)),
 * `segments` (modify_ldt(2)) or `landlock` (it may not make block devices).  The argument `thread`: another thread than the first has it.
 */
#include <asm/ldt.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sys/io.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"

#define PORT	0x80		/* for codes of the BIOS: what is written there is lost */
#define INDEX	1		/* of the segment */

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
