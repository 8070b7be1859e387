/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small made-up context for tests of image/: a process with two threads, one
 * that shares its memory, a zombie; a regular file, both ends of a pipe, shared
 * memory; contents, and memory stored raw, with LZ4 and with Zstandard.
 */
#ifndef KCR_TESTS_SAMPLE_H
#define KCR_TESTS_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "image/context.h"

#define SAMPLE_FILES		4
#define SAMPLE_PROCESSES	3
#define SAMPLE_PID		100
#define SAMPLE_TID		101
#define SAMPLE_SHARING_PID	200
#define SAMPLE_ZOMBIE_PID	300
#define SAMPLE_TEXT		0x400000ull	/* a page of a file, not saved */
#define SAMPLE_HEAP		0x10000000ull	/* 16 pages, 6 of them saved */
#define SAMPLE_SHARED		0x20000000ull	/* 2 pages of shared memory */
#define SAMPLE_STACK		0x7ffffffde000ull

struct sample {
	Kcr__Preamble preamble;
	Kcr__File file[SAMPLE_FILES];
	Kcr__Process process[SAMPLE_PROCESSES];
	void *storage;			/* what the above point to */
};

void sample_make(struct sample *s);
void sample_free(struct sample *s);
/* Writes all of it; 0 or the first -errno. */
int sample_write(const struct sample *s, int fd);
/* Only preamble, files and processes. */
int sample_write_metadata(const struct sample *s, struct context_writer *w);

/* The byte at `offset` of the page at `address`, as sample_write() has it. */
uint8_t sample_byte(uint64_t address, size_t offset);

/*
 * Reads a context file to its end; 0 or -errno.  *digest gets a number that
 * stands for all that was read.  `taken`: raw pages are read from the
 * descriptor, as the module does.
 */
int sample_read(int fd, bool taken, uint64_t *digest);

#endif /* KCR_TESTS_SAMPLE_H */
