// SPDX-License-Identifier: GPL-2.0
/*
 * `attack KIND`: an ordinary user doing the worst that the module allows.  Sets up
 * its processes, prints "ready", and then follows the last line on its standard
 * input: `attack`, or `idle`, the same CPU work without calls of the module; it
 * answers each with a line once that has begun.  The caller finally kills its
 * process group.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"

#define CROWD		2000	/* sleeping processes */
#define FORKERS		10	/* processes that fork children, which exit at once */
#define CLIENTS		300
#define THREADS		1000
#define TIMERS		2000
#define CLONES		50	/* in one job */
#define STEP_NS		1000000	/* of a busy loop */

struct kind {
	const char *name;
	void (*set_up)(void);
	void (*begin)(void);	/* opens the job */
	void (*attack)(void);	/* one step, repeated */
	void (*idle)(void);	/* the equivalent without the module */
};

static struct kcr_info info;
static int job = -1;
static pid_t member[CROWD + FORKERS + 1];
static int members;
static _Atomic int *clients_wanted;	/* shared with the children */

static void must(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "attack: %s: %s\n", what,
			report_message() ? report_message() : strerror(errno));
		exit(1);
	}
}

/* ---- processes ------------------------------------------------------------------- */

static void sleep_on(void)
{
	for (;;)
		pause();
}

static void fork_on(void)
{
	for (;;) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

/* Blocks in the kernel, waiting for its own child (vfork). */
static void wait_on(void)
{
	if (!vfork())
		sleep_on();
	_exit(1);
}

/* Is a client that never answers, for as long as one is wanted. */
static void obey(void)
{
	struct kcr_client_new request = { .size = sizeof(request) };
	int device, client = -1, wanted = 0;

	for (;;) {
		syscall(SYS_futex, clients_wanted, FUTEX_WAIT, wanted, NULL, NULL, 0);
		wanted = atomic_load(clients_wanted);
		if (client >= 0)
			close(client);
		client = -1;
		if (!wanted)
			continue;
		device = open(KCR_DEVICE, O_RDWR | O_CLOEXEC);
		client = ioctl(device, KCR_IOC_CLIENT, &request);
		close(device);
	}
}

static void *thread(void *unused)
{
	sleep_on();
	return unused;
}

static void keep_time(void)
{
	struct sigevent silent = { .sigev_notify = SIGEV_NONE };
	pthread_attr_t small;
	pthread_t id;
	timer_t timer;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < THREADS; i++)
		must(!pthread_create(&id, &small, thread, NULL), "thread");
	for (int i = 0; i < TIMERS; i++)
		must(!timer_create(CLOCK_PROCESS_CPUTIME_ID, &silent, &timer), "timer");
	sleep_on();
}

static void make(int count, void (*life)(void))
{
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid) {
			life();
			_exit(1);
		}
		must(pid > 0, "fork");
		member[members++] = pid;
	}
}

static void crowd(void)
{
	make(CROWD, sleep_on);
}

static void forkers(void)
{
	make(FORKERS, fork_on);
}

static void crowd_that_waits(void)
{
	make(1, wait_on);
	make(CROWD, sleep_on);
}

static void clients(void)
{
	clients_wanted = mmap(NULL, sizeof(*clients_wanted), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(clients_wanted != MAP_FAILED, "mmap");
	make(CLIENTS, obey);
}

static void timers(void)
{
	make(1, keep_time);
	sleep(5);		/* until it has them all */
}

/* ---- attacks --------------------------------------------------------------------- */

static void open_job(void)
{
	job = device_open(&info);
	must(job >= 0, "open");
}

static void end(void)
{
	if (clients_wanted) {
		atomic_store(clients_wanted, 0);
		syscall(SYS_futex, clients_wanted, FUTEX_WAKE, CLIENTS, NULL, NULL, 0);
	}
	if (job >= 0)
		close(job);
	job = -1;
}

/* As many as one user may have. */
static void add_all(void)
{
	open_job();
	for (int i = 0; i < members; i++)
		if (device_add(job, member[i], member[i], 0) == -EDQUOT)
			break;
	report_clear();
}

/* Until the job has many that ended as well. */
static void add_and_wait(void)
{
	add_all();
	sleep(3);
}

static void park_all(void)
{
	struct kcr_park park;

	add_all();
	must(!device_park(job, 0, &park), "PARK");
}

static void add_clients(void)
{
	atomic_store(clients_wanted, 1);
	syscall(SYS_futex, clients_wanted, FUTEX_WAKE, CLIENTS, NULL, NULL, 0);
	usleep(300000);
	add_all();
}

static void burn(void)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		getppid();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec < STEP_NS);
}

static void list(void)
{
	struct kcr_process *processes;

	must(device_list(job, &processes) >= 0, "LIST");
	free(processes);
}

static void read_timers(void)
{
	struct kcr_timer *list;

	must(device_timers(job, member[0], &list) == TIMERS, "TIMERS");
	free(list);
}

static void park_in_vain(void)
{
	struct kcr_park park;

	if (!device_park(job, 1, &park)) {
		end();
		add_all();
	}
	report_clear();
}

static void notify(void)
{
	struct kcr_notify request = {
		.size = sizeof(request), .path = (uintptr_t)"", .timeout_ms = 1,
	};

	ioctl(job, KCR_IOC_NOTIFY, &request);
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void clone_many(void)
{
	struct kcr_clone request = { .size = sizeof(request), .exit_signal = SIGCHLD };

	open_job();
	for (int i = 0; i < CLONES; i++) {
		int pid = ioctl(job, KCR_IOC_CLONE, &request);

		if (!pid)
			_exit(0);
		if (pid < 0)
			break;
	}
	close(job);
	reap();
}

static void fork_many(void)
{
	for (int i = 0; i < CLONES; i++)
		if (!fork())
			_exit(0);
	reap();
}

static void none(void)
{
}

static const struct kind kinds[] = {
	{ "members", crowd, add_all, burn, burn },
	{ "forks", forkers, add_and_wait, burn, burn },
	{ "list", crowd, park_all, list, burn },
	{ "timers", timers, park_all, read_timers, burn },
	{ "park", crowd_that_waits, add_all, park_in_vain, burn },
	{ "clone", none, none, clone_many, fork_many },
	{ "clients", clients, add_clients, notify, burn },
};

int main(int argc, char **argv)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	const struct kind *kind = NULL;
	char command[16];

	for (size_t i = 0; argc == 2 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(argv[1], kinds[i].name))
			kind = &kinds[i];
	must(kind, "no such kind");
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IONBF, 0);
	kind->set_up();
	puts("ready");
	while (fgets(command, sizeof(command), stdin)) {
		bool attacks = *command == 'a';

		end();
		if (attacks)
			kind->begin();
		fputs(command, stdout);
		while (poll(&in, 1, 0) == 0)
			attacks ? kind->attack() : kind->idle();
	}
	return 0;
}
