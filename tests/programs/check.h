/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What every test program does: PROGRAM READY GO [ARGUMENT…] sets something up,
 * makes the file READY, waits until the file GO exists, and then checks that all
 * is as it was and goes on working.  Meanwhile it is checkpointed, perhaps
 * killed and restarted.  Exit status: 0, 1 something differs (said on stderr),
 * 2 it could not be set up, 4 this machine does not have it.
 */
#ifndef KCR_TESTS_CHECK_H
#define KCR_TESTS_CHECK_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *check_ready_file, *check_go_file;
/* Of all files of a program. */
__attribute__((weak)) int check_failures;

/* Must hold after as before. */
#define CHECK(condition)							\
	do {									\
		errno = 0;							\
		if (!(condition))						\
			check_failed(__FILE__, __LINE__, #condition);		\
	} while (0)

/* Must hold for the test to make sense. */
#define NEED(condition)								\
	do {									\
		errno = 0;							\
		if (!(condition))						\
			check_no_setup(__FILE__, __LINE__, #condition);		\
	} while (0)

static inline void check_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "# %s:%d: not so: %s%s%s\n", file, line, what, errno ? ": " : "",
		errno ? strerror(errno) : "");
	__atomic_add_fetch(&check_failures, 1, __ATOMIC_RELAXED);
}

static inline void check_no_setup(const char *file, int line, const char *what)
{
	fprintf(stderr, "# %s:%d: setting up: %s%s%s\n", file, line, what, errno ? ": " : "",
		errno ? strerror(errno) : "");
	_exit(2);
}

static inline void check_skip(const char *why)
{
	fprintf(stderr, "# skipped: %s\n", why);
	_exit(4);
}

static inline void check_begin(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: %s READY GO [ARGUMENT...]\n", argv[0]);
		exit(2);
	}
	check_ready_file = argv[1];
	check_go_file = argv[2];
}

static inline void check_ready(void)
{
	int fd = open(check_ready_file, O_CREAT | O_WRONLY | O_CLOEXEC, 0666);

	NEED(fd >= 0);
	NEED(write(fd, "ready\n", 6) == 6);
	close(fd);
}

static inline bool check_gone(void)
{
	return access(check_go_file, F_OK) == 0;
}

static inline void check_sleep_ms(long ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

	/* A checkpoint must not be seen: nothing but the end of the time ends it. */
	CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &left, NULL) == 0);
}

static inline void check_wait(void)
{
	while (!check_gone())
		check_sleep_ms(20);
}

/* Leaves a process that has all that the caller has, and no parent, until the end; false: it cannot. */
static inline bool check_leave_orphan(void)
{
	pid_t child = fork();

	if (!child) {
		if (!fork()) {
			setsid();
			check_wait();
		}
		_exit(0);
	}
	return child > 0 && waitpid(child, NULL, 0) == child;
}

/* Here it happens to the program. */
static inline void checkpoint_here(void)
{
	check_ready();
	check_wait();
}

static inline int check_end(void)
{
	return check_failures ? 1 : 0;
}

/* Of a program that has several: PROGRAM READY GO NAME [ARGUMENT]. */
struct check {
	const char *name;
	void (*run)(void);
};

static const char *check_argument;	/* NULL: none */

/* The one of checks, which end in one without a name, that the command line names. */
static inline int check_one(int argc, char **argv, const struct check *checks)
{
	if (argc < 4) {
		for (; checks->name; checks++)
			puts(checks->name);
		return 2;
	}
	check_begin(argc, argv);
	check_argument = argv[4];
	while (checks->name && strcmp(checks->name, argv[3]))
		checks++;
	NEED(checks->name);
	checks->run();
	return check_end();
}

/* Memory that is told from any other: a number that depends on seed and place. */
static inline void check_fill(void *memory, size_t length, uint64_t seed)
{
	uint64_t *word = (uint64_t *)memory;

	for (size_t i = 0; i < length / sizeof(*word); i++)
		word[i] = (seed + i) * 0x9e3779b97f4a7c15ull + 1;
}

static inline bool check_filled(const void *memory, size_t length, uint64_t seed)
{
	const uint64_t *word = (const uint64_t *)memory;

	for (size_t i = 0; i < length / sizeof(*word); i++)
		if (word[i] != (seed + i) * 0x9e3779b97f4a7c15ull + 1)
			return false;
	return true;
}

/* The whole of a file (of /proc) as a string, in static memory of the caller. */
static inline const char *check_slurp(const char *path, char *buffer, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got = 0;

	while (fd >= 0 && length < size - 1 &&
	       (got = read(fd, buffer + length, size - 1 - length)) > 0)
		length += got;
	if (fd >= 0)
		close(fd);
	buffer[length] = '\0';
	return buffer;
}

/* A line "KEY: value" of /proc/self/status as a number; -1: none. */
static inline long long check_status(const char *key, int base)
{
	static char text[8192];
	size_t length = strlen(key);
	const char *line = check_slurp("/proc/self/status", text, sizeof(text));

	for (; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (!strncmp(line, key, length) && line[length] == ':')
			return strtoll(line + length + 1, NULL, base);
	}
	return -1;
}

/* The state of the first thread: 'Z': it has ended. */
static inline char check_leader_state(void)
{
	char text[512];
	const char *end = strrchr(check_slurp("/proc/self/stat", text, sizeof(text)), ')');

	return end ? end[2] : '?';
}

#endif /* KCR_TESTS_CHECK_H */
