// SPDX-License-Identifier: GPL-2.0
/*
 * Communicators and groups, of all origins, in use across the pause; intercommunicators.  See
 * features.h.
 */
#include "features.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE 30000

static int sum_of(MPI_Comm comm)
{
	int mine = rank, sum = -1;

	MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
	return sum;
}

/* ---- of one group ---------------------------------------------------------------------------- */

/* All but the first are made before the pause. */
static MPI_Comm world, twin, told, half, node, chosen, some, coming;

static void open_all(void)
{
	MPI_Comm_dup(MPI_COMM_WORLD, &world);
}

/* Those of the ranks but the last one, or of all if there is but one. */
static void make_group(MPI_Group *group)
{
	MPI_Group all;

	MPI_Comm_group(world, &all);
	if (size > 1)
		MPI_Group_excl(all, 1, (int[]){ size - 1 }, group);
	else
		MPI_Group_incl(all, 1, (int[]){ 0 }, group);
	MPI_Group_free(&all);
}

static void communicators_begin(int round)
{
	MPI_Request duplicating;
	MPI_Group group;
	MPI_Info info;
	char name[16];

	MPI_Comm_dup(world, &twin);
	MPI_Info_create(&info);
	MPI_Info_set(info, "kcr_test", "told");
	MPI_Comm_dup_with_info(world, info, &told);
	MPI_Info_free(&info);
	snprintf(name, sizeof(name), "half %d", round);
	MPI_Comm_split(world, rank == 0 ? MPI_UNDEFINED : 1, -rank, &half);
	if (half != MPI_COMM_NULL)
		MPI_Comm_set_name(half, name);
	MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
	make_group(&group);
	MPI_Comm_create(world, group, &chosen);
	some = MPI_COMM_NULL;
	if (size == 1 || rank < size - 1)
		MPI_Comm_create_group(world, group, round, &some);
	MPI_Group_free(&group);
	/* Open MPI 4.1 hangs now and then if others are made before it has come. */
	MPI_Comm_idup(world, &coming, &duplicating);
	MPI_Wait(&duplicating, MPI_STATUS_IGNORE);
}

static void check_half(int round)
{
	char name[MPI_MAX_OBJECT_NAME], expected[16];
	int length, number;

	CHECK((half == MPI_COMM_NULL) == (rank == 0));
	if (half == MPI_COMM_NULL)
		return;
	MPI_Comm_get_name(half, name, &length);
	snprintf(expected, sizeof(expected), "half %d", round);
	CHECK(!strcmp(name, expected));
	MPI_Comm_rank(half, &number);
	CHECK(number == size - 1 - rank && sum_of(half) == size * (size - 1) / 2);
}

static void communicators_end(int round)
{
	int result, last = size > 1 ? size - 1 : 1;

	CHECK(sum_of(coming) == size * (size - 1) / 2 && sum_of(twin) == sum_of(told));
	MPI_Comm_compare(world, twin, &result);
	CHECK(result == MPI_CONGRUENT);
	MPI_Comm_compare(world, node, &result);
	CHECK(result == MPI_CONGRUENT || size > 1);
	check_half(round);
	if (rank < last)
		CHECK(sum_of(chosen) == last * (last - 1) / 2 && sum_of(some) == sum_of(chosen));
	else
		CHECK(chosen == MPI_COMM_NULL);
	MPI_Barrier(node);
	for (MPI_Comm **each = (MPI_Comm *[]){ &twin, &told, &half, &node, &chosen, &some, &coming, NULL };
	     *each; each++)
		if (**each != MPI_COMM_NULL)
			MPI_Comm_free(*each);
}

/* ---- groups ---------------------------------------------------------------------------------- */

static MPI_Group whole, even, lower;

static void groups_begin(int round)
{
	int ranges[][3] = { { 0, size - 1, 2 } }, lowest[1][3] = { { 0, (size - 1) / 2, 1 } };

	(void)round;
	MPI_Comm_group(world, &whole);
	MPI_Group_range_incl(whole, 1, ranges, &even);
	MPI_Group_range_incl(whole, 1, lowest, &lower);
}

static void groups_end(int round)
{
	MPI_Group both, either, first_only, odd;
	int count, number, result;

	(void)round;
	MPI_Group_intersection(even, lower, &both);
	MPI_Group_union(even, lower, &either);
	MPI_Group_difference(lower, even, &first_only);
	MPI_Group_difference(whole, even, &odd);
	MPI_Group_size(either, &count);
	MPI_Group_size(both, &number);
	CHECK(count + number == (size + 1) / 2 + (size - 1) / 2 + 1);
	MPI_Group_size(first_only, &number);
	CHECK(count == (size + 1) / 2 + number);
	MPI_Group_translate_ranks(whole, 1, &(int){ size - 1 }, even, &number);
	CHECK(number == (size % 2 ? (size - 1) / 2 : MPI_UNDEFINED));
	MPI_Group_rank(odd, &number);
	CHECK(number == (rank % 2 ? rank / 2 : MPI_UNDEFINED));
	MPI_Group_compare(even, odd, &result);
	CHECK(result == MPI_UNEQUAL);
	for (MPI_Group **each = (MPI_Group *[]){ &both, &either, &first_only, &odd, &whole, &even, &lower,
						 NULL }; *each; each++)
		if (**each != MPI_GROUP_EMPTY)
			MPI_Group_free(*each);
}

/* ---- intercommunicators: rank 0 on one side, the others on the other ------------------------- */

static MPI_Comm side, across, on_it;
static MPI_Request over[3];
static int out[LARGE], in[LARGE], word[10], others_sum;

static bool first_side(void)
{
	return rank == 0;
}

/* What comes over, of the other side. */
static int sum_of_others(int round)
{
	return first_side() ? size * (size - 1) / 2 + (size - 1) * round : round;
}

static void inter_join(int round)
{
	static int addend;

	addend = rank + round;
	MPI_Iallreduce(&addend, &others_sum, 1, MPI_INT, MPI_SUM, across, &over[1]);
	MPI_Ibarrier(across, &over[2]);
}

static void inter_begin(int round)
{
	if (size == 1)
		return;
	MPI_Comm_split(world, first_side(), rank, &side);
	MPI_Intercomm_create(side, 0, world, first_side() ? 1 : 0, 7, &across);
	MPI_Comm_dup(across, &on_it);
	fill(out, LARGE, round);
	over[0] = over[1] = over[2] = MPI_REQUEST_NULL;
	if (first_side())
		MPI_Isend(out, LARGE, MPI_INT, 0, 8, on_it, &over[0]);
	if (rank != late(round))
		inter_join(round);
}

static void inter_collectives(int round)
{
	int root = first_side() ? MPI_ROOT : 0, count, sum = 0, given[size], got[size];

	memset(word, 0, sizeof(word));
	if (first_side())
		fill(word, 10, round);
	MPI_Bcast(word, 10, MPI_INT, root, across);
	CHECK(filled(word, 10, round));
	MPI_Comm_remote_size(across, &count);
	CHECK(count == (first_side() ? size - 1 : 1));
	MPI_Allreduce(&(int){ rank + round }, &sum, 1, MPI_INT, MPI_SUM, across);
	CHECK(sum == sum_of_others(round));
	for (int i = 0; i < count; i++)
		given[i] = rank * 100 + i;
	MPI_Alltoall(given, 1, MPI_INT, got, 1, MPI_INT, across);
	for (int i = 0; i < count; i++)
		CHECK(got[i] == (first_side() ? (i + 1) * 100 : rank - 1));
	MPI_Allgather(&(int){ rank }, 1, MPI_INT, got, 1, MPI_INT, across);
	CHECK(got[count - 1] == (first_side() ? size - 1 : 0));
	MPI_Gather(&(int){ rank }, 1, MPI_INT, got, 1, MPI_INT, root, across);
	MPI_Barrier(across);
}

static void inter_end(int round)
{
	int inter, number;
	MPI_Comm merged;

	if (size == 1)
		return;
	if (rank == late(round))
		inter_join(round);
	if (rank == 1) {
		MPI_Recv(in, LARGE, MPI_INT, 0, 8, on_it, MPI_STATUS_IGNORE);
		CHECK(filled(in, LARGE, round));
	}
	MPI_Waitall(3, over, MPI_STATUSES_IGNORE);
	CHECK(others_sum == sum_of_others(round));
	MPI_Comm_test_inter(across, &inter);
	CHECK(inter);
	inter_collectives(round);
	MPI_Intercomm_merge(across, first_side(), &merged);
	MPI_Comm_rank(merged, &number);
	CHECK(number == (first_side() ? size - 1 : rank - 1));
	CHECK(sum_of(merged) == size * (size - 1) / 2);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&on_it);
	MPI_Comm_free(&across);
	MPI_Comm_free(&side);
}

static void close_all(void)
{
	MPI_Comm_free(&world);
}

const struct feature communicator_features[] = {
	{ "communicators", communicators_begin, communicators_end, open_all, NULL },
	{ "groups", groups_begin, groups_end, NULL, NULL },
	{ "intercommunicators", inter_begin, inter_end, NULL, close_all },
	{ 0 }
};
