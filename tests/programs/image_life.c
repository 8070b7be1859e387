// SPDX-License-Identifier: GPL-2.0
/*
 * What tests/fuzz/images tampers with: kcr-build: -static
 * A small program that works in the folder argv[3]; with argv[4] it has something of
 * everything.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "check.h"

static void open_files(void)
{
	int fd = open("file", O_RDWR | O_CREAT, 0644);

	NEED(fd >= 0 && write(fd, "contents", 8) == 8);
	NEED(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
	fd = open("gone", O_RDWR | O_CREAT, 0644);
	NEED(fd >= 0 && write(fd, "deleted", 7) == 7 && !unlink("gone"));
	NEED(open(".", O_RDONLY | O_DIRECTORY) >= 0 && open("/dev/null", O_RDWR) >= 0);
	NEED(!mkfifo("fifo", 0644) && open("fifo", O_RDWR) >= 0);
}

static void open_others(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "socket" };
	struct sockaddr_in port = { .sin_family = AF_INET };
	struct itimerspec time = { .it_value.tv_sec = 1000 };
	struct epoll_event event = { .events = EPOLLIN };
	int fd = epoll_create1(0), event_fd = eventfd(3, 0), ends[2];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	NEED(!epoll_ctl(fd, EPOLL_CTL_ADD, event_fd, &event));
	NEED(signalfd(-1, &set, 0) >= 0);
	fd = timerfd_create(CLOCK_MONOTONIC, 0);
	NEED(!timerfd_settime(fd, 0, &time, NULL));
	NEED(inotify_add_watch(inotify_init1(0), ".", IN_CREATE) > 0);
	NEED(!pipe(ends) && write(ends[1], "in the pipe", 11) == 11);
	NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends) && write(ends[0], "sent", 4) == 4);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	NEED(!bind(fd, (struct sockaddr *)&name, sizeof(name)) && !listen(fd, 3));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	NEED(!bind(fd, (struct sockaddr *)&port, sizeof(port)) && !listen(fd, 3));
}

static void make_memory(void)
{
	int fd = memfd_create("memory", 0), segment = shmget(IPC_PRIVATE, 8192, 0600);

	NEED(!ftruncate(fd, 8192) && write(fd, "memfd", 5) == 5);
	NEED(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
	NEED(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) !=
	     MAP_FAILED);
	NEED(shmat(segment, NULL, 0) != (void *)-1 && !shmctl(segment, IPC_RMID, NULL));
	NEED(!mlock(malloc(10000), 10000));
}

static void make_timers(void)
{
	struct itimerval real = { .it_value.tv_sec = 1000 };
	struct itimerspec time = { .it_value.tv_sec = 1000 };
	timer_t timer;

	NEED(!setitimer(ITIMER_REAL, &real, NULL));
	NEED(!timer_create(CLOCK_MONOTONIC, NULL, &timer) && !timer_settime(timer, 0, &time, NULL));
}

static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	pid_t child = -1;

	check_begin(argc, argv);
	NEED(argc > 3 && !chdir(argv[3]));
	if (argc > 4) {
		open_files();
		open_others();
		make_memory();
		make_timers();
		NEED(!pthread_create(&thread, NULL, sleep_on, NULL));
		if (!fork())
			_exit(3);	/* a zombie */
		NEED((child = fork()) >= 0);
		if (!child)
			sleep_on(NULL);
	}
	check_ready();
	check_wait();
	if (child > 0)
		kill(child, SIGKILL);
	return check_end();
}
