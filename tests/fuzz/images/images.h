/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fuzz_images: runs cr_restart as root with tampered context files, whose checksums
 * are correct.  mutate.c and value.c make them from good ones, main.c runs them and
 * checks the outcome, canary.c watches the files that must not change.
 */
#ifndef FUZZ_IMAGES_H
#define FUZZ_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

struct random {
	uint64_t state;
};

static inline uint64_t random_next(struct random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static inline uint32_t below(struct random *random, uint32_t limit)
{
	return (random_next(random) >> 32) * limit >> 32;
}

static inline bool chance(struct random *random, uint32_t percent)
{
	return below(random, 100) < percent;
}

/* Changes one field of the message, or of one inside it; says which in `what`. */
void value_mutate(ProtobufCMessage *message, struct random *random, char *what, size_t size);

/* Writes a changed copy of the file `from` to `to`; 0 or -errno.  `what`: the changes. */
int mutate(const char *from, int to, struct random *random, char *what, size_t size);

/* Sum of a directory tree: names, owners, modes, times, contents. */
uint64_t canary_sum(const char *folder);

#endif /* FUZZ_IMAGES_H */
