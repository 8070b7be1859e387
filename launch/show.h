/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Output of the ranks, and what cr_mpirun itself has to say, on its way to cr_mpirun's own standard
 * output and error, in the order in which it came.  Nothing here waits: what is not taken yet is kept.
 */
#ifndef LAUNCH_SHOW_H
#define LAUNCH_SHOW_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHOW_FDS	2

struct shown;

struct show {
	struct {
		struct shown *first, **last;
		bool lost;		/* nobody reads it any more: the rest is dropped */
	} stream[SHOW_FDS];
	bool in_line;	/* what was added for standard error last did not end its line */
	/* Called when `bytes` of a node's have been written or dropped. */
	void (*done)(void *argument, uint32_t node, size_t bytes);
	void *argument;
};

void show_init(struct show *s, void (*done)(void *, uint32_t, size_t), void *argument);
/* `fd`: STDOUT_FILENO or STDERR_FILENO. */
void show_add(struct show *s, int fd, uint32_t node, const uint8_t *data, size_t length);
/*
 * A line of cr_mpirun's own on standard error, to which this adds "KCR: " and the newline, and one
 * before it after a rank's unfinished line.  It is written at once if there is room.  NULL: nobody
 * shows anything, and it is printed as anywhere.
 */
void show_say(struct show *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool show_is_empty(const struct show *s);
/* Fills in SHOW_FDS entries. */
void show_watch(const struct show *s, struct pollfd *p);
void show_serve(struct show *s, const struct pollfd *p);
/* The job is to end: what nobody reads now is lost. */
void show_drop(struct show *s);

#endif /* LAUNCH_SHOW_H */
