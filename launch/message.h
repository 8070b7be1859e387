/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The messages between the proxy of a rank (proxy.h) and the daemon of its node
 * (keeper.h), over a unix socket that keeps their bounds (SOCK_SEQPACKET): each is one
 * struct launch_message with file descriptors.  Nothing larger is sent, so neither end
 * ever waits for the rest of a message.
 */
#ifndef LAUNCH_MESSAGE_H
#define LAUNCH_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#define LAUNCH_FDS_MAX	5

enum launch_type {
	LAUNCH_START = 1,	/* proxy → daemon: a program (start.h), its three streams, the launcher */
	LAUNCH_STREAMS,		/* daemon → proxy: output to carry; value: bit n: there is one for n */
	LAUNCH_SIGNAL,		/* proxy → daemon: value: for the program */
	LAUNCH_ENDED,		/* daemon → proxy: value: as from waitpid(2) */
};

struct launch_message {
	uint32_t type;		/* enum launch_type */
	int32_t value;
};

/* 0 or -errno: -EPIPE, -ECONNRESET: the other end has gone. */
int launch_send(int fd, uint32_t type, int32_t value, const int *fds, size_t nr_fds);

/*
 * The next message, with its descriptors, close-on-exec, in `fds`: their number, or
 * -errno: -EAGAIN: there is none, -ECONNRESET: the other end has gone, -EPROTO: it is
 * no message.
 */
int launch_receive(int fd, struct launch_message *m, int fds[LAUNCH_FDS_MAX]);

#endif /* LAUNCH_MESSAGE_H */
