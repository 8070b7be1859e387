// SPDX-License-Identifier: GPL-2.0
/*
 * A long computation in floating point and integers; interrupted or not, it must
 * give the same bits.  It goes on until it has been interrupted and is then
 * repeated without an interruption.
 */
#include "check.h"

struct state {
	double x;
	uint64_t n;
};

static void step(struct state *s)
{
	for (int i = 0; i < 1000; i++) {
		s->x = s->x * 3.7 * (1.0 - s->x);
		s->n = s->n * 6364136223846793005ull + 1442695040888963407ull;
	}
}

int main(int argc, char **argv)
{
	struct state first = { 0.3, 1 }, second = { 0.3, 1 };
	uint64_t steps = 0;

	check_begin(argc, argv);
	check_ready();
	while (!check_gone()) {
		step(&first);
		steps++;
	}
	for (uint64_t i = 0; i < steps; i++)
		step(&second);
	CHECK(!memcmp(&first, &second, sizeof(first)));
	return check_end();
}
