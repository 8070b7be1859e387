// SPDX-License-Identifier: GPL-2.0
/* Proofs and seals by libsodium.  See seal.h. */
#include "job/secret/seal.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/random.h>

_Static_assert(SEAL_KEY == crypto_stream_chacha20_ietf_KEYBYTES &&
	       SEAL_KEY == crypto_onetimeauth_KEYBYTES &&
	       SEAL_TAG == crypto_onetimeauth_BYTES, "libsodium");

int seal_init(void)
{
	return sodium_init() < 0 ? -ENOSYS : 0;
}

int seal_random(void *out, size_t length)
{
	ssize_t n = getrandom(out, length, 0);	/* up to 256 bytes are never partial */

	return n < 0 ? -errno : (size_t)n == length ? 0 : -EIO;
}

void seal_proof(uint8_t out[SEAL_KEY], const void *secret, size_t length, const char *purpose,
		const struct iovec *part, size_t count)
{
	crypto_generichash_state state;

	crypto_generichash_init(&state, secret, length, SEAL_KEY);
	crypto_generichash_update(&state, (const uint8_t *)purpose, strlen(purpose) + 1);
	for (size_t i = 0; i < count; i++) {
		uint64_t size = part[i].iov_len;

		crypto_generichash_update(&state, (const uint8_t *)&size, sizeof(size));
		crypto_generichash_update(&state, part[i].iov_base, size);
	}
	crypto_generichash_final(&state, out, SEAL_KEY);
}

int seal_same(const void *a, const void *b, size_t length)
{
	return !sodium_memcmp(a, b, length);
}

static void tag_of(const struct seal *seal, const struct iovec *part, size_t count, uint8_t *tag)
{
	uint8_t nonce[crypto_stream_chacha20_ietf_NONCEBYTES] = { 0 }, once[SEAL_KEY];
	crypto_onetimeauth_state state;

	memcpy(nonce, &seal->number, sizeof(seal->number));
	crypto_stream_chacha20_ietf(once, sizeof(once), nonce, seal->key);
	crypto_onetimeauth_init(&state, once);
	for (size_t i = 0; i < count; i++)
		crypto_onetimeauth_update(&state, part[i].iov_base, part[i].iov_len);
	crypto_onetimeauth_final(&state, tag);
}

void seal_make(struct seal *seal, const struct iovec *part, size_t count, uint8_t tag[SEAL_TAG])
{
	tag_of(seal, part, count, tag);
	seal->number++;
}

int seal_check(struct seal *seal, const struct iovec *part, size_t count,
	       const uint8_t tag[SEAL_TAG])
{
	uint8_t expected[SEAL_TAG];

	tag_of(seal, part, count, expected);
	if (!seal_same(expected, tag, SEAL_TAG))
		return -EBADMSG;
	seal->number++;
	return 0;
}
