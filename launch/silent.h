/* SPDX-License-Identifier: GPL-2.0 */
/* Which nodes do not answer, where no daemon is there yet that could be silent. */
#ifndef LAUNCH_SILENT_H
#define LAUNCH_SILENT_H

/*
 * `nodes`: NAME=ADDRESS, separated by commas, or NULL.  Waits `patience_ms` at most for the kernel of each to
 * accept or refuse a connection.  The names of those that do neither, with commas, malloc()ed; NULL:
 * all do, or none but this one, as where a firewall keeps them from it.
 */
char *silent_among(const char *nodes, int patience_ms);

#endif /* LAUNCH_SILENT_H */
