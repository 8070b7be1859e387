/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Open files without the module: a program makes them and waits, they are
 * saved from outside by pidfd_getfd(2), the program is killed, another process
 * rebuilds them as cr_restart does, and the processes that it forks go on
 * using them.
 */
#ifndef KCR_TESTS_FILES_H
#define KCR_TESTS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "resource/resource.h"

struct files_test {
	/* The program: opens its descriptors, all below 900. */
	void (*make)(void);
	/* If set, it forks then, and this is what the child does. */
	void (*make_child)(void);
	/* After the restart, in each of them. */
	void (*use)(void);
	void (*use_child)(void);
	/* In cr_restart before it begins; in cr_checkpoint before it registers. */
	void (*before_restart)(void);
	void (*before_save)(struct file_table *t, pid_t pid);
	/* In cr_restart between opening and forking. */
	void (*opened)(struct rebuild *r);
	bool skip_unsupported;
	int expect_save, expect_restart;	/* -errno: it must fail so */
};

/* Fails the test unless everything goes as it should. */
void files_cycle(const struct files_test *test);

/* In a process of the test: ends it with a message. */
#define must(condition) files_must(condition, #condition, __FILE__, __LINE__)
void files_must(bool condition, const char *text, const char *file, int line);

/* The descriptor moves to this number. */
void files_at(int fd, int number);

/* epoll_ctl(2). */
void files_watch(int epoll, int fd, uint32_t events, uint64_t data);

/* Sends, or receives, the whole text ("": the end); nothing is there to receive. */
void files_say(int fd, const char *text);
bool files_hears(int fd, const char *text);
bool files_silent(int fd);

/* The folder is there while a group of tests runs. */
int files_set_up(void **state);
int files_tear_down(void **state);

extern char files_folder[];		/* a folder of this test program's own */
const char *files_path(const char *name);

#endif /* KCR_TESTS_FILES_H */
