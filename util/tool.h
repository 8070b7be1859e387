/* SPDX-License-Identifier: GPL-2.0 */
/* Tools of KCR that run each other. */
#ifndef KCR_UTIL_TOOL_H
#define KCR_UTIL_TOOL_H

/* The path of another tool, in the folder of this one, malloc()ed; NULL: no memory. */
char *tool_path(const char *name);

#endif /* KCR_UTIL_TOOL_H */
