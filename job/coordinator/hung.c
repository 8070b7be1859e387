// SPDX-License-Identifier: GPL-2.0
/*
 * Daemons that hang, or are stopped, while the kernel of their node answers for them (TCP keep-alive).
 * A phase that waits for one of them would never end: it is asked for a sign of life, which its loop
 * gives however long the ranks, or their files, take.  What counts are questions of this process
 * that were not answered, so no daemon is blamed for a time in which this one was stopped.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "job/coordinator/root_internal.h"
#include "proc/clock.h"

#define LOOKS		12	/* within the time that a daemon has */
#define SYNC_S		600	/* it waits for its own disk, and what it has of the snapshot is complete */

static uint64_t pause_ns(const struct root *root)
{
	unsigned int usual_s = root->phase == PHASE_SYNC ? SYNC_S : ROOT_ANSWER_S;

	return (root->settings.answer_s ?: usual_s) * 1000000000ull / LOOKS;
}

/* The other phases are over after a few seconds anyway. */
static bool is_watched(const struct root *root)
{
	return root->phase != PHASE_IDLE && root->phase != PHASE_RESUME && root->phase != PHASE_ABORT;
}

bool hung_is(const struct root_node *n)
{
	return n->unanswered > LOOKS;
}

void hung_heard(struct root_node *n, const struct wire_header *h)
{
	n->unanswered = 0;
	n->answers |= h->type == WIRE_ALIVE;
}

/* True: it hangs.  It gets one question only: it may never read them. */
static bool look_at(struct root *root, struct root_node *n)
{
	if (!n->awaited || !n->answers || n->wire.fd < 0)
		return false;
	if (!n->unanswered)
		wire_queue(&n->wire, WIRE_ALIVE, WIRE_ALL, root->id, NULL, 0);
	n->unanswered++;
	return hung_is(n);
}

bool hung_names(const struct root *root, char text[HUNG_TEXT])
{
	const struct root_node *first = NULL;
	char others[40] = "";
	size_t count = 0;

	for (size_t i = 0; i < root->nr_nodes; i++) {
		const struct root_node *n = root->node[i];

		if (n->wire.fd < 0 || !hung_is(n))
			continue;
		first = first ?: n;
		count++;
	}
	if (!first)
		return false;
	if (count > 1)
		snprintf(others, sizeof(others), " and of %zu others", count - 1);
	snprintf(text, HUNG_TEXT, "the daemon of node %s%s does not answer: the other nodes' ranks go on, and the job "
		 "can be saved once cr_node there is no longer stopped, or held up by a disk", first->name, others);
	return true;
}

static void look(struct root *root)
{
	char text[HUNG_TEXT];
	bool hangs = false;

	for (size_t i = 0; i < root->nr_nodes; i++)
		root->node[i]->awaited = false;
	for (uint32_t i = 0; i < root->nr_ranks; i++)
		if (root->rank[i].pending)
			root->rank[i].home->awaited = true;
	for (size_t i = 0; i < root->nr_nodes; i++)
		hangs |= look_at(root, root->node[i]);
	if (hangs && hung_names(root, text))
		phases_abort(root, ETIMEDOUT, text);
}

void hung_look(struct root *root)
{
	if (!is_watched(root)) {
		root->look_ns = 0;
		return;
	}
	if (root->look_ns && ms_until(root->look_ns))
		return;
	if (root->look_ns)
		look(root);
	root->look_ns = now_ns() + pause_ns(root);
}

int hung_patience(const struct root *root)
{
	return is_watched(root) ? ms_until(root->look_ns) : -1;
}
