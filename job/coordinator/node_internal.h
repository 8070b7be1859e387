/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of a node's daemon, shared by its parts: node.c (the thread, its ranks and
 * the messages between them and the root), node_saving.c (its own part in a checkpoint),
 * node_addresses.c (where other ranks are after a restart), node_loading.c and node_beats.c.
 * One thread owns it.
 */
#ifndef JOB_NODE_INTERNAL_H
#define JOB_NODE_INTERNAL_H

#include <stdbool.h>

#include "job/coordinator/dump.h"
#include "job/coordinator/wire.h"

#define MAX_ARGUMENTS	32

struct member {				/* a rank of this node */
	struct wire wire;
	uint32_t rank;			/* WIRE_ALL: not known yet */
	int32_t pid, top;		/* its PID, and that of the process started for it */
	bool suspends;			/* was told to suspend, has not answered */
	bool wanted;			/* is to be dumped then */
	bool waits;			/* for its turn to be dumped */
	bool owes;			/* an answer */
	bool apart;			/* restored, and does not know its peers yet */
	bool loads;			/* LOADED is to be said when it is */
	struct dump dump;
	uint32_t dump_id;		/* of the checkpoint that it belongs to */
	enum dump_state told;		/* the last that the root was told of it */
};

struct saved {
	uint32_t rank;
	struct wire_synced *file;	/* its own, and those that this needs */
	size_t nr_files;
};

/* node_addresses.c */
struct node_addresses {
	struct known_address *known;	/* by rank */
	uint32_t room;
	struct inquiry *first, **last;	/* of its ranks, in the order of their answers */
	uint64_t asked, answered;	/* questions to the root */
	bool back;			/* it takes questions */
};

struct node {
	int listener;
	bool crowded;			/* there was no room for the last rank, which waits */
	struct wire root;
	uint64_t beat_ns, next_beat_ns;	/* between two of WIRE_BEAT, 0: none; when one is due */
	bool beat_owed;			/* the root has not answered the last one */
	struct wire launch;		/* fd -1: there is none */
	struct member **member;
	size_t nr_members;
	size_t nr_owing;
	size_t at_once;			/* concurrent dumps: the number of processors */
	uint32_t id;			/* of the checkpoint under way */
	uint32_t loading_id;		/* of that which waits for LOADED */
	struct wire_header go_on;	/* CONTINUE for those that suspend; type 0: none */
	struct wire_header next;	/* CHECK or PREPARE: some are not done with the last; type 0: none */
	uint32_t next_asker;		/* data of PREPARE */
	struct wire_dump *order;
	bool copies;			/* its ranks go on while they are written … */
	bool writes;			/* … which has begun, as all ranks are copied */
	char *argument[MAX_ARGUMENTS + 1];
	char bandwidth[48];		/* one of these: each rank's share of the node's */
	struct saved *saved;		/* the ranks this checkpoint has saved here */
	size_t nr_saved;
	struct job_figures figures;	/* of these */
	int signal;			/* that they get last */
	char **useless;			/* folders to remove once nothing is written any more */
	struct node_addresses addresses;
};

/* Handles one message of mpirun, of a rank. */
void node_from_root(struct node *node, const struct wire_header *h, const uint8_t *data);
void node_from_member(struct node *node, struct member *m, const struct wire_header *h,
		      const uint8_t *data);

/* ---- node_saving.c ---- */

/* WIRE_DUMP, WIRE_CHECK (struct wire_dump).  0, or -errno: the root knows. */
int saving_take_order(struct node *node, const uint8_t *data, size_t length, bool copies);
/* Each rank's cr_checkpoint is started, and does its checks. */
void saving_check(struct node *node);
/* Every rank suspends, and is then dumped or copied. */
void saving_begin(struct node *node);
/* WIRE_WRITE: the copies may be written. */
void saving_write(struct node *node);
/* As many at a time as there are processors.  Returns how many are at work. */
size_t saving_more(struct node *node);
/* Its dump has said something. */
void saving_heard(struct node *node, struct member *m);
/* The rank is lost: ends its dump, unless that has a copy. */
void saving_lost(struct member *m);
bool saving_under_way(const struct node *node);
/* The dump of this rank has ended: reports the result to the root. */
void saving_ended(struct node *node, struct member *m);
void saving_cancel(struct node *node);
/* Those that are cancelled have ended, and the folders are removed: the root has gone. */
void saving_end(struct node *node);
/* Has the folder of the saved files on the disk, and tells the root which files these are. */
void saving_sync(struct node *node);
/* A folder is to be removed as soon as nothing is written any more. */
void saving_forget(struct node *node, const char *folder, size_t length);
/* Sends a signal, an int32_t in `data`, to all processes saved with a rank. */
void saving_signal(struct node *node, const uint8_t *data, size_t length);

/* ---- node_addresses.c ---- */

/* HELLO of a restored rank, which ends in its address. */
void node_addresses_came(struct node *node, struct member *m, const uint8_t *address, size_t length);
/* WIRE_WHERE: the rank needs the addresses of others. */
void node_addresses_ask(struct node *node, const struct member *m, const struct wire_header *h,
			const uint8_t *data);
/* WIRE_BACK: questions may be sent.  WIRE_FOUND: the answer to the oldest one. */
void node_addresses_back(struct node *node);
void node_addresses_found(struct node *node, const struct wire_header *h, const uint8_t *data);
/* WIRE_ADDRESSES is passed on: nobody has to ask any more. */
void node_addresses_all(struct node *node);
/* Is there a rank that does not know its peers yet? */
bool node_addresses_wanted(const struct node *node);
void node_addresses_free(struct node *node);

/* ---- node_loading.c ---- */

/* WIRE_LOAD: tells the root of each rank, as soon as its memory is loaded. */
void loading_await(struct node *node, const struct wire_header *h);
void loading_look(struct node *node);	/* now and then: */
int loading_patience(const struct node *node);	/* after so many milliseconds; -1: none is awaited */
void loading_forget(struct node *node);

/* ---- node_beats.c ---- */

/* The root is known; `silence_s`: as for node_start(). */
void beats_begin(struct node *node, unsigned int silence_s);
/* Looks whether the root answers, now and then: */
void beats_serve(struct node *node);
int beats_patience(const struct node *node);	/* after so many milliseconds; -1: not now */
/* WIRE_ALIVE: the root asks whether this daemon goes on. */
void beats_answer(struct node *node, const struct wire_header *h);

#endif /* JOB_NODE_INTERNAL_H */
