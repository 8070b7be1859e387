// SPDX-License-Identifier: GPL-2.0
/* How often to save.  See optimum.h. */
#include "job/optimum.h"

#include <math.h>

uint64_t optimum_interval(uint64_t cost_ns, uint64_t mttf_ns)
{
	double cost = (double)cost_ns, mttf = (double)mttf_ns, part;

	if (cost >= 2 * mttf)
		return mttf_ns;
	part = sqrt(cost / (2 * mttf));
	return (uint64_t)(sqrt(2 * cost * mttf) * (1 + part / 3 + part * part / 9) - cost);
}
