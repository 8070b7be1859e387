/* SPDX-License-Identifier: GPL-2.0 */
/* How fast a folder takes a file, and how large it may be. */
#ifndef KCR_CHECK_DISK_H
#define KCR_CHECK_DISK_H

#include <stdint.h>

struct disk {
	double bytes_per_s;
	uint64_t free_bytes;		/* for this user */
};

/*
 * Writes a file without a name to the folder and to its disk: `most` bytes, 64 MB, half
 * of what is free, or for a second, whatever is least.  0 or -errno with a message.
 */
int disk_measure(const char *folder, uint64_t most, struct disk *out);

#endif /* KCR_CHECK_DISK_H */
