/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What compression costs and gains: the page pipeline from memory to a pipe whose reader takes
 * 100 MB/s, to one without a limit, to one that changes in between, and to a file in memory,
 * for data of several kinds.  Rounds are interleaved, ROUNDS= sets their number (5).  Needs no
 * module: the source writes pages and checksums them, as the module does.
 *
 * Arguments: kinds of data, all by default.
 *
 * The goals: --compress=auto is never slower than 0.9 times no compression to a destination that
 * stays as it is; to 100 MB/s, it and --compress=lz4 take at most 1.15 times what their bytes
 * take there.  A line says that one was missed, and so does status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "image/chooser.h"
#include "image/pages.h"
#include "proc/clock.h"
#include "report/report.h"

#define CHUNKS		32u
#define BYTES		(CHUNKS * CONTEXT_CHUNK_BYTES)
#define RATE		100e6
#define MAX_ROUNDS	25

/* ---- data -------------------------------------------------------------------------- */

static uint64_t random_state = 1;

static uint32_t next_random(void)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return random_state >> 33;
}

static void make_noise(unsigned char *p, size_t length)
{
	for (size_t i = 0; i < length; i++)
		p[i] = next_random() >> 8;
}

/* Words of a small vocabulary. */
static void make_text(unsigned char *p, size_t length)
{
	char word[1024][9];

	for (size_t i = 0; i < 1024; i++)
		snprintf(word[i], sizeof(word[i]), "%08x", next_random());
	for (size_t at = 0; at < length;) {
		uint32_t r = next_random();
		size_t n = 2 + r % 7;

		n = n < length - at ? n : length - at;
		memcpy(p + at, word[(r >> 8) % 1024 * ((r >> 18) % 1024) / 1024], n);
		at += n;
	}
}

/* Measured values: sums of small random steps. */
static void make_numbers(unsigned char *p, size_t length)
{
	double value = 1000, *to = (double *)p;

	for (size_t i = 0; i < length / sizeof(*to); i++)
		to[i] = value += (double)(next_random() % 2001) / 1000 - 1;
}

/* Structures with few bytes in use. */
static void make_structs(unsigned char *p, size_t length)
{
	memset(p, 0, length);
	for (size_t at = 0; at + 64 < length; at += 64)
		memcpy(p + at + at / 4096 % 32, &(uint32_t){ next_random() % 4096 }, 4);
}

/* A bit of all, by the megabyte. */
static void make_mixed(unsigned char *p, size_t length)
{
	static void (*const kinds[])(unsigned char *, size_t) = {
		make_noise, make_text, make_numbers, make_structs,
	};

	for (size_t at = 0; at < length; at += 1 << 20)
		kinds[next_random() % 4](p + at, 1 << 20);
}

static const struct {
	const char *name;
	void (*make)(unsigned char *p, size_t length);
} data[] = {
	{ "noise", make_noise }, { "text", make_text }, { "numbers", make_numbers },
	{ "structs", make_structs }, { "mixed", make_mixed },
};

/* ---- a source in memory ---------------------------------------------------------------- */

struct memory {
	struct page_source source;
	unsigned char *page;
	unsigned int next;
	struct kcr_run run;
};

static int give(struct page_source *source, struct context_chunk *chunk)
{
	struct memory *m = (struct memory *)source;

	if (m->next == CHUNKS)
		return 0;
	m->run = (struct kcr_run){ m->next++ * CONTEXT_CHUNK_BYTES, CONTEXT_CHUNK_PAGES };
	chunk->pid = 1;
	chunk->runs = &m->run;
	chunk->nr_runs = 1;
	chunk->nr_pages = CONTEXT_CHUNK_PAGES;
	chunk->length = CONTEXT_CHUNK_BYTES;
	return 1;
}

static int load(struct page_source *source, const struct context_chunk *chunk, void *buffer,
		uint64_t *sum)
{
	struct memory *m = (struct memory *)source;
	char *to = buffer;

	(void)sum;
	for (size_t i = 0; i < chunk->nr_runs; i++) {
		size_t length = chunk->runs[i].nr_pages * CONTEXT_PAGE;

		memcpy(to, m->page + chunk->runs[i].address, length);
		to += length;
	}
	return 0;
}

/* The module does it in steps, too. */
static int send(struct page_source *source, const struct context_chunk *chunk, int fd,
		uint64_t *sum)
{
	/* This source's chunks have one run. */
	const unsigned char *from = ((struct memory *)source)->page + chunk->runs->address;
	XXH64_state_t *state = XXH64_createState();
	size_t step = 64 << 10;

	XXH64_reset(state, 0);
	for (size_t done = 0, n; done < chunk->length; done += n) {
		n = step < chunk->length - done ? step : chunk->length - done;
		XXH64_update(state, from + done, n);
		for (size_t sent = 0; sent < n;) {
			ssize_t wrote = write(fd, from + done + sent, n - sent);

			if (wrote < 0)
				return report_errno(-errno, "write");
			sent += (size_t)wrote;
		}
	}
	*sum = XXH64_digest(state);
	XXH64_freeState(state);
	return 0;
}

/* ---- targets ------------------------------------------------------------------------------ */

struct target {
	const char *name;
	double rate;			/* of a pipe, bytes/s; 0: no limit; < 0: a file */
	double later;			/* … after 8 MB */
	int fd;				/* of the reader */
};

/* Has it nothing to do? */
static bool is_empty(int fd)
{
	int n = 0;

	return !ioctl(fd, FIONREAD, &n) && !n;
}

/* Takes what is in the pipe, but never before its time. */
static void *drain(void *arg)
{
	struct target *t = arg;
	char *buffer = malloc(1 << 16);
	uint64_t due = now_ns(), done = 0;

	for (;;) {
		bool late = is_empty(t->fd);
		ssize_t n = read(t->fd, buffer, 1 << 16);
		double rate = done > 8 << 20 ? t->later : t->rate;
		uint64_t now = now_ns();

		if (n <= 0)
			break;
		done += (uint64_t)n;
		/* What it was not given in time it cannot take later. */
		if (late || rate <= 0)
			due = now;
		if (rate > 0)
			due += (uint64_t)((double)n / rate * 1e9);
		if (due > now + 100000)
			usleep((due - now) / 1000);
	}
	free(buffer);
	return NULL;
}

struct result {
	double seconds;
	uint64_t bytes;
	struct compression_count count[CONTEXT_COMPRESSIONS];
};

static void save(struct memory *m, int fd, const struct compression *how, struct result *r)
{
	static const struct page_source_ops ops = { .next = give, .load = load, .send = send };
	Kcr__Preamble preamble = KCR__PREAMBLE__INIT;
	struct context_page_sink sink;
	struct chooser *chooser = NULL;
	struct context_writer *w;
	int err;

	m->source.ops = &ops;
	m->next = 0;
	err = context_writer_new(&w, fd, 0) ?: context_write_message(w, CONTEXT_PREAMBLE,
								      &preamble.base);
	if (!err && how->adaptive)
		err = chooser_new(&chooser, fd, pages_processors());
	context_page_sink(&sink, w);
	err = err ?: pages_move(&(struct pages_flow) {
		.source = &m->source, .sink = &sink.sink, .work = PAGES_ENCODE,
		.compression = *how, .chooser = chooser, .count = r->count,
	}) ?: context_writer_finish(w);
	r->bytes = context_writer_bytes(w);
	chooser_free(chooser);
	context_writer_free(w);
	if (err) {
		report_print(err);
		exit(2);
	}
}

static void run(struct memory *m, const struct target *target, const struct compression *how,
		struct result *r)
{
	struct target t = *target;
	uint64_t start;
	pthread_t thread;
	int ends[2];

	*r = (struct result){};
	if (t.rate < 0) {
		ends[1] = memfd_create("bench", 0);
		start = now_ns();
	} else {
		if (pipe(ends))
			exit(2);
		t.fd = ends[0];
		start = now_ns();
		pthread_create(&thread, NULL, drain, &t);
	}
	save(m, ends[1], how, r);
	close(ends[1]);
	if (t.rate >= 0) {
		pthread_join(thread, NULL);
		close(ends[0]);
	}
	r->seconds = (double)(now_ns() - start) / 1e9;
}

/* ---- table --------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	struct compression how;
} ways[] = {
	{ "none", {} }, { "lz4", { .kind = CONTEXT_LZ4 } }, { "zstd", { .kind = CONTEXT_ZSTD } },
	{ "auto", { .adaptive = true } },
};

#define WAYS (sizeof(ways) / sizeof(*ways))

static int by_time(const void *a, const void *b)
{
	const struct result *x = a, *y = b;

	return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* One line; `none`: without compression.  Was a goal missed? */
static bool show(const char *kind, const struct target *t, size_t way, const struct result *r,
		 const struct result *none)
{
	bool adaptive = ways[way].how.adaptive, limited = t->rate > 0 && t->rate == t->later;
	double least = (double)r->bytes / RATE;
	bool slow = adaptive && t->rate == t->later && r->seconds > none->seconds / 0.9;
	bool late = limited && (adaptive || way == 1) && r->seconds > 1.15 * least;

	printf("%-8s %-10s %-5s %8.3f s %6.2f x %8.1f MB %5.2f", kind, t->name, ways[way].name,
	       r->seconds, none->seconds / r->seconds, (double)r->bytes / 1e6,
	       limited ? r->seconds / least : 0);
	printf("  %2llu/%2llu/%2llu%s\n", (unsigned long long)r->count[CONTEXT_RAW].chunks,
	       (unsigned long long)r->count[CONTEXT_LZ4].chunks,
	       (unsigned long long)r->count[CONTEXT_ZSTD].chunks,
	       slow || late ? "  GOAL MISSED" : "");
	return slow || late;
}

static bool is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	static const struct target targets[] = {
		{ "100 MB/s", RATE, RATE, -1 }, { "slower", 0, RATE, -1 }, { "faster", RATE, 0, -1 },
		{ "pipe", 0, 0, -1 }, { "file", -1, -1, -1 },
	};
	static struct result results[WAYS][MAX_ROUNDS];
	const char *asked = getenv("ROUNDS") ?: getenv("KCR_ROUNDS");
	int rounds = asked ? atoi(asked) : 5;
	struct memory m = { .page = malloc(BYTES) };
	bool missed = false;

	rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
	printf("%d rounds, %zu MB of memory; medians.  x: times as fast as without; then the file's\n"
	       "bytes, the time in multiples of what they take at 100 MB/s, and chunks none/lz4/zstd\n",
	       rounds, BYTES >> 20);
	for (size_t d = 0; d < sizeof(data) / sizeof(*data); d++) {
		if (!is_wanted(data[d].name, argc, argv))
			continue;
		data[d].make(m.page, BYTES);
		for (size_t t = 0; t < sizeof(targets) / sizeof(*targets); t++) {
			for (int i = 0; i < rounds; i++)
				for (size_t way = 0; way < WAYS; way++)
					run(&m, &targets[t], &ways[way].how, &results[way][i]);
			for (size_t way = 0; way < WAYS; way++) {
				qsort(results[way], rounds, sizeof(**results), by_time);
				missed |= show(data[d].name, &targets[t], way,
					       &results[way][rounds / 2], &results[0][rounds / 2]);
			}
			fflush(stdout);
		}
	}
	free(m.page);
	return missed;
}
