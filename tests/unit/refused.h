/* SPDX-License-Identifier: GPL-2.0 */
/* Context files that context_load() is to refuse: the sample with one thing changed. */
#ifndef KCR_TESTS_REFUSED_H
#define KCR_TESTS_REFUSED_H

#include "sample.h"

extern struct sample sample;

static inline Kcr__Process *process(size_t i)
{
	return &sample.process[i];
}

/* Makes and frees the sample, for a group of tests. */
int refused_setup(void **state);
int refused_teardown(void **state);

/* The sample is refused with a message that has this in it; NULL: it is not. */
void refused_expect(const char *why);

/* With `value` in `place`, which is as before afterwards. */
#define REFUSED(place, value, why) do {				\
	__typeof__(place) saved = (place);			\
	(place) = (value);					\
	refused_expect(why);					\
	(place) = saved;					\
} while (0)

#endif /* KCR_TESTS_REFUSED_H */
