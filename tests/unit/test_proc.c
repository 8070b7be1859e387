// SPDX-License-Identifier: GPL-2.0
/* What the functions of proc/ say of this process and of children made for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/clock.h"
#include "proc/proc.h"
#include "proc/status.h"
#include "proc/tree.h"

#define NO_PROCESS	0x7ffffffe
#define MANY		20000		/* mappings: as many lines */

static void paths(void **state)
{
	char path[PROC_PATH], name[2 * PROC_PATH];

	(void)state;
	assert_string_equal(proc_path(path, 7, "task/8/stat"), "/proc/7/task/8/stat");
	assert_string_equal(proc_path(path, PROC_SELF, "exe"), "/proc/self/exe");
	assert_string_equal(proc_path(path, PROC_ROOT, "net/unix"), "/proc/net/unix");
	assert_string_equal(proc_path(path, 7, ""), "/proc/7");
	assert_string_equal(proc_path(path, PROC_ROOT, ""), "/proc");
	assert_string_equal(proc_fd_path(path, 12), "/proc/self/fd/12");
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(strlen(proc_path(path, 7, name)), PROC_PATH - 1);
}

static void nobody(void **state)
{
	char buffer[64];

	(void)state;
	assert_int_equal(proc_open(0, "stat", O_RDONLY), -ENOENT);
	assert_int_equal(proc_open(-1, "stat", O_RDONLY), -ENOENT);
	assert_int_equal(proc_open(NO_PROCESS, "stat", O_RDONLY), -ENOENT);
	assert_int_equal(proc_read(NO_PROCESS, "stat", buffer, sizeof(buffer)), -ENOENT);
	assert_int_equal(proc_link(NO_PROCESS, "exe", buffer, sizeof(buffer)), -ENOENT);
	errno = 0;
	assert_null(proc_text(NO_PROCESS, "stat", NULL));
	assert_int_equal(errno, ENOENT);
	errno = 0;
	assert_null(proc_stream(NO_PROCESS, "maps"));
	assert_int_equal(errno, ENOENT);
	assert_null(proc_environment(NO_PROCESS));
	assert_null(proc_list(NO_PROCESS, "fd"));
	assert_int_equal(proc_next(NULL), -1);
	assert_int_equal(stat_parent(NO_PROCESS), 0);
}

/* All of it, or as much as there is room for. */
static void short_text(void **state)
{
	char small[8], large[8192], *text;
	size_t length;

	(void)state;
	text = proc_text(PROC_SELF, "cmdline", &length);
	assert_non_null(text);
	assert_int_equal(proc_read(getpid(), "cmdline", large, sizeof(large)), length);
	assert_memory_equal(text, large, length + 1);
	assert_int_equal(proc_read(getpid(), "cmdline", small, sizeof(small)), sizeof(small) - 1);
	assert_memory_equal(text, small, sizeof(small) - 1);
	assert_int_equal(small[sizeof(small) - 1], '\0');
	free(text);
}

/* Every other page is another's: a mapping of its own. */
static void long_text(void **state)
{
	const size_t page = 4096;
	char *area = mmap(NULL, MANY * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *text;
	char last[32];
	size_t length;

	(void)state;
	assert_ptr_not_equal(area, MAP_FAILED);
	for (size_t i = 0; i < MANY; i += 2)
		assert_int_equal(mprotect(area + i * page, page, PROT_NONE), 0);
	text = proc_text(PROC_SELF, "maps", &length);
	assert_non_null(text);
	assert_int_equal(strlen(text), length);
	assert_true(length > 40 * MANY);
	snprintf(last, sizeof(last), "\n%lx-", (unsigned long)area + (MANY - 1) * page);
	assert_non_null(strstr(text, last));
	free(text);
	munmap(area, MANY * page);
}

static void lines(void **state)
{
	FILE *status = proc_stream(PROC_SELF, "status");
	char line[256];

	(void)state;
	assert_non_null(status);
	assert_non_null(fgets(line, sizeof(line), status));
	assert_memory_equal(line, "Name:\t", 6);
	assert_int_equal(fcntl(fileno(status), F_GETFD), FD_CLOEXEC);
	fclose(status);
}

static void fields(void **state)
{
	static const char status[] = "Name:\tUid:\nUmask:\t0027\nUid:\t1\t2\t3\t4\nCapEff:\t  1f\n";
	static const char stat[] = "7 (a) S 1 (b) R 42 43 44\n";

	(void)state;
	assert_memory_equal(status_value(status, "Uid"), "1\t2\t3\t4\n", 8);
	assert_null(status_value(status, "Gid"));
	assert_null(status_value(status, "Um"));
	assert_int_equal(status_number(status, "Umask", 8, 0), 027);
	assert_int_equal(status_number(status, "CapEff", 16, 0), 0x1f);
	assert_int_equal(status_number(status, "Gid", 10, 99), 99);
	assert_int_equal(stat_number(stat, 4), 42);
	assert_int_equal(stat_number(stat, 6), 44);
	assert_int_equal(stat_number("", 4), 0);
	assert_int_equal(stat_parent(getpid()), getppid());
}

/* Another description of the same file, though this one may not even read. */
static void descriptors(void **state)
{
	char path[] = "/tmp/test_proc.XXXXXX", link[64], byte;
	int made = mkstemp(path), found, again;
	bool listed = false;
	DIR *list;

	(void)state;
	assert_true(made >= 0);
	assert_int_equal(write(made, "x", 1), 1);
	found = open(path, O_PATH);
	assert_true(proc_fd_link(found, link, sizeof(link)) == (ssize_t)strlen(path));
	assert_string_equal(link, path);
	assert_int_equal(proc_fd_link(found, link, 5), 4);
	assert_string_equal(link, "/tmp");
	again = proc_fd_reopen(found, O_RDONLY);
	assert_true(again >= 0);
	assert_int_equal(fcntl(again, F_GETFD), FD_CLOEXEC);
	assert_int_equal(read(again, &byte, 1), 1);
	list = proc_list(PROC_SELF, "fd");
	for (int fd; (fd = proc_next(list)) >= 0;)
		listed = listed || fd == again;
	assert_true(listed);
	closedir(list);
	close(again);
	close(found);
	close(made);
	unlink(path);
	assert_int_equal(proc_fd_reopen(again, O_RDONLY), -ENOENT);
	assert_int_equal(proc_fd_link(again, link, sizeof(link)), -ENOENT);
}

/* A child that has the environment A=1, B= and nothing else. */
static void environment(void **state)
{
	char *const empty[] = { "A=1", "B=", NULL };
	int ready[2];
	char **found, byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execle("/bin/sleep", "sleep", "100", NULL, empty);
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0);	/* until exec(2) closes it */
	found = proc_environment(pid);
	assert_non_null(found);
	assert_string_equal(found[0], "A=1");
	assert_string_equal(found[1], "B=");
	assert_null(found[2]);
	free(found);
	close(ready[0]);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- trees ------------------------------------------------------------------------ */

static pid_t make_child(void *deeper)
{
	int ready[2];
	pid_t pid, below = 0;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (deeper)
			below = make_child(NULL);
		if (write(ready[1], &below, sizeof(below)) != sizeof(below))
			_exit(1);
		for (;;)
			pause();
	}
	if (read(ready[0], &below, sizeof(below)) != sizeof(below))
		pid = -1;
	close(ready[0]);
	close(ready[1]);
	if (deeper)
		*(pid_t *)deeper = below;
	return pid;
}

/* A thread with a child of its own, which lives until that has been seen. */
static struct {
	pthread_barrier_t made, seen;
	pid_t child;
} other;

static void *other_thread(void *unused)
{
	(void)unused;
	other.child = make_child(NULL);
	pthread_barrier_wait(&other.made);
	pthread_barrier_wait(&other.seen);
	return NULL;
}

static ssize_t place(const pid_t *tree, ssize_t count, pid_t pid)
{
	for (ssize_t i = 0; i < count; i++)
		if (tree[i] == pid)
			return i;
	return -1;
}

static int stop_at_first(void *arg, pid_t child)
{
	*(pid_t *)arg = child;
	return -EXDEV;
}

static void trees(void **state)
{
	pid_t *tree, child, grandchild, first;
	pthread_t thread;
	ssize_t count;

	(void)state;
	pthread_barrier_init(&other.made, NULL, 2);
	pthread_barrier_init(&other.seen, NULL, 2);
	child = make_child(&grandchild);
	assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
	pthread_barrier_wait(&other.made);
	count = proc_tree(getpid(), &tree);
	assert_int_equal(count, 4);
	assert_int_equal(tree[0], getpid());
	assert_true(place(tree, count, child) > 0);
	assert_true(place(tree, count, grandchild) > place(tree, count, child));
	assert_true(place(tree, count, other.child) > 0);
	free(tree);
	assert_int_equal(proc_each_child(getpid(), stop_at_first, &first), -EXDEV);
	assert_true(first == child || first == other.child);
	kill(grandchild, SIGKILL);
	kill(child, SIGKILL);
	kill(other.child, SIGKILL);
	pthread_barrier_wait(&other.seen);
	pthread_join(thread, NULL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	count = proc_tree(getpid(), &tree);
	assert_int_equal(count, 1);
	free(tree);
	assert_int_equal(proc_each_child(NO_PROCESS, stop_at_first, &first), 0);
}

static void clocks(void **state)
{
	uint64_t before = now_ns(), between = clock_ns(CLOCK_MONOTONIC), after = now_ns();

	(void)state;
	assert_true(before && before <= between && between <= after);
	assert_true(clock_ns(CLOCK_REALTIME) / 1000000000 + 1 >= (uint64_t)time(NULL));
	assert_int_equal(clock_ns(9999), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),
		cmocka_unit_test(nobody),
		cmocka_unit_test(short_text),
		cmocka_unit_test(long_text),
		cmocka_unit_test(lines),
		cmocka_unit_test(fields),
		cmocka_unit_test(descriptors),
		cmocka_unit_test(environment),
		cmocka_unit_test(trees),
		cmocka_unit_test(clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
