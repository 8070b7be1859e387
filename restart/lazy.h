/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A restart whose programs run before their memory is there (--lazy).  Each process of the
 * skeleton offers a userfaultfd of its own (lazy_offer.c); when all have entered, what
 * cannot come later is stored and the rest is registered (lazy_begin.c); then a thread
 * brings pages, those first for which somebody waits (lazy_serve.c).
 *
 * Until the last page is there the job guards the processes (KCR_RESUME_GUARD): they never
 * outlive this process, nor go on when a page cannot be brought.
 */
#ifndef KCR_RESTART_LAZY_H
#define KCR_RESTART_LAZY_H

#include "resource/resource.h"
#include "restart/restart.h"

struct lazy;

/* ---- lazy_offer.c ----------------------------------------------------------------------- */

/* Before the skeleton is made.  0 or -errno with a message. */
int lazy_offers_begin(const struct context *context);
/*
 * In a new process, number `index` in the context, before it forks: its memory will be
 * loaded lazily.  Does nothing if lazy_offers_begin() was not called.  0 or -errno.
 */
int lazy_offer(size_t index);
/* Receives what was offered so far: few fit into the socket. */
void lazy_offers_receive(void);
/* The userfaultfd of a process, for the caller to close; -1: it offered none. */
int lazy_offer_take(size_t index);
/* Closes what is left. */
void lazy_offers_end(void);

/* ---- lazy_begin.c ----------------------------------------------------------------------- */

/*
 * Could this image be restarted so?  Before anything is made.  -errno with a message.
 */
int lazy_check(const struct context_reader *reader, const struct kcr_info *info);
/*
 * When all have entered: as memory_fill(), but for what comes later.  0 or -errno with a
 * message; *out is to be freed in either case.
 */
int lazy_begin(struct lazy **out, struct rebuild *r, struct context_reader *reader,
	       const struct restart_options *options, struct restart_result *result);

/* ---- lazy_serve.c ----------------------------------------------------------------------- */

/*
 * Starts to bring pages, just before the processes run.  If one cannot be brought it closes
 * the job, which kills all.  0 or -errno with a message.
 */
int lazy_serve(struct lazy *l, int job);
/* They run: when all is loaded, it closes the job. */
void lazy_let_go(struct lazy *l);
/*
 * They will not run: brings no more pages.  Has it closed the job?  If not, the caller does,
 * before lazy_free().
 */
bool lazy_stop(struct lazy *l);
/*
 * Waits until everything is loaded and the job closed.  0, or -errno with a message: all
 * processes have been killed, as a page could not be brought.
 */
int lazy_wait(struct lazy *l);
/* NULL: does nothing. */
void lazy_free(struct lazy *l);

#endif /* KCR_RESTART_LAZY_H */
