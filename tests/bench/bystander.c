// SPDX-License-Identifier: GPL-2.0
/*
 * A user who has nothing to do with checkpoints: for each line on its standard input
 * it forks, and then switches between two processes, for SLICE_MS each, and prints the
 * rate of both per second, each with the fraction of that time (0 to 1) for which it
 * had its processor.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS	600

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(int holds, const char *what)
{
	if (!holds) {
		perror(what);
		exit(1);
	}
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* CPU time of this process and its reaped children. */
static double used(void)
{
	struct rusage own, children;

	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
	return seconds(own.ru_utime) + seconds(own.ru_stime) + seconds(children.ru_utime) +
	       seconds(children.ru_stime);
}

static double forks(void)
{
	double start = now(), took;
	int count = 0;

	do {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		must(pid > 0 && waitpid(pid, NULL, 0) == pid, "fork");
		count++;
		took = now() - start;
	} while (took < SLICE_MS / 1e3);
	return count / took;
}

static void echo(int from, int to)
{
	char byte;

	while (read(from, &byte, 1) == 1)
		if (write(to, &byte, 1) != 1)
			break;
	_exit(0);
}

/* Two switches for each byte sent to the other process and back. */
static double switches(void)
{
	int there[2], back[2], count = 0;
	double start, took;
	char byte = 0;
	pid_t pid;

	must(!pipe(there) && !pipe(back), "pipe");
	pid = fork();
	if (!pid) {
		close(there[1]);
		echo(there[0], back[1]);
	}
	start = now();
	do {
		must(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1, "pipe");
		count += 2;
		took = now() - start;
	} while (took < SLICE_MS / 1e3);
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
	waitpid(pid, NULL, 0);
	return count / took;
}

/* "RATE SHARE " */
static void tell(double (*work)(void))
{
	double start = now(), had = used(), rate = work();

	printf("%.1f %.4f ", rate, (used() - had) / (now() - start));
}

int main(void)
{
	char line[16];

	while (fgets(line, sizeof(line), stdin)) {
		tell(forks);
		tell(switches);
		puts("");
		fflush(stdout);
	}
	return 0;
}
