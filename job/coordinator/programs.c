// SPDX-License-Identifier: GPL-2.0
/*
 * Checkpoints that the application asks for, from one rank or from all.  A request
 * that cannot begin yet, because another one is under way or a rank is still in
 * MPI_Init, waits in its struct root_rank; programs_serve() is called whenever
 * that may have changed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job/coordinator/root_internal.h"

static void forget(struct root *root, struct root_rank *r)
{
	if (r->asks)
		root->nr_asking[!!r->asks->alone]--;
	free(r->asks);
	r->asks = NULL;
}

static void tell(struct root *root, uint32_t rank, int code)
{
	struct root_rank *r = &root->rank[rank];
	struct wire_failed answer = { code };

	if (r->node)
		wire_queue(&r->node->wire, WIRE_ANSWER, rank, 0, &answer, sizeof(answer));
}

static void tell_asker(struct root *root, uint32_t asker, int code)
{
	for (uint32_t i = 0; i < root->nr_ranks; i++)
		if (asker == WIRE_ALL || asker == i)
			tell(root, i, code);
}

/* -EBUSY: not yet.  Otherwise the request has been handled. */
static int begin(struct root *root, uint32_t asker)
{
	const struct wire_ask *ask = root->rank[asker == WIRE_ALL ? 0 : asker].asks;
	char *path = snapshot_name(ask->path);
	const char *why;
	int err;

	root->asker = asker;
	err = path ? phases_begin_own(root, path, ask->keep, &why) : -ENOMEM;
	free(path);
	if (err)
		root->asker = WIRE_NOBODY;
	if (err == -EBUSY)
		return err;
	for (uint32_t i = 0; i < root->nr_ranks; i++)
		if (asker == WIRE_ALL || asker == i)
			forget(root, &root->rank[i]);
	if (err)
		tell_asker(root, asker, -err);
	return 0;
}

void programs_serve(struct root *root)
{
	if (root->phase == PHASE_IDLE && root->nr_ranks && root->nr_asking[0] == root->nr_ranks)
		begin(root, WIRE_ALL);
	for (uint32_t i = 0; root->nr_asking[1] && i < root->nr_ranks && root->phase == PHASE_IDLE; i++)
		if (root->rank[i].asks && root->rank[i].asks->alone && begin(root, i))
			return;
}

void programs_ask(struct root *root, struct root_rank *r, const uint8_t *data, size_t length)
{
	forget(root, r);
	if (length <= sizeof(*r->asks) || data[length - 1]) {
		tell(root, r - root->rank, EINVAL);
		return;
	}
	r->asks = malloc(length);
	if (!r->asks) {
		tell(root, r - root->rank, ENOMEM);
		return;
	}
	memcpy(r->asks, data, length);
	root->nr_asking[!!r->asks->alone]++;
	programs_serve(root);
}

void programs_lost(struct root *root, struct root_rank *r)
{
	forget(root, r);
}

void programs_answer(struct root *root, int code)
{
	uint32_t asker = root->asker;

	root->asker = WIRE_NOBODY;
	if (asker != WIRE_NOBODY)
		tell_asker(root, asker, code);
}
