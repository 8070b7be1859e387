/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KCR_RESOURCE_CHANGED_H
#define KCR_RESOURCE_CHANGED_H

#include "resource/resource.h"

/*
 * Compares the regular files that a restart opens by name with what they were at the
 * checkpoint: warns of each that has changed or been replaced; with r->strict_files
 * -ESTALE, with a message.  Mapped files are not its affair: those must be unchanged.
 * Opens and creates nothing.
 */
int changed_files(struct rebuild *r);

#endif /* KCR_RESOURCE_CHANGED_H */
