/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The target's end of the connection for the pages of a lazy migration: a cr_migrate of its own, which
 * the source has started like the first one, finds that one by a socket in the spool folder, and
 * passes on what cr_restart and the source say to each other.
 */
#ifndef KCR_MIGRATE_JOIN_H
#define KCR_MIGRATE_JOIN_H

/* The first one: makes the socket.  A descriptor, or -errno with a message. */
int join_listen(void);
/* Who has come: a descriptor for cr_restart, or -errno with a message. */
int join_take(int listener);

/*
 * The second one, which this process is: until one side has nothing to say any more.  0 or -errno
 * with a message.
 */
int join_pass_on(const char *spool);

#endif /* KCR_MIGRATE_JOIN_H */
