/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A request: the structure that an ioctl's argument points to.  It is copied
 * in once, here, before anything looks at it, and copied back once: who
 * carries a command out never sees the caller's pointer, so another thread
 * that changes the structure meanwhile changes nothing.  Arrays and strings
 * that a request points to are read once too, by their users.
 */
#ifndef KCR_REQUEST_H
#define KCR_REQUEST_H

#include <linux/types.h>

/*
 * The request of ioctl `number`, whose size is part of the number.
 * ERR_PTR(-EINVAL: its `size` (first member, __u32) is another, or `flags`
 * (second, __u32) has bits outside of known_flags; -EFAULT; -ENOMEM).
 * To be ended by kcr_request_put().  May sleep.
 */
void *kcr_request_get(unsigned int number, u32 known_flags, const void __user *argp);

/*
 * Copies the request back if the ioctl has results, and frees it.  Returns
 * `result`, or -EFAULT where that was no error and the copy failed: the
 * command has been carried out all the same.
 */
long kcr_request_put(unsigned int number, void *request, void __user *argp, long result);

#endif /* KCR_REQUEST_H */
