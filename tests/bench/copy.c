// SPDX-License-Identifier: GPL-2.0
/*
 * `copy PID PERCENT FILE`: the limit of an increment.  Copies so many pages of the largest
 * mapping of a process, here and there as hold changes them, to a file with
 * process_vm_readv(2) and write(2), and prints for how many milliseconds.  The process runs on,
 * and nothing is found out, described or verified.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define BATCH	51		/* pages; as many changed ones as 4 MiB have at 5 % */

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Where the largest mapping is. */
static uint64_t find(const char *pid, uint64_t *length)
{
	uint64_t start, end, found = 0;
	char path[64], line[512];
	FILE *maps;

	*length = 0;
	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return 0;
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 &&
		    end - start > *length) {
			found = start;
			*length = end - start;
		}
	fclose(maps);
	return found;
}

static int copy_batch(pid_t pid, const struct iovec *page, unsigned long count, int fd)
{
	static char buffer[BATCH * PAGE];
	struct iovec all = { .iov_base = buffer, .iov_len = count * PAGE };
	ssize_t length = (ssize_t)all.iov_len;

	return process_vm_readv(pid, &all, 1, page, count, 0) == length &&
	       write(fd, buffer, all.iov_len) == length ? 0 : -1;
}

static int copy(pid_t pid, uint64_t start, uint64_t length, unsigned long percent, int fd)
{
	struct iovec page[BATCH];
	unsigned long count = 0;

	for (uint64_t i = 0; i < length / PAGE; i++) {
		if (i * 37 % 100 >= percent)
			continue;
		page[count++] = (struct iovec){
			.iov_base = (void *)(uintptr_t)(start + i * PAGE), .iov_len = PAGE,
		};
		if (count == BATCH && copy_batch(pid, page, count, fd))
			return -1;
		count %= BATCH;
	}
	return count ? copy_batch(pid, page, count, fd) : 0;
}

int main(int argc, char **argv)
{
	uint64_t start, length;
	double began;
	int fd;

	if (argc != 4) {
		fputs("usage: copy PID PERCENT FILE\n", stderr);
		return 2;
	}
	start = find(argv[1], &length);
	fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	began = now_ms();
	if (!start || fd < 0 ||
	    copy((pid_t)strtol(argv[1], NULL, 10), start, length, strtoul(argv[2], NULL, 10), fd)) {
		perror("copy");
		return 1;
	}
	printf("%.3f\n", now_ms() - began);
	return 0;
}
