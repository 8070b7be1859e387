// SPDX-License-Identifier: GPL-2.0
/*
 * A userfaultfd belongs to the address space of the process that creates it.  So each process
 * of the skeleton creates its own, at its very beginning: the exchange of its memory
 * later leaves the address space the same.  It goes to cr_restart through a socket, and
 * nothing of it stays in the process.
 */
#include "restart/lazy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/identity.h"
#include "restart/faults.h"

static struct {
	int end[2];			/* ours, theirs */
	int *taken;			/* by index; -1: none */
	size_t count;
} offers = { .end = { -1, -1 } };

int lazy_offers_begin(const struct context *context)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, offers.end))
		return report_errno(-errno, "--lazy: a socket");
	offers.count = context->nr_processes;
	offers.taken = malloc((offers.count + 1) * sizeof(*offers.taken));
	for (size_t i = 0; offers.taken && i < offers.count; i++)
		offers.taken[i] = -1;
	return offers.taken ? 0 : report_errno(-ENOMEM, "restart");
}

/* Room for one descriptor. */
union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static int send_one(size_t index, int fd)
{
	union control control = {
		.head = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
			  .cmsg_len = CMSG_LEN(sizeof(fd)) },
	};
	struct iovec data = { .iov_base = &index, .iov_len = sizeof(index) };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	while (sendmsg(offers.end[1], &message, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int lazy_offer(size_t index)
{
	bool raised;
	int fd, err;

	if (offers.end[1] < 0)
		return 0;
	/* A child of one that has taken a user's rights has them already. */
	raised = identity_raise(true);
	fd = faults_open();
	err = fd < 0 ? fd : send_one(index, fd);
	identity_lower(raised);
	if (fd >= 0)
		close(fd);
	return err;
}

/* False: there is no more. */
static bool receive_one(void)
{
	union control control;
	size_t index = SIZE_MAX;
	struct iovec data = { .iov_base = &index, .iov_len = sizeof(index) };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	const struct cmsghdr *head;
	int fd;

	if (recvmsg(offers.end[0], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return false;
	head = CMSG_FIRSTHDR(&message);
	if (!head || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof(fd)))
		return true;
	memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	if (index < offers.count && offers.taken[index] < 0)
		offers.taken[index] = fd;
	else
		close(fd);
	return true;
}

void lazy_offers_receive(void)
{
	while (offers.end[0] >= 0 && receive_one())
		;
}

int lazy_offer_take(size_t index)
{
	int fd;

	lazy_offers_receive();
	fd = offers.taken[index];
	offers.taken[index] = -1;
	return fd;
}

void lazy_offers_end(void)
{
	for (size_t i = 0; offers.taken && i < offers.count; i++)
		if (offers.taken[i] >= 0)
			close(offers.taken[i]);
	free(offers.taken);
	for (int i = 0; i < 2; i++)
		if (offers.end[i] >= 0)
			close(offers.end[i]);
	offers.taken = NULL;
	offers.end[0] = offers.end[1] = -1;
}
