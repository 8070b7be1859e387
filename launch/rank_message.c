// SPDX-License-Identifier: GPL-2.0
/* Messages about ranks.  See rank_message.h. */
#include "launch/rank_message.h"

#include <string.h>

void rank_message_queue(struct wire *w, enum rank_message_type type, uint32_t rank, uint32_t node,
			int32_t value, const void *data, size_t length)
{
	struct rank_message m = { type, value };
	uint8_t bytes[sizeof(m) + RANK_BYTES_MAX];

	memcpy(bytes, &m, sizeof(m));
	if (length)
		memcpy(bytes + sizeof(m), data, length);
	wire_queue(w, WIRE_LAUNCH, rank, node, bytes, sizeof(m) + length);
}

bool rank_message_read(const struct wire_header *header, const uint8_t **data,
		       struct rank_message *m, size_t *length)
{
	if (header->type != WIRE_LAUNCH || header->length < sizeof(*m) ||
	    header->length - sizeof(*m) > RANK_BYTES_MAX)
		return false;
	memcpy(m, *data, sizeof(*m));
	*data += sizeof(*m);
	*length = header->length - sizeof(*m);
	return true;
}
