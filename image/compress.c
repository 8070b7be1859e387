// SPDX-License-Identifier: GPL-2.0
/*
 * LZ4 and Zstandard behind one pair of functions.  A codec keeps the
 * libraries' contexts, so that a chunk needs no allocation.
 */
#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <sys/types.h>
#include <zstd.h>

#include "section.h"

#define ZSTD_LEVEL	1	/* for memory pages higher ones cost much and gain little */

struct codec {
	ZSTD_CCtx *zstd_out;
	ZSTD_DCtx *zstd_in;
};

struct codec *codec_new(void)
{
	return calloc(1, sizeof(struct codec));
}

void codec_free(struct codec *c)
{
	if (!c)
		return;
	ZSTD_freeCCtx(c->zstd_out);
	ZSTD_freeDCtx(c->zstd_in);
	free(c);
}

static ssize_t compress_zstd(struct codec *c, const void *data, size_t length, void *out)
{
	size_t got;

	if (!c->zstd_out)
		c->zstd_out = ZSTD_createCCtx();
	if (!c->zstd_out)
		return -ENOMEM;
	got = ZSTD_compressCCtx(c->zstd_out, out, length, data, length, ZSTD_LEVEL);
	return ZSTD_isError(got) ? 0 : (ssize_t)got;
}

ssize_t codec_compress(struct codec *c, enum context_compression how, const void *data,
		       size_t length, void *out)
{
	ssize_t got;

	switch (how) {
	case CONTEXT_LZ4:
		/* 0 if the result does not fit the buffer, which is as long as the input. */
		got = LZ4_compress_default(data, out, length, length);
		break;
	case CONTEXT_ZSTD:
		got = compress_zstd(c, data, length, out);
		if (got < 0)
			return got;
		break;
	default:
		return -EINVAL;
	}
	return got < (ssize_t)length ? got : 0;
}

int codec_decompress(struct codec *c, enum context_compression how, const void *data,
		     size_t stored, void *out, size_t length)
{
	size_t got;

	switch (how) {
	case CONTEXT_LZ4:
		return LZ4_decompress_safe(data, out, stored, length) == (int)length ? 0 : -EINVAL;
	case CONTEXT_ZSTD:
		if (!c->zstd_in)
			c->zstd_in = ZSTD_createDCtx();
		if (!c->zstd_in)
			return -ENOMEM;
		got = ZSTD_decompressDCtx(c->zstd_in, out, length, data, stored);
		return !ZSTD_isError(got) && got == length ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}
