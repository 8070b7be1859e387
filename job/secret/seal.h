/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Authentication of bytes by a secret of the job, with libsodium.  A proof is a
 * keyed BLAKE2b over a few parts, for greetings and for deriving keys.  A seal is
 * for one direction of one connection: Poly1305 with a key that is used once, the
 * ChaCha20 key stream at the number of the message.  So messages cannot be changed,
 * dropped, replayed or reordered unnoticed.  Nothing is encrypted.
 */
#ifndef JOB_SEAL_H
#define JOB_SEAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define SEAL_KEY	32		/* bytes */
#define SEAL_TAG	16

struct seal {
	uint8_t key[SEAL_KEY];		/* never used for another stream of messages */
	uint64_t number;		/* of the next message */
};

/* Before anything else.  0 or -errno. */
int seal_init(void);

/* Random bytes: 0 or -errno. */
int seal_random(void *out, size_t length);

/*
 * A proof of the parts, by a secret of `length` bytes (16 to 64).  `purpose` keeps
 * proofs of one kind from being taken for another.
 */
void seal_proof(uint8_t out[SEAL_KEY], const void *secret, size_t length, const char *purpose,
		const struct iovec *part, size_t count);

/* Are they equal?  In constant time. */
int seal_same(const void *a, const void *b, size_t length);

/* The tag of the next message. */
void seal_make(struct seal *seal, const struct iovec *part, size_t count, uint8_t tag[SEAL_TAG]);

/* Is `tag` that of the next message?  0 or -EBADMSG. */
int seal_check(struct seal *seal, const struct iovec *part, size_t count,
	       const uint8_t tag[SEAL_TAG]);

#endif /* JOB_SEAL_H */
