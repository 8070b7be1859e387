/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the two ends of a migration say to each other.  The source has started the target's
 * cr_migrate (remote.h) and is connected to its standard input and output:
 *
 *	source				target
 *					HELLO
 *	IMAGE DATA* END			STORED		(for each image)
 *	RESTART				HELD		(restored, nothing runs yet)
 *	GO				RUNNING		(what follows is the program's own output)
 *
 * Until HELD has arrived, the source's processes are at most stopped, and whatever happens
 * they run on.  Then they are killed, and GO tells the target that this has been done: it is
 * not sent before, so there are never two that run.  The target may say FAILED instead of
 * each of its answers, and the source ABORT instead of each of its messages.
 *
 * With --lazy the image lacks pages, and there is a second connection for these, to the target's
 * cr_restart (elsewhere.h), through one more cr_migrate that only passes them on:
 *
 *	source				target
 *					JOINED		(before the first image)
 *					WANT		(at any time after RESTART)
 *	PAGES						(for each)
 *					LOADED		(the last one)
 *
 * Functions return 0 or -errno without a message; -ECONNRESET: the other end has gone.
 */
#ifndef KCR_RESTART_LINK_H
#define KCR_RESTART_LINK_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_MAGIC	"KCR\x1amig\n"
#define LINK_PROTOCOL	1u
#define LINK_DATA_MAX	(1u << 20)	/* bytes of a message */

enum link_type {
	LINK_HELLO = 1,
	LINK_IMAGE = 2,
	LINK_DATA = 3,
	LINK_END = 4,
	LINK_STORED = 5,
	LINK_RESTART = 6,
	LINK_HELD = 7,
	LINK_GO = 8,
	LINK_RUNNING = 9,
	LINK_FAILED = 10,
	LINK_ABORT = 11,
	LINK_JOINED = 12,
	LINK_WANT = 13,
	LINK_PAGES = 14,
	LINK_LOADED = 15,
};

struct link_head {
	uint32_t type;
	uint32_t length;		/* of what follows */
};

/* HELLO: who the target is. */
struct link_hello {
	char magic[8];
	uint32_t protocol;
	uint32_t xstate_size;		/* bytes of a thread's registers, at most */
	char machine[64];		/* uname -m */
	char kernel[64];		/* uname -r */
	char version[32];		/* of KCR */
	char spool[PATH_MAX];		/* the folder of the images */
};

/* FAILED */
struct link_failure {
	int32_t code;			/* exit code */
	char text[1020];
};

/* WANT: some pages of an ELSEWHERE section of the image (image/context.h). */
struct link_want {
	uint64_t number;		/* of the section */
	uint32_t first, nr_pages;	/* CONTEXT_FETCH_PAGES at most */
};

/* PAGES: they follow, one after the other. */
struct link_pages {
	struct link_want of;
	uint64_t sum;			/* XXH64, seed 0, of what follows */
	uint32_t compression;		/* enum context_compression */
	uint32_t pad;			/* 0 */
};

/* The two directions of a connection. */
struct link {
	int in, out;
};

int link_send(const struct link *w, enum link_type type, const void *data, size_t length);
/* The next message's head; -EPROTO: it cannot be one. */
int link_receive(const struct link *w, struct link_head *head);
/* Exactly `length` bytes of what follows. */
int link_read(const struct link *w, void *data, size_t length);

#endif /* KCR_RESTART_LINK_H */
