// SPDX-License-Identifier: GPL-2.0
/*
 * kcr-build: -shared -fPIC -ldl
 *
 * Preloaded into the ranks of an MPI job, stops rank 1 in the middle of a checkpoint, if
 * there is a file `late`: when it takes in what its peers have sent, if the file holds
 * `drain`, or when it lets go of the memory that it shares, if it holds `suspend`.  The
 * file is gone then.  If it holds `join`, that rank joins a restarted job only after
 * there is a file `asking` (of tests/mpi/asks.c).
 * Preloaded into cr_checkpoint, has a disk that takes eight seconds
 * once, if there is a file `slow`.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_wanted(const char *where)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	char text[16] = "";
	int fd;

	if (!rank || strcmp(rank, "1") || syscall(SYS_gettid) == getpid())
		return false;
	fd = syscall(SYS_openat, AT_FDCWD, "late", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	close(fd);
	return !strncmp(text, where, strlen(where));
}

static void stop(void)
{
	unlink("late");
	raise(SIGSTOP);
}

/* The thread of the checkpoints asks so whether it is to give up, in each of its steps. */
int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	static int (*next)(struct pollfd *, nfds_t, int);
	static int steps;

	if (!next)
		next = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
	if (count == 1 && !timeout && is_wanted("drain") && ++steps == 2)
		stop();		/* the first one is the gate */
	return next(fds, count, timeout);
}

int ftruncate(int fd, off_t length)
{
	if (!length && is_wanted("suspend"))
		stop();
	return syscall(SYS_ftruncate, fd, length);
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	if (is_wanted("join")) {
		while (access("asking", F_OK))
			usleep(1000);
		usleep(300000);		/* it asks now; no harm if it does not get there */
		unlink("late");
	}
	return syscall(SYS_connect, fd, address, length);
}

int fsync(int fd)
{
	sigset_t all, old;

	if (!unlink("slow")) {
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, &old);
		sleep(8);
		sigprocmask(SIG_SETMASK, &old, NULL);
	}
	return syscall(SYS_fsync, fd);
}
