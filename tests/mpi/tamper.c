// SPDX-License-Identifier: GPL-2.0
/*
 * Somebody between two ranks: loaded before the C library, changes one bit of what
 * recv(2) brings, once, in the third large piece; with a driver (driver.h), of those that
 * come while a checkpoint empties the connections.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#define LARGE	30000		/* bytes: a message's data, not what the runtime says */
#define PIECE	3

static bool counts(void)
{
	const char *driver = getenv("KCR_MPI_DRIVER");

	return !driver || !*driver || gettid() != getpid();
}

ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
	static ssize_t (*next)(int fd, void *buffer, size_t size, int flags);
	static int pieces;
	ssize_t length;

	if (!next)
		next = (typeof(next))dlsym(RTLD_NEXT, "recv");
	length = next(fd, buffer, size, flags);
	if (length >= LARGE && counts() && ++pieces == PIECE)
		((char *)buffer)[length / 2] ^= 4;
	return length;
}
