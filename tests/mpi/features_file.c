// SPDX-License-Identifier: GPL-2.0
/*
 * MPI-IO: files are open in the pause, with pointers, views, and what was begun but not ended.  See
 * features.h.
 */
#include "features.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE	20000		/* numbers */
#define FEW	600		/* where each goes to a place of its own, which is slow */
#define BYTES	(LARGE * (MPI_Offset)sizeof(int))

static int out[LARGE], in[LARGE];
static MPI_Comm comm;

static int seed(int round, int from)
{
	return round * 100 + from;
}

static MPI_File open_file(const char *name)
{
	MPI_File file = MPI_FILE_NULL;

	CHECK(!MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
	return file;
}

/* Of a file that is done with. */
static void remove_file(MPI_File *file, const char *name)
{
	MPI_File_close(file);
	MPI_Barrier(comm);
	if (!rank)
		MPI_File_delete(name, MPI_INFO_NULL);
	MPI_Barrier(comm);
}

static void open_all(void)
{
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
}

/* ---- explicit offsets ------------------------------------------------------------------------ */

static MPI_File at_offsets, in_halves;
static MPI_Request written[2];

static void offsets_begin(int round)
{
	fill(out, LARGE, seed(round, rank));
	at_offsets = open_file("features.offsets");
	MPI_File_set_size(at_offsets, 0);
	MPI_File_iwrite_at(at_offsets, rank * BYTES, out, LARGE, MPI_INT, &written[0]);
	MPI_File_iwrite_at_all(at_offsets, (size + rank) * BYTES, out, LARGE, MPI_INT, &written[1]);
	in_halves = open_file("features.halves");
	MPI_File_write_at_all_begin(in_halves, rank * BYTES, out, LARGE, MPI_INT);
}

static void offsets_end(int round)
{
	MPI_Request request;
	MPI_Offset length;
	MPI_Status status;
	int count;

	MPI_Waitall(2, written, MPI_STATUSES_IGNORE);
	MPI_File_write_at_all_end(in_halves, out, &status);
	MPI_Get_count(&status, MPI_INT, &count);
	CHECK(count == LARGE);
	MPI_File_sync(at_offsets);
	MPI_File_sync(in_halves);
	MPI_Barrier(comm);
	MPI_File_get_size(at_offsets, &length);
	CHECK(length == 2 * size * BYTES);
	MPI_File_read_at(at_offsets, previous() * BYTES, in, LARGE, MPI_INT, MPI_STATUS_IGNORE);
	CHECK(filled(in, LARGE, seed(round, previous())));
	memset(in, 0, sizeof(in));
	MPI_File_iread_at(in_halves, next() * BYTES, in, LARGE, MPI_INT, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK(filled(in, LARGE, seed(round, next())));
	memset(in, 0, sizeof(in));
	MPI_File_read_at_all(at_offsets, (size + next()) * BYTES, in, LARGE, MPI_INT, MPI_STATUS_IGNORE);
	CHECK(filled(in, LARGE, seed(round, next())));
	remove_file(&at_offsets, "features.offsets");
	remove_file(&in_halves, "features.halves");
}

/* ---- each rank's own pointer, which stands in the middle ------------------------------------- */

static MPI_File pointed;
static MPI_Request pointed_request;

static void pointers_begin(int round)
{
	(void)round;
	pointed = open_file("features.pointers");
	MPI_File_seek(pointed, rank * BYTES, MPI_SEEK_SET);
	MPI_File_write(pointed, out, LARGE / 2, MPI_INT, MPI_STATUS_IGNORE);
	MPI_File_iwrite(pointed, out + LARGE / 2, 10, MPI_INT, &pointed_request);
}

static void pointers_end(int round)
{
	MPI_Offset at;
	int mode;

	MPI_Wait(&pointed_request, MPI_STATUS_IGNORE);
	MPI_File_get_position(pointed, &at);
	CHECK(at == rank * BYTES + (LARGE / 2 + 10) * (MPI_Offset)sizeof(int));
	MPI_File_write_all(pointed, out + LARGE / 2 + 10, LARGE / 2 - 10, MPI_INT, MPI_STATUS_IGNORE);
	MPI_File_sync(pointed);
	MPI_Barrier(comm);
	MPI_File_seek(pointed, next() * BYTES, MPI_SEEK_SET);
	memset(in, 0, sizeof(in));
	MPI_File_read(pointed, in, 10, MPI_INT, MPI_STATUS_IGNORE);
	MPI_File_iread_all(pointed, in + 10, LARGE / 2, MPI_INT, &pointed_request);
	MPI_Wait(&pointed_request, MPI_STATUS_IGNORE);
	MPI_File_read_all(pointed, in + 10 + LARGE / 2, LARGE / 2 - 10, MPI_INT, MPI_STATUS_IGNORE);
	CHECK(filled(in, LARGE, seed(round, next())));
	MPI_File_get_amode(pointed, &mode);
	CHECK(mode == (MPI_MODE_CREATE | MPI_MODE_RDWR));
	remove_file(&pointed, "features.pointers");
}

/* ---- the shared pointer ----------------------------------------------------------------------- */

static MPI_File shared;
static int record[2];

static void shared_begin(int round)
{
	shared = open_file("features.shared");
	record[0] = rank;
	record[1] = round;
	MPI_File_write_shared(shared, record, 2, MPI_INT, MPI_STATUS_IGNORE);
	MPI_Barrier(comm);
	MPI_File_write_ordered_begin(shared, record, 2, MPI_INT);
}

/* Each rank's record comes once before and once behind the pause, and then once in its turn. */
static void check_records(int round)
{
	int records[3 * size][2], before = 0, behind = 0;

	MPI_File_read_at(shared, 0, records, 6 * size, MPI_INT, MPI_STATUS_IGNORE);
	for (int i = 0; i < size; i++) {
		CHECK(records[i][1] == round && records[2 * size + i][1] == -round);
		CHECK(records[size + i][0] == i && records[size + i][1] == round);
		before |= 1 << records[i][0];
		behind |= 1 << records[2 * size + i][0];
	}
	CHECK(before == (1 << size) - 1 && behind == before);
}

static void shared_end(int round)
{
	MPI_Request request;
	MPI_Offset at;

	MPI_File_write_ordered_end(shared, record, MPI_STATUS_IGNORE);
	MPI_Barrier(comm);
	MPI_File_get_position_shared(shared, &at);
	CHECK(at == 2 * size * (MPI_Offset)sizeof(record));
	MPI_Barrier(comm);
	record[1] = -round;
	MPI_File_iwrite_shared(shared, record, 2, MPI_INT, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_File_sync(shared);
	MPI_Barrier(comm);
	check_records(round);
	MPI_File_seek_shared(shared, size * sizeof(record), MPI_SEEK_SET);
	MPI_File_read_ordered(shared, record, 2, MPI_INT, MPI_STATUS_IGNORE);
	CHECK(record[0] == rank && record[1] == round);
	remove_file(&shared, "features.shared");
}

/* ---- views: the ranks' numbers alternate ----------------------------------------------------- */

static MPI_File viewed, divided;
static MPI_Datatype every, own_part;

static void views_begin(int round)
{
	int edge = 10 * size;

	(void)round;
	MPI_Type_create_resized(MPI_INT, 0, size * sizeof(int), &every);
	MPI_Type_commit(&every);
	viewed = open_file("features.view");
	MPI_File_set_view(viewed, 4 + rank * sizeof(int), MPI_INT, every, "native", MPI_INFO_NULL);
	MPI_File_write_all(viewed, out, FEW / 2, MPI_INT, MPI_STATUS_IGNORE);
	MPI_Type_create_darray(size, rank, 2, (int[]){ edge, edge },
			       (int[]){ MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE },
			       (int[]){ MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG },
			       (int[]){ size, 1 }, MPI_ORDER_C, MPI_INT, &own_part);
	MPI_Type_commit(&own_part);
	divided = open_file("features.darray");
	MPI_File_set_view(divided, 0, MPI_INT, own_part, "native", MPI_INFO_NULL);
	MPI_File_write_all_begin(divided, out, 10 * edge, MPI_INT);
}

static void views_end(int round)
{
	MPI_Datatype element, type;
	MPI_Offset start;
	char name[MPI_MAX_DATAREP_STRING];

	MPI_File_write_all(viewed, out + FEW / 2, FEW / 2, MPI_INT, MPI_STATUS_IGNORE);
	MPI_File_get_view(viewed, &start, &element, &type, name);
	CHECK(start == 4 + rank * (MPI_Offset)sizeof(int) && !strcmp(name, "native"));
	MPI_Type_free(&type);
	MPI_File_sync(viewed);
	MPI_Barrier(comm);
	MPI_File_set_view(viewed, 4 + next() * sizeof(int), MPI_INT, every, "native", MPI_INFO_NULL);
	memset(in, 0, sizeof(in));
	MPI_File_read_all(viewed, in, FEW, MPI_INT, MPI_STATUS_IGNORE);
	CHECK(filled(in, FEW, seed(round, next())));
	MPI_Type_free(&every);
	remove_file(&viewed, "features.view");
	MPI_File_write_all_end(divided, out, MPI_STATUS_IGNORE);
	MPI_File_sync(divided);
	MPI_Barrier(comm);
	MPI_File_set_view(divided, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
	for (int line = 0; line < 10; line++) {		/* of the next rank */
		MPI_File_read_at(divided, (line * size + next()) * 10 * size, in + line * 10 * size,
				 10 * size, MPI_INT, MPI_STATUS_IGNORE);
	}
	CHECK(filled(in, 100 * size, seed(round, next())));
	MPI_Type_free(&own_part);
	remove_file(&divided, "features.darray");
}

/* ---- errors of files, and what belongs to a file ---------------------------------------------- */

static MPI_File kept;

static void file_open(void)
{
	kept = open_file("features.kept");
	MPI_File_set_size(kept, 1000);
	MPI_File_set_atomicity(kept, 1);
}

static void file_end(int round)
{
	MPI_Offset length, place;
	int err, kind, atomic, value = round, back = 0;
	MPI_File missing;
	MPI_Info info;

	err = MPI_File_open(MPI_COMM_SELF, "missing/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &missing);
	MPI_Error_class(err, &kind);
	CHECK(kind == MPI_ERR_NO_SUCH_FILE);
	MPI_File_get_size(kept, &length);
	MPI_File_get_atomicity(kept, &atomic);
	MPI_File_get_byte_offset(kept, 12, &place);
	CHECK(length == 1000);
	CHECK(atomic);
	CHECK(place == 12);
	MPI_File_write_at(kept, rank * sizeof(int), &value, 1, MPI_INT, MPI_STATUS_IGNORE);
	MPI_Barrier(comm);
	MPI_File_read_at(kept, next() * sizeof(int), &back, 1, MPI_INT, MPI_STATUS_IGNORE);
	CHECK(back == round);
	MPI_File_get_info(kept, &info);
	MPI_Info_free(&info);
	MPI_Barrier(comm);
}

static void file_close(void)
{
	remove_file(&kept, "features.kept");
	MPI_Comm_free(&comm);
}

static void all_open(void)
{
	open_all();
	file_open();
}

const struct feature file_features[] = {
	{ "offsets", offsets_begin, offsets_end, all_open, NULL },
	{ "pointers", pointers_begin, pointers_end, NULL, NULL },
	{ "shared_pointer", shared_begin, shared_end, NULL, NULL },
	{ "views", views_begin, views_end, NULL, NULL },
	{ "file", NULL, file_end, NULL, file_close },
	{ 0 }
};
