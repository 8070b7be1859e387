// SPDX-License-Identifier: GPL-2.0
/*
 * Urgent data (MSG_OOB) of TCP and of Unix streams.  An urgent byte ends what MSG_PEEK reads, and
 * so it goes on doing in TCP after it has been read, until the program has read as far: what
 * is behind it can only be read by taking what is before it.  sock_diag counts all of it.
 */
#include "resource/socket_urgent.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "resource/file.h"
#include "resource/inet_diag.h"
#include "resource/not_accepted.h"
#include "resource/option_names.h"
#include "resource/socket.h"

#define RECEIVED_END	(1 << TCP_CLOSE_WAIT | 1 << TCP_LAST_ACK | 1 << TCP_CLOSING)

/* Has the program yet to read an urgent byte?  Unix sockets show that to poll(2) since 5.17. */
static bool has_urgent_byte(int fd, bool is_unix)
{
	struct pollfd p = { .fd = fd, .events = POLLPRI };
	char byte;

	if (poll(&p, 1, 0) > 0 && p.revents & POLLPRI)
		return true;
	return is_unix && recv(fd, &byte, 1, MSG_OOB | MSG_PEEK | MSG_DONTWAIT) == 1;
}

/*
 * Is there more in the queue of a TCP socket than SIOCINQ tells?  The kernel counts its end as
 * a byte, and the urgent one that has been read.
 */
static bool hides_data(struct file_table *t, const struct file_probe *probe)
{
	int fd = probe->fd, interface = socket_value(fd, SO_BINDTOIFINDEX), before, after;
	uint8_t local[INET_END], remote[INET_END];
	struct inet_diag_msg own;
	uint32_t counted;
	uint64_t rate;

	if (ioctl(fd, SIOCINQ, &before) || !inet_end_get(fd, false, local) ||
	    !inet_end_get(fd, true, remote) ||
	    !inet_diag_end(t, local, remote, interface > 0 ? interface : 0, &own, &rate) ||
	    own.idiag_inode != (uint32_t)probe->st.st_ino || ioctl(fd, SIOCINQ, &after) || before != after)
		return false;
	counted = (1 << own.idiag_state & RECEIVED_END ? 1 : 0) + 1;
	return own.idiag_rqueue > after + counted;
}

int socket_urgent_check(struct file_table *t, const struct file_probe *probe)
{
	bool is_unix = socket_value(probe->fd, SO_DOMAIN) == AF_UNIX;

	for (int patience = 0; has_urgent_byte(probe->fd, is_unix) ||
			       (!is_unix && hides_data(t, probe)); patience++) {
		if (not_accepted_wait(t, patience))
			continue;
		if (!file_table_is_dry(t))
			return file_save_error(probe, -EBUSY, "urgent data (MSG_OOB) in it is unread");
		return file_unsupported(t, "a connection with urgent data (MSG_OOB) in it that is "
					"unread: try again when the program has read it");
	}
	return 0;
}
