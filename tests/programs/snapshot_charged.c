// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is made only because it is read, of a snapshot, is charged to the memory cgroup of who
 * reads it: whose `memory.current` is named by the argument, and which this process is in.
 */
#include <sys/mman.h>

#include "job.h"

#define LENGTH	(32ul << 20)

static long charged(const char *path)
{
	FILE *in = fopen(path, "re");
	long bytes = -1;

	NEED(in && fscanf(in, "%ld", &bytes) == 1);
	fclose(in);
	return bytes;
}

int main(int argc, char **argv)
{
	int job = job_open(), memory = memfd_create("untouched", MFD_CLOEXEC);
	char *place = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED, memory, 0);
	struct kcr_run run = { (uintptr_t)place, LENGTH / 4096 };
	struct kcr_snapshot snapshot = { .size = sizeof(snapshot) };
	struct kcr_pages pages = {
		.size = sizeof(pages), .flags = KCR_PAGES_SNAPSHOT, .count = 1,
		.runs = (uintptr_t)&run, .fd = open("/dev/null", O_WRONLY | O_CLOEXEC),
	};
	long before, after;

	NEED(argc == 2 && job >= 0 && memory >= 0 && pages.fd >= 0 && place != MAP_FAILED);
	NEED(!ftruncate(memory, LENGTH));
	pages.pid = job_idle_child();
	NEED(!job_add(job, pages.pid) && !job_park(job, 0, NULL));
	NEED(!job_call(job, KCR_IOC_SNAPSHOT, &snapshot));
	before = charged(argv[1]);
	CHECK(!job_call(job, KCR_IOC_WRITE, &pages) && pages.bytes == LENGTH);
	after = charged(argv[1]);
	CHECK(after > before + (long)LENGTH * 9 / 10);
	job_kill(pages.pid);
	return !!check_failures;
}
