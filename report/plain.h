/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Text of strangers (names, paths, command lines) on its way to somebody's terminal, which
 * must show it and not obey it.  The terminal is taken to read UTF-8.
 */
#ifndef KCR_REPORT_PLAIN_H
#define KCR_REPORT_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 character at `text`, 0: it is none. */
size_t plain_utf8(const char *text);

/*
 * How many bytes come first in `text`, which is not empty, as one character or one
 * stray byte.  *harmless: they are no control character: of C0, DEL, of C1 (U+0080 …
 * U+009F, in UTF-8 or as the byte that they are elsewhere).
 */
size_t plain_next(const char *text, bool *harmless);

#endif /* KCR_REPORT_PLAIN_H */
