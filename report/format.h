/* SPDX-License-Identifier: GPL-2.0 */
/* Text of any length. */
#ifndef KCR_REPORT_FORMAT_H
#define KCR_REPORT_FORMAT_H

#include <stdarg.h>
#include <stdio.h>

/* malloc()ed; NULL: no memory. */
static inline char *format_text(const char *format, va_list arguments)
{
	char *text;

	return vasprintf(&text, format, arguments) < 0 ? NULL : text;
}

#endif /* KCR_REPORT_FORMAT_H */
