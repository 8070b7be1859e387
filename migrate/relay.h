/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bytes passed on in two directions at once.  Who writes more than the reader takes waits, as at a
 * pipe; the other direction does not.
 */
#ifndef KCR_MIGRATE_RELAY_H
#define KCR_MIGRATE_RELAY_H

#include <stdbool.h>

struct relay_way {
	int from, to;
	bool ends;			/* its end is that of both; else `to` is closed then, and -1 */
};

/*
 * Until a way that `ends` has come to an end of file, or to an error, also of the reader: 0.
 * -ENOMEM: nothing was passed on.
 */
int relay_both(struct relay_way *there, struct relay_way *back);

#endif /* KCR_MIGRATE_RELAY_H */
