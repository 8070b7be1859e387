// SPDX-License-Identifier: GPL-2.0
/*
 * The pages of a member of a job: what READ and WRITE give, and their checksums, which READ
 * leaves out if it is told to; one call after the other, the first of which fail halfway.
 * kcr-build: -DXXH_INLINE_ALL
 */
#include <sys/mman.h>
#include <xxhash.h>

#include "job.h"

#define PAGES	700ul		/* more than the module moves at a time */
#define BYTES	(PAGES * 4096)

static int job;
static pid_t member;
static unsigned char *memory, *got;

static int move(unsigned long number, uint32_t flags, int fd, uint64_t nr_pages,
		struct kcr_pages *answer)
{
	struct kcr_run run = { .address = (uintptr_t)memory, .nr_pages = nr_pages };

	*answer = (struct kcr_pages){
		.size = sizeof(*answer), .flags = flags, .pid = member, .fd = fd,
		.runs = (uintptr_t)&run, .count = 1, .buffer = (uintptr_t)got, .sum = 7,
	};
	return job_call(job, number, answer);
}

static void read_all(uint32_t flags, uint64_t sum)
{
	struct kcr_pages answer;

	memset(got, 0, BYTES);
	CHECK(move(KCR_IOC_READ, flags, -1, PAGES, &answer) == 0);
	CHECK(answer.bytes == BYTES && answer.sum == sum);
	CHECK(!memcmp(got, memory, BYTES));
}

static void write_all(uint64_t sum)
{
	int fd = memfd_create("pages", MFD_CLOEXEC);
	struct kcr_pages answer;

	NEED(fd >= 0);
	memset(got, 0, BYTES);
	CHECK(move(KCR_IOC_WRITE, KCR_PAGES_NO_SUM, fd, PAGES, &answer) == -EINVAL);
	CHECK(move(KCR_IOC_WRITE, 0, fd, PAGES, &answer) == 0);
	CHECK(answer.bytes == BYTES && answer.sum == sum);
	CHECK(pread(fd, got, BYTES, 0) == (ssize_t)BYTES && !memcmp(got, memory, BYTES));
	close(fd);
}

int main(void)
{
	struct kcr_pages answer;
	uint64_t sum;

	got = malloc(BYTES);
	memory = mmap(NULL, BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(got && memory != MAP_FAILED && !munmap(memory + BYTES, 4096));
	for (size_t i = 0; i < BYTES; i++)
		memory[i] = (unsigned char)(i * 7 + i / 4096);
	sum = XXH64(memory, BYTES, 0);
	member = fork();
	if (!member)
		job_idle();
	job = job_open();
	NEED(job >= 0 && !job_add(job, member) && !job_park(job, 0, NULL));
	/* What is behind the last page is not mapped; there is no such file. */
	CHECK(move(KCR_IOC_READ, 0, -1, PAGES + 1, &answer) == -EFAULT);
	CHECK(move(KCR_IOC_WRITE, 0, -1, 1, &answer) == -EBADF && !answer.bytes);
	read_all(0, sum);
	read_all(KCR_PAGES_NO_SUM, 0);
	read_all(0, sum);
	write_all(sum);
	CHECK(move(KCR_IOC_READ, ~0u, -1, 1, &answer) == -EINVAL);
	close(job);
	kill(member, SIGKILL);
	return !!check_failures;
}
