// SPDX-License-Identifier: GPL-2.0
/* Messages from rank to rank, of all modes, and what completes or finds them.  See features.h. */
#include "features.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL	10
#define LARGE	60000		/* announced, and sent when the receiver wants it */

static MPI_Comm comm;
static int out[LARGE], in[LARGE];

static void open_all(void)
{
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
}

static void close_all(void)
{
	MPI_Comm_free(&comm);
}

static int seed(int round, int from)
{
	return round * 100 + from;
}

/* ---- standard: some are sent before they are awaited, one is awaited before it is sent ------ */

static MPI_Request standard[3];
static int awaited[LARGE];

static void standard_begin(int round)
{
	fill(out, LARGE, seed(round, rank));
	MPI_Isend(out, SMALL, MPI_INT, next(), 1, comm, &standard[0]);
	MPI_Isend(out, LARGE, MPI_INT, next(), 2, comm, &standard[1]);
	MPI_Irecv(awaited, LARGE, MPI_INT, MPI_ANY_SOURCE, 3, comm, &standard[2]);
}

static void standard_end(int round)
{
	MPI_Status status[3];
	int count;

	memset(in, 0, sizeof(in));
	MPI_Recv(in, SMALL, MPI_INT, previous(), 1, comm, MPI_STATUS_IGNORE);
	CHECK(filled(in, SMALL, seed(round, previous())));
	MPI_Recv(in, LARGE, MPI_INT, previous(), 2, comm, MPI_STATUS_IGNORE);
	CHECK(filled(in, LARGE, seed(round, previous())));
	MPI_Send(out, LARGE - round, MPI_INT, next(), 3, comm);
	MPI_Waitall(3, standard, status);
	MPI_Get_count(&status[2], MPI_INT, &count);
	CHECK(count == LARGE - round && status[2].MPI_SOURCE == previous());
	CHECK(filled(awaited, LARGE - round, seed(round, previous())));
}

/* ---- buffered: sent, as far as the sender knows, but not received --------------------------- */

static char *room;

static void buffered_begin(int round)
{
	MPI_Request request;
	int bytes;

	MPI_Pack_size(SMALL + LARGE + SMALL, MPI_INT, comm, &bytes);
	bytes += 3 * MPI_BSEND_OVERHEAD;
	room = malloc(bytes);
	MPI_Buffer_attach(room, bytes);
	fill(in, LARGE, seed(round, rank));
	MPI_Bsend(in, SMALL, MPI_INT, next(), 11, comm);
	MPI_Bsend(in, LARGE, MPI_INT, next(), 12, comm);
	MPI_Ibsend(in, SMALL, MPI_INT, next(), 13, comm, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	memset(in, 0, sizeof(in));
}

static void buffered_end(int round)
{
	void *detached;
	int bytes;

	for (int i = 0; i < 3; i++) {
		MPI_Recv(in, LARGE, MPI_INT, previous(), 11 + i, comm, MPI_STATUS_IGNORE);
		CHECK(filled(in, i == 1 ? LARGE : SMALL, seed(round, previous())));
		memset(in, 0, sizeof(in));
	}
	MPI_Buffer_detach(&detached, &bytes);
	CHECK(detached == room);
	free(room);
}

/* ---- synchronous: not sent before it is received -------------------------------------------- */

static MPI_Request synchronous;
static int short_out[SMALL], short_in[SMALL];

static void synchronous_begin(int round)
{
	fill(short_out, SMALL, seed(round, rank));
	MPI_Issend(short_out, SMALL, MPI_INT, next(), 21, comm, &synchronous);
}

static void synchronous_end(int round)
{
	MPI_Request request;
	int done;

	MPI_Test(&synchronous, &done, MPI_STATUS_IGNORE);
	CHECK(!done);
	MPI_Barrier(comm);
	MPI_Recv(short_in, SMALL, MPI_INT, previous(), 21, comm, MPI_STATUS_IGNORE);
	CHECK(filled(short_in, SMALL, seed(round, previous())));
	MPI_Wait(&synchronous, MPI_STATUS_IGNORE);
	MPI_Irecv(short_in, SMALL, MPI_INT, previous(), 22, comm, &request);
	MPI_Ssend(short_out, SMALL, MPI_INT, next(), 22, comm);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* ---- ready: to a receiver that waits since before the pause --------------------------------- */

static MPI_Request ready[2];
static int ready_in[2][LARGE];

static void ready_begin(int round)
{
	(void)round;
	MPI_Irecv(ready_in[0], LARGE, MPI_INT, previous(), 31, comm, &ready[0]);
	MPI_Irecv(ready_in[1], LARGE, MPI_INT, previous(), 32, comm, &ready[1]);
}

static void ready_end(int round)
{
	MPI_Request request;

	MPI_Barrier(comm);
	MPI_Irsend(out, LARGE, MPI_INT, next(), 31, comm, &request);
	MPI_Rsend(out, SMALL, MPI_INT, next(), 32, comm);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Waitall(2, ready, MPI_STATUSES_IGNORE);
	CHECK(filled(ready_in[0], LARGE, seed(round, previous())));
	CHECK(filled(ready_in[1], SMALL, seed(round, previous())));
}

/* ---- persistent: all live as long as the program; some are active in the pause -------------- */

static MPI_Request persistent[8];
static int kept_out[LARGE], kept_in[4][LARGE];

static void persistent_open(void)
{
	MPI_Send_init(kept_out, LARGE, MPI_INT, next(), 41, comm, &persistent[0]);
	MPI_Ssend_init(kept_out, SMALL, MPI_INT, next(), 42, comm, &persistent[1]);
	MPI_Rsend_init(kept_out, SMALL, MPI_INT, next(), 43, comm, &persistent[2]);
	MPI_Send_init(kept_out, SMALL, MPI_INT, MPI_PROC_NULL, 44, comm, &persistent[3]);
	for (int i = 0; i < 4; i++)
		MPI_Recv_init(kept_in[i], LARGE, MPI_INT, i < 3 ? previous() : MPI_PROC_NULL, 41 + i, comm,
			      &persistent[4 + i]);
}

static void persistent_begin(int round)
{
	fill(kept_out, LARGE, seed(round, rank));
	MPI_Startall(2, &persistent[0]);
	MPI_Startall(2, &persistent[6]);
}

static void persistent_end(int round)
{
	MPI_Startall(2, &persistent[4]);
	MPI_Barrier(comm);		/* the receivers are ready */
	MPI_Startall(2, &persistent[2]);
	MPI_Waitall(8, persistent, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 3; i++) {
		CHECK(filled(kept_in[i], i ? SMALL : LARGE, seed(round, previous())));
		memset(kept_in[i], 0, sizeof(kept_in[i]));
	}
}

static void persistent_close(void)
{
	for (int i = 0; i < 8; i++)
		MPI_Request_free(&persistent[i]);
}

/* ---- sendrecv ------------------------------------------------------------------------------- */

static void sendrecv_end(int round)
{
	fill(out, LARGE, seed(round, rank));
	MPI_Sendrecv(out, LARGE, MPI_INT, next(), 51, in, LARGE, MPI_INT, previous(), 51, comm,
		     MPI_STATUS_IGNORE);
	CHECK(filled(in, LARGE, seed(round, previous())));
	MPI_Sendrecv_replace(in, LARGE, MPI_INT, previous(), 52, next(), 52, comm, MPI_STATUS_IGNORE);
	CHECK(filled(in, LARGE, seed(round, rank)));
}

/* ---- probe: a message that was found, and so is nobody else's, but not yet received --------- */

static MPI_Request probed[3];
static MPI_Message found[2];
static int probe_out[LARGE];

static void probe_begin(int round)
{
	MPI_Status status;

	fill(probe_out, LARGE, seed(round, rank));
	for (int i = 0; i < 3; i++)
		MPI_Isend(probe_out, i ? LARGE : SMALL + round, MPI_INT, next(), 61 + i, comm, &probed[i]);
	for (int i = 0; i < 2; i++)
		MPI_Mprobe(MPI_ANY_SOURCE, 61 + i, comm, &found[i], &status);
}

static void probe_end(int round)
{
	MPI_Request request;
	MPI_Status status;
	int count, flag;

	MPI_Iprobe(previous(), 61, comm, &flag, &status);
	CHECK(!flag);
	MPI_Mrecv(in, LARGE, MPI_INT, &found[0], &status);
	MPI_Get_count(&status, MPI_INT, &count);
	CHECK(count == SMALL + round && status.MPI_SOURCE == previous());
	CHECK(filled(in, count, seed(round, previous())));
	MPI_Imrecv(in, LARGE, MPI_INT, &found[1], &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK(filled(in, LARGE, seed(round, previous())));
	MPI_Probe(MPI_ANY_SOURCE, 63, comm, &status);
	do
		MPI_Improbe(MPI_ANY_SOURCE, 63, comm, &flag, &found[0], &status);
	while (!flag);
	memset(in, 0, sizeof(in));
	MPI_Mrecv(in, LARGE, MPI_INT, &found[0], MPI_STATUS_IGNORE);
	CHECK(filled(in, LARGE, seed(round, previous())));
	MPI_Waitall(3, probed, MPI_STATUSES_IGNORE);
}

/* ---- cancel --------------------------------------------------------------------------------- */

static MPI_Request unwanted;

static void cancel_begin(int round)
{
	(void)round;
	MPI_Irecv(short_in, SMALL, MPI_INT, MPI_ANY_SOURCE, 71, comm, &unwanted);
}

static void cancel_end(int round)
{
	MPI_Status status;
	int cancelled;

	(void)round;
	MPI_Cancel(&unwanted);
	MPI_Wait(&unwanted, &status);
	MPI_Test_cancelled(&status, &cancelled);
	CHECK(cancelled);
}

/* ---- completion: any, some, all, in another order than they were posted --------------------- */

#define SEVERAL 6

static MPI_Request several[SEVERAL];
static int values[SEVERAL];

static void completion_begin(int round)
{
	(void)round;
	for (int i = 0; i < SEVERAL; i++)
		MPI_Irecv(&values[i], 1, MPI_INT, previous(), 81 + i, comm, &several[i]);
}

/* All have seen the one before. */
static void send_value(int which, int round)
{
	int value = round * 1000 + which * 10 + rank;

	MPI_Barrier(comm);
	MPI_Send(&value, 1, MPI_INT, next(), 81 + which, comm);
}

static void completion_end(int round)
{
	int index, done = 0, count, indices[SEVERAL];

	MPI_Testall(SEVERAL, several, &done, MPI_STATUSES_IGNORE);
	CHECK(!done);
	send_value(5, round);
	MPI_Waitany(SEVERAL, several, &index, MPI_STATUS_IGNORE);
	CHECK(index == 5 && several[5] == MPI_REQUEST_NULL);
	send_value(3, round);
	for (done = 0; !done;)
		MPI_Request_get_status(several[3], &done, MPI_STATUS_IGNORE);
	MPI_Testany(SEVERAL, several, &index, &done, MPI_STATUS_IGNORE);
	CHECK(done && index == 3);
	send_value(0, round);
	MPI_Waitsome(SEVERAL, several, &count, indices, MPI_STATUSES_IGNORE);
	CHECK(count == 1 && indices[0] == 0);
	send_value(4, round);
	for (count = 0; !count;)
		MPI_Testsome(SEVERAL, several, &count, indices, MPI_STATUSES_IGNORE);
	CHECK(count == 1 && indices[0] == 4);
	send_value(2, round);
	send_value(1, round);
	MPI_Waitall(SEVERAL, several, MPI_STATUSES_IGNORE);
	for (int i = 0; i < SEVERAL; i++)
		CHECK(values[i] == round * 1000 + i * 10 + previous());
}

/* ---- own: messages to the rank itself, and a request of the program's own ------------------- */

static MPI_Request own[2];

static int query(void *state, MPI_Status *status)
{
	MPI_Status_set_elements_x(status, MPI_BYTE, *(MPI_Count *)state);
	MPI_Status_set_cancelled(status, 0);
	status->MPI_SOURCE = rank;
	status->MPI_TAG = 91;
	return MPI_SUCCESS;
}

static int forget(void *state)
{
	(void)state;
	return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
	(void)state;
	(void)complete;
	return MPI_SUCCESS;
}

static MPI_Count elements;

static void own_begin(int round)
{
	elements = (1l << 33) + round;
	MPI_Grequest_start(query, forget, cancel, &elements, &own[0]);
	fill(short_out, SMALL, seed(round, rank));
	MPI_Isend(short_out, SMALL, MPI_INT, 0, round, MPI_COMM_SELF, &own[1]);
}

static void own_end(int round)
{
	MPI_Status status;
	MPI_Count count;
	int done;

	MPI_Test(&own[0], &done, &status);
	CHECK(!done);
	MPI_Grequest_complete(own[0]);
	MPI_Wait(&own[0], &status);
	MPI_Get_elements_x(&status, MPI_BYTE, &count);
	CHECK(count == (1l << 33) + round);
	MPI_Recv(short_in, SMALL, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_SELF, &status);
	MPI_Wait(&own[1], MPI_STATUS_IGNORE);
	CHECK(status.MPI_TAG == round && filled(short_in, SMALL, seed(round, rank)));
}

/* ---- big counts: as many as an int can say, in memory of which little is used --------------- */

#define BLOCKS 64
#define STRIDE (100l << 20)	/* so that the last one is above 2^32 */

static char *sparse;
static MPI_Datatype apart;
static MPI_Request big[3];
static char bytes[BLOCKS];

static void big_open(void)
{
	sparse = mmap(NULL, BLOCKS * STRIDE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MPI_Type_create_hvector(BLOCKS, 1, STRIDE, MPI_BYTE, &apart);
	MPI_Type_commit(&apart);
}

static void big_begin(int round)
{
	for (int i = 0; i < BLOCKS; i++)
		sparse[i * STRIDE] = round + rank + i;
	MPI_Isend(sparse, 1, apart, next(), 101, comm, &big[0]);
	MPI_Irecv(sparse + 4096, INT_MAX, MPI_BYTE, previous(), 102, comm, &big[1]);
	MPI_Irecv(sparse + 2048, 1, apart, previous(), 103, comm, &big[2]);
}

static void big_end(int round)
{
	MPI_Count extent, size_x, bound;
	MPI_Datatype huge, huger;
	MPI_Status status[3];
	int count;

	MPI_Recv(bytes, BLOCKS, MPI_BYTE, previous(), 101, comm, MPI_STATUS_IGNORE);
	for (int i = 0; i < BLOCKS; i++)
		CHECK(bytes[i] == (char)(round + previous() + i));
	MPI_Send(bytes, BLOCKS, MPI_BYTE, next(), 102, comm);
	MPI_Send(bytes, BLOCKS, MPI_BYTE, next(), 103, comm);
	MPI_Waitall(3, big, status);
	MPI_Get_count(&status[1], MPI_BYTE, &count);
	CHECK(count == BLOCKS);
	MPI_Get_elements(&status[2], apart, &count);
	CHECK(count == BLOCKS);
	for (int i = 0; i < BLOCKS; i++)
		CHECK(sparse[i * STRIDE + 2048] == sparse[4096 + i]);
	MPI_Type_contiguous(INT_MAX, MPI_INT, &huge);
	MPI_Type_contiguous(5, huge, &huger);
	MPI_Type_size_x(huger, &size_x);
	MPI_Type_get_extent_x(huger, &bound, &extent);
	CHECK(size_x == 20l * INT_MAX && extent == size_x && bound == 0);
	MPI_Type_free(&huger);
	MPI_Type_free(&huge);
}

static void big_close(void)
{
	MPI_Type_free(&apart);
	munmap(sparse, BLOCKS * STRIDE);
	close_all();
}

const struct feature point_features[] = {
	{ "standard", standard_begin, standard_end, open_all, NULL },
	{ "buffered", buffered_begin, buffered_end, NULL, NULL },
	{ "synchronous", synchronous_begin, synchronous_end, NULL, NULL },
	{ "ready", ready_begin, ready_end, NULL, NULL },
	{ "persistent", persistent_begin, persistent_end, persistent_open, persistent_close },
	{ "sendrecv", NULL, sendrecv_end, NULL, NULL },
	{ "probe", probe_begin, probe_end, NULL, NULL },
	{ "cancel", cancel_begin, cancel_end, NULL, NULL },
	{ "completion", completion_begin, completion_end, NULL, NULL },
	{ "own", own_begin, own_end, NULL, NULL },
	{ "big_counts", big_begin, big_end, big_open, big_close },
	{ 0 }
};
