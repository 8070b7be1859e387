// SPDX-License-Identifier: GPL-2.0
/*
 * Adaptive compression; see chooser.h.  Samples are taken only as long as they cost next to
 * nothing: of a slow destination of each chunk, of a fast one now and then.  In between a
 * chunk is believed to be like those before.
 */
#include "image/chooser.h"

#include <errno.h>
#include <stdlib.h>

#include "image/codec.h"
#include "image/pages.h"
#include "proc/clock.h"
#include "report/report.h"

#define SAMPLE_PAGES	32u
#define SAMPLE_RUN	4u	/* pages in a row */
#define SAMPLE_BYTES	((size_t)SAMPLE_PAGES * CONTEXT_PAGE)

#define SAMPLE_SHARE	0.02	/* of the time … */
#define SAMPLE_FREE_NS	1e6	/* … and so much at the beginning */

/* Estimates are no better than that: less is not worth it. */
#define WORTH		0.9	/* compressed instead of not */
#define WORTH_MORE	0.95	/* Zstandard instead of LZ4 */
#define SHRINKS		0.9	/* LZ4, where nothing is known of the destination */

#define PROBE_NS	50000000u	/* without any the destination may have changed */
#define PROBE_SHARE	0.05		/* of the time … */
#define PROBE_FREE_NS	100000000u	/* … and so much at the beginning */

#define NEWS		0.25	/* weight of the latest in what is believed */
#define FORGET		0.01	/* … of nothing new, at each chunk */
#define BIAS_MAX	8.0

struct chooser {
	struct rate rate;
	struct rate_mean loaded;
	unsigned int processors;
	uint64_t start_ns;
	uint64_t sampling_ns, probing_ns;
	struct chooser_guess recent[CONTEXT_COMPRESSIONS];	/* by samples */
	struct chooser_guess bias[CONTEXT_COMPRESSIONS];	/* chunks to samples, as factors */
	struct codec *codec;
	unsigned char page[SAMPLE_BYTES], packed[SAMPLE_BYTES];
};

int chooser_new(struct chooser **out, int fd, unsigned int processors)
{
	struct chooser *c = calloc(1, sizeof(*c));

	if (c)
		c->codec = codec_new();
	if (!c || !c->codec) {
		chooser_free(c);
		return report_errno(-ENOMEM, "adaptive compression");
	}
	rate_init(&c->rate, fd);
	c->processors = processors;
	c->start_ns = now_ns();
	for (size_t i = 0; i < CONTEXT_COMPRESSIONS; i++)
		c->bias[i] = (struct chooser_guess){ 1, 1 };
	*out = c;
	return 0;
}

void chooser_free(struct chooser *c)
{
	if (!c)
		return;
	codec_free(c->codec);
	free(c);
}

struct rate *chooser_rate(struct chooser *c)
{
	return &c->rate;
}

/* ---- the choice ---------------------------------------------------------------------- */

/* Loading and storing are one thread's work; on one processor, compressing waits as well. */
static double duration(const struct chooser_costs *c, enum context_compression kind)
{
	const struct chooser_guess *g = &c->guess[kind];
	double one = c->load + g->ratio * c->store;
	double all = (c->load + g->cost) / c->processors;

	return one > all ? one : all;
}

enum context_compression chooser_best(const struct chooser_costs *c)
{
	const struct chooser_guess *lz4 = &c->guess[CONTEXT_LZ4], *zstd = &c->guess[CONTEXT_ZSTD];
	double plain = c->alone >= 0 && c->alone < c->store ? c->alone : c->store;
	double least = WORTH * (plain + (c->direct ? 0 : c->load));
	enum context_compression best = CONTEXT_RAW;

	/* To be wrong about a slow destination would cost more. */
	if (c->store < 0)
		return lz4->cost > 0 && lz4->ratio < SHRINKS ? CONTEXT_LZ4 : CONTEXT_RAW;
	if (lz4->cost > 0 && duration(c, CONTEXT_LZ4) < least) {
		best = CONTEXT_LZ4;
		least = WORTH_MORE * duration(c, CONTEXT_LZ4);
	}
	if (zstd->cost > 0 && duration(c, CONTEXT_ZSTD) < least)
		best = CONTEXT_ZSTD;
	return best;
}

bool chooser_probe_is_due(const struct chooser *c)
{
	uint64_t now = now_ns();
	double passed = (double)(now - c->start_ns);

	if (c->rate.nr_alone < RATE_ALONE && c->probing_ns < PROBE_FREE_NS)
		return true;
	return now - c->rate.alone_ns > PROBE_NS && (double)c->probing_ns < PROBE_SHARE * passed;
}

void chooser_probed(struct chooser *c)
{
	c->probing_ns += c->rate.alone_took_ns;
}

/* ---- samples ------------------------------------------------------------------------- */

/* Is it time for another one? */
static bool is_due(const struct chooser *c)
{
	double passed = (double)(now_ns() - c->start_ns);

	return (double)c->sampling_ns < SAMPLE_FREE_NS + SAMPLE_SHARE * passed;
}

/* Adds a page to a chunk of single pages. */
static void add_page(struct context_chunk *part, struct kcr_run *run, uint64_t address)
{
	struct kcr_run *last = part->nr_runs ? &run[part->nr_runs - 1] : NULL;

	if (!last || last->address + last->nr_pages * CONTEXT_PAGE != address) {
		last = &run[part->nr_runs++];
		*last = (struct kcr_run){ .address = address };
	}
	last->nr_pages++;
	part->nr_pages++;
	part->length += CONTEXT_PAGE;
}

/* Is page i of so many in the sample: a few in a row, at equal distances? */
static bool is_picked(uint64_t i, uint64_t nr_pages)
{
	uint64_t distance = nr_pages / (SAMPLE_PAGES / SAMPLE_RUN);

	return nr_pages <= SAMPLE_PAGES ||
	       (i % distance < SAMPLE_RUN && i / distance < SAMPLE_PAGES / SAMPLE_RUN);
}

static void pick(const struct context_chunk *chunk, struct context_chunk *part, struct kcr_run *run)
{
	uint64_t at = 0;

	*part = *chunk;
	part->runs = run;
	part->nr_runs = 0;
	part->nr_pages = part->length = 0;
	for (size_t i = 0; i < chunk->nr_runs; i++)
		for (uint64_t k = 0; k < chunk->runs[i].nr_pages; k++, at++)
			if (is_picked(at, chunk->nr_pages))
				add_page(part, run, chunk->runs[i].address + k * CONTEXT_PAGE);
}

static void blend(double *old, double new)
{
	*old = *old > 0 ? *old + NEWS * (new - *old) : new;
}

/* Compresses the sample in one way. */
static int try(struct chooser *c, size_t length, enum context_compression kind,
	       struct chooser_guess *out)
{
	const struct compression how = { .kind = kind };
	uint64_t start = now_ns();
	ssize_t got = codec_compress(c->codec, &how, c->page, length, c->packed);

	if (got < 0)
		return report_errno((int)got, "cannot compress memory");
	out->cost = (double)(now_ns() - start) / (double)length;
	out->ratio = got ? (double)got / (double)length : 1;
	blend(&c->recent[kind].cost, out->cost);
	blend(&c->recent[kind].ratio, out->ratio);
	return 0;
}

/* Could it be the choice if this chunk compressed twice as fast as those lately, to nothing? */
static bool is_worth_a_try(const struct chooser *c, const struct chooser_costs *costs,
			   enum context_compression kind)
{
	double cost = c->recent[kind].cost * c->bias[kind].cost / 2;

	return costs->store < 0 || (costs->load + cost) / costs->processors < costs->store;
}

static int sample(struct chooser *c, struct page_source *source, const struct context_chunk *chunk,
		  const struct chooser_costs *costs, struct chooser_guess *guess)
{
	struct kcr_run run[SAMPLE_PAGES];
	uint64_t start = now_ns(), sum;
	struct context_chunk part;
	int err;

	pick(chunk, &part, run);
	err = source->ops->load(source, &part, c->page, &sum);
	chooser_loaded(c, part.length, now_ns() - start);
	if (!err)
		err = try(c, part.length, CONTEXT_LZ4, &guess[CONTEXT_LZ4]);
	if (!err && is_worth_a_try(c, costs, CONTEXT_ZSTD))
		err = try(c, part.length, CONTEXT_ZSTD, &guess[CONTEXT_ZSTD]);
	c->sampling_ns += now_ns() - start;
	return err;
}

int chooser_choose(struct chooser *c, struct page_source *source, const struct context_chunk *chunk,
		   bool direct, struct chooser_choice *out)
{
	struct chooser_costs costs = {
		.load = c->loaded.bytes > 0 ? c->loaded.ns / c->loaded.bytes : 0,
		.store = rate_cost(&c->rate), .alone = rate_cost_alone(&c->rate),
		.processors = c->processors, .direct = direct,
	};
	int err;

	for (size_t i = CONTEXT_LZ4; i < CONTEXT_COMPRESSIONS; i++)
		costs.guess[i] = c->recent[i];
	if (is_due(c)) {
		err = sample(c, source, chunk, &costs, costs.guess);
		if (err)
			return err;
	}
	*out = (struct chooser_choice){};
	for (size_t i = CONTEXT_LZ4; i < CONTEXT_COMPRESSIONS; i++) {
		costs.guess[i].cost *= c->bias[i].cost;
		costs.guess[i].ratio *= c->bias[i].ratio;
		c->bias[i].cost += FORGET * (1 - c->bias[i].cost);
		c->bias[i].ratio += FORGET * (1 - c->bias[i].ratio);
	}
	out->how.kind = chooser_best(&costs);
	out->guess = costs.guess[out->how.kind];
	return 0;
}

/* ---- what it was like ------------------------------------------------------------------ */

void chooser_loaded(struct chooser *c, uint64_t bytes, uint64_t ns)
{
	rate_mean_add(&c->loaded, bytes, ns);
}

/* The guess was made with the bias of then, which is not much different now. */
static void correct(double *bias, double guessed, double found)
{
	double wanted = *bias * found / guessed;

	if (wanted > BIAS_MAX)
		wanted = BIAS_MAX;
	if (wanted < 1 / BIAS_MAX)
		wanted = 1 / BIAS_MAX;
	*bias += NEWS * (wanted - *bias);
}

void chooser_compressed(struct chooser *c, const struct chooser_choice *choice, uint64_t bytes,
			uint64_t stored, uint64_t ns)
{
	struct chooser_guess *bias = &c->bias[choice->how.kind];

	if (choice->guess.cost <= 0 || !bytes)
		return;
	correct(&bias->cost, choice->guess.cost, (double)ns / (double)bytes);
	correct(&bias->ratio, choice->guess.ratio, stored ? (double)stored / (double)bytes : 1);
}
