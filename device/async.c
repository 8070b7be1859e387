// SPDX-License-Identifier: GPL-2.0
/* What only the kernel knows: contexts of io_setup(2), io_urings, userfaultfds, sockets, SEM_UNDO. */
#include <errno.h>
#include <sys/ioctl.h>

#include "device/device.h"
#include "device/internal.h"
#include "report/report.h"

/* A module of 0.1.0 knows no such calls. */
static int since_async(int result)
{
	return result == -ENOTTY ? -EOPNOTSUPP : result;
}

int device_aio(int job, pid_t pid, struct kcr_aio_context **out)
{
	struct kcr_aio aio = { .size = sizeof(aio), .pid = pid };
	void *array;
	int count = device_call_array(job, KCR_IOC_AIO, &aio, &aio.count, &aio.contexts,
				      sizeof(struct kcr_aio_context), &array);

	if (count >= 0)
		*out = array;
	return since_async(count);
}

int device_uring(int job, int fd, int like, uint32_t flags, struct kcr_uring *out)
{
	*out = (struct kcr_uring) {
		.size = sizeof(*out), .flags = flags, .fd = fd, .like = like,
	};
	return since_async(device_call(job, KCR_IOC_URING, out));
}

int device_uring_requests(int job, pid_t pid, int fd, struct kcr_uring_requests *out)
{
	*out = (struct kcr_uring_requests){ .size = sizeof(*out), .pid = pid, .fd = fd };
	return since_async(device_call(job, KCR_IOC_URING_REQUESTS, out));
}

int device_packet_ring(int job, int fd, uint32_t flags, struct kcr_packet_ring *ring)
{
	ring->size = sizeof(*ring);
	ring->flags = flags;
	ring->fd = fd;
	ring->pad = 0;
	return since_async(device_call(job, KCR_IOC_PACKET_RING, ring));
}

int device_socket(int job, int fd, struct kcr_socket *out)
{
	*out = (struct kcr_socket){ .size = sizeof(*out), .fd = fd };
	return device_call(job, KCR_IOC_SOCKET, out);
}

int device_userfault(int job, pid_t pid, int fd, struct kcr_userfault *out,
		     struct kcr_userfault_range **ranges)
{
	void *array;
	int count;

	*out = (struct kcr_userfault){ .size = sizeof(*out), .pid = pid, .fd = fd };
	count = device_call_array(job, KCR_IOC_USERFAULT, out, &out->count, &out->ranges,
				  sizeof(struct kcr_userfault_range), &array);
	*ranges = count >= 0 ? array : NULL;
	return since_async(count);
}

int device_undos(int job, pid_t pid, uint32_t *state, struct kcr_undo **out)
{
	struct kcr_undos list = { .size = sizeof(list), .pid = pid };
	void *array = NULL;
	int count = device_call_array(job, KCR_IOC_UNDOS, &list, &list.count, &list.undos,
				      sizeof(struct kcr_undo), &array);

	*state = list.state;
	if (count == -ENOTTY)
		count = 0;
	if (count < 0 && count != -EOPNOTSUPP)
		return report_errno(count, "process %d: cannot read its semaphore adjustments", pid);
	*out = array;
	return count;
}
