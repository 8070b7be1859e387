// SPDX-License-Identifier: GPL-2.0
/*
 * A restart: processes and threads created by CLONE that enter, in all possible ways
 * and some that are refused; the owner waits, fills their memory and resumes them, or
 * does not.  Threads without thread-local storage of their own only make system calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define PROCESSES	4
#define STACK_SIZE	16384
#define PLACE_SIZE	(16 * 4096)

/* The role of a child; its copy of the memory is its own, except with CLONE_VM. */
enum part { PART_ENTER, PART_THREADS, PART_LEADERLESS, PART_REFUSED, PART_PAUSE, PART_EXEC,
	    PART_END, PART_CLIENT, PARTS };

struct child {
	int job;
	enum part part;
	struct random random;
};

/* Memory filled while the process sleeps in ENTER. */
static char place[PLACE_SIZE] __attribute__((aligned(4096)));
static char removed[4096] __attribute__((aligned(4096)));
static char stacks[4][STACK_SIZE] __attribute__((aligned(4096)));

static long raw(long number, long a, long b, long c)
{
	long ret;

	asm volatile("syscall" : "=a"(ret) : "a"(number), "D"(a), "S"(b), "d"(c)
		     : "rcx", "r11", "memory");
	return ret;
}

/* Where an entered thread continues, perhaps by restarting a system call. */
static void __attribute__((noreturn, used, force_align_arg_pointer)) revived(void)
{
	fuzz->nr_revived++;
	raw(SYS_exit, 0, 0, 0);
	__builtin_unreachable();
}

asm(".text\n"
    "revived_entry:\n"
    "	syscall\n"
    "	call revived\n");
extern char revived_entry[];

/* ---- the calls of a half-made process ---------------------------------------------- */

static void set_restart(struct kcr_enter *request, struct random *random)
{
	struct user_regs_struct *regs = (struct user_regs_struct *)request->regs;

	request->restart.interrupt = below(random, KCR_INTERRUPT_ALWAYS + 1);
	switch (below(random, 4)) {
	case 0:
		request->restart.kind = KCR_RESTART_NANOSLEEP;
		request->restart.data[0] = below(random, 2);
		request->restart.data[3] = below(random, 3000000);
		regs->rax = SYS_restart_syscall;
		break;
	case 1:
		request->restart.kind = KCR_RESTART_FUTEX;
		request->restart.data[0] = (uintptr_t)place;
		request->restart.data[1] = (uint64_t)(below(random, 4) | KCR_FUTEX_TIMEOUT) << 32;
		request->restart.data[2] = UINT32_MAX;
		request->restart.data[3] = below(random, 3000000);
		regs->rax = SYS_restart_syscall;
		break;
	default:
		regs->rax = SYS_getpid;
	}
}

static void enter(struct child *child, int stack, uint32_t flags, uint32_t threads)
{
	struct kcr_enter request = { .size = sizeof(request), .nr_threads = threads,
				     .flags = flags, .exe_fd = -1, .job_fd = -1,
				     .dumpable = -1 };
	struct user_regs_struct *regs = (struct user_regs_struct *)request.regs;
	struct random *random = &child->random;

	set_restart(&request, random);
	regs->rip = (uintptr_t)revived_entry;
	regs->rsp = (uintptr_t)stacks[stack] + STACK_SIZE - 64;
	regs->eflags = random_next(random);
	regs->eflags &= ~0x500ull;		/* no TF; DF clear, as C code expects */
	if (chance(random, 20))
		request.exe_fd = raw(SYS_open, (uintptr_t)"/proc/self/exe", O_RDONLY, 0);
	if (chance(random, 50))
		request.job_fd = child->job;
	if (chance(random, 20))
		request.dumpable = below(random, 2);
	if (chance(random, 40)) {
		request.unmap_start = (uintptr_t)removed;
		request.unmap_len = sizeof(removed);
	}
	if (chance(random, 20)) {	/* from anywhere: no call is blocked */
		request.dispatch.on = 1;
		request.dispatch.length = UINT64_MAX;
	}
	if (flags & KCR_ENTER_STOPPED)
		request.stop_signal = chance(random, 50) ? SIGSTOP : 0;
	if (child->part == PART_REFUSED)
		request.regs[below(random, KCR_NR_REGS)] = random_next(random);
	if (child->part == PART_REFUSED && chance(random, 50))
		request.unmap_len = random_next(random) & ~4095ull;
	if (child->part == PART_REFUSED && chance(random, 50)) {
		request.dispatch.on = below(random, 3);
		request.dispatch.selector = random_next(random);
	}
	/* Counted here; its result cannot be recorded. */
	fuzz->nr_calls[_IOC_NR(KCR_IOC_ENTER)]++;
	raw(SYS_ioctl, child->job, KCR_IOC_ENTER, (uintptr_t)&request);
}

/*
 * The child continues at the same instruction on another stack, from which it pops
 * the function and its argument.
 */
static long clone_call(int job, struct kcr_clone *request, void (*run)(void *), void *argument)
{
	uint64_t *top = (uint64_t *)request->stack;
	long ret;

	if (request->stack) {
		request->stack -= 32;
		top = (uint64_t *)request->stack;
		top[0] = (uintptr_t)argument;
		top[1] = (uintptr_t)run;
	}
	asm volatile("syscall\n"
		     "	testq	%%rax, %%rax\n"
		     "	jnz	1f\n"
		     "	testq	%%rbx, %%rbx\n"
		     "	jz	1f\n"
		     "	popq	%%rdi\n"
		     "	popq	%%rax\n"
		     "	call	*%%rax\n"
		     "	movl	$60, %%eax\n"
		     "	syscall\n"
		     "1:\n"
		     : "=a"(ret)
		     : "a"(SYS_ioctl), "D"((long)job), "S"(KCR_IOC_CLONE), "d"(request),
		       "b"(request->stack)
		     : "rcx", "r11", "memory");
	return ret;
}

static struct child *common;	/* of the threads of one process */

static void thread_enters(void *argument)
{
	bool leaderless = common->part == PART_LEADERLESS;

	enter(common, (uintptr_t)argument, leaderless ? KCR_ENTER_LEADERLESS : 0,
	      leaderless ? 2 : 3);
	raw(SYS_exit, 1, 0, 0);
}

static void make_threads(struct child *child)
{
	struct kcr_clone request = { .size = sizeof(request),
				     .clone_flags = CLONE_VM | CLONE_FS | CLONE_FILES |
						    CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM };
	long i;

	common = child;
	for (i = 1; i < 3; i++) {
		request.stack = (uintptr_t)stacks[i] + STACK_SIZE - 64;
		request.tid = chance(&child->random, 30) ?
			20000 + (int)below(&child->random, 10000) : 0;
		fuzz->nr_calls[_IOC_NR(KCR_IOC_CLONE)]++;
		if (clone_call(child->job, &request, thread_enters, (void *)i) > 0)
			fuzz->nr_done[_IOC_NR(KCR_IOC_CLONE)]++;
	}
}

static void become_client(struct child *child)
{
	struct kcr_client_new request = { .size = sizeof(request), .flags = KCR_CLIENT_RESTARTED,
					  .path = (uintptr_t)"image" };
	struct kcr_client_answer answer = { .size = sizeof(answer), .path = (uintptr_t)place };
	int fd = raw(SYS_ioctl, child->job, KCR_IOC_CLIENT, (uintptr_t)&request);

	fuzz->nr_calls[_IOC_NR(KCR_IOC_CLIENT)]++;
	if (fd >= 0) {
		fuzz->nr_done[_IOC_NR(KCR_IOC_CLIENT)]++;
		raw(SYS_ioctl, fd, KCR_IOC_CLIENT_ANSWER, (uintptr_t)&answer);
	}
}

static void become_another(void)
{
	char *arguments[] = { (char *)setting->program, "ended", NULL };

	execv("/proc/self/exe", arguments);
}

static void child_main(struct child *child)
{
	uint32_t flags = chance(&child->random, 15) ? KCR_ENTER_HELD : 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (chance(&child->random, 10))
		flags |= KCR_ENTER_STOPPED;
	switch (child->part) {
	case PART_THREADS:
		make_threads(child);
		enter(child, 0, 0, 3);
		break;
	case PART_LEADERLESS:
		make_threads(child);
		raw(SYS_exit, 0, 0, 0);
		break;
	case PART_PAUSE:
		for (;;)
			nap_us(100000);
	case PART_EXEC:
		become_another();
		break;
	case PART_END:
		break;
	case PART_CLIENT:
		become_client(child);
		enter(child, 0, flags, 1);
		break;
	default:
		enter(child, 0, flags, 1);
	}
	_exit(1);
}

/* ---- the owner's side -------------------------------------------------------------- */

static enum part any_part(struct random *random)
{
	uint32_t which = below(random, 100);

	if (which < 50)
		return PART_ENTER;
	if (which < 65)
		return PART_THREADS;
	return below(random, PARTS);
}

static pid_t make_process(struct actor *actor, int job, enum part part)
{
	static const uint64_t flags[] = { 0, 0, 0, CLONE_FILES, CLONE_FS };
	struct child child = { .job = job, .part = part,
			       .random.state = random_next(&actor->random) };
	struct kcr_clone request = { .size = sizeof(request), .exit_signal = SIGCHLD,
				     .clone_flags = flags[below(&actor->random, 5)] };
	long pid;

	if (chance(&actor->random, 50))
		request.tid = 10000 + below(&actor->random, 10000);
	fuzz->nr_calls[_IOC_NR(KCR_IOC_CLONE)]++;
	pid = clone_call(job, &request, NULL, NULL);
	if (!pid)
		child_main(&child);
	if (pid > 0)
		fuzz->nr_done[_IOC_NR(KCR_IOC_CLONE)]++;
	else
		fuzz->errors[_IOC_NR(KCR_IOC_CLONE)][-pid < ERRORS ? -pid : 0]++;
	return pid;
}

static void fill(struct actor *actor, int job, pid_t pid)
{
	struct kcr_run run = { (uintptr_t)place, 1 + below(&actor->random, 8) };
	struct kcr_pages request = { .size = sizeof(request), .pid = pid, .fd = actor->file,
				     .runs = (uintptr_t)&run, .count = 1,
				     .buffer = (uintptr_t)actor->out };

	if (chance(&actor->random, 50)) {
		call(actor, job, KCR_IOC_STORE, &request);
		return;
	}
	if (ftruncate(actor->file, PLACE_SIZE) || lseek(actor->file, 0, SEEK_SET))
		return;
	call(actor, job, KCR_IOC_FILL, &request);
}

static void resume(struct actor *actor, int job)
{
	struct kcr_resume request = { .size = sizeof(request) };
	struct kcr_finish finish = { .size = sizeof(finish), .timeout_ms = 30 * setting->slow };

	request.flags = chance(&actor->random, 30) ? KCR_RESUME_HOLD : 0;
	request.flags |= chance(&actor->random, 30) ? KCR_RESUME_GUARD : 0;
	call(actor, job, KCR_IOC_RESUME, &request);
	if (request.flags & KCR_RESUME_HOLD) {
		call(actor, job, KCR_IOC_FINISH, &finish);
		request.flags &= ~(uint32_t)KCR_RESUME_HOLD;
		if (chance(&actor->random, 80))
			call(actor, job, KCR_IOC_RESUME, &request);
	}
	request.flags = KCR_RESUME_LOADED;
	if (chance(&actor->random, 50))
		call(actor, job, KCR_IOC_RESUME, &request);
}

void restart(struct actor *actor)
{
	struct kcr_wait wait = { .size = sizeof(wait) };
	uint32_t i, count = 1 + below(&actor->random, PROCESSES);
	pid_t pids[PROCESSES];
	bool shared = chance(&actor->random, 20), plain = chance(&actor->random, 70);
	int job = shared ? any_job(actor) : open(KCR_DEVICE, O_RDWR | O_CLOEXEC);

	for (i = 0; i < count; i++)
		pids[i] = make_process(actor, job, plain ? PART_ENTER : any_part(&actor->random));
	for (i = 0; i < count; i++) {
		wait.pid = pids[i];
		wait.timeout_ms = chance(&actor->random, 90) ? 300 * setting->slow : 1;
		if (pids[i] > 0 && !call(actor, job, KCR_IOC_WAIT, &wait) &&
		    chance(&actor->random, 60))
			fill(actor, job, pids[i]);
	}
	if (chance(&actor->random, 90))
		resume(actor, job);
	if (shared)
		return;
	close(job);
	for (i = 0; i < count; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGCONT);	/* some have stopped again */
}
