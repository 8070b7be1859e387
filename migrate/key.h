/* SPDX-License-Identifier: GPL-2.0 */
/* The key of one migration without ssh: a file with WIRE_SECRET hexadecimal digits and a newline. */
#ifndef KCR_MIGRATE_KEY_H
#define KCR_MIGRATE_KEY_H

#include "job/coordinator/wire.h"

/* Makes a new file with a new key, for its user only.  0 or -errno with a message. */
int key_make(const char *file, char key[WIRE_SECRET + 1]);
/* Removes that file, if there is one; async-signal-safe. */
void key_remove(void);
/* Reads a key.  0 or -errno with a message. */
int key_read(const char *file, char key[WIRE_SECRET + 1]);

#endif /* KCR_MIGRATE_KEY_H */
