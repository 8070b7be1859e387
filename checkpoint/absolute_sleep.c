// SPDX-License-Identifier: GPL-2.0
/*
 * A thread in clock_nanosleep(2) until an absolute time of a clock that counts
 * from boot.  Its registers restart the call, but after a reboot or on another
 * machine that time is far in the future or the past.  So it sleeps for the time
 * that was left, as after a relative sleep.
 */
#include "checkpoint/internal.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch/instruction.h"
#include "arch/registers.h"
#include "proc/proc.h"

#define NS_PER_S	1000000000ll
#define FAR_S		(1ll << 32)	/* later than any machine's uptime: for ever */

static bool is_candidate(const struct kcr_thread *t)
{
	clockid_t clock = t->regs[ARCH_CALL_ARG0];

	return t->restart.kind == KCR_RESTART_NONE && t->regs[ARCH_CALL_NR] == SYS_clock_nanosleep &&
	       (clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME) &&
	       t->regs[ARCH_CALL_ARG1] & TIMER_ABSTIME;
}

/* Is it about to make a system call?  *until: the end of this sleep. */
static bool read_call(const struct kcr_thread *t, struct timespec *until)
{
	unsigned char found[ARCH_CALL_LENGTH];
	int fd = proc_open(t->tid, "mem", O_RDONLY);
	bool is_call;

	if (fd < 0)
		return false;
	is_call = pread(fd, found, sizeof(found), t->regs[ARCH_IP]) == sizeof(found) &&
		  arch_is_call(found) &&
		  pread(fd, until, sizeof(*until), t->regs[ARCH_CALL_ARG2]) == sizeof(*until);
	close(fd);
	return is_call && until->tv_nsec >= 0 && until->tv_nsec < NS_PER_S;
}

void absolute_sleep_settle(const struct description *d, const Kcr__Process *p,
			   struct kcr_thread *t)
{
	clockid_t clock = t->regs[ARCH_CALL_ARG0];
	struct timespec until;
	int64_t left;

	if (!is_candidate(t) || !read_call(t, &until) || until.tv_sec < 0 ||
	    until.tv_sec >= FAR_S)
		return;
	left = until.tv_sec * NS_PER_S + until.tv_nsec - (int64_t)clocks_now(d, p, clock);
	t->restart = (struct kcr_restart_block){
		.kind = KCR_RESTART_NANOSLEEP,
		.interrupt = t->restart.interrupt,
		.data = { clock, 0 /* nothing to tell of the time left */, 0, left > 0 ? left : 0 },
	};
	t->regs[ARCH_CALL_NR] = SYS_restart_syscall;
}
