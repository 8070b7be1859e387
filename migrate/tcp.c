// SPDX-License-Identifier: GPL-2.0
/* What both ends do; see tcp.h. */
#include "migrate/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "job/coordinator/wire.h"

#define SILENCE_S	30

/*
 * Programs wait for the pages of a lazy migration, and these are always taken, so that data without
 * an answer are a sign, too.  Not so a program's output, whose reader may be stopped.
 */
void tcp_watch(int fd, const char *command)
{
	unsigned int none = 0;

	wire_watch_peer(fd, SILENCE_S);
	if (!strstr(command, "--receive-pages"))
		setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof(none));
}
