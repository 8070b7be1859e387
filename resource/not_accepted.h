/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections that a listening socket of the tree has not accepted yet.  The clients in the
 * tree connect again once all other connections have been made; in the place of others
 * comes a connection that has ended.  What has been sent over one already can only be read
 * by accepting it, which cannot be undone: it is refused.
 */
#ifndef KCR_RESOURCE_NOT_ACCEPTED_H
#define KCR_RESOURCE_NOT_ACCEPTED_H

#include "resource/resource.h"

typedef Kcr__NotAccepted **not_accepted_list;

/* `client`: its file, 0: outside or gone.  -ENOMEM, reported. */
int not_accepted_add(not_accepted_list *list, size_t *count, uint32_t client, bool ended);
void not_accepted_clear(not_accepted_list *list, size_t *count);

/*
 * Waits a moment if a connection that cannot be saved may be accepted by then: in a dry
 * run, for half a second in all.  False: it is time to refuse.
 */
bool not_accepted_wait(const struct file_table *t, int patience);
/*
 * Refuses a listening socket for a connection `what` ("with data in it"): -EOPNOTSUPP
 * in the dry run; later -EBUSY, reported, upon which the checkpoint begins again, as the
 * program may have got further by then.
 */
int not_accepted_refuse(struct file_table *t, const struct file_probe *probe, const char *kind,
			const char *what);

int unix_waiting_save(struct file_table *t, const struct file_probe *probe, Kcr__UnixSocket *u);
int unix_waiting_rebuild(struct rebuild *r, const Kcr__File *listener);

/*
 * Is the connection of this client, of whose other end no process of the tree has a
 * descriptor, in the queue of a listening socket of the tree?
 */
bool tcp_waiting_has(struct file_table *t, const struct file_probe *client);
/* Of a listening socket with so many connections in its queue. */
int tcp_waiting_save(struct file_table *t, const struct file_probe *probe, uint32_t count,
		     Kcr__InetSocket *s);

/* Refuses a connection whose other end has been closed, by any process, with data unsent. */
int tcp_orphan_check(struct file_table *t, const struct file_probe *probe);

#endif /* KCR_RESOURCE_NOT_ACCEPTED_H */
