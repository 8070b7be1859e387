/* SPDX-License-Identifier: GPL-2.0 */
/* Earlier context files of one name: NAME.~N~, the newest with the highest number. */
#ifndef KCR_CHECKPOINT_KEPT_H
#define KCR_CHECKPOINT_KEPT_H

#include <stddef.h>

struct kept {
	size_t count;
	unsigned long oldest, newest;	/* their numbers, from 1; 0: there are none */
};

/* Those of `name` in an open folder.  0 or -errno, without a message. */
int kept_find(int folder, const char *name, struct kept *kept);
/* Removes the oldest until there are at most `most`.  0 or -errno, without a message. */
int kept_forget(int folder, const char *name, unsigned int most);

#endif /* KCR_CHECKPOINT_KEPT_H */
