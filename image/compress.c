// SPDX-License-Identifier: GPL-2.0
/*
 * LZ4 and Zstandard behind one pair of functions.  A codec keeps the
 * libraries' contexts, so that a chunk needs no allocation.
 *
 * Levels mean what they mean to the libraries' own tools: negative ones of both are faster
 * and compress less, those of LZ4 from LZ4HC_CLEVEL_MIN on are LZ4 HC.
 */
#include <errno.h>
#include <lz4.h>
#include <lz4hc.h>
#include <stdlib.h>
#include <sys/types.h>
#include <zstd.h>

#include "section.h"

#define ZSTD_LEVEL	1	/* for memory pages higher ones cost much and gain little */
#define LZ4_LEVEL	1
#define LZ4_FASTEST	(-65536)	/* an acceleration of 65537, above which all are alike */

const char *const compression_names[CONTEXT_COMPRESSIONS] = {
	[CONTEXT_RAW] = "none", [CONTEXT_LZ4] = "lz4", [CONTEXT_ZSTD] = "zstd",
};

struct codec {
	ZSTD_CCtx *zstd_out;
	ZSTD_DCtx *zstd_in;
	void *lz4_fast, *lz4_high;
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
	free(c->lz4_fast);
	free(c->lz4_high);
	free(c);
}

void compression_levels(enum context_compression kind, int *least, int *most)
{
	*least = kind == CONTEXT_LZ4 ? LZ4_FASTEST : ZSTD_minCLevel();
	*most = kind == CONTEXT_LZ4 ? LZ4HC_CLEVEL_MAX : ZSTD_maxCLevel();
}

/* 0 if the result does not fit the buffer, which is as long as the input. */
static ssize_t compress_lz4(struct codec *c, int level, const void *data, size_t length, void *out)
{
	bool high = level >= LZ4HC_CLEVEL_MIN;
	void **state = high ? &c->lz4_high : &c->lz4_fast;

	if (!*state)
		*state = malloc(high ? LZ4_sizeofStateHC() : LZ4_sizeofState());
	if (!*state)
		return -ENOMEM;
	if (high)
		return LZ4_compress_HC_extStateHC(*state, data, out, length, length, level);
	return LZ4_compress_fast_extState(*state, data, out, length, length,
					  level < 0 ? 1 - level : 1);
}

static ssize_t compress_zstd(struct codec *c, int level, const void *data, size_t length, void *out)
{
	size_t got;

	if (!c->zstd_out)
		c->zstd_out = ZSTD_createCCtx();
	if (!c->zstd_out)
		return -ENOMEM;
	got = ZSTD_compressCCtx(c->zstd_out, out, length, data, length, level);
	return ZSTD_isError(got) ? 0 : (ssize_t)got;
}

ssize_t codec_compress(struct codec *c, const struct compression *how, const void *data,
		       size_t length, void *out)
{
	ssize_t got;

	switch (how->kind) {
	case CONTEXT_LZ4:
		got = compress_lz4(c, how->level ?: LZ4_LEVEL, data, length, out);
		break;
	case CONTEXT_ZSTD:
		got = compress_zstd(c, how->level ?: ZSTD_LEVEL, data, length, out);
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
