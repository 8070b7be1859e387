/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The userfaultfds of the programs themselves, and the memory that is registered with them: pages
 * that were absent must be so again.  (Those of a lazy restart: userfault.h.)
 */
#ifndef KCR_RESTART_USER_FAULTS_H
#define KCR_RESTART_USER_FAULTS_H

#include "rebuild/script.h"
#include "resource/resource.h"

struct user_faults;

/*
 * In the process that is being made, which has its userfaultfds: when its memory is mapped, and
 * before it has threads, that is registered.  0 or -errno, reported.
 */
int user_faults_script(const struct rebuild *r, const Kcr__Process *p, struct script *s);
/* Bytes of operations and data that this needs, at most. */
uint64_t user_faults_script_size(const struct context *c, const Kcr__Process *p);
/*
 * Once all processes have entered, and before their memory is filled: takes the userfaultfds from
 * r->file_fd.  *out: NULL: there are none.
 */
int user_faults_take(struct user_faults **out, struct rebuild *r);
/* As device_store(), for a chunk that may have pages of such memory. */
int user_faults_store(const struct user_faults *u, const struct context_chunk *chunk);
/* When it is filled: write-protects what was. */
int user_faults_protect(const struct user_faults *u);
void user_faults_free(struct user_faults *u);

#endif /* KCR_RESTART_USER_FAULTS_H */
