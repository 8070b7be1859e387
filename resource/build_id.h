/* SPDX-License-Identifier: GPL-2.0 */
/* The build id of an ELF file. */
#ifndef KCR_RESOURCE_BUILD_ID_H
#define KCR_RESOURCE_BUILD_ID_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define BUILD_ID_MAX	64

/* Reads the build id of an open file; its length, 0 if it has none. */
int build_id_read(int fd, uint8_t *id, size_t room);

/*
 * Likewise for a file whose status is known; cached if it has been read
 * before and the file has not changed since.
 */
int build_id_of(int fd, const struct stat *st, uint8_t id[BUILD_ID_MAX]);

#endif /* KCR_RESOURCE_BUILD_ID_H */
