/* SPDX-License-Identifier: GPL-2.0 */
/* What cr_mpirun knows of the job's ranks, from their keepers (rank_message.h). */
#ifndef LAUNCH_RANKS_H
#define LAUNCH_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rank {
	uint32_t node;
	bool started, ended;
	bool takes_input;
	uint32_t owed;			/* bytes of input that it has not taken yet */
	bool allowed;			/* the launcher has ended it */
	bool failed;			/* it has not ended well, by itself */
	bool unloaded;			/* because not all of its memory was loaded (cr_restart --lazy) */
	bool asks;			/* whether what the launcher wants is to be done: */
	int wants;			/* a signal, 0: the rank's end */
	uint64_t asked_ns;
};

struct ranks {
	struct rank *rank;
	uint32_t count;			/* size of `rank` */
	uint32_t size;			/* of the job; 0: not known yet */
	uint32_t started, ended;
	uint32_t takers;		/* of input, that have not ended */
	uint32_t owing;			/* those of them that have not taken all that there was … */
	uint32_t behind;		/* … or RANK_BEHIND or more of it */
	uint32_t asking;
	int status;			/* of the first that did not end with 0; else 0 */
};

/* The rank with this number has been started; NULL: there cannot be one, or is one already. */
struct rank *ranks_start(struct ranks *r, uint32_t number, uint32_t node, uint32_t size,
			 bool takes_input);
/* The rank, if it has been started; NULL. */
struct rank *ranks_find(const struct ranks *r, uint32_t number);

void ranks_end(struct ranks *r, struct rank *one, int status);
/* Those of a node have ended.  Had it, or may it have got, some that had not? */
bool ranks_lose_node(struct ranks *r, uint32_t node);
/* Those that take input have been given so many bytes. */
void ranks_fed(struct ranks *r, uint32_t bytes);
void ranks_took_input(struct ranks *r, struct rank *one, uint32_t bytes);
/* Has one taken all that there was, and none too little, so that there may be more? */
bool ranks_take_input(const struct ranks *r);
/* Which one keeps others from getting more?  -1: none. */
int64_t ranks_behind(const struct ranks *r);
void ranks_set_asking(struct ranks *r, struct rank *one, bool asks);
/* How this one, of this number, ended, for people. */
void ranks_describe_end(char *text, size_t size, const struct rank *one, uint32_t number, int status);

static inline bool ranks_all_started(const struct ranks *r)
{
	return r->size && r->started == r->size;
}

/* True also if none has been started. */
static inline bool ranks_all_ended(const struct ranks *r)
{
	return r->ended == r->started;
}

void ranks_free(struct ranks *r);

#endif /* LAUNCH_RANKS_H */
