// SPDX-License-Identifier: GPL-2.0
/*
 * Has memory of a kind that cannot be saved, which the third argument names:
 * `device` (a page of /dev/mem), `secret`, `perf` or `bpf` (of a closed descriptor), `socket`,
 * `userfaultfd`, `hugetlb` or `mseal`.  It is there and, except
 * that of a socket, readable before and after; what was sealed still is.
 */
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"

#define SIZE	(4 << 12)
#define BIOS	0xf0000		/* what every kernel lets root map */

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif

static char *device(void)
{
	int fd = open("/dev/mem", O_RDONLY | O_CLOEXEC);
	char *memory;

	if (fd < 0)
		check_skip("there is no /dev/mem");
	memory = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, BIOS);
	if (memory == MAP_FAILED)
		check_skip("this kernel maps nothing of /dev/mem");
	close(fd);
	return memory;
}

static int open_object(const char *kind)
{
	struct perf_event_attr clock = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(clock), .config = PERF_COUNT_SW_CPU_CLOCK,
	};
	union bpf_attr array = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 4096,
		.map_flags = BPF_F_MMAPABLE,
	};
	int fd;

	if (!strcmp(kind, "perf"))
		return syscall(SYS_perf_event_open, &clock, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (!strcmp(kind, "bpf"))
		return syscall(SYS_bpf, BPF_MAP_CREATE, &array, sizeof(array));
	fd = syscall(SYS_memfd_secret, 0);
	NEED(fd < 0 || !ftruncate(fd, SIZE));
	return fd;
}

static char *map_object(const char *kind)
{
	const size_t size = strcmp(kind, "perf") ? SIZE : 2 << 12;	/* its head and 2^n pages */
	int fd = open_object(kind);
	char *memory;

	if (fd < 0)
		check_skip("this kernel has no such object, or not switched on");
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(memory != MAP_FAILED && !close(fd));
	return memory;
}

/*
 * The memory stays under its control as long as the descriptor is open: by a
 * process that is no child, so that only the memory is in the way.
 */
static void userfault(char *memory)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { .start = (uintptr_t)memory, .len = SIZE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	pid_t pid;
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		check_skip("this kernel has no userfaultfd");
	NEED(!ioctl(fd, UFFDIO_API, &api));
	NEED(!ioctl(fd, UFFDIO_REGISTER, &range));
	pid = fork();
	NEED(pid >= 0);
	if (!pid) {
		if (!fork())
			pause();
		_exit(0);
	}
	NEED(waitpid(pid, NULL, 0) == pid);
	close(fd);
}

/* Of a connection, for TCP_ZEROCOPY_RECEIVE: nothing is there yet. */
static void map_socket(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t length = sizeof(a);

	NEED(!bind(listener, (struct sockaddr *)&a, sizeof(a)) && !listen(listener, 1));
	NEED(!getsockname(listener, (struct sockaddr *)&a, &length));
	NEED(!connect(fd, (struct sockaddr *)&a, sizeof(a)));
	NEED(mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
	NEED(accept(listener, NULL, NULL) >= 0 && !close(listener));
}

/* Private, and not to be written any more. */
static char *huge(void)
{
	const size_t size = 2 << 20;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
			    -1, 0);

	NEED(memory != MAP_FAILED);
	check_fill(memory, size, 1);
	NEED(!mprotect(memory, size, PROT_READ));
	return memory;
}

static void seal(char *memory)
{
	if (syscall(SYS_mseal, memory, SIZE, 0) && errno == ENOSYS)
		check_skip("this kernel has no mseal");
	NEED(mprotect(memory, SIZE, PROT_READ) && errno == EPERM);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 3 ? argv[3] : "";
	volatile char *memory;
	char *fresh, first;

	check_begin(argc, argv);
	if (!strcmp(kind, "device")) {
		fresh = device();
	} else if (!strcmp(kind, "hugetlb")) {
		fresh = huge();
	} else if (!strcmp(kind, "secret") || !strcmp(kind, "perf") || !strcmp(kind, "bpf")) {
		fresh = map_object(kind);
	} else {
		fresh = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		NEED(fresh != MAP_FAILED);
		check_fill(fresh, SIZE, 1);
		if (!strcmp(kind, "userfaultfd"))
			userfault(fresh);
		else if (!strcmp(kind, "socket"))
			map_socket();
		else
			seal(fresh);
	}
	memory = fresh;
	first = memory[0];
	check_ready();
	check_wait();
	CHECK(memory[0] == first);
	if (!strcmp(kind, "mseal"))
		CHECK(mprotect(fresh, SIZE, PROT_READ) && errno == EPERM);
	return check_end();
}
