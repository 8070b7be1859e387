// SPDX-License-Identifier: GPL-2.0
/*
 * job_held: what programs keep locked is not waited for.  A thread makes the kernel wait for memory
 * (of a userfaultfd that nobody serves) while it owns a socket: what the module tells of it it tells
 * nevertheless, or says that it is busy, and both in time.
 */
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "job.h"

#define PAGE	4096u

static int packet = -1, held = -1, faults = -1;
static struct sock_filter *missing;		/* a page that is not there */
static pthread_t thread;

static void make_ring(void)
{
	struct tpacket_req request = { .tp_block_size = PAGE, .tp_block_nr = 2, .tp_frame_size = PAGE,
				       .tp_frame_nr = 2 };
	int version = TPACKET_V2;

	packet = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	NEED(packet >= 0);
	NEED(!setsockopt(packet, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)));
	NEED(!setsockopt(packet, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)));
}

static void make_missing(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	NEED(faults >= 0 && !ioctl(faults, UFFDIO_API, &api));
	missing = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(missing != MAP_FAILED);
	range.range = (struct uffdio_range){ (uintptr_t)missing, PAGE };
	NEED(!ioctl(faults, UFFDIO_REGISTER, &range));
}

/* Reads its filter while it owns the socket. */
static void *attach(void *arg)
{
	struct sock_fprog program = { .len = 1, .filter = missing };

	setsockopt(held, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
	return arg;
}

static void give_page(void)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0xffff);
	static char page[PAGE] __attribute__((aligned(PAGE)));
	struct uffdio_copy copy = { .dst = (uintptr_t)missing, .src = (uintptr_t)page, .len = PAGE };

	memcpy(page, &all, sizeof(all));
	NEED(!ioctl(faults, UFFDIO_COPY, &copy));
}

/* Only a message says that the thread waits. */
static void wait_for_fault(void)
{
	struct uffd_msg message;

	NEED(read(faults, &message, sizeof(message)) == sizeof(message));
	NEED(message.event == UFFD_EVENT_PAGEFAULT);
}

static void hold(int fd)
{
	held = fd;
	make_missing();
	NEED(!pthread_create(&thread, NULL, attach, NULL));
	wait_for_fault();
}

static void let_go(void)
{
	give_page();
	NEED(!pthread_join(thread, NULL));
	close(faults);
}

static int ask_ring(int job)
{
	struct kcr_packet_ring ask = { .size = sizeof(ask), .fd = packet };

	return job_call(job, KCR_IOC_PACKET_RING, &ask);
}

int main(void)
{
	struct kcr_socket ask = { .size = sizeof(ask) };
	int job = job_open(), ring;

	NEED(job >= 0);
	make_ring();
	ring = ask_ring(job);
	hold(packet);
	CHECK(ask_ring(job) == (ring ? ring : -EBUSY));
	let_go();
	CHECK(ask_ring(job) == ring);
	ask.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	hold(ask.fd);
	CHECK(!job_call(job, KCR_IOC_SOCKET, &ask));
	let_go();
	CHECK(ring == 0 || ring == -EOPNOTSUPP);
	close(job);
	return !!check_failures;
}
