// SPDX-License-Identifier: GPL-2.0
/* One-sided communication: epochs of all kinds are open in the pause.  See features.h. */
#include "features.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LARGE	50000		/* numbers */

static int seed(int round, int from)
{
	return round * 100 + from;
}

/* ---- fences; the window lives as long as the program ----------------------------------------- */

static MPI_Win fenced;
static int *fenced_memory, out[LARGE], in[LARGE];

static void fence_open(void)
{
	MPI_Win_allocate(LARGE * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &fenced_memory,
			 &fenced);
}

static void fence_begin(int round)
{
	fill(out, LARGE, seed(round, rank));
	MPI_Win_fence(MPI_MODE_NOPRECEDE, fenced);
	MPI_Put(out, LARGE / 2, MPI_INT, next(), 0, LARGE / 2, MPI_INT, fenced);
}

static void fence_end(int round)
{
	int half = LARGE / 2;

	MPI_Put(out + half, half, MPI_INT, next(), half, half, MPI_INT, fenced);
	MPI_Win_fence(0, fenced);
	CHECK(filled(fenced_memory, LARGE, seed(round, previous())));
	memset(in, 0, sizeof(in));
	MPI_Get(in, LARGE, MPI_INT, next(), 0, LARGE, MPI_INT, fenced);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, fenced);
	CHECK(filled(in, LARGE, seed(round, rank)));
}

static void fence_close(void)
{
	MPI_Win_free(&fenced);
}

/* ---- post, start, complete, wait: in memory of the program's own ----------------------------- */

static MPI_Win posted;
static int posted_memory[LARGE];

static void post_begin(int round)
{
	MPI_Group all, to, from;

	MPI_Win_create(posted_memory, sizeof(posted_memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
		       &posted);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, (int[]){ previous() }, &from);
	MPI_Group_incl(all, 1, (int[]){ next() }, &to);
	MPI_Win_post(from, 0, posted);
	if (rank != late(round)) {
		MPI_Win_start(to, 0, posted);
		MPI_Put(out, LARGE, MPI_INT, next(), 0, LARGE, MPI_INT, posted);
	}
	MPI_Group_free(&from);
	MPI_Group_free(&to);
	MPI_Group_free(&all);
}

static void post_end(int round)
{
	MPI_Group all, to;
	int done = 0;

	if (rank == late(round)) {
		MPI_Comm_group(MPI_COMM_WORLD, &all);
		MPI_Group_incl(all, 1, (int[]){ next() }, &to);
		MPI_Win_start(to, 0, posted);
		MPI_Put(out, LARGE, MPI_INT, next(), 0, LARGE, MPI_INT, posted);
		MPI_Group_free(&to);
		MPI_Group_free(&all);
	}
	MPI_Win_complete(posted);
	if (round % 2)
		MPI_Win_wait(posted);
	else
		while (!done)
			MPI_Win_test(posted, &done);
	CHECK(filled(posted_memory, LARGE, seed(round, previous())));
	MPI_Win_free(&posted);
}

/* ---- locks: the next rank's memory is this one's own in the pause ---------------------------- */

static MPI_Win locked;
static int *locked_memory;

static void lock_open(void)
{
	MPI_Win_allocate(LARGE * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &locked_memory,
			 &locked);
}

static void lock_begin(int round)
{
	(void)round;
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next(), 0, locked);
	MPI_Put(out, LARGE, MPI_INT, next(), 0, LARGE, MPI_INT, locked);
}

static void lock_end(int round)
{
	MPI_Win_flush(next(), locked);
	memset(in, 0, sizeof(in));
	MPI_Get(in, LARGE, MPI_INT, next(), 0, LARGE, MPI_INT, locked);
	MPI_Win_unlock(next(), locked);
	CHECK(filled(in, LARGE, seed(round, rank)));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, locked);
	CHECK(filled(locked_memory, LARGE, seed(round, previous())));
	MPI_Win_unlock(rank, locked);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void lock_close(void)
{
	MPI_Win_free(&locked);
}

/* ---- atomic operations, under a lock of all --------------------------------------------------- */

/* Rank 0 has them. */
enum { COUNT, LARGEST, SWAPPED, FETCHED, REPLACED, NUMBERS };

static MPI_Win atomic;
static int64_t *numbers, mine[NUMBERS], before[2];
static MPI_Request atomic_request[2];

static void atomic_begin(int round)
{
	MPI_Win_allocate(NUMBERS * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &numbers, &atomic);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, atomic);
	memset(numbers, 0, NUMBERS * sizeof(*numbers));
	MPI_Win_unlock(rank, atomic);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, atomic);
	mine[COUNT] = round + rank;
	mine[LARGEST] = 100 * round + rank;
	MPI_Raccumulate(&mine[COUNT], 1, MPI_INT64_T, 0, COUNT, 1, MPI_INT64_T, MPI_SUM, atomic,
			&atomic_request[0]);
	MPI_Accumulate(&mine[LARGEST], 1, MPI_INT64_T, 0, LARGEST, 1, MPI_INT64_T, MPI_MAX, atomic);
	mine[FETCHED] = 1;
	MPI_Rget_accumulate(&mine[FETCHED], 1, MPI_INT64_T, &before[0], 1, MPI_INT64_T, 0, FETCHED, 1,
			    MPI_INT64_T, MPI_SUM, atomic, &atomic_request[1]);
}

/* Each of the ranks adds one to it in its turn. */
static void swap_in(void)
{
	int64_t seen = 0, wanted, got = -1;

	while (got != seen) {
		seen = got == -1 ? 0 : got;
		wanted = seen + 1;
		MPI_Compare_and_swap(&wanted, &seen, &got, MPI_INT64_T, 0, SWAPPED, atomic);
		MPI_Win_flush(0, atomic);
	}
}

static void atomic_end(int round)
{
	int64_t got[NUMBERS], one = 1;

	MPI_Waitall(2, atomic_request, MPI_STATUSES_IGNORE);
	MPI_Fetch_and_op(&one, &before[1], MPI_INT64_T, 0, FETCHED, MPI_SUM, atomic);
	MPI_Win_flush_local(0, atomic);
	swap_in();
	mine[REPLACED] = 77 + round;
	MPI_Accumulate(&mine[REPLACED], 1, MPI_INT64_T, 0, REPLACED, 1, MPI_INT64_T, MPI_REPLACE, atomic);
	MPI_Win_flush_all(atomic);
	MPI_Win_unlock_all(atomic);
	CHECK(before[0] >= 0 && before[0] < before[1] && before[1] < 2 * size);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, atomic);
	MPI_Get_accumulate(NULL, 0, MPI_INT64_T, got, NUMBERS, MPI_INT64_T, 0, 0, NUMBERS, MPI_INT64_T,
			   MPI_NO_OP, atomic);
	MPI_Win_unlock(0, atomic);
	CHECK(got[COUNT] == size * round + size * (size - 1) / 2);
	CHECK(got[LARGEST] == 100 * round + size - 1);
	CHECK(got[SWAPPED] == size && got[FETCHED] == 2 * size && got[REPLACED] == 77 + round);
	MPI_Win_free(&atomic);
}

/* ---- a dynamic window, and requests of single operations ------------------------------------- */

static MPI_Win dynamic;
static int *attached;
static MPI_Aint address;
static MPI_Request dynamic_request[2];
static int dynamic_in[10];

static void dynamic_begin(int round)
{
	MPI_Aint here;

	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
	attached = malloc(LARGE * sizeof(int));
	fill(attached, LARGE, round);
	MPI_Win_attach(dynamic, attached, LARGE * sizeof(int));
	MPI_Get_address(attached, &here);
	MPI_Sendrecv(&here, 1, MPI_AINT, previous(), 1, &address, 1, MPI_AINT, next(), 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, dynamic);
	MPI_Rput(out, LARGE / 2, MPI_INT, next(), address, LARGE / 2, MPI_INT, dynamic, &dynamic_request[0]);
	MPI_Rget(dynamic_in, 10, MPI_INT, next(), MPI_Aint_add(address, (LARGE - 10) * sizeof(int)), 10,
		 MPI_INT, dynamic, &dynamic_request[1]);
}

static void dynamic_end(int round)
{
	int whole[LARGE / 10];

	MPI_Waitall(2, dynamic_request, MPI_STATUSES_IGNORE);
	MPI_Win_flush_local_all(dynamic);
	MPI_Win_sync(dynamic);
	MPI_Win_unlock_all(dynamic);
	fill(in, LARGE, round);
	CHECK(!memcmp(in + LARGE - 10, dynamic_in, sizeof(dynamic_in)));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(filled(attached, LARGE / 2, seed(round, previous())));
	MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, dynamic);
	MPI_Get(whole, LARGE / 10, MPI_INT, next(), address, LARGE / 10, MPI_INT, dynamic);
	MPI_Win_unlock(next(), dynamic);
	CHECK(filled(whole, LARGE / 10, seed(round, rank)));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_detach(dynamic, attached);
	MPI_Win_free(&dynamic);
	free(attached);
}

/* ---- attributes of windows, and that memory is not shared ------------------------------------ */

static int key;

static void window_attributes_begin(int round)
{
	MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &key, NULL);
	MPI_Win_set_attr(fenced, key, (char *)NULL + round);
	MPI_Win_set_name(fenced, round % 2 ? "odd" : "even");
}

static void window_attributes_end(int round)
{
	char name[MPI_MAX_OBJECT_NAME];
	void *value, *base, *shared;
	MPI_Comm together;
	int flag, length;
	MPI_Win window;

	MPI_Win_get_attr(fenced, key, &value, &flag);
	CHECK(flag && value == (char *)NULL + round);
	MPI_Win_get_attr(fenced, MPI_WIN_BASE, &base, &flag);
	CHECK(flag && base == fenced_memory);
	MPI_Win_get_name(fenced, name, &length);
	CHECK(!strcmp(name, round % 2 ? "odd" : "even"));
	MPI_Win_free_keyval(&key);
	MPI_Comm_dup(MPI_COMM_WORLD, &together);
	MPI_Comm_set_errhandler(together, MPI_ERRORS_RETURN);
	CHECK(!getenv("OMPI_MCA_osc") ||
	      MPI_Win_allocate_shared(4096, 1, MPI_INFO_NULL, together, &shared, &window) != MPI_SUCCESS);
	MPI_Comm_free(&together);
}

const struct feature window_features[] = {
	{ "fence", fence_begin, fence_end, fence_open, NULL },
	{ "post_start", post_begin, post_end, NULL, NULL },
	{ "lock", lock_begin, lock_end, lock_open, lock_close },
	{ "atomic", atomic_begin, atomic_end, NULL, NULL },
	{ "dynamic_window", dynamic_begin, dynamic_end, NULL, NULL },
	{ "window_attributes", window_attributes_begin, window_attributes_end, NULL, fence_close },
	{ 0 }
};
