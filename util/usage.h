/* SPDX-License-Identifier: GPL-2.0 */
/* What the command lines of all tools have in common. */
#ifndef KCR_UTIL_USAGE_H
#define KCR_UTIL_USAGE_H

#include <getopt.h>
#include <stdbool.h>
#include <string.h>

/*
 * Does the option that getopt_long(3) has just returned ask for help?  '?' does, if it was
 * typed: it also stands for an option that does not exist or lacks its argument.
 */
static inline bool usage_is_wanted(int option, char *const argv[])
{
	return option == 'h' || (option == '?' && !optopt && !strcmp(argv[optind - 1], "-?"));
}

#endif /* KCR_UTIL_USAGE_H */
