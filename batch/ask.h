/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A scheduler's commands.  They run with a time limit: one that does not answer costs what was
 * to be asked, not the job.
 */
#ifndef KCR_BATCH_ASK_H
#define KCR_BATCH_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a command says, malloc()ed; NULL: it failed, or there is no memory. */
char *ask_answer(const char *const argv[]);

/* Has a command do something: 0, or -errno with a message. */
int ask_order(const char *const argv[]);

/* The value of a variable, such as the job's ID for the commands of the scheduler; or "". */
const char *ask_variable(const char *name);

/*
 * The word behind the first `key` in a text and blanks or "=": up to white space or a comma.
 * False: there is none, or no room for it; `out` is left alone.  The text may be NULL.
 */
bool ask_word_behind(const char *text, const char *key, char *out, size_t size);

/* The time that such a word is, in s; -1: none. */
int64_t ask_time_behind(const char *text, const char *key);

#endif /* KCR_BATCH_ASK_H */
