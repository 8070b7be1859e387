// SPDX-License-Identifier: GPL-2.0
/* Telling text from control characters; see plain.h. */
#include "plain.h"

size_t plain_utf8(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t length = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 :
			(s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
	size_t i;

	for (i = 1; i < length; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, beyond U+10FFFF. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return length;
}

size_t plain_next(const char *text, bool *harmless)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t length = plain_utf8(text);

	if (length == 1)
		*harmless = s[0] >= ' ' && s[0] != 0x7f;
	else if (length)
		*harmless = s[0] != 0xc2 || s[1] >= 0xa0;
	else
		*harmless = s[0] >= 0xa0;
	return length ? length : 1;
}
