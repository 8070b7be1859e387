/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which nodes answer, where no daemon is there yet that could be silent.  `nodes`: NAME=ADDRESS,
 * separated by commas, or NULL; `lost`: some of the names, with commas, or NULL.  An answer is that the
 * kernel accepts or refuses a connection, within `patience_ms`.
 */
#ifndef LAUNCH_SILENT_H
#define LAUNCH_SILENT_H

/*
 * The names of those that are not lost and do not answer, with commas, malloc()ed.  NULL: all do, or none
 * but this one, as where a firewall keeps them from it.
 */
char *silent_among(const char *nodes, const char *lost, int patience_ms);
/* Likewise of those that are lost and do answer; NULL: none. */
char *silent_no_more(const char *nodes, const char *lost, int patience_ms);
/* `nodes`, and what `before` has of the lost ones besides; malloc()ed, NULL: no memory. */
char *silent_keep(const char *nodes, const char *before, const char *lost);

#endif /* LAUNCH_SILENT_H */
