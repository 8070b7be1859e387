/* SPDX-License-Identifier: GPL-2.0 */
/*
 * userfaultfd(2) for an address space whose pages are brought one after the other.  A call
 * returns -EAGAIN while the program is changing its address space: an event is to be read
 * first, or the program has not yet gone on after one.
 */
#ifndef KCR_RESTART_FAULTS_H
#define KCR_RESTART_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/userfaultfd.h>

/*
 * May this process have what the calls below need?  0, -EPERM or -EOPNOTSUPP with a message
 * that says what to do.
 */
int faults_check(void);

/* A descriptor for the caller's own address space; not for faults_register() yet.  Or -errno. */
int faults_open(void);
/* Turns it on: 0 or -errno, for any process that has it. */
int faults_begin(int fd);
/* Missing pages of the range are awaited from now on.  0 or -errno. */
int faults_register(int fd, uint64_t start, uint64_t end);

/*
 * Puts pages there; who waits for them goes on.  Bytes (from the front), or -EAGAIN; -EEXIST
 * the first page is there; -ENOENT the range is not registered, or not as a whole; -ESRCH
 * the address space is gone; -ENOMEM …
 */
ssize_t faults_copy(int fd, uint64_t address, const void *data, size_t length);
/* Likewise a page of zeros: 0 or -errno. */
int faults_zero(int fd, uint64_t address);
/* Whoever waits for the page tries again. */
void faults_wake(int fd, uint64_t address);
/* 0: no event is outstanding, and the page is in a registered range; or -errno as above. */
int faults_look(int fd, uint64_t address);

#endif /* KCR_RESTART_FAULTS_H */
