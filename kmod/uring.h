/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Descriptors of io_urings, for the commands about them.
 */
#ifndef KCR_URING_H
#define KCR_URING_H

struct file;

/* The file of this descriptor of the caller, to be put; NULL: none, or not an io_uring. */
struct file *kcr_uring_get(int fd);

#endif /* KCR_URING_H */
