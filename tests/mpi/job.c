// SPDX-License-Identifier: GPL-2.0
/*
 * job [OPTION...] STEPS: a computation whose result depends on every message of every step:
 * neighbours exchange blocks of changing size, all reduce, one broadcasts, and
 * each rank folds what it got into a sum.  At the end halves of them meet.  Rank 0 prints the result.  Pauses
 * keep it from ending before it is checkpointed.
 *   -w FILE    rank 0 waits in the middle until there is FILE; the others wait for it
 *   -l FILE    steps are slow until there is FILE
 *   -p FILE    rank 0 keeps the number of its step in FILE
 *   -m MB      each rank writes to all pages of that much memory in every step, and looks
 *              in the next whether they are all of one step
 *   -f         rank 1 aborts the job with status 42 at the end
 *   -x N       rank 1 ends with status N after MPI_Finalize
 *   -s NP      one process computes what NP ranks would, without MPI
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_WORDS	(1 << 17)
#define MAX_ALONE	8
#define PAGE_WORDS	512

static uint64_t out[MAX_WORDS], in[MAX_WORDS];
static uint64_t alone_out[MAX_ALONE][MAX_WORDS];

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 29;
	return x * 0x9e3779b97f4a7c15ull + 1;
}

static int words_of(int step)
{
	return 1 + mix(step) % (step % 8 ? 512 : MAX_WORDS);
}

static int from_of(int rank, int size, int step)
{
	return (rank + 2 * size - 1 - step % size) % size;
}

static uint64_t fill(uint64_t *block, int words, uint64_t state)
{
	for (int i = 0; i < words; i++)
		block[i] = state = mix(state + i);
	return state;
}

static uint64_t fold(const uint64_t *block, int words, uint64_t state)
{
	for (int i = 0; i < words; i++)
		state = mix(state ^ block[i]);
	return state;
}

/*
 * As MPI_Waitall, but not busy: while rank 0 waits for a test, the others would take the few
 * processors of its machine from all that it does.
 */
static void wait_idly(int count, MPI_Request *request)
{
	int done = 0;

	while (MPI_Testall(count, request, &done, MPI_STATUSES_IGNORE), !done)
		usleep(5000);
}

static uint64_t exchange(int rank, int size, int step, uint64_t state, int idle)
{
	int words = words_of(step), to = (rank + 1 + step % size) % size;
	int from = from_of(rank, size, step);
	MPI_Request request[2];

	state = fill(out, words, state);
	if (idle) {
		MPI_Irecv(in, words, MPI_UINT64_T, from, step, MPI_COMM_WORLD, &request[0]);
		MPI_Isend(out, words, MPI_UINT64_T, to, step, MPI_COMM_WORLD, &request[1]);
		wait_idly(2, request);
	} else {
		MPI_Sendrecv(out, words, MPI_UINT64_T, to, step, in, words, MPI_UINT64_T, from,
			     step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	return fold(in, words, state);
}

static void reduce(uint64_t *state, uint64_t *all, int idle)
{
	MPI_Request request;

	if (idle) {
		MPI_Iallreduce(state, all, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD, &request);
		wait_idly(1, &request);
	} else {
		MPI_Allreduce(state, all, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
	}
}

/* The result of all steps of all ranks. */
static uint64_t alone(int size, int steps)
{
	uint64_t state[MAX_ALONE], all, sum = 0;

	for (int rank = 0; rank < size; rank++)
		state[rank] = mix(rank + 1);
	for (int step = 0; step < steps; step++) {
		int words = words_of(step);

		for (int rank = 0; rank < size; rank++)
			state[rank] = fill(alone_out[rank], words, state[rank]);
		all = 0;
		for (int rank = 0; rank < size; rank++) {
			state[rank] = fold(alone_out[from_of(rank, size, step)], words, state[rank]);
			all ^= state[rank];
		}
		for (int rank = 0; rank < size; rank++)
			state[rank] += all;
		all = mix(state[step % size]);
		for (int rank = 0; rank < size; rank++)
			state[rank] ^= all;
	}
	for (int rank = 0; rank < size; rank++)
		sum += state[rank];
	return sum;
}

/* Every page is of the step before: then it becomes of this one. */
static void touch(uint64_t *memory, size_t words, int rank, int step)
{
	for (size_t at = 0; at < words; at += PAGE_WORDS) {
		if (step && memory[at] != mix(step - 1) + at) {
			fprintf(stderr, "rank %d: page %zu is of another step than %d\n", rank,
				at / PAGE_WORDS, step - 1);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		memory[at] = mix(step) + at;
	}
}

static void tell_step(int fd, int step)
{
	char text[16];

	if (fd >= 0 && pwrite(fd, text, sprintf(text, "%08d\n", step), 0) < 0)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

/* In a way that they have not met before, also in a restarted job. */
static void meet(int rank, int size)
{
	MPI_Comm side, across;

	if (size < 2)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &side);
	MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, !(rank % 2), 7, &across);
	MPI_Comm_free(&across);
	MPI_Comm_free(&side);
}

static void print_result(uint64_t result)
{
	printf("result %016llx\n", (unsigned long long)result);
}

int main(int argc, char **argv)
{
	int steps, rank, size, option, status = 0, abort_at_end = 0, np_alone = 0, progress = -1;
	const char *wanted = NULL, *faster = NULL, *told = NULL;
	uint64_t state, all, *memory;
	size_t words = 0;

	while ((option = getopt(argc, argv, "fl:m:p:s:w:x:")) != -1) {
		if (option == 'l')
			faster = optarg;
		else if (option == 'm')
			words = atol(optarg) << 17;
		else if (option == 'p')
			told = optarg;
		else if (option == 'f')
			abort_at_end = 1;
		else if (option == 's')
			np_alone = atoi(optarg);
		else if (option == 'w')
			wanted = optarg;
		else
			status = atoi(optarg);
	}
	steps = optind < argc ? atoi(argv[optind]) : 100;
	if (np_alone > 0 && np_alone <= MAX_ALONE) {
		print_result(alone(np_alone, steps));
		return 0;
	}
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	state = mix(rank + 1);
	memory = calloc(words + 1, sizeof(*memory));
	if (told && rank == 0)
		progress = open(told, O_WRONLY | O_CREAT, 0600);
	for (int step = 0; step < steps; step++) {
		int idle = wanted && step == steps / 2 + 1;	/* rank 0 is a step behind */

		touch(memory, words, rank, step);
		tell_step(progress, step);
		state = exchange(rank, size, step, state, idle);
		reduce(&state, &all, idle);
		state += all;
		all = mix(state);
		MPI_Bcast(&all, 1, MPI_UINT64_T, step % size, MPI_COMM_WORLD);
		state ^= all;
		if (step == 0 && rank == 0) {
			fprintf(stderr, "running\n");
		}
		do
			usleep(faster && access(faster, F_OK) ? 500000 : 10000);
		while (rank == 0 && step == steps / 2 && wanted && access(wanted, F_OK));
	}
	meet(rank, size);
	MPI_Reduce(&state, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		print_result(all);
	if (abort_at_end && rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 42);
	MPI_Finalize();
	return rank == 1 ? status : 0;
}
