// SPDX-License-Identifier: GPL-2.0
/*
 * A member of jobs: a process that forks, creates threads, calls exec, stops, arms
 * timers, shares memory, changes its credentials, is a client or the owner of a job
 * itself, and exits.  Whatever it does, it counts beats, which show that it runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define SEMAPHORE_KEY	0x4b46

static struct slot *slot;
static struct random choice;
static int worker, slot_number;
static _Atomic int nr_threads;

static void beat(void)
{
	if (slot->pid == getpid())
		slot->beats++;
}

static void ignore(int number)
{
	(void)number;
}

/* ---- processes --------------------------------------------------------------------- */

static void child_life(void)
{
	struct timespec pause = { .tv_nsec = below(&choice, 3000000) };

	nanosleep(&pause, NULL);
	if (chance(&choice, 30)) {
		if (!fork())
			nanosleep(&pause, NULL);
	}
	_exit(0);
}

static void make_child(void)
{
	pid_t pid = fork();

	if (!pid)
		child_life();
	if (pid > 0 && chance(&choice, 50))
		kill(pid, SIGKILL);
}

static void make_vfork_child(void)
{
	char *arguments[] = { (char *)setting->program, "ended", NULL };
	pid_t pid = vfork();

	if (!pid) {
		execv(setting->program, arguments);
		_exit(1);
	}
}

static void trace_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			nap_us(500);
	}
	if (pid < 0 || ptrace(PTRACE_SEIZE, pid, 0, 0))
		return;
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	nap_us(below(&choice, 3000));
	ptrace(PTRACE_DETACH, pid, 0, 0);
	kill(pid, SIGKILL);
}

/* Starts over in a new program; one that is set-user-ID root, if privileged. */
static void call_exec(bool privileged)
{
	char number[16], place[16], seed[24];
	char *program = (char *)setting->program;
	char *arguments[] = { program, privileged ? "privileged" : "again", number, place,
			      seed, NULL };

	snprintf(number, sizeof(number), "%d", worker);
	snprintf(place, sizeof(place), "%d", slot_number);
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)random_next(&choice));
	execv(privileged ? setting->program : "/proc/self/exe", arguments);
}

/* ---- threads ----------------------------------------------------------------------- */

static void *thread_life(void *argument)
{
	struct random random = { (uintptr_t)argument };
	struct timespec pause = { .tv_nsec = below(&random, 2000000) };
	int i, word = 0;

	for (i = 0; i < 20; i++) {
		if (chance(&random, 50))
			nanosleep(&pause, NULL);
		else
			syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &pause, NULL, 0);
		if (chance(&random, 3))
			call_exec(false);
	}
	nr_threads--;
	return NULL;
}

static void make_thread(void)
{
	pthread_t thread;

	if (nr_threads >= 4)
		return;
	nr_threads++;
	if (pthread_create(&thread, NULL, thread_life, (void *)random_next(&choice)))
		nr_threads--;
	else
		pthread_detach(thread);
}

/* The leader exits, another thread goes on. */
static void *leaderless_life(void *unused)
{
	int i;

	(void)unused;
	for (i = 0; i < 200 && !fuzz->calm[worker]; i++) {
		beat();
		nap_us(1000);
	}
	_exit(0);
}

static void lose_leader(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, leaderless_life, NULL))
		syscall(SYS_exit, 0);
}

/* ---- memory, signals, timers, identity --------------------------------------------- */

static void use_memory(void)
{
	static const int kinds[] = { MAP_PRIVATE | MAP_ANONYMOUS, MAP_SHARED | MAP_ANONYMOUS,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
	size_t size = 4096 * (1 + below(&choice, 64));
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, kinds[below(&choice, 3)], -1, 0);
	int id;

	if (memory == MAP_FAILED)
		return;
	memset(memory, 1, size / 2);
	mprotect(memory, 4096, below(&choice, 4));
	if (chance(&choice, 80))
		munmap(memory, size);
	if (chance(&choice, 80))
		return;
	id = shmget(IPC_PRIVATE, 8192, 0600);
	memory = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	if (memory != (void *)-1 && chance(&choice, 80))
		shmdt(memory);
}

/* All targets have one set, which comes and goes. */
static void use_semaphores(void)
{
	struct sembuf both[] = { { 0, 3, IPC_NOWAIT }, { 0, -3, IPC_NOWAIT | SEM_UNDO } };
	int set = semget(SEMAPHORE_KEY, 1 + below(&choice, 2), IPC_CREAT | 0600);

	both[0].sem_num = both[1].sem_num = below(&choice, 2);
	semop(set, both, 2);
	if (chance(&choice, 3))
		semctl(set, 0, IPC_RMID);
}

static void use_timers(void)
{
	struct itimerval real = { .it_value.tv_usec = 1 + below(&choice, 5000) };
	struct itimerspec value = { .it_value.tv_nsec = 1 + below(&choice, 5000000),
				    .it_interval.tv_nsec = below(&choice, 2) * 1000000 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 3 };
	static timer_t timer;
	static bool made;

	setitimer(below(&choice, 3), &real, NULL);
	if (made)
		timer_delete(timer);
	if (chance(&choice, 50)) {
		event.sigev_notify = SIGEV_THREAD_ID;
		event._sigev_un._tid = syscall(SYS_gettid);
	}
	made = !timer_create(below(&choice, 4), &event, &timer);
	if (made)
		timer_settime(timer, 0, &value, NULL);
}

static void use_signals(void)
{
	union sigval value = { .sival_int = 7 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 5);
	sigaddset(&set, SIGUSR2);
	sigprocmask(below(&choice, 2) ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
	sigqueue(getpid(), SIGRTMIN + 5, value);
	raise(SIGUSR2);
	if (chance(&choice, 10))
		raise(SIGSTOP);
}

static void change_identity(void)
{
	switch (below(&choice, 5)) {
	case 0:
		prctl(PR_SET_DUMPABLE, below(&choice, 2));
		prctl(PR_SET_SYSCALL_USER_DISPATCH, below(&choice, 2), 0, -1L, 0);
		prctl(PR_SET_PTRACER, chance(&choice, 50) ? -1L : (long)getppid(), 0, 0, 0);
		break;
	case 1:
		prctl(PR_SET_NO_NEW_PRIVS, chance(&choice, 10), 0, 0, 0);
		break;
	case 2:
		if (chance(&choice, 5))
			unshare(CLONE_NEWUSER);
		break;
	case 3:
		prctl(PR_SET_CHILD_SUBREAPER, below(&choice, 2));
		break;
	default:
		call_exec(true);
	}
}

static void block(void)
{
	struct timespec pause = { .tv_nsec = below(&choice, 10000000) };
	struct pollfd none = { .fd = -1 };
	int word = 0;

	switch (below(&choice, 3)) {
	case 0:
		nanosleep(&pause, NULL);
		break;
	case 1:
		poll(&none, 1, below(&choice, 10));
		break;
	default:
		syscall(SYS_futex, &word, FUTEX_WAIT, 0, &pause, NULL, 0);
	}
}

/* ---- as a client ------------------------------------------------------------------- */

static void *client_life(void *argument)
{
	static char path[KCR_PATH_MAX], file[KCR_PATH_MAX];
	struct actor actor = { .world = &(struct world){ .worker = worker }, .owner = true,
			       .random.state = (uintptr_t)argument,
			       .log = fuzz->log[worker][ACTORS - 1] };
	struct kcr_client_new make = { .size = sizeof(make) };
	struct kcr_client_wait wait = { .size = sizeof(wait), .path = (uintptr_t)path };
	struct kcr_client_answer answer = { .size = sizeof(answer), .path = (uintptr_t)file };
	struct kcr_client_done done = { .size = sizeof(done) };
	struct kcr_client_forward forward = { .size = sizeof(forward), .target = getpid() };
	int device = open(KCR_DEVICE, O_RDWR | O_CLOEXEC);
	int client = call(&actor, device, KCR_IOC_CLIENT, &make);

	close(device);
	while (client >= 0 && !call(&actor, client, KCR_IOC_CLIENT_WAIT, &wait)) {
		if (chance(&actor.random, 20))
			call(&actor, client, KCR_IOC_CLIENT_FORWARD, &forward);
		answer.flags = below(&actor.random, 4);
		answer.answer = chance(&actor.random, 80) ? 0 : below(&actor.random, 5);
		answer.code = below(&actor.random, 3);
		if (!call(&actor, client, KCR_IOC_CLIENT_ANSWER, &answer) &&
		    chance(&actor.random, 90))
			call(&actor, client, KCR_IOC_CLIENT_DONE, &done);
	}
	close(client);
	return NULL;
}

static void be_client(void)
{
	pthread_t thread;

	if (!pthread_create(&thread, NULL, client_life, (void *)random_next(&choice)))
		pthread_detach(thread);
}

/* Opens a job of its own, sometimes left open until this process exits. */
static void own_job(void)
{
	struct kcr_add add = { .size = sizeof(add) };
	struct kcr_park park = { .size = sizeof(park), .timeout_ms = 50 };
	int job = open(KCR_DEVICE, O_RDWR | O_CLOEXEC);
	char path[32];
	pid_t pid = fork();

	if (!pid)
		child_life();
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	add.pid = pid;
	add.mem_fd = open(path, O_RDWR | O_CLOEXEC);
	ioctl(job, KCR_IOC_ADD, &add);
	close(add.mem_fd);
	ioctl(job, KCR_IOC_PARK, &park);
	nap_us(below(&choice, 2000));
	if (chance(&choice, 80))
		close(job);
}

/* ---- main loop --------------------------------------------------------------------- */

/* Contexts and rings, some of them with a request in flight. */
static void use_async(void)
{
	static aio_context_t context;
	static struct io_uring_params ring;
	struct iocb wait = {
		.aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = 0, .aio_buf = POLLPRI,
	};
	struct iocb *request = &wait;
	static int fd;

	if (!fd)
		fd = (int)syscall(SYS_io_uring_setup, 4, &ring);
	if (context && chance(&choice, 50))
		syscall(SYS_io_submit, context, 1, &request);
	else if (context && !syscall(SYS_io_destroy, context))
		context = 0;
	else
		syscall(SYS_io_setup, 4, &context);
	syscall(SYS_io_uring_enter, fd, below(&choice, 3), 0, IORING_ENTER_GETEVENTS, NULL, 0);
}

static void act(void)
{
	static void (*const acts[])(void) = {
		make_child, make_child, make_vfork_child, trace_child, make_thread, make_thread,
		use_memory, use_memory, use_semaphores, use_timers, use_signals, change_identity, block, block,
		own_job, use_async,
	};
	uint32_t which = below(&choice, 400);

	if (which < 3)
		call_exec(false);
	else if (which == 3)
		lose_leader();
	else if (which == 4)
		_exit(0);
	else if (which < 200)
		nap_us(below(&choice, 1500));
	else
		acts[which % (sizeof(acts) / sizeof(acts[0]))]();
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void map_token(void)
{
	int fd = memfd_create("token", MFD_CLOEXEC);
	struct stat status;

	if (fd < 0 || ftruncate(fd, 4096) || fstat(fd, &status) ||
	    mmap(TOKEN, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != TOKEN)
		_exit(2);
	slot->token = status.st_ino;
}

void target_main(int from, int number, uint64_t seed)
{
	struct rlimit memory = { 512ul << 20, 512ul << 20 };
	pid_t parent = getppid();
	int i;

	worker = from;
	slot_number = number;
	slot = &fuzz->slots[worker][number];
	choice.state = seed;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 1);
	setrlimit(RLIMIT_AS, &memory);
	signals_default();
	for (i = 1; i <= SIGRTMAX; i++)
		if (i != SIGCHLD && i != SIGSEGV && i != SIGBUS && i != SIGABRT && i != SIGCONT)
			signal(i, ignore);
	map_token();
	if (chance(&choice, 50))
		be_client();
	slot->pid = getpid();
	while (getppid() == parent) {
		beat();
		if (fuzz->calm[worker])
			nap_us(2000);
		else
			act();
	}
	_exit(0);
}

/* Root for a moment: what it has then, users must not be able to read. */
static void privileged_main(void)
{
	if (!geteuid()) {
		fuzz->nr_privileged++;
		if (mmap(SECRET_PLACE, SECRET_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == SECRET_PLACE)
			*SECRET_PLACE = setting->seed * 0x9e3779b97f4a7c15;
		nap_us(below(&choice, 3000));
		munmap(SECRET_PLACE, SECRET_BYTES);
	}
	if (setresgid(getgid(), getgid(), getgid()) || setresuid(getuid(), getuid(), getuid()))
		_exit(2);
	beat();
	call_exec(false);
	_exit(2);
}

int target_exec(char **argv)
{
	if (!strcmp(argv[1], "ended"))
		return 0;
	if (!argv[2] || !argv[3] || !argv[4])
		return 2;
	worker = (unsigned int)atoi(argv[2]) % WORKERS;
	slot_number = (unsigned int)atoi(argv[3]) % TARGETS;
	slot = &fuzz->slots[worker][slot_number];
	choice.state = strtoull(argv[4], NULL, 10);
	if (!strcmp(argv[1], "privileged"))
		privileged_main();
	target_main(worker, slot_number, choice.state);
}
