// SPDX-License-Identifier: GPL-2.0
/* Topologies, and collective operations among neighbours across the pause.  See features.h. */
#include "features.h"

#include <string.h>

#define MOST	8	/* neighbours */
#define SHORT	4
#define VARIANTS 5

/* What goes to the neighbours, and comes: the same numbers, however. */
struct exchange {
	int out[MOST * SHORT], gather[MOST * SHORT], gatherv[MOST * SHORT];
	int all[MOST * SHORT], allv[MOST * SHORT], allw[MOST * SHORT];
	int lengths[MOST], places[MOST];
	MPI_Aint bytes_at[MOST];
	MPI_Datatype types[MOST];
	MPI_Request requests[VARIANTS];
};

static void prepare(struct exchange *e, int round)
{
	memset(e, 0, sizeof(*e));
	for (int i = 0; i < MOST; i++) {
		e->lengths[i] = SHORT;
		e->places[i] = i * SHORT;
		e->bytes_at[i] = i * SHORT * sizeof(int);
		e->types[i] = MPI_INT;
		for (int k = 0; k < SHORT; k++)
			e->out[i * SHORT + k] = round * 1000 + rank * 10 + k;
	}
}

static void start(struct exchange *e, MPI_Comm comm)
{
	MPI_Ineighbor_allgather(e->out, SHORT, MPI_INT, e->gather, SHORT, MPI_INT, comm, &e->requests[0]);
	MPI_Ineighbor_allgatherv(e->out, SHORT, MPI_INT, e->gatherv, e->lengths, e->places, MPI_INT, comm,
				 &e->requests[1]);
	MPI_Ineighbor_alltoall(e->out, SHORT, MPI_INT, e->all, SHORT, MPI_INT, comm, &e->requests[2]);
	MPI_Ineighbor_alltoallv(e->out, e->lengths, e->places, MPI_INT, e->allv, e->lengths, e->places,
				MPI_INT, comm, &e->requests[3]);
	MPI_Ineighbor_alltoallw(e->out, e->lengths, e->bytes_at, e->types, e->allw, e->lengths,
				e->bytes_at, e->types, comm, &e->requests[4]);
}

static void exchange(struct exchange *e, MPI_Comm comm)
{
	MPI_Neighbor_allgather(e->out, SHORT, MPI_INT, e->gather, SHORT, MPI_INT, comm);
	MPI_Neighbor_allgatherv(e->out, SHORT, MPI_INT, e->gatherv, e->lengths, e->places, MPI_INT, comm);
	MPI_Neighbor_alltoall(e->out, SHORT, MPI_INT, e->all, SHORT, MPI_INT, comm);
	MPI_Neighbor_alltoallv(e->out, e->lengths, e->places, MPI_INT, e->allv, e->lengths, e->places,
			       MPI_INT, comm);
	MPI_Neighbor_alltoallw(e->out, e->lengths, e->bytes_at, e->types, e->allw, e->lengths,
			       e->bytes_at, e->types, comm);
}

/* From each of those neighbours, in their order. */
static void check_exchange(const struct exchange *e, const int *neighbours, int count, int round)
{
	for (int i = 0; i < count; i++)
		for (int k = 0; k < SHORT && neighbours[i] >= 0; k++) {
			int at = i * SHORT + k, expected = round * 1000 + neighbours[i] * 10 + k;

			CHECK(e->gather[at] == expected && e->gatherv[at] == expected);
			CHECK(e->all[at] == expected && e->allv[at] == expected);
			CHECK(e->allw[at] == expected);
		}
}

/* Those that a round has begun, and again, blocking. */
static void finish(struct exchange *e, MPI_Comm comm, const int *neighbours, int count, int round)
{
	if (rank == late(round))
		start(e, comm);
	MPI_Waitall(VARIANTS, e->requests, MPI_STATUSES_IGNORE);
	check_exchange(e, neighbours, count, round);
	prepare(e, round + 1);
	exchange(e, comm);
	check_exchange(e, neighbours, count, round + 1);
}

static void begin(struct exchange *e, MPI_Comm comm, int round)
{
	prepare(e, round);
	if (rank != late(round))
		start(e, comm);
}

/* ---- a grid, a line of which is closed ------------------------------------------------------- */

static MPI_Comm grid, line;
static struct exchange on_grid;

static void grid_begin(int round)
{
	int dims[2] = { 0, 0 }, open_end[2] = { 1, 0 };

	MPI_Dims_create(size, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, open_end, 0, &grid);
	MPI_Cart_sub(grid, (int[]){ 1, 0 }, &line);
	begin(&on_grid, grid, round);
}

static void grid_end(int round)
{
	int kind, dims[2], closed[2], at[2], number, neighbours[4], count;

	MPI_Topo_test(grid, &kind);
	MPI_Cart_get(grid, 2, dims, closed, at);
	MPI_Cart_rank(grid, at, &number);
	CHECK(kind == MPI_CART && dims[0] * dims[1] == size && closed[0] && !closed[1] && number == rank);
	for (int i = 0; i < 2; i++)
		MPI_Cart_shift(grid, i, 1, &neighbours[2 * i], &neighbours[2 * i + 1]);
	CHECK(dims[1] > 1 || (neighbours[2] == MPI_PROC_NULL && neighbours[3] == MPI_PROC_NULL));
	finish(&on_grid, grid, neighbours, 4, round);
	MPI_Comm_size(line, &count);
	MPI_Comm_rank(line, &number);
	CHECK(count == dims[0] && number == at[0]);
	MPI_Comm_free(&line);
	MPI_Comm_free(&grid);
}

/* ---- a graph: a ring ------------------------------------------------------------------------- */

static MPI_Comm ring;
static struct exchange on_ring;

static void graph_begin(int round)
{
	int index[size], edges[2 * size];

	for (int i = 0; i < size; i++) {
		index[i] = 2 * (i + 1);
		edges[2 * i] = (i + size - 1) % size;
		edges[2 * i + 1] = (i + 1) % size;
	}
	MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &ring);
	begin(&on_ring, ring, round);
}

static void graph_end(int round)
{
	int nodes, edges, neighbours[2] = { -1, -1 };

	MPI_Graphdims_get(ring, &nodes, &edges);
	CHECK(nodes == size && edges == 2 * size);
	MPI_Graph_neighbors(ring, rank, 2, neighbours);
	CHECK(neighbours[0] == previous() && neighbours[1] == next());
	finish(&on_ring, ring, neighbours, 2, round);
	MPI_Comm_free(&ring);
}

/* ---- distributed graphs: all get from the previous rank, and rank 0 from all others ---------- */

static MPI_Comm star, cycle;
static struct exchange on_star, on_cycle;

static void dist_begin(int round)
{
	int from[size], to[1] = { 0 }, weights[size], incoming = 0, one = 1, target = next();

	for (int i = 1; i < size && !rank; i++) {
		weights[incoming] = 10 * i;
		from[incoming++] = i;
	}
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, incoming, from, weights, rank > 0, to,
				       &(int){ 10 * rank }, MPI_INFO_NULL, 0, &star);
	begin(&on_star, star, round);
	MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &target, &one, MPI_INFO_NULL, 0, &cycle);
	begin(&on_cycle, cycle, round);
}

static void dist_end(int round)
{
	int incoming, outgoing, weighted, from[size], weights[size], to[1], to_weight[1];

	MPI_Dist_graph_neighbors_count(star, &incoming, &outgoing, &weighted);
	CHECK(incoming == (rank ? 0 : size - 1) && outgoing == (rank > 0) && weighted);
	MPI_Dist_graph_neighbors(star, incoming, from, weights, outgoing, to, to_weight);
	for (int i = 0; i < incoming; i++)
		CHECK(from[i] == i + 1 && weights[i] == 10 * (i + 1));
	finish(&on_star, star, from, incoming, round);
	MPI_Dist_graph_neighbors_count(cycle, &incoming, &outgoing, &weighted);
	CHECK(incoming == 1 && outgoing == 1 && weighted);
	finish(&on_cycle, cycle, (int[]){ previous() }, 1, round);
	MPI_Comm_free(&star);
	MPI_Comm_free(&cycle);
}

const struct feature topology_features[] = {
	{ "cart", grid_begin, grid_end, NULL, NULL },
	{ "graph", graph_begin, graph_end, NULL, NULL },
	{ "dist_graph", dist_begin, dist_end, NULL, NULL },
	{ 0 }
};
