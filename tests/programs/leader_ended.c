// SPDX-License-Identifier: GPL-2.0
/*
 * A process whose first thread has ended while others run on: threads with
 * names, numbers and data of their own, open files, a timer, and a child that
 * one of them made and that wants a signal when that thread dies.
 *
 * The third argument says how it ends: `group`: a thread calls exit_group(7);
 * `each`: all threads end by themselves, the first one did so with code 5;
 * `parent`: as `group`, below a parent that waits for it and counts SIGCHLD.
 * `new` as fourth argument: numbers may have changed.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "check.h"

#define THREADS	3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool go, same_numbers, each;
static pid_t own_pid, child;
static int started, finished, file, line[2], to_child[2];
static volatile sig_atomic_t told;
static __thread uint64_t own[64];

/* Ends the calling thread, and no other. */
static void end_thread(int code)
{
	for (;;)
		syscall(SYS_exit, code);
}

static void *work(void *argument)
{
	uintptr_t number = (uintptr_t)argument;
	pid_t tid = syscall(SYS_gettid);
	char name[16], now[16];

	snprintf(name, sizeof(name), "worker %d", (int)number);
	prctl(PR_SET_NAME, name);
	check_fill(own, sizeof(own), number);
	pthread_mutex_lock(&mutex);
	started++;
	while (!go)
		pthread_cond_wait(&condition, &mutex);
	CHECK(check_filled(own, sizeof(own), number));
	CHECK(!same_numbers || syscall(SYS_gettid) == tid);
	CHECK(prctl(PR_GET_NAME, now) == 0 && !strcmp(now, name));
	finished++;
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void run_child(void)
{
	char byte;

	close(to_child[1]);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	check_ready();
	_exit(read(to_child[0], &byte, 1) == 1 ? 3 : 4);
}

static void set_up(const char *ready)
{
	struct itimerval hour = { .it_value = { 3600, 0 } };
	char path[4096];

	snprintf(path, sizeof(path), "%s.data", ready);
	file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	NEED(file >= 0 && write(file, "0123456789", 10) == 10 && lseek(file, 4, SEEK_SET) == 4);
	NEED(!pipe(line) && !pipe(to_child));
	NEED(write(line[1], "pipe", 4) == 4);
	NEED(!setitimer(ITIMER_REAL, &hour, NULL));
	own_pid = getpid();
}

static void check_files(void)
{
	char text[16];

	CHECK(read(file, text, 2) == 2 && !memcmp(text, "45", 2));
	CHECK(fcntl(file, F_GETFD) == FD_CLOEXEC && !fcntl(line[0], F_GETFD));
	CHECK(read(line[0], text, sizeof(text)) == 4 && !memcmp(text, "pipe", 4));
}

static void check_process(void)
{
	struct itimerval left;
	char text[64], path[64];
	int status;

	CHECK(check_leader_state() == 'Z');
	CHECK(!same_numbers || getpid() == own_pid);
	snprintf(path, sizeof(path), "/proc/%d/comm", getpid());
	CHECK(!strcmp(check_slurp(path, text, sizeof(text)), "first thread\n"));
	CHECK(!getitimer(ITIMER_REAL, &left) && left.it_value.tv_sec > 3000);
	CHECK(waitpid(-1, &status, WNOHANG) == 0);
	CHECK(write(to_child[1], "", 1) == 1);
	CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

static void *run_on(void *argument)
{
	pthread_t *thread = argument, fresh;

	while (check_leader_state() != 'Z')
		check_sleep_ms(1);
	for (int all = 0; !all; check_sleep_ms(1)) {
		pthread_mutex_lock(&mutex);
		all = started == THREADS;
		pthread_mutex_unlock(&mutex);
	}
	child = fork();
	if (!child)
		run_child();
	NEED(child > 0);
	check_wait();
	check_process();
	check_files();
	pthread_mutex_lock(&mutex);
	go = true;
	pthread_cond_broadcast(&condition);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(thread[i], NULL));
	CHECK(finished == THREADS);
	CHECK(!pthread_create(&fresh, NULL, work, (void *)(uintptr_t)9));
	CHECK(!pthread_join(fresh, NULL));
	if (check_end())
		_exit(1);
	if (!each)
		_exit(7);
	end_thread(6);
	return NULL;
}

static void count_signal(int signal)
{
	(void)signal;
	told++;
}

/* Goes on only as the child. */
static void run_parent(void)
{
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = SA_RESTART };
	pid_t pid;
	int status;

	NEED(!sigaction(SIGCHLD, &action, NULL));
	pid = fork();
	if (!pid)
		return;
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK(told == 1);
	_exit(check_end());
}

int main(int argc, char **argv)
{
	static pthread_t thread[THREADS], speaker;

	check_begin(argc, argv);
	NEED(argc > 3);
	each = !strcmp(argv[3], "each");
	same_numbers = argc < 5;
	if (!strcmp(argv[3], "parent"))
		run_parent();
	set_up(argv[1]);
	for (int i = 0; i < THREADS; i++)
		NEED(!pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i));
	NEED(!pthread_create(&speaker, NULL, run_on, thread));
	prctl(PR_SET_NAME, "first thread");
	end_thread(5);
	return 0;
}
