/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A lazy restart: large private memory stays in the file, and threads of cr_restart give it
 * to the programs while they run: at once what they touch, the rest one after the other.
 * Until that is done they are guarded by the module (KCR_RESUME_GUARD): if it cannot be done,
 * they are killed.
 */
#ifndef KCR_RESTART_LAZY_H
#define KCR_RESTART_LAZY_H

#include "restart/restart.h"
#include "resource/resource.h"

struct kcr_info;
struct elsewhere;

/* Is it possible here?  0 or -errno with a message. */
int lazy_check_host(const struct kcr_info *info);
/* Before anything is made: is it possible, of this image, here?  0 or -errno with a message. */
int lazy_check(struct context_reader *reader, const struct kcr_info *info);

/*
 * Before the processes are made; sets r->lazy_socket.  elsewhere: for a partial image, else NULL;
 * freed with all of it.  0 or -errno with a message.
 */
int lazy_new(struct lazy **out, struct rebuild *r, struct context_reader *reader,
	     const struct chain *chain, struct elsewhere *elsewhere);
/*
 * While its script is written: is this mapping to get a page, which is dropped again, as soon as
 * it is made?
 */
bool lazy_begins(const struct rebuild *r, const Kcr__Mm *mm, const Kcr__Vma *vma);
/* In a process that is being made: tells cr_restart what it will need. */
int lazy_offer(const struct rebuild *r, size_t index);
/* While they are made, now and then: 0 or -errno with a message. */
int lazy_collect(struct lazy *l);
/* As pages_flow.defer, when their memory is filled. */
bool lazy_defer(void *lazy, const struct context_chunk *chunk);
/* When that is done, and none of them runs: from now on they wait for what is missing. */
int lazy_arm(struct lazy *l, const struct rebuild *r);
/* As soon as they run: it is given to them.  loaded: as of restart_options.  0 or -errno with a message. */
int lazy_start(struct lazy *l, void (*loaded)(void));
/* Pages that were left in the file. */
uint64_t lazy_pages(const struct lazy *l);
/* The restart has failed: closes the job before anybody could miss something, and frees it. */
void lazy_drop(struct lazy *l);

#endif /* KCR_RESTART_LAZY_H */
