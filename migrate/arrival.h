/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Images that arrive at the target are verified as a whole by a thread, while the next ones arrive:
 * they are not read again before the processes run.
 */
#ifndef KCR_MIGRATE_ARRIVAL_H
#define KCR_MIGRATE_ARRIVAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct arrival {
	pthread_t thread;
	bool running;
	int file;
	char *name;
	int err;			/* of the images so far */
};

/*
 * An image is complete: `file` is closed when it has been read, `name` is for messages.  Waits for
 * the one before.  0 or -errno with a message: one of these is damaged.
 */
int arrival_verify(struct arrival *a, int file, const char *name);
/* Waits for the last one, likewise. */
int arrival_finish(struct arrival *a);

#endif /* KCR_MIGRATE_ARRIVAL_H */
