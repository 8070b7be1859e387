// SPDX-License-Identifier: GPL-2.0
/*
 * Callers of btl/cr may hold locks of Open MPI that callbacks take: those of one-sided
 * communication in Open MPI 5 do.  So in a call of theirs no callback runs, which are left to
 * progress, and under MPI_THREAD_MULTIPLE it never waits for a thread that is inside, where
 * callbacks run: what it begins is left to that one.
 */
#include "btl_cr.h"

#include <pthread.h>

#include "btl_cr_gate.h"

struct list {
	struct cr_frag *first, *last;
};

static struct list completed;		/* inside only */
static struct list posted;
static pthread_mutex_t posted_lock = PTHREAD_MUTEX_INITIALIZER;	/* nothing is called under it */

static void append(struct list *list, struct cr_frag *frag)
{
	frag->next_later = NULL;
	if (list->first)
		list->last->next_later = frag;
	else
		__atomic_store_n(&list->first, frag, __ATOMIC_RELAXED);
	list->last = frag;
}

static struct cr_frag *take(struct list *list)
{
	struct cr_frag *frag = list->first;

	if (frag)
		__atomic_store_n(&list->first, frag->next_later, __ATOMIC_RELAXED);
	return frag;
}

void cr_later_complete(struct cr_frag *frag)
{
	append(&completed, frag);
}

int cr_later_completed(void)
{
	struct cr_frag *frag;
	int count = 0;

	for (; (frag = take(&completed)); count++)
		cr_module_complete(frag);
	return count;
}

/* With the order of the callers, as each takes what is here before it writes. */
void cr_later_take_posted(void)
{
	struct cr_frag *frag = __atomic_load_n(&posted.first, __ATOMIC_RELAXED);

	while (frag) {
		pthread_mutex_lock(&posted_lock);
		frag = take(&posted);
		pthread_mutex_unlock(&posted_lock);
		if (frag)
			cr_endpoint_post(frag->ep, frag);
	}
}

void cr_later_take_ready(void)
{
	struct cr_frag *frag;

	do {
		pthread_mutex_lock(&posted_lock);
		frag = posted.first;
		frag = frag && frag->ep->channel != CR_CHANNEL_NONE ? take(&posted) : NULL;
		pthread_mutex_unlock(&posted_lock);
		if (frag)
			cr_endpoint_post(frag->ep, frag);
	} while (frag);
}

void cr_later_settle(void)
{
	/* Pairs with that of the caller that could not enter: one of the two sees the other. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	while (__atomic_load_n(&posted.first, __ATOMIC_RELAXED)) {
		if (cr_gate_grab()) {
			cr_later_take_posted();
			cr_gate_leave();
		} else if (!cr_gate_is_opened()) {
			return;
		}
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	}
}

void cr_later_forget(void)
{
	pthread_mutex_lock(&posted_lock);
	completed = posted = (struct list){ 0 };
	pthread_mutex_unlock(&posted_lock);
}

void cr_later_post(cr_endpoint *ep, struct cr_frag *frag)
{
	frag->ep = ep;
	frag->base.des_flags |= MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
	pthread_mutex_lock(&posted_lock);
	append(&posted, frag);
	pthread_mutex_unlock(&posted_lock);
	cr_later_settle();
}
