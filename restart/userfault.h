/* SPDX-License-Identifier: GPL-2.0 */
/* userfaultfd(2): made by the process whose faults it gets, used by cr_restart. */
#ifndef KCR_RESTART_USERFAULT_H
#define KCR_RESTART_USERFAULT_H

#include <stddef.h>
#include <stdint.h>

/* Could the caller use one as lazy.c does?  0 or -errno with a message. */
int userfault_check(void);

/*
 * In a new process, whose memory may still change: sends one of its own through a socket,
 * with a number that says whose it is.  0 or -errno.
 */
int userfault_send(int socket, size_t number);
/* Takes the next one that has been sent: its descriptor, or -EAGAIN: none; or another -errno. */
int userfault_receive(int socket, size_t *number);

/* Before any call below.  0 or -errno. */
int userfault_begin(int fd);
/* From now on faults there come to it; mode: UFFDIO_REGISTER_MODE_*.  0 or -errno. */
int userfault_register(int fd, uint64_t start, uint64_t end, uint64_t mode);
/* Write-protects pages of such a range.  0 or -errno. */
int userfault_protect(int fd, uint64_t start, uint64_t end);

/*
 * Gives pages that are missing, and wakes who waits for them: the number of bytes, or -errno if
 * that is 0: -EEXIST: the first page is there; -EAGAIN: an event is to be read first; -ENOENT:
 * the range is not registered, or in more than one mapping; -ESRCH: the memory is gone.
 */
int64_t userfault_copy(int fd, uint64_t address, const void *pages, uint64_t length);
/* One page of zeros; likewise. */
int64_t userfault_zero(int fd, uint64_t address);
/* Those who wait for the page look again. */
void userfault_wake(int fd, uint64_t address);

#endif /* KCR_RESTART_USERFAULT_H */
