/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Would a restart find again what an image names, and be let in?  Asked at the checkpoint,
 * when something can still be done: a file whose mode was changed since it was opened,
 * which is hidden by another file system by now, or was given to the program.
 */
#ifndef KCR_RESOURCE_REOPEN_H
#define KCR_RESOURCE_REOPEN_H

#include "resource/resource.h"

/* What is done about a thing that a restart would not get. */
enum reopen_rule {
	REOPEN_IGNORE,
	REOPEN_WARN,
	REOPEN_REFUSE,		/* the first one */
};

/*
 * All saved files of the table, for a restart by the caller's user on this machine.
 * -EACCES, -ESTALE or another -errno with a message: refused.
 */
int reopen_files(const struct file_table *t, enum reopen_rule rule);
/* Likewise the working folder of a saved process. */
int reopen_folder(const Kcr__Process *p, enum reopen_rule rule);

#endif /* KCR_RESOURCE_REOPEN_H */
