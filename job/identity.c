// SPDX-License-Identifier: GPL-2.0
/* The number of a job.  See identity.h. */
#include "job/identity.h"

#include <stdlib.h>
#include <sys/random.h>

uint64_t identity_given(void)
{
	const char *text = getenv(IDENTITY_VARIABLE);

	return text ? strtoull(text, NULL, 16) : 0;
}

uint64_t identity_own(void)
{
	static uint64_t own;

	if (own)
		return own;
	own = identity_given();
	unsetenv(IDENTITY_VARIABLE);
	if (!own && getrandom(&own, sizeof(own), 0) != sizeof(own))
		own = 0;
	return own;
}
