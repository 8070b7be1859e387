/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A request: the structure that an ioctl's argument points to.  It is copied
 * in once, here, before it is used, and copied back once: the functions of the
 * commands never see the caller's pointer, so another thread that changes the
 * structure meanwhile has no effect.  Arrays and strings that a request points
 * to are read once too, by their users.
 *
 * A restarted process has the libcr of its first start in its memory, which
 * may be older or newer than the module.  So structures grow at their end
 * only, 0 in a new member means the old behaviour, and an ioctl is recognised
 * without the size in its number, which the caller chooses, by these rules: what an
 * older caller does not know is 0 and is not copied back; what a newer one knows and
 * we do not must be 0.
 */
#ifndef KCR_REQUEST_H
#define KCR_REQUEST_H

#include <linux/types.h>

struct kcr_request_type {
	unsigned int number;	/* of the ioctl, with the size of today's structure */
	u32 first_size;		/* in bytes, of the structure's first version */
	u32 known_flags;
};

/* Is `number`, apart from the structure's size, that of this type? */
bool kcr_request_is(const struct kcr_request_type *type, unsigned int number);

/*
 * The request of an ioctl with this type and number, as large as today's
 * structure.  ERR_PTR(-EINVAL: its `size` (first member, __u32) is not that of the number
 * or below the first version's, or `flags` (second, __u32) has unknown bits; -E2BIG: it is of a
 * newer version and asks for something unknown; -EFAULT; -ENOMEM).
 * To be ended by kcr_request_put().  May sleep.
 */
void *kcr_request_get(const struct kcr_request_type *type, unsigned int number,
		      const void __user *argp);

/*
 * Copies back what the caller knows of the request, if the ioctl has results,
 * and frees it.  Returns `result`, or -EFAULT if that was no error but the
 * copy failed: the command has been executed all the same.
 */
long kcr_request_put(const struct kcr_request_type *type, unsigned int number, void *request,
		     void __user *argp, long result);

#endif /* KCR_REQUEST_H */
