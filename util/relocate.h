/* SPDX-License-Identifier: GPL-2.0 */
/*
 * --relocate OLD=NEW of cr_restart: saved paths that begin with OLD (whole
 * components) are opened under NEW.  The first rule that matches wins.
 */
#ifndef KCR_UTIL_RELOCATE_H
#define KCR_UTIL_RELOCATE_H

#define RELOCATE_MAX	16

/*
 * Adds a rule from its text, in which `\=` stands for an equals sign and `\\`
 * for a backslash; both paths are absolute.  -EINVAL (with a message): not of
 * that form, or more than RELOCATE_MAX rules.  -ENOMEM.
 */
int relocate_add(const char *rule);

/* The path to use for a saved path: itself, or a new string that is never freed. */
const char *relocate_path(const char *path);

#endif /* KCR_UTIL_RELOCATE_H */
