/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Untrusted text (names, paths, command lines) for a terminal, which must display it but
 * not interpret it.  The terminal is assumed to use UTF-8.
 */
#ifndef KCR_REPORT_PLAIN_H
#define KCR_REPORT_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

/* Length in bytes of the UTF-8 character at `text`, 0: not a valid one. */
size_t plain_utf8(const char *text);

/*
 * Length in bytes of the first character, or stray byte, of the non-empty `text`.
 * *harmless: it is not a control character: C0, DEL or C1 (U+0080 … U+009F, in UTF-8
 * or as a single byte as in other encodings).
 */
size_t plain_next(const char *text, bool *harmless);

#endif /* KCR_REPORT_PLAIN_H */
