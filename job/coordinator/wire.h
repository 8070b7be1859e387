/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The messages between cr_mpirun (the root), the daemon of each node (cr_node) and
 * the ranks.  A checkpoint is
 *
 *	root → ranks	ranks → root	meanwhile in the rank
 *	PREPARE		BOOKMARKS	gate closed
 *	DRAIN		DRAINED		all that others sent is received
 *	DUMP (to the daemons, which answer DUMPED for each rank: it sleeps in read())
 *	    SUSPEND	SUSPENDED	between daemon and rank: shared memory released
 *	CONTINUE	CONTINUED	resumed, gate open
 *	SYNC (to the daemons, which answer SYNCED for each rank), then the commit
 *
 * and each answer may be FAILED instead; then all get CONTINUE at once, those of a
 * node once all that were told to suspend have done so: no rank resumes while another
 * is about to release the memory that they share.  If the ranks are to get a signal, SYNC
 * and commit come before SIGNAL and CONTINUE.  Where the ranks run on while they are
 * written, in the place of DUMP and CONTINUE:
 *
 *	CHECK (before PREPARE, to the daemons, which answer READY for each rank)
 *	COPY (to the daemons, which answer COPIED for each rank), SUSPEND as above
 *	WRITE (to the daemons: CONTINUE)  CONTINUED	resumed, gate open
 *	    DUMPED for each rank, of the daemon, when its file is complete
 *
 * A failure from then on makes the daemons drop the files at CONTINUE.  After a restart every rank sends HELLO
 * with its address, and WHERE, whose answer it waits for:
 *
 *	daemon		root
 *	HELLO …		BACK, when all ranks have said it: the barrier before any MPI message
 *	WHERE		FOUND	what its ranks have asked for and it does not know yet
 *	FOUND (to each rank)	channels are new, gate open
 *
 * From then on the daemon answers a rank that asks for one more peer, which it asks the root for
 * if it is the first of its ranks to want it.  A rank that does not ask, of release 0.1.0, gets
 * ADDRESSES instead, as do all ranks of its node, and those of a node whose daemon passes WHERE
 * on as it is.
 *
 * The first checkpoint after a restart begins with LOAD, to the daemons, which answer LOADED for
 * each rank once all of its memory is there.
 *
 * Root and daemon authenticate each other before anything else (greeting.h); from then on
 * every write between them is sealed.  Ranks and their daemon check the credentials of
 * the other end's process, as reported by the kernel.
 *
 * A restored rank brings along the hook/cr and btl/cr of the release that saved it, and
 * the cr_mpirun and daemon that it connects to may be of another one.  So HELLO says what the
 * rank supports (struct wire_version), and a rank that this cr_mpirun cannot serve is
 * refused by name.  Root and daemon are of one greeting version.  A message that is one
 * struct grows at its end only and is read as far as it is known; one that ends in a text
 * or a list stays as it is, and gets a new type beside it.  A type that the receiver does
 * not know is no error: a rank and the root drop the message, a daemon passes it on, from
 * the root to its ranks and from a rank to the root.
 *
 * Integers are in the byte order of the machine: a job has only one.
 */
#ifndef JOB_WIRE_H
#define JOB_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/secret/seal.h"

#define WIRE_ALL	0xffffffffu	/* all ranks */
#define WIRE_NOBODY	0xfffffffeu
#define WIRE_MAX	(64u << 20)	/* bytes of a message */
#define WIRE_RANKS_MAX	(1u << 22)	/* of a job */
#define WIRE_SECRET	32		/* characters, in hexadecimal */
#define WIRE_SILENCE_S	60		/* of a node, until it is lost */

/* The daemon's socket for its ranks; the root's for the daemons; secret of the job. */
#define WIRE_DAEMON_VARIABLE	"KCR_MPI_DAEMON"
#define WIRE_ROOT_VARIABLE	"KCR_MPI_ROOT"
#define WIRE_SECRET_VARIABLE	"KCR_MPI_SECRET"
/* For the daemons: the root is lost after so many seconds of silence. */
#define WIRE_SILENCE_VARIABLE	"KCR_MPI_SILENCE"

/* Restarted ranks may be older than the rest: new types go at the end. */
enum wire_type {
	WIRE_NODE = 1,		/* daemon → root: struct greeting_node */
	WIRE_HELLO,		/* rank → root: struct wire_hello, address, struct wire_version */
	WIRE_LEAVE,		/* rank → root: in MPI_Finalize */
	WIRE_LEFT,		/* root → rank: no checkpoint any more */
	WIRE_GONE,		/* daemon → root: the rank's connection is lost */
	WIRE_PREPARE,		/* uint32_t: the requesting rank, WIRE_ALL or WIRE_NOBODY */
	WIRE_BOOKMARKS,		/* struct wire_bookmark[] */
	WIRE_DRAIN,		/* struct wire_bookmark[]: what each peer has sent to this rank */
	WIRE_DRAINED,
	WIRE_DUMP,		/* root → daemon: struct wire_dump */
	WIRE_DUMPED,		/* daemon → root: warnings, each with a newline */
	WIRE_SYNC,		/* root → daemon */
	WIRE_SYNCED,		/* daemon → root: struct wire_synced[] */
	WIRE_SIGNAL,		/* root → daemon: int32_t */
	WIRE_CONTINUE,
	WIRE_CONTINUED,
	WIRE_ADDRESSES,		/* root → ranks: struct wire_address and its bytes, for every rank */
	WIRE_FAILED,		/* struct wire_failed, text */
	WIRE_ASK,		/* rank → root: struct wire_ask; answered when all is done */
	WIRE_FORGET,		/* root → daemon: a folder of local_name() that is to be removed */
	WIRE_ANSWER,		/* root → rank: struct wire_failed, code 0: complete */
	WIRE_SUSPEND,		/* daemon → rank */
	WIRE_SUSPENDED,		/* rank → daemon */
	WIRE_UNABLE,		/* rank → root: none takes part; a byte: all ranks have met */
	WIRE_CHALLENGE,		/* root → daemon: struct greeting_challenge */
	WIRE_WELCOME,		/* root → daemon: a proof; what follows is sealed */
	WIRE_CHECK,		/* root → daemon: as WIRE_DUMP */
	WIRE_READY,
	WIRE_COPY,		/* root → daemon */
	WIRE_COPIED,		/* daemon → root: struct wire_copied */
	WIRE_WRITE,		/* root → daemon: all ranks are copied, and go on */
	WIRE_LAUNCH,		/* of launch/, either way; id: the number of the node, WIRE_ALL */
	WIRE_BEAT,		/* daemon → root, and back: nothing */
	WIRE_FIGURES,		/* daemon → root, before SYNCED: struct job_figures of its ranks */
	WIRE_WHERE,		/* rank → daemon → root: uint32_t[]: the ranks whose addresses it needs */
	WIRE_FOUND,		/* root → daemon → rank: as ADDRESSES, for those; in the order asked */
	WIRE_BACK,		/* root → daemon: all ranks are restored */
	WIRE_LOAD,		/* root → daemon */
	WIRE_LOADED,		/* daemon → root */
	WIRE_SAY,		/* root → launch/: a line for the user */
	WIRE_ALIVE,		/* root → daemon, and back: nothing; the daemon also says it when it joins */
};

struct wire_header {
	uint32_t length;	/* of what follows, bytes */
	uint32_t type;		/* enum wire_type */
	uint32_t rank;		/* the sender or the receiver; WIRE_ALL */
	uint32_t id;		/* of the checkpoint; answers repeat it */
};

struct wire_hello {
	int32_t pid;		/* of the rank */
	int32_t top;		/* of the process that the daemon started for it */
	uint32_t size;		/* of the job */
	uint32_t restarted;
	uint32_t address_length;
};

/*
 * What the rank's hook/cr supports.  Release 0.1.0 does not send it: it is version 0
 * and supports all of WIRE_CAN_0.  Later ones may send more than this.
 */
struct wire_version {
	uint32_t number;	/* WIRE_VERSION of its release */
	uint32_t can;
};

#define WIRE_VERSION	1

/* Messages in their present form; those of another form get a bit of their own. */
#define WIRE_CAN_SAVE	1u	/* PREPARE, DRAIN, SUSPEND, CONTINUE and LEFT */
#define WIRE_CAN_MOVE	2u	/* ADDRESSES */
#define WIRE_CAN_FIND	4u	/* WHERE and FOUND */
#define WIRE_CAN_0	(WIRE_CAN_SAVE | WIRE_CAN_MOVE)

/* These make up most of the bytes of a checkpoint's messages. */
struct __attribute__((packed)) wire_bookmark {
	uint32_t rank;
	uint64_t sent;
};

struct wire_dump {
	uint32_t local;		/* the folder is on each node's own disk: the daemon creates it */
	int32_t signal;		/* the ranks stand still until WIRE_SIGNAL with it; 0: there will be none */
	char strings[];		/* the folder, then arguments of cr_checkpoint, each with its NUL */
};

struct wire_copied {
	uint32_t copied;	/* 0: no copy could be made, so the rank stood still until all was written */
};

/* The rank's context file; behind it those that it needs, the oldest first. */
struct wire_synced {
	uint64_t bytes;
	uint64_t id;		/* in its head */
};

struct wire_address {
	uint32_t rank;
	uint32_t length;	/* of the bytes that follow */
};

struct wire_failed {
	int32_t code;		/* errno */
};

struct wire_ask {
	uint32_t keep;		/* snapshots */
	uint32_t alone;		/* 0: all ranks ask together */
	char path[];		/* absolute; NUL */
};

/* Before the messages that were written at once, if they are sealed. */
struct wire_seal {
	uint32_t length;		/* of these messages, bytes */
	uint8_t tag[SEAL_TAG];
};

/*
 * One end of a connection, non-blocking, for a poll(2) loop.  Belongs to one
 * thread.
 */
struct wire {
	int fd;			/* -1: closed */
	bool blocked;			/* the rest of `out` is sent when there is room */
	uint8_t *in, *out;
	size_t in_begin, in_end, in_room;
	size_t out_begin, out_end, out_room;

	bool sealed;
	struct seal in_seal, out_seal;
	size_t in_sound;		/* bytes from in_begin on whose seal was checked */
	size_t out_open;		/* bytes before out_end not yet sealed */
};

void wire_open(struct wire *w, int fd);	/* takes the descriptor over */
void wire_close(struct wire *w);
short wire_events(const struct wire *w);	/* what to poll for */

/* From now on everything is sealed, with these keys. */
void wire_seal(struct wire *w, const uint8_t in_key[SEAL_KEY], const uint8_t out_key[SEAL_KEY]);

/*
 * For TCP: messages are sent without delay, and a peer whose machine has silently
 * disappeared is noticed after `silence_s` seconds, by TCP's keep-alive probes and
 * TCP_USER_TIMEOUT: kernels answer, however busy the programs are.  That also counts the time
 * for which the peer has no room for what is sent: see wire_make_room().
 */
void wire_watch_peer(int fd, unsigned int silence_s);
/* Before listen(2) or connect(2): room for what comes while this process is stopped. */
void wire_make_room(int fd);

/*
 * Queues a message for wire_flush(): many small ones are cheap only together.  On a
 * lost connection it is dropped silently (poll reports the loss).
 */
void wire_queue(struct wire *w, uint32_t type, uint32_t rank, uint32_t id,
		const void *data, size_t length);
/* wire_queue() and wire_flush(). */
void wire_send(struct wire *w, uint32_t type, uint32_t rank, uint32_t id,
	       const void *data, size_t length);
/* Is there something to write? */
static inline bool wire_pending(const struct wire *w)
{
	return w->out_begin < w->out_end;
}
/* Writes what it can.  0 or -errno: connection lost. */
int wire_flush(struct wire *w);
/* Reads what is available.  0 or -errno: connection lost, -ECONNRESET: end of stream. */
int wire_fill(struct wire *w);
/* Likewise with a single read: 1 there may be more, 0, or -errno. */
int wire_fill_once(struct wire *w);
/*
 * The next complete message: 1 with the header and the data (valid until the
 * next call), 0: none yet, -EPROTO: malformed, -EBADMSG: the seal is wrong.
 */
int wire_next(struct wire *w, struct wire_header *header, const uint8_t **data);

/*
 * Blocking, without seals.  0 or -errno (-ECONNRESET: end of stream,
 * -EPROTO: more than `most` bytes).  Data is malloc()ed, NULL if length is 0.
 */
int wire_write(int fd, uint32_t type, uint32_t rank, uint32_t id, const void *data, size_t length);
int wire_read(int fd, struct wire_header *header, uint8_t **data, size_t most);

#endif /* JOB_WIRE_H */
