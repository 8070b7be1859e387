// SPDX-License-Identifier: GPL-2.0
/*
 * Ranks of other releases than mpirun's: a restored one has the hook/cr of the release
 * that saved it in its memory, and the nodes of a job may differ.  See wire.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "job/coordinator/root_internal.h"

void versions_take(struct root_rank *r, const uint8_t *data, size_t length)
{
	struct wire_version told;

	r->version = (struct wire_version){ .number = 0, .can = WIRE_CAN_0 };
	if (length < sizeof(told))
		return;
	memcpy(&told, data, sizeof(told));
	r->version = told;
}

static const char *advice(const struct root_rank *r, uint32_t what)
{
	if (what == WIRE_CAN_SAVE)
		return "install the same release of KCR on all nodes";
	return r->version.number > WIRE_VERSION ?
		"install the release of KCR that has saved it, or a later one, on all nodes" :
		"restart it with the release of KCR that has saved it";
}

bool versions_can(const struct root *root, const struct root_rank *r, uint32_t what,
		  char why[VERSIONS_TEXT])
{
	if (r->version.can & what)
		return true;
	snprintf(why, VERSIONS_TEXT, "rank %td cannot be %s: its hook/cr has version %" PRIu32
		 " of the messages, mpirun has version %u: %s", r - root->rank,
		 what == WIRE_CAN_SAVE ? "saved" : "restarted", r->version.number, WIRE_VERSION,
		 advice(r, what));
	return false;
}
