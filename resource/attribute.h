/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the attributes of a process share: their table entries
 * and what several of them need.  The interface to the other rooms is
 * resource.h.
 */
#ifndef KCR_RESOURCE_ATTRIBUTE_H
#define KCR_RESOURCE_ATTRIBUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "resource/resource.h"

extern const struct attribute attribute_aio_context;
extern const struct attribute attribute_credentials;
extern const struct attribute attribute_cwd;
extern const struct attribute attribute_mdwe;
extern const struct attribute attribute_membarrier;
extern const struct attribute attribute_mempolicy;
extern const struct attribute attribute_name;
extern const struct attribute attribute_namespace;
extern const struct attribute attribute_pending;
extern const struct attribute attribute_personality;
extern const struct attribute attribute_prctl;
extern const struct attribute attribute_rlimit;
extern const struct attribute attribute_root;
extern const struct attribute attribute_sched;
extern const struct attribute attribute_seccomp;
extern const struct attribute attribute_sigaction;
extern const struct attribute attribute_sysv_queues;
extern const struct attribute attribute_sysv_semaphores;
extern const struct attribute attribute_terminal;
extern const struct attribute attribute_thread_folder;
extern const struct attribute attribute_thread_settings;
extern const struct attribute attribute_timer;

/* Writes text to /proc/self/NAME; 0 or -errno. */
int attribute_write_self(const char *name, const char *text);

/*
 * The status text of a thread: that of the probe for probe->thread, else read
 * again and valid until the next call for another thread.  NULL: it could not
 * be read (reported).
 */
const char *probe_thread_status(const struct process_probe *probe, pid_t tid);

/* Does the calling process have this capability in effect? */
bool have_capability(int capability);

/* The thread ID after the restart; 0: not known (a thread that has got a new ID). */
pid_t rebuilt_tid(const struct rebuild *r, const Kcr__Process *p, pid_t tid);

#endif /* KCR_RESOURCE_ATTRIBUTE_H */
