// SPDX-License-Identifier: GPL-2.0
/*
 * One round: a process of the attacking user with its jobs, targets and actors.  At
 * the end it checks that every living target still runs, and leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"

#define STEPS		60	/* per actor; a checkpoint is one */
#define ROUND_NS	(3000000000 * setting->slow)	/* maximum */
#define PATIENCE_NS	(20000000000 * setting->slow)

static struct world world;
static struct actor actors[ACTORS];
static pthread_t threads[ACTORS];
static int nr_actors;
static struct random choice;

static void start_target(int number)
{
	uint64_t seed = random_next(&choice);
	pid_t pid;

	fuzz->slots[world.worker][number].pid = 0;
	pid = fork();
	if (!pid)
		target_main(world.worker, number, seed);
	world.pids[number] = pid;
}

/* ---- actors ------------------------------------------------------------------------ */

static void open_job(struct actor *actor)
{
	int number = below(&actor->random, JOBS);
	int fd = open(KCR_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	fd = atomic_exchange(&world.jobs[number], fd);
	close(fd);
}

/* A process with the jobs' file descriptors that did not open them: inherited, or sent. */
static void stranger_main(struct actor *actor, int from)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	int i, fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signals_default();
	alarm(2 * setting->slow);	/* a client's calls wait for ever */
	actor->owner = false;
	actor->cover = NULL;
	fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	dup2(fd, FUZZ_FD + 2);
	if (from >= 0 && recvmsg(from, &message, MSG_DONTWAIT) == 1 && CMSG_FIRSTHDR(&message)) {
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
		for (i = 0; i < JOBS; i++)
			world.jobs[i] = fd;
	}
	for (i = 0; i < 60; i++) {
		noise(actor);
		attack(actor);
	}
	_exit(0);
}

static void send_job(struct actor *actor, int to)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int fd = any_job(actor);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	sendmsg(to, &message, MSG_DONTWAIT);
}

static void make_stranger(struct actor *actor)
{
	int pair[2] = { -1, -1 };
	bool sent = chance(&actor->random, 50) && !socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
	pid_t pid;

	if (sent)
		send_job(actor, pair[1]);
	pid = fork();
	if (!pid)
		stranger_main(actor, pair[0]);
	close(pair[0]);
	close(pair[1]);
}

static void step(struct actor *actor, int number)
{
	uint32_t which = below(&actor->random, 100);

	if (number == 0) {
		spoil(actor);
		if (which < 4)
			make_stranger(actor);
	} else if (number < 3) {
		if (which < 60)
			checkpoint(actor, any_job(actor));
		else if (which < 90)
			restart(actor);
		else
			open_job(actor);
	} else if (which < 10) {
		attack(actor);
	} else if (which < 13) {
		open_job(actor);
	} else {
		noise(actor);
	}
}

static void *actor_main(void *argument)
{
	struct actor *actor = argument;
	int number = actor - actors;
	uint64_t end = now_ns() + ROUND_NS;
	int i, steps = number && number < 3 ? STEPS : 8 * STEPS;

	actor->tid = syscall(SYS_gettid);
	if (number)
		cover_begin(actor, FUZZ_FD + 3 + number);
	for (i = 0; (i < steps || !number) && !world.over && now_ns() < end; i++) {
		step(actor, number);
		if (!number)
			nap_us(200 * setting->slow);
	}
	actor->tid = 0;
	return NULL;
}

static void make_actor(int number)
{
	struct actor *actor = &actors[number];

	actor->world = &world;
	actor->random.state = random_next(&choice);
	actor->log = fuzz->log[world.worker][number];
	actor->owner = true;
	actor->out = mmap(NULL, OUT_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	actor->file = memfd_create("pages", MFD_CLOEXEC);
	if (actor->out == MAP_FAILED || actor->file < 0 ||
	    pthread_create(&threads[number], NULL, actor_main, actor))
		_exit(3);
}

/* ---- the first thread -------------------------------------------------------------- */

static void ignore(int number)
{
	(void)number;
}

static bool all_ended(void)
{
	int i;

	for (i = 0; i < nr_actors; i++)
		if (actors[i].tid)
			return false;
	return true;
}

/* Interrupts calls; stops, continues, kills and restarts targets. */
static void disturb(void)
{
	int i = below(&choice, TARGETS);
	pid_t pid = world.pids[i];

	if (pid > 0 && chance(&choice, 50))	/* -1, all of the user, if fork failed */
		kill(pid, chance(&choice, 50) ? SIGSTOP : SIGCONT);
	if (pid > 0 && chance(&choice, 10))
		kill(pid, SIGKILL);
	for (i = 0; i < nr_actors; i++)
		if (actors[i].tid && chance(&choice, 30))
			syscall(SYS_tgkill, getpid(), actors[i].tid, SIGUSR1);
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (i = 0; i < TARGETS; i++)
			if (world.pids[i] == pid)
				start_target(i);
}

static void join_actors(void)
{
	uint64_t end = now_ns() + PATIENCE_NS;
	int i;

	world.over = true;
	while (!all_ended() && now_ns() < end) {
		for (i = 0; i < nr_actors; i++)
			if (actors[i].tid)
				syscall(SYS_tgkill, getpid(), actors[i].tid, SIGUSR1);
		nap_us(20000);
	}
	if (!all_ended())
		fuzz_failed("a call does not return although signals come: worker %d",
			    world.worker);
	for (i = 0; i < nr_actors; i++)
		pthread_join(threads[i], NULL);
}

static bool is_alive(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return !waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid;
}

/* Does its count of beats still rise?  false: it does not run. */
static bool answers(int number)
{
	struct slot *slot = &fuzz->slots[world.worker][number];
	pid_t pid = world.pids[number];
	uint64_t end = now_ns() + PATIENCE_NS, beats = slot->beats;

	while (pid > 0 && is_alive(pid) && slot->beats < beats + 2) {
		if (now_ns() > end)
			return false;
		kill(pid, SIGCONT);
		nap_us(5000);
	}
	return true;
}

static void kill_children(void)
{
	uint64_t end = now_ns() + PATIENCE_NS;
	char path[64], *next;
	FILE *file;
	char line[4096];
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	while (now_ns() < end) {
		file = fopen(path, "r");
		if (!file || !fgets(line, sizeof(line), file))
			line[0] = 0;
		if (file)
			fclose(file);
		for (next = line; (pid = strtol(next, &next, 10)) > 0;)
			kill(pid, SIGKILL);
		while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return;
		nap_us(5000);
	}
	fuzz_failed("a process does not die: worker %d", world.worker);
}

static void drop_identity(void)
{
	struct rlimit processes = { 300, 300 }, files = { 400, 400 }, none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_NPROC, &processes);
	setrlimit(RLIMIT_NOFILE, &files);
	if (setgroups(0, NULL) || setresgid(FUZZ_USER, FUZZ_USER, FUZZ_USER) ||
	    setresuid(FUZZ_USER, FUZZ_USER, FUZZ_USER))
		_exit(3);
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void set_up(int worker, uint64_t seed)
{
	struct sigaction action = { .sa_handler = ignore };	/* no SA_RESTART */
	int i, fd;

	munmap(canaries, CANARIES * sizeof(*canaries));
	world.worker = worker;
	choice.state = seed;
	for (i = 0; i < ACTORS; i++) {		/* as root */
		fd = cover_open();
		if (fd >= 0 && dup2(fd, FUZZ_FD + 3 + i) >= 0)
			close(fd);
	}
	drop_identity();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGUSR1, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	world.arena_file = memfd_create("arena", MFD_CLOEXEC);
	if (ftruncate(world.arena_file, ARENA_SIZE))
		_exit(3);
	world.arena = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			   world.arena_file, 0);
	if (dup2(fd, FUZZ_FD + 2) < 0 || world.arena == MAP_FAILED)
		_exit(3);
	fuzz->calm[worker] = 0;
	for (i = 0; i < TARGETS; i++)
		start_target(i);
	for (i = 0; i < JOBS; i++)
		world.jobs[i] = open(KCR_DEVICE, O_RDWR | O_CLOEXEC);
	nr_actors = 4 + below(&choice, ACTORS - 4);
	for (i = 0; i < nr_actors; i++)
		actors[i].tid = -1;
}

void round_main(int worker, uint64_t seed)
{
	uint64_t end = now_ns() + ROUND_NS;
	int i;

	set_up(worker, seed);
	for (i = 0; i < nr_actors; i++)
		make_actor(i);
	while (!all_ended() && now_ns() < end) {
		disturb();
		nap_us(20000 * setting->slow);
	}
	join_actors();
	fuzz->calm[worker] = 1;
	for (i = 0; i < JOBS; i++)
		close(world.jobs[i]);
	for (i = 0; i < TARGETS; i++)
		if (!answers(i))
			fuzz_failed("process %d (worker %d, target %d) does not run on",
				    world.pids[i], worker, i);
	while (fuzz_has_failed())
		pause();		/* for those who look where everybody sleeps */
	kill_children();
	_exit(0);
}
