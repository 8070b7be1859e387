// SPDX-License-Identifier: GPL-2.0
/*
 * Collective operations, blocking and not, and operators of the program's own.  In each round one
 * rank joins what does not block only after the pause, so none of it can have ended before.  See
 * features.h.
 */
#include "features.h"

#include <stdlib.h>
#include <string.h>

#if OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Allreduce_init	MPIX_Allreduce_init
#define MPI_Bcast_init		MPIX_Bcast_init
#define MPI_Barrier_init	MPIX_Barrier_init
#endif

#define RANKS	16
#define LONG	20000		/* numbers: sent in pieces */
#define SHORT	5

static MPI_Comm comm, pending_comm;

static void open_all(void)
{
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_dup(MPI_COMM_WORLD, &pending_comm);
}

static void close_all(void)
{
	MPI_Comm_free(&comm);
	MPI_Comm_free(&pending_comm);
}

/* ---- what all ranks move, blocking or not --------------------------------------------------- */

/* Rank R contributes R + 1 numbers per rank to the variants with lengths of their own. */
struct moved {
	int bcast[LONG];
	int out[RANKS * RANKS], gather[RANKS * SHORT], gatherv[RANKS * RANKS];
	int scatter[SHORT], scatterv[RANKS];
	int allgather[RANKS * SHORT], allgatherv[RANKS * RANKS];
	int alltoall[RANKS * SHORT], alltoallv[RANKS * RANKS], alltoallw[RANKS * RANKS];
	int lengths[RANKS], places[RANKS];		/* of what the ranks contribute, by rank */
	int mine[RANKS], mine_at[RANKS];		/* of what this one sends, by receiver */
	int bytes_at[RANKS], mine_bytes_at[RANKS];
	MPI_Datatype types[RANKS];
	int root, round;
};
static struct moved moved, pending;

static int value(const struct moved *m, int from, int i)
{
	return m->round * 100000 + from * 1000 + i;
}

static void prepare(struct moved *m, int round)
{
	memset(m, 0, sizeof(*m));
	m->round = round;
	m->root = (round + 1) % size;
	if (rank == m->root)
		fill(m->bcast, LONG, round);
	for (int i = 0; i < size * RANKS; i++)
		m->out[i] = value(m, rank, i);
	for (int i = 0, at = 0; i < size; at += ++i) {
		m->lengths[i] = i + 1;
		m->places[i] = at;
		m->bytes_at[i] = at * sizeof(int);
		m->mine[i] = rank + 1;
		m->mine_at[i] = i * RANKS;
		m->mine_bytes_at[i] = i * RANKS * sizeof(int);
		m->types[i] = MPI_INT;
	}
}

#define MOVES 10

static void move(struct moved *m)
{
	int root = m->root;

	MPI_Bcast(m->bcast, LONG, MPI_INT, root, comm);
	MPI_Gather(m->out, SHORT, MPI_INT, m->gather, SHORT, MPI_INT, root, comm);
	MPI_Gatherv(m->out, rank + 1, MPI_INT, m->gatherv, m->lengths, m->places, MPI_INT, root, comm);
	MPI_Scatter(m->out, SHORT, MPI_INT, m->scatter, SHORT, MPI_INT, root, comm);
	MPI_Scatterv(m->out, m->lengths, m->places, MPI_INT, m->scatterv, rank + 1, MPI_INT, root, comm);
	MPI_Allgather(m->out, SHORT, MPI_INT, m->allgather, SHORT, MPI_INT, comm);
	MPI_Allgatherv(m->out, rank + 1, MPI_INT, m->allgatherv, m->lengths, m->places, MPI_INT, comm);
	MPI_Alltoall(m->out, SHORT, MPI_INT, m->alltoall, SHORT, MPI_INT, comm);
	MPI_Alltoallv(m->out, m->mine, m->mine_at, MPI_INT, m->alltoallv, m->lengths, m->places, MPI_INT,
		      comm);
	MPI_Alltoallw(m->out, m->mine, m->mine_bytes_at, m->types, m->alltoallw, m->lengths, m->bytes_at,
		      m->types, comm);
}

static void start_move(struct moved *m, MPI_Comm on, MPI_Request request[MOVES])
{
	int root = m->root;

	MPI_Ibcast(m->bcast, LONG, MPI_INT, root, on, &request[0]);
	MPI_Igather(m->out, SHORT, MPI_INT, m->gather, SHORT, MPI_INT, root, on, &request[1]);
	MPI_Igatherv(m->out, rank + 1, MPI_INT, m->gatherv, m->lengths, m->places, MPI_INT, root, on,
		     &request[2]);
	MPI_Iscatter(m->out, SHORT, MPI_INT, m->scatter, SHORT, MPI_INT, root, on, &request[3]);
	MPI_Iscatterv(m->out, m->lengths, m->places, MPI_INT, m->scatterv, rank + 1, MPI_INT, root, on,
		      &request[4]);
	MPI_Iallgather(m->out, SHORT, MPI_INT, m->allgather, SHORT, MPI_INT, on, &request[5]);
	MPI_Iallgatherv(m->out, rank + 1, MPI_INT, m->allgatherv, m->lengths, m->places, MPI_INT, on,
			&request[6]);
	MPI_Ialltoall(m->out, SHORT, MPI_INT, m->alltoall, SHORT, MPI_INT, on, &request[7]);
	MPI_Ialltoallv(m->out, m->mine, m->mine_at, MPI_INT, m->alltoallv, m->lengths, m->places, MPI_INT,
		       on, &request[8]);
	MPI_Ialltoallw(m->out, m->mine, m->mine_bytes_at, m->types, m->alltoallw, m->lengths, m->bytes_at,
		       m->types, on, &request[9]);
}

static void check_moved(const struct moved *m)
{
	CHECK(filled(m->bcast, LONG, m->round));
	for (int from = 0; from < size; from++) {
		for (int i = 0; i < SHORT; i++) {
			CHECK(rank != m->root || m->gather[from * SHORT + i] == value(m, from, i));
			CHECK(m->allgather[from * SHORT + i] == value(m, from, i));
			CHECK(m->alltoall[from * SHORT + i] == value(m, from, rank * SHORT + i));
		}
		for (int i = 0; i <= from; i++) {
			int at = m->places[from] + i;

			CHECK(rank != m->root || m->gatherv[at] == value(m, from, i));
			CHECK(m->allgatherv[at] == value(m, from, i));
			CHECK(m->alltoallv[at] == value(m, from, rank * RANKS + i));
			CHECK(m->alltoallw[at] == value(m, from, rank * RANKS + i));
		}
	}
	for (int i = 0; i < SHORT; i++)
		CHECK(m->scatter[i] == value(m, m->root, rank * SHORT + i));
	for (int i = 0; i <= rank; i++)
		CHECK(m->scatterv[i] == value(m, m->root, m->places[rank] + i));
}

static void move_end(int round)
{
	prepare(&moved, round);
	move(&moved);
	check_moved(&moved);
}

static MPI_Request moving[MOVES];

static void imove_begin(int round)
{
	prepare(&pending, round);
	if (rank != late(round))
		start_move(&pending, pending_comm, moving);
}

static void imove_end(int round)
{
	if (rank == late(round))
		start_move(&pending, pending_comm, moving);
	MPI_Waitall(MOVES, moving, MPI_STATUSES_IGNORE);
	check_moved(&pending);
}

/* ---- what ranks compute: x -> a x + b modulo a prime, one after the other: the order counts - */

#define PRIME 30011

struct map {
	int a, b;
};

static MPI_Datatype map_type;
static MPI_Op then, largest;

static struct map after(struct map first, struct map second)
{
	return (struct map){ first.a * second.a % PRIME, (first.b * second.a + second.b) % PRIME };
}

static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
	struct map *left = in, *right = inout;

	CHECK(*type == map_type);
	for (int i = 0; i < *count; i++)
		right[i] = after(left[i], right[i]);
}

static void find_largest(void *in, void *inout, int *count, MPI_Datatype *type)
{
	int *a = in, *b = inout;

	CHECK(*type == MPI_INT);
	for (int i = 0; i < *count; i++)
		b[i] = a[i] > b[i] ? a[i] : b[i];
}

static struct map map_of(int from, int i, int round)
{
	return (struct map){ 2 + (from * 31 + i * 7 + round) % 100, from + i + round };
}

/* That of the ranks before END, in their order. */
static bool is_product(struct map m, int end, int i, int round)
{
	struct map right = { 1, 0 };

	for (int from = 0; from < end; from++)
		right = after(right, map_of(from, i, round));
	return m.a == right.a && m.b == right.b;
}

static void compute_open(void)
{
	MPI_Type_contiguous(2, MPI_INT, &map_type);
	MPI_Type_commit(&map_type);
	MPI_Op_create(compose, 0, &then);
	MPI_Op_create(find_largest, 1, &largest);
}

static void compute_close(void)
{
	MPI_Op_free(&then);
	MPI_Op_free(&largest);
	MPI_Type_free(&map_type);
	close_all();
}

struct computed {
	struct map out[RANKS], reduce[RANKS], all[RANKS], block[1], part[RANKS], scan[RANKS], exscan[RANKS];
	int lengths[RANKS], mine, most;
	int root, round;
};
static struct computed computed, computing;

static void prepare_maps(struct computed *c, int round)
{
	memset(c, 0, sizeof(*c));
	c->round = round;
	c->root = (round + 2) % size;
	c->mine = rank * 10 + round;
	for (int i = 0; i < RANKS; i++)
		c->out[i] = map_of(rank, i, round);
	/* The first gets one more than the others, the last nothing. */
	for (int i = 0; i < size; i++)
		c->lengths[i] = size == 1 ? 1 : i == 0 ? 2 : i == size - 1 ? 0 : 1;
}

#define COMPUTATIONS 7

static void compute(struct computed *c)
{
	MPI_Reduce(c->out, c->reduce, RANKS, map_type, then, c->root, comm);
	MPI_Allreduce(c->out, c->all, RANKS, map_type, then, comm);
	MPI_Reduce_scatter_block(c->out, c->block, 1, map_type, then, comm);
	MPI_Reduce_scatter(c->out, c->part, c->lengths, map_type, then, comm);
	MPI_Scan(c->out, c->scan, RANKS, map_type, then, comm);
	MPI_Exscan(c->out, c->exscan, RANKS, map_type, then, comm);
	MPI_Allreduce(&c->mine, &c->most, 1, MPI_INT, largest, comm);
}

static void start_computing(struct computed *c, MPI_Comm on, MPI_Request request[COMPUTATIONS])
{
	MPI_Ireduce(c->out, c->reduce, RANKS, map_type, then, c->root, on, &request[0]);
	MPI_Iallreduce(c->out, c->all, RANKS, map_type, then, on, &request[1]);
	MPI_Ireduce_scatter_block(c->out, c->block, 1, map_type, then, on, &request[2]);
	MPI_Ireduce_scatter(c->out, c->part, c->lengths, map_type, then, on, &request[3]);
	MPI_Iscan(c->out, c->scan, RANKS, map_type, then, on, &request[4]);
	MPI_Iexscan(c->out, c->exscan, RANKS, map_type, then, on, &request[5]);
	MPI_Iallreduce(&c->mine, &c->most, 1, MPI_INT, largest, on, &request[6]);
}

static void check_computed(const struct computed *c)
{
	int first = rank ? rank + 1 : 0;		/* of its part */

	for (int i = 0; i < RANKS; i++) {
		CHECK(rank != c->root || is_product(c->reduce[i], size, i, c->round));
		CHECK(is_product(c->all[i], size, i, c->round));
		CHECK(is_product(c->scan[i], rank + 1, i, c->round));
		CHECK(!rank || is_product(c->exscan[i], rank, i, c->round));
	}
	CHECK(is_product(c->block[0], size, rank, c->round));
	for (int i = 0; i < c->lengths[rank]; i++)
		CHECK(is_product(c->part[i], size, first + i, c->round));
	CHECK(c->most == (size - 1) * 10 + c->round);
}

static void compute_end(int round)
{
	struct map left = map_of(0, 0, round), right = map_of(1, 0, round);
	int commutes;

	prepare_maps(&computed, round);
	compute(&computed);
	check_computed(&computed);
	MPI_Reduce_local(&left, &right, 1, map_type, then);
	CHECK(is_product(right, 2, 0, round));
	MPI_Op_commutative(then, &commutes);
	CHECK(!commutes);
}

static MPI_Request in_work[COMPUTATIONS];

static void icompute_begin(int round)
{
	prepare_maps(&computing, round);
	if (rank != late(round))
		start_computing(&computing, pending_comm, in_work);
}

static void icompute_end(int round)
{
	if (rank == late(round))
		start_computing(&computing, pending_comm, in_work);
	MPI_Waitall(COMPUTATIONS, in_work, MPI_STATUSES_IGNORE);
	check_computed(&computing);
}

/* ---- operators of MPI, in place ------------------------------------------------------------- */

static double sums[LONG];
static MPI_Request requests[2];

static void operators_begin(int round)
{
	for (int i = 0; i < LONG; i++)
		sums[i] = i * (rank + 1) + round;
	if (rank == late(round))
		return;
	MPI_Iallreduce(MPI_IN_PLACE, sums, LONG, MPI_DOUBLE, MPI_SUM, pending_comm, &requests[0]);
	MPI_Ibarrier(pending_comm, &requests[1]);
}

static void operators_end(int round)
{
	struct { double value; int at; } place = { rank == round % size ? -1.5 : rank, rank };
	unsigned int bits = 1u << rank, all = (1u << size) - 1;
	int yes = rank > 0, done;

	if (rank == late(round)) {
		MPI_Iallreduce(MPI_IN_PLACE, sums, LONG, MPI_DOUBLE, MPI_SUM, pending_comm, &requests[0]);
		MPI_Ibarrier(pending_comm, &requests[1]);
	} else if (size > 1) {
		MPI_Test(&requests[1], &done, MPI_STATUS_IGNORE);
	}
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < LONG; i += 97)
		CHECK(sums[i] == i * (size * (size + 1) / 2) + (double)size * round);
	MPI_Allreduce(MPI_IN_PLACE, &place, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm);
	CHECK(place.value == -1.5 && place.at == round % size);
	MPI_Allreduce(MPI_IN_PLACE, &bits, 1, MPI_UNSIGNED, round % 2 ? MPI_BOR : MPI_BXOR, comm);
	CHECK(bits == all);
	MPI_Allreduce(MPI_IN_PLACE, &yes, 1, MPI_INT, round % 2 ? MPI_LAND : MPI_LOR, comm);
	CHECK(yes == (round % 2 ? 0 : size > 1));
	MPI_Scan(MPI_IN_PLACE, &(int){ 1 }, 1, MPI_INT, MPI_PROD, comm);
	MPI_Barrier(comm);
}

/* ---- persistent collectives ----------------------------------------------------------------- */

static MPI_Request kept[3];
static int total[LONG], addends[LONG], word[SHORT];

static void kept_open(void)
{
	MPI_Allreduce_init(addends, total, LONG, MPI_INT, MPI_SUM, pending_comm, MPI_INFO_NULL, &kept[0]);
	MPI_Bcast_init(word, SHORT, MPI_INT, 0, pending_comm, MPI_INFO_NULL, &kept[1]);
	MPI_Barrier_init(pending_comm, MPI_INFO_NULL, &kept[2]);
}

static void kept_begin(int round)
{
	for (int i = 0; i < LONG; i++)
		addends[i] = i + rank + round;
	memset(word, 0, sizeof(word));
	if (!rank)
		fill(word, SHORT, round);
	if (rank != late(round))
		MPI_Startall(3, kept);
}

static void kept_end(int round)
{
	if (rank == late(round))
		MPI_Startall(3, kept);
	MPI_Waitall(3, kept, MPI_STATUSES_IGNORE);
	CHECK(filled(word, SHORT, round));
	for (int i = 0; i < LONG; i++)
		if (total[i] != size * (i + round) + size * (size - 1) / 2)
			CHECK(!"the total");
}

static void kept_close(void)
{
	for (int i = 0; i < 3; i++)
		MPI_Request_free(&kept[i]);
}

const struct feature collective_features[] = {
	{ "collectives", NULL, move_end, open_all, NULL },
	{ "collectives_nonblocking", imove_begin, imove_end, NULL, NULL },
	{ "collectives_persistent", kept_begin, kept_end, kept_open, kept_close },
	{ "operators", operators_begin, operators_end, NULL, NULL },
	{ "reductions_nonblocking", icompute_begin, icompute_end, NULL, NULL },
	{ "reductions", NULL, compute_end, compute_open, compute_close },
	{ 0 }
};
