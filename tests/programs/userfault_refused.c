// SPDX-License-Identifier: GPL-2.0
/* Has a userfaultfd, or memory under its control, in a state that cannot be saved. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "userfault.h"

#ifndef UFFDIO_POISON
struct uffdio_poison { struct uffdio_range range; __u64 mode; __s64 updated; };
#define UFFDIO_POISON		_IOWR(UFFDIO, 0x08, struct uffdio_poison)
#endif
static void shared(void)
{
	int fd = ready(UFFD_FEATURE_MISSING_SHMEM);
	char *memory = mmap(NULL, NR * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	enlist(fd, memory, NR, missing);
	checkpoint_here();
	check_absent(fd, memory, 1);
}

static void locked(void)
{
	int fd = ready(0);
	char *memory = map(NR);

	NEED(!mlock(memory, NR * PAGE));
	enlist(fd, memory, NR, missing);
	checkpoint_here();
	CHECK(!memory[0]);
}

static void poison(void)
{
	int fd = ready(0);
	char *memory = registered(fd, missing);
	struct uffdio_poison p = { .range = { (uintptr_t)memory, PAGE } };

	if (ioctl(fd, UFFDIO_POISON, &p))
		check_skip("this kernel has no UFFDIO_POISON");
	checkpoint_here();
	check_absent(fd, memory, 1);
}

/* In flight between sockets. */
static void passed(void)
{
	int fd = ready(0), pair[2];
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	char byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	NEED(sendmsg(pair[0], &message, 0) == 1);
	close(fd);
	checkpoint_here();
	CHECK(recvmsg(pair[1], &message, 0) == 1);
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	check_absent(fd, registered(fd, missing), 1);
}

/* Of a process that has ended. */
static void ended(void)
{
	int pair[2], fd, status;
	pid_t child;

	NEED(!pipe(pair));
	child = fork();
	if (!child) {
		fd = ready(0);
		NEED(write(pair[1], &fd, sizeof(fd)) == sizeof(fd));
		pause();
	}
	NEED(read(pair[0], &fd, sizeof(fd)) == sizeof(fd));
	fd = (int)syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, child, 0), fd, 0);
	NEED(fd >= 0 && !kill(child, SIGKILL) && waitpid(child, &status, 0) == child);
	checkpoint_here();
	CHECK(fcntl(fd, F_GETFD) >= 0);
}

static void *read_into(void *memory)
{
	int zeros = open("/dev/zero", O_RDONLY);

	CHECK(read(zeros, memory, 1) == 1);
	return NULL;
}

/* A system call waits for a page. */
static void kernel(void)
{
	int fd = ready(0);
	char *memory = registered(fd, missing);
	pthread_t thread;

	NEED(!pthread_create(&thread, NULL, read_into, memory));
	NEED(told_of(fd, memory, 0, 0));
	checkpoint_here();
	CHECK(give(fd, memory, 0));
	pthread_join(thread, NULL);
	CHECK(!memory[0]);
}

static const struct check checks[] = {
	{ "ended", ended },
	{ "kernel", kernel },
	{ "locked", locked },
	{ "passed", passed },
	{ "poison", poison },
	{ "shared", shared },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
