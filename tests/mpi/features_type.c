// SPDX-License-Identifier: GPL-2.0
/*
 * Derived types of all kinds, each with a message under way across the pause; packed data.  See
 * features.h.
 */
#include "features.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define AREA	30000		/* numbers, some of which a type takes */
#define KINDS	13
#define MANY	2000		/* pieces of a type: more than one fragment */

static MPI_Comm comm;

struct kind {
	const char *name;
	int numbers;		/* how many it takes of an area */
	MPI_Datatype type;
	MPI_Request request;
	int out[AREA];
};
static struct kind kinds[KINDS];
static int in[AREA], packed[AREA], expected[AREA];

/* ---- the types ------------------------------------------------------------------------------- */

static void add(struct kind **at, const char *name, MPI_Datatype type, int numbers)
{
	MPI_Type_commit(&type);
	**at = (struct kind){ .name = name, .numbers = numbers, .type = type };
	++*at;
}

/* Blocks of 1 to 3 numbers with gaps between. */
static void add_indexed(struct kind **at)
{
	static int lengths[MANY], places[MANY];
	static MPI_Aint bytes[MANY];
	int sum = 0, place = 3;
	MPI_Datatype type;

	for (int i = 0; i < MANY; i++) {
		lengths[i] = 1 + i % 3;
		places[i] = place;
		bytes[i] = place * sizeof(int);
		sum += lengths[i];
		place += lengths[i] + 1 + i % 2;
	}
	MPI_Type_indexed(MANY, lengths, places, MPI_INT, &type);
	add(at, "indexed", type, sum);
	MPI_Type_create_hindexed(MANY, lengths, bytes, MPI_INT, &type);
	add(at, "hindexed", type, sum);
	MPI_Type_create_indexed_block(MANY, 1, places, MPI_INT, &type);
	add(at, "indexed_block", type, MANY);
	MPI_Type_create_hindexed_block(MANY, 1, bytes, MPI_INT, &type);
	add(at, "hindexed_block", type, MANY);
}

/* A double counts as two numbers. */
static void add_struct(struct kind **at)
{
	struct mixed { int i; double d; char c[8]; int last; };
	MPI_Datatype types[] = { MPI_INT, MPI_DOUBLE, MPI_CHAR }, type, spaced, many;

	MPI_Type_create_struct(3, (int[]){ 1, 1, 8 }, (MPI_Aint[]){ offsetof(struct mixed, i),
			       offsetof(struct mixed, d), offsetof(struct mixed, c) }, types, &type);
	MPI_Type_create_resized(type, 0, sizeof(struct mixed), &spaced);
	MPI_Type_contiguous(MANY, spaced, &many);
	MPI_Type_free(&type);
	MPI_Type_free(&spaced);
	add(at, "struct", many, 5 * MANY);
}

static void add_arrays(struct kind **at)
{
	int edges[] = { 20, 30, 40 }, part[] = { 10, 15, 20 }, from[] = { 5, 3, 7 };
	int kinds_of[] = { MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE };
	int arguments[] = { MPI_DISTRIBUTE_DFLT_DARG, 4, MPI_DISTRIBUTE_DFLT_DARG };
	MPI_Datatype type;

	MPI_Type_create_subarray(3, edges, part, from, MPI_ORDER_C, MPI_INT, &type);
	add(at, "subarray", type, 10 * 15 * 20);
	MPI_Type_create_subarray(3, edges, part, from, MPI_ORDER_FORTRAN, MPI_INT, &type);
	add(at, "subarray_fortran", type, 10 * 15 * 20);
	/* 2 x 2 processes, of which this is the third: 10 of 20, 14 of 30, all of 40. */
	MPI_Type_create_darray(4, 2, 3, edges, kinds_of, arguments, (int[]){ 2, 2, 1 }, MPI_ORDER_C,
			       MPI_INT, &type);
	add(at, "darray", type, 10 * 16 * 40);
}

static void make_types(void)
{
	MPI_Datatype type, part;
	struct kind *at = kinds;

	MPI_Type_contiguous(MANY, MPI_INT, &type);
	add(&at, "contiguous", type, MANY);
	MPI_Type_vector(MANY, 2, 5, MPI_INT, &type);
	add(&at, "vector", type, 2 * MANY);
	MPI_Type_create_hvector(MANY, 3, 20, MPI_INT, &type);
	add(&at, "hvector", type, 3 * MANY);
	add_indexed(&at);
	add_struct(&at);
	add_arrays(&at);
	/* A matrix's column, turned. */
	MPI_Type_vector(100, 1, 100, MPI_INT, &part);
	MPI_Type_create_resized(part, 0, sizeof(int), &type);
	MPI_Type_free(&part);
	MPI_Type_contiguous(100, type, &part);
	MPI_Type_free(&type);
	add(&at, "transposed", part, 100 * 100);
	MPI_Type_dup(kinds[1].type, &type);
	add(&at, "dup", type, 2 * MANY);
}

/* ---- sent before the pause, received behind it ----------------------------------------------- */

static int seed(int round, int from, int kind)
{
	return round * 1000 + from * 50 + kind;
}

static void types_begin(int round)
{
	make_types();
	for (int i = 0; i < KINDS; i++) {
		struct kind *k = &kinds[i];

		fill(k->out, AREA, seed(round, rank, i));
		MPI_Isend(k->out, 1, k->type, next(), i, comm, &k->request);
	}
}

/* Are so many of the numbers received, each in its place, and nothing else? */
static bool in_place(int numbers, int kind, int round)
{
	int count = 0;

	fill(expected, AREA, seed(round, previous(), kind));
	for (int i = 0; i < AREA; i++) {
		count += in[i] != 0;
		if (in[i] && in[i] != expected[i])
			return false;
	}
	return count == numbers;
}

/* Every second one comes as numbers and is unpacked here. */
static void receive(struct kind *k, int kind, int round)
{
	int bytes, at = 0;

	memset(in, 0, sizeof(in));
	if (kind % 2) {
		MPI_Recv(in, 1, k->type, previous(), kind, comm, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(packed, sizeof(packed), MPI_PACKED, previous(), kind, comm, MPI_STATUS_IGNORE);
		MPI_Pack_size(1, k->type, comm, &bytes);
		MPI_Unpack(packed, bytes, &at, in, 1, k->type, comm);
		CHECK(at == k->numbers * (int)sizeof(int));
	}
	CHECK(in_place(k->numbers, kind, round));
}

static void types_end(int round)
{
	int integers, addresses, types, combiner, bytes;

	MPI_Type_get_envelope(kinds[1].type, &integers, &addresses, &types, &combiner);
	CHECK(combiner == MPI_COMBINER_VECTOR && integers == 3 && types == 1);
	for (int i = 0; i < KINDS; i++) {
		struct kind *k = &kinds[i];
		MPI_Aint lower, extent;

		MPI_Type_size(k->type, &bytes);
		CHECK(bytes == k->numbers * (int)sizeof(int));
		MPI_Type_get_true_extent(k->type, &lower, &extent);
		CHECK(lower >= 0 && lower + extent <= (MPI_Aint)sizeof(in));
		receive(k, i, round);
		MPI_Wait(&k->request, MPI_STATUS_IGNORE);
		MPI_Type_free(&k->type);
	}
}

static void types_open(void)
{
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
}

/* ---- packed, half before the pause, half behind it -------------------------------------------- */

static char box[200], outside[200];
static int position;
static MPI_Aint outside_at;

static void pack_begin(int round)
{
	position = 0;
	outside_at = 0;
	MPI_Pack(&round, 1, MPI_INT, box, sizeof(box), &position, comm);
	MPI_Pack_external("external32", (int[]){ 0x01020304, round }, 2, MPI_INT, outside,
			  sizeof(outside), &outside_at);
}

static void pack_end(int round)
{
	double pi = 3.25, back = 0;
	int end = position, first = 0, at = 0, pair[2] = { 0 };
	MPI_Aint size_of, from = 0;

	MPI_Pack(&pi, 1, MPI_DOUBLE, box, sizeof(box), &end, comm);
	MPI_Unpack(box, end, &at, &first, 1, MPI_INT, comm);
	MPI_Unpack(box, end, &at, &back, 1, MPI_DOUBLE, comm);
	CHECK(first == round && back == pi && at == end);
	MPI_Pack_external_size("external32", 2, MPI_INT, &size_of);
	CHECK(size_of == 8 && outside_at == 8 && !memcmp(outside, "\1\2\3\4", 4));
	MPI_Pack_external("external32", &pi, 1, MPI_DOUBLE, outside, sizeof(outside), &outside_at);
	CHECK(outside_at == 16 && !memcmp(outside + 8, "\x40\x0a\0\0", 4));
	MPI_Unpack_external("external32", outside, 16, &from, pair, 2, MPI_INT);
	back = 0;
	MPI_Unpack_external("external32", outside, 16, &from, &back, 1, MPI_DOUBLE);
	CHECK(pair[0] == 0x01020304 && pair[1] == round && back == pi);
}

static void pack_close(void)
{
	MPI_Comm_free(&comm);
}

const struct feature type_features[] = {
	{ "types", types_begin, types_end, types_open, NULL },
	{ "packed", pack_begin, pack_end, NULL, pack_close },
	{ 0 }
};
