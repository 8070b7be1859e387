/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the attributes of a process share: their table entries
 * and readers of /proc.  The interface to the other rooms is resource.h.
 */
#ifndef KCR_RESOURCE_ATTRIBUTE_H
#define KCR_RESOURCE_ATTRIBUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "resource/resource.h"

extern const struct attribute attribute_credentials;
extern const struct attribute attribute_cwd;
extern const struct attribute attribute_name;
extern const struct attribute attribute_namespace;
extern const struct attribute attribute_pending;
extern const struct attribute attribute_personality;
extern const struct attribute attribute_prctl;
extern const struct attribute attribute_rlimit;
extern const struct attribute attribute_sched;
extern const struct attribute attribute_sigaction;
extern const struct attribute attribute_terminal;
extern const struct attribute attribute_timer;

/* Reads /proc/PID/NAME (pid 0: our own) as a string; its length or -errno. */
ssize_t proc_read(pid_t pid, const char *name, char *buffer, size_t size);
/* As readlink(2) of /proc/PID/NAME, terminated. */
ssize_t proc_link(pid_t pid, const char *name, char *buffer, size_t size);
/* Writes text to /proc/self/NAME; 0 or -errno. */
int proc_write_self(const char *name, const char *text);

/*
 * The status text of a thread: that of the probe for probe->thread, else read
 * anew and valid until the next call for another thread.  NULL: it could not
 * be read (reported).
 */
const char *proc_thread_status(const struct process_probe *probe, pid_t tid);

/* The text that follows "KEY:" and white space in a status text; NULL: no such line. */
const char *status_value(const char *status, const char *key);
/* Its number (base 10 or 16), or `otherwise`. */
uint64_t status_number(const char *status, const char *key, int base, uint64_t otherwise);

/* The n-th field of a stat text, counted from 3 (the state) as in proc(5). */
int64_t stat_number(const char *stat, int field);

/* Does the calling process have this capability in effect? */
bool have_capability(int capability);

/* Its number after the restart; 0: not known (a thread that has got a new number). */
pid_t rebuilt_tid(const struct rebuild *r, const Kcr__Process *p, pid_t tid);

#endif /* KCR_RESOURCE_ATTRIBUTE_H */
