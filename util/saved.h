/* SPDX-License-Identifier: GPL-2.0 */
/* What cr_checkpoint says of a checkpoint: see cr_checkpoint(1), FIGURES. */
#ifndef KCR_UTIL_SAVED_H
#define KCR_UTIL_SAVED_H

#include "checkpoint/checkpoint.h"

/* --json: the line of a checkpoint that is done. */
void saved_json(const struct checkpoint_options *o, const struct checkpoint_result *r);
/* … and, as checkpoint_options.round, of a round of pre-copy; `arg`: the options. */
void saved_round(void *arg, unsigned int number, const struct checkpoint_result *r);
/*
 * checkpoint_options.saved, of the daemon of an MPI job, which reads the line of an event "saved" and says
 * when its ranks are to get their signal; `arg`: the options.
 */
int saved_held(void *arg, const struct checkpoint_result *r);
/* --verbose. */
void saved_tell(const struct checkpoint_options *o, const struct checkpoint_result *r);
/* --json: the line of one that has failed with this -errno. */
void saved_error(int err);

#endif /* KCR_UTIL_SAVED_H */
