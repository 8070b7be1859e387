// SPDX-License-Identifier: GPL-2.0
/*
 * What a job does not give: `child` a process that a member has made after it called
 * exec, `killed` trouble when a stopped member is killed while it is asked for, `secret`
 * the pages of memfd_secret(2), `other` anything to another process than its owner,
 * `segment` a file of memory that its caller may only read, `exec` the end of a process
 * that it has made and that is another program by now, `debugged` and `vforked` a member
 * that runs because a debugger, or who waits for it, lets it go on after it was stopped,
 * `entered` one that a debugger holds before a system call of its choice, `unshared` a
 * member that stands still after the end of an owner who took a descriptor table of his
 * own, while another process has the one that the job is open in, `closed` one that
 * stands still after another process has closed the job in the owner's table.
 */
#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "job.h"

#ifndef SYS_memfd_secret
#define SYS_memfd_secret	447
#endif
#define BIG	(200ul << 20)

static int job;

static void wait_for_byte(int fd)
{
	char byte;

	NEED(read(fd, &byte, 1) == 1);
}

/* The second life of the member: makes a child, says its number and sleeps. */
static void live_again(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	NEED(write(1, &pid, sizeof(pid)) == sizeof(pid));
	for (;;)
		pause();
}

static void child(void)
{
	int go[2], back[2];
	pid_t member, made;

	NEED(!pipe(go) && !pipe(back));
	member = fork();
	if (!member) {
		wait_for_byte(go[0]);
		dup2(back[1], 1);
		execl("/proc/self/exe", "job_bounds", "again", NULL);
		_exit(2);
	}
	NEED(!job_add(job, member) && write(go[1], "", 1) == 1);
	NEED(read(back[0], &made, sizeof(made)) == sizeof(made));
	CHECK(job_descriptor(job, made, 1) == -ESRCH);
	CHECK(job_park(job, 0, NULL) == -EAGAIN);
	CHECK(job_park(job, 0, NULL) == -ESRCH);
	kill(made, SIGKILL);
	kill(member, SIGKILL);
	waitpid(member, NULL, 0);
}

static void killed(void)
{
	int ready[2], count;
	pid_t member;

	NEED(!pipe(ready));
	member = fork();
	if (!member) {
		char *memory = mmap(NULL, BIG, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		NEED(memory != MAP_FAILED);
		memset(memory, 1, BIG);
		NEED(write(ready[1], "", 1) == 1);
		for (;;)
			pause();
	}
	wait_for_byte(ready[0]);
	NEED(!kill(member, SIGSTOP) && waitpid(member, NULL, WUNTRACED) == member);
	NEED(!job_add(job, member) && !job_park(job, 0, NULL));
	CHECK(job_list(job) == 1);
	kill(member, SIGKILL);
	do {
		count = job_list(job);
	} while (count > 0 && waitpid(member, NULL, WNOHANG) != member);
}

static void secret(void)
{
	int fd = syscall(SYS_memfd_secret, 0), ready[2];
	struct kcr_run run[4];
	struct kcr_scan scan = {
		.size = sizeof(scan), .count = 4, .max_pages = 4, .runs = (uintptr_t)run,
	};
	char *page;
	pid_t member;

	if (fd < 0)
		return;			/* off by default before 6.5 */
	NEED(!ftruncate(fd, 4096) && !pipe(ready));
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	member = fork();
	if (!member) {
		*page = 1;
		NEED(write(ready[1], "", 1) == 1);
		for (;;)
			pause();
	}
	wait_for_byte(ready[0]);
	NEED(!job_add(job, member) && !job_park(job, 0, NULL));
	scan.pid = member;
	scan.start = (uintptr_t)page;
	scan.end = scan.start + 4096;
	CHECK(ioctl(job, KCR_IOC_SCAN, &scan) == -1 && errno == EOPNOTSUPP);
	kill(member, SIGKILL);
	waitpid(member, NULL, 0);
}

static void other(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		CHECK(job_list(job) == -EPERM);
		_exit(check_failures);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(job_list(job) == -EINVAL);	/* not stopped: but the owner is heard */
}

static int be_stranger(int id)
{
	const void *address;
	pid_t member;

	job_be_user();
	job = job_open();
	address = shmat(id, NULL, SHM_RDONLY);
	NEED(job >= 0 && address != (void *)-1);
	/* One's own mapping, and that of another. */
	CHECK(job_mapped_file(job, 0, address) == -EACCES);
	member = fork();
	if (!member)
		for (;;)
			pause();
	NEED(!job_add(job, member) && !job_park(job, 0, NULL));
	CHECK(job_mapped_file(job, member, address) == -EACCES);
	kill(member, SIGKILL);
	waitpid(member, NULL, 0);
	return check_failures;
}

static void segment(void)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0644), status;
	pid_t pid;

	NEED(id >= 0);
	pid = fork();
	if (!pid)
		_exit(be_stranger(id));
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	shmctl(id, IPC_RMID, NULL);
}

static void execute(void)
{
	struct kcr_clone request = { .size = sizeof(request), .exit_signal = SIGCHLD };
	char path[32], name[16];
	int status;
	pid_t pid = ioctl(job, KCR_IOC_CLONE, &request);

	NEED(pid >= 0);
	if (!pid) {
		execlp("sleep", "sleep", "1000", NULL);
		_exit(2);
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	while (strcmp(check_slurp(path, name, sizeof(name)), "sleep\n"))
		check_sleep_ms(1);
	close(job);
	check_sleep_ms(200);
	CHECK(waitpid(pid, &status, WNOHANG) == 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static volatile int *turns;

/* Whatever is in rax meanwhile. */
static int turn_for_ever(void *unused)
{
	(void)unused;
	__asm__ volatile("1: incl (%0); jmp 1b" : : "D"(turns) : "memory");
	return 0;
}

static void share_turns(void)
{
	turns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(turns != MAP_FAILED);
}

static bool runs(void)
{
	int seen = *turns;

	check_sleep_ms(200);
	return *turns != seen;
}

/* Its debugger makes it look as if it were inside of a system call. */
static void debugged(void)
{
	struct user_regs_struct regs;
	int status;
	pid_t pid;

	share_turns();
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		turn_for_ever(NULL);
	}
	while (!*turns)
		check_sleep_ms(1);
	NEED(!ptrace(PTRACE_SEIZE, pid, 0, 0) && !ptrace(PTRACE_INTERRUPT, pid, 0, 0) &&
	     waitpid(pid, &status, 0) == pid);
	NEED(!job_add(job, pid) && !job_park(job, 0, NULL));
	NEED(!ptrace(PTRACE_GETREGS, pid, 0, &regs));
	regs.orig_rax = SYS_getpid;
	regs.rax = -ENOSYS;
	NEED(!ptrace(PTRACE_SETREGS, pid, 0, &regs) && !ptrace(PTRACE_CONT, pid, 0, 0));
	CHECK(!runs());
	CHECK(job_release(job, KCR_RELEASE_TEST) == -EAGAIN);	/* it was continued */
	CHECK(job_release(job, 0) == -EAGAIN);
	CHECK(runs());
	job_kill(pid);
}

/* Its debugger hides that it is inside of a system call, and could make it any other. */
static void entered(void)
{
	struct user_regs_struct regs;
	int status;
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			syscall(SYS_getppid);
	}
	NEED(!ptrace(PTRACE_SEIZE, pid, 0, 0) && !ptrace(PTRACE_INTERRUPT, pid, 0, 0) &&
	     waitpid(pid, &status, 0) == pid);
	do {
		NEED(!ptrace(PTRACE_SYSCALL, pid, 0, 0) && waitpid(pid, &status, 0) == pid);
		NEED(!ptrace(PTRACE_GETREGS, pid, 0, &regs));
	} while (regs.rax != -(unsigned long)ENOSYS);
	regs.rax = 0;
	NEED(!ptrace(PTRACE_SETREGS, pid, 0, &regs));
	NEED(!job_add(job, pid));
	CHECK(job_park(job, 300, NULL) == -EBUSY);
	job_kill(pid);
}

static char stacks[2][16384] __attribute__((aligned(16)));

static int wait_for_kill(void *unused)
{
	(void)unused;
	job_idle();
	return 0;
}

/* A member that another one shares its memory with, and a stranger waits for. */
static void vforked(void)
{
	volatile pid_t *pid;
	pid_t stranger;

	share_turns();
	pid = turns + 1;
	stranger = fork();
	if (!stranger) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		clone(wait_for_kill, stacks[0] + sizeof(stacks[0]),
		      CLONE_VM | CLONE_PARENT_SETTID | SIGCHLD, NULL, &pid[0]);
		clone(turn_for_ever, stacks[1] + sizeof(stacks[1]),
		      CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD, NULL, &pid[1]);
		_exit(0);
	}
	while (!*turns)
		check_sleep_ms(1);
	NEED(!kill(pid[1], SIGSTOP));
	while (runs())
		;
	NEED(!job_add(job, pid[0]) && !job_add(job, pid[1]) && !job_park(job, 0, NULL));
	NEED(!kill(pid[1], SIGCONT));
	CHECK(!runs());
	CHECK(job_release(job, 0) == -EAGAIN);
	CHECK(runs());
	kill(pid[0], SIGKILL);
	kill(pid[1], SIGKILL);
	job_kill(stranger);
}

/* ---- its owner ------------------------------------------------------------------- */

struct shared {
	volatile unsigned long count;	/* of the member */
	volatile pid_t holder;
	volatile bool done;		/* the owner has lost the job, or ends */
};

/* Parks the member, leaves the table to another process, and ends. */
static void own(struct shared *shared, pid_t member)
{
	int own_job = job_open();
	pid_t holder;

	NEED(own_job >= 0 && !job_add(own_job, member) && !job_park(own_job, 0, NULL));
	holder = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	while (!holder)
		pause();
	shared->holder = holder;
	NEED(holder > 0 && !unshare(CLONE_FILES));
	shared->done = true;
	_exit(0);
}

/* Parks the member; a process that shares its table takes the job away, another has a copy. */
static void lose(struct shared *shared, pid_t member)
{
	int own_job = job_open(), status;
	pid_t holder, closer;

	NEED(own_job >= 0 && !job_add(own_job, member) && !job_park(own_job, 0, NULL));
	holder = fork();
	while (!holder)
		pause();
	shared->holder = holder;
	closer = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (!closer)
		_exit(close(own_job));
	NEED(holder > 0 && waitpid(closer, &status, 0) == closer && !status);
	shared->done = true;
	for (;;)
		pause();
}

/* Does the member of a job run on, if its owner does this and the holder has the job? */
static void freed_by(void (*owner_main)(struct shared *shared, pid_t member))
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned long before;
	pid_t member, owner;

	NEED(shared != MAP_FAILED);
	member = fork();
	while (!member)
		shared->count++;
	owner = fork();
	if (!owner)
		owner_main(shared, member);
	NEED(member > 0 && owner > 0);
	while (!shared->done && !waitpid(owner, NULL, WNOHANG))
		check_sleep_ms(10);
	NEED(shared->done);
	before = shared->count;
	for (int i = 0; i < 100 && shared->count == before; i++)
		check_sleep_ms(100);
	CHECK(shared->count != before);
	kill(owner, SIGKILL);
	kill(shared->holder, SIGKILL);
	job_kill(member);
}

static void unshared(void)
{
	freed_by(own);
}

static void closed(void)
{
	freed_by(lose);
}

static const struct part {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "child", child }, { "killed", killed }, { "secret", secret }, { "segment", segment },
	{ "exec", execute }, { "debugged", debugged }, { "entered", entered },
	{ "vforked", vforked }, { "other", other }, { "unshared", unshared },
	{ "closed", closed },
};

int main(int argc, char **argv)
{
	NEED(argc == 2);
	if (!strcmp(argv[1], "again"))
		live_again();
	job = job_open();
	NEED(job >= 0);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (!strcmp(argv[1], parts[i].name)) {
			parts[i].run();
			return !!check_failures;
		}
	}
	return 2;
}
