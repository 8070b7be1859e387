// SPDX-License-Identifier: GPL-2.0
/* Emulated checkpoints: see driver.h. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "mpi-plugin/btl/btl_cr_control.h"

#define RANKS 64
#define PATIENCE 20000		/* ms, for each step */

struct meeting {
	_Atomic unsigned int arrived, generation;
	char kind;			/* of this round; 0: the end */
	unsigned int seed;
	uint64_t sent[RANKS][RANKS];	/* [from][to] */
	unsigned char address[RANKS][MCA_BTL_CR_ADDRESS_MAX];
	int length[RANKS];
	_Atomic uint64_t drained;
};

static struct meeting *meeting;
static const struct mca_btl_cr_control *control;
static int own, ranks, interval = 5;
static const char *kinds = "crmg";
static pthread_t thread;
static atomic_bool end;
static struct driver_result result;

static void check(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "driver: rank %d: %s: %s\n", own, what, strerror(-rc));
	_exit(99);
}

static void meet(void)
{
	const struct timespec nap = { 0, 20000 };
	unsigned int generation = atomic_load(&meeting->generation);

	if (atomic_fetch_add(&meeting->arrived, 1) + 1 == (unsigned int)ranks) {
		atomic_store(&meeting->arrived, 0);
		atomic_fetch_add(&meeting->generation, 1);
		return;
	}
	while (atomic_load(&meeting->generation) == generation)
		nanosleep(&nap, NULL);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void drain_all(void)
{
	struct mca_btl_cr_bookmark marks[RANKS];
	uint64_t had[RANKS] = { 0 };
	int count = control->bookmarks(marks, RANKS);

	check(count, "bookmarks");
	memset(meeting->sent[own], 0, sizeof(meeting->sent[own]));
	for (int i = 0; i < count; i++) {
		meeting->sent[own][marks[i].rank] = marks[i].sent;
		had[marks[i].rank] = marks[i].received;
	}
	meet();
	for (int i = 0; i < ranks; i++) {
		if (!meeting->sent[i][own])
			continue;
		check(control->drain(i, meeting->sent[i][own], PATIENCE), "drain");
		atomic_fetch_add(&meeting->drained, meeting->sent[i][own] - had[i]);
	}
}

/* This rank is now on one of two nodes. */
static void move(void)
{
	int index, count, node = meeting->seed >> (own % 24) & 1;
	MPI_T_cvar_handle handle;

	if (MPI_T_cvar_get_index("btl_cr_node", &index) != MPI_SUCCESS ||
	    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS ||
	    MPI_T_cvar_write(handle, &node) != MPI_SUCCESS)
		check(-EIO, "btl_cr_node");
	MPI_T_cvar_handle_free(&handle);
}

static void restart(void)
{
	if (meeting->kind == 'm')
		move();
	check(control->restart(), "restart");
	meeting->length[own] = control->address_get(meeting->address[own], MCA_BTL_CR_ADDRESS_MAX);
	check(meeting->length[own], "address_get");
	meet();
	if (meeting->kind == 'l')	/* nobody listens there any more */
		check(control->reconnect(20), "reconnect to where the peers were");
	for (int i = 0; i < ranks; i++)
		if (i != own)
			check(control->address_set(i, meeting->address[i], meeting->length[i]),
			      "address_set");
	check(control->reconnect(PATIENCE), "reconnect");
}

static void go_through(void)
{
	double start = now_ms(), took;

	check(control->gate_close(PATIENCE), "gate_close");
	drain_all();
	if (meeting->kind != 'g')
		check(control->suspend(), "suspend");
	meet();
	if (meeting->kind == 'c')
		check(control->resume(), "resume");
	else if (meeting->kind != 'g')
		restart();
	check(control->gate_open(), "gate_open");

	took = now_ms() - start;
	result.total_ms += took;
	if (took > result.worst_ms)
		result.worst_ms = took;
	result.continued += meeting->kind == 'c';
	result.restarted += meeting->kind == 'r' || meeting->kind == 'l';
	result.moved += meeting->kind == 'm';
	result.given_up += meeting->kind == 'g';
}

static void *rounds(void *unused)
{
	unsigned int seed = getpid();

	for (;;) {
		if (!own) {
			usleep(interval * 500 + rand_r(&seed) % (interval * 1000));
			meeting->kind = end ? 0 : kinds[rand_r(&seed) % strlen(kinds)];
			meeting->seed = rand_r(&seed);
		}
		meet();
		if (!meeting->kind)
			return unused;
		go_through();
		meet();
	}
}

int driver_start(int rank, int size)
{
	const char *path = getenv("KCR_MPI_DRIVER");
	int fd, provided;

	if (!path)
		return 0;
	own = rank;
	ranks = size;
	if (getenv("KCR_MPI_INTERVAL"))
		interval = atoi(getenv("KCR_MPI_INTERVAL"));
	if (getenv("KCR_MPI_KINDS"))
		kinds = getenv("KCR_MPI_KINDS");
	control = mca_btl_cr_control_find();
	check(control && size <= RANKS ? 0 : -ENOENT, "control interface");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check(fd < 0 || ftruncate(fd, sizeof(*meeting)) ? -errno : 0, path);
	meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(meeting == MAP_FAILED ? -errno : 0, path);
	close(fd);
	MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
	check(-pthread_create(&thread, NULL, rounds, NULL), "thread");
	return 1;
}

unsigned int driver_rounds(void)
{
	return result.continued + result.restarted + result.moved + result.given_up;
}

void driver_stop(struct driver_result *to)
{
	end = true;
	pthread_join(thread, NULL);
	MPI_T_finalize();
	result.drained = meeting->drained;
	*to = result;
}
