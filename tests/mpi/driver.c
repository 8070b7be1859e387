// SPDX-License-Identifier: GPL-2.0
/* Emulated checkpoints: see driver.h. */
#include "driver.h"

#include <dlfcn.h>
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
#define AWAY 1200		/* ms, of peers out of reach: more than a btl_cr_connect_timeout of 1 */
#define STEP 10			/* ms, until threads of the program are served that ask */

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
static const char *kinds = "crmga";
static atomic_bool asked[RANKS];	/* by a thread of the program: for its address */
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

/*
 * In a thread of the program, which waits for it; in vain at first, as if the job had been
 * suspended meanwhile, or a clock set.
 */
static __thread bool in_vain;

static int ask(uint32_t rank)
{
	in_vain = !in_vain;
	atomic_store(&asked[rank], true);
	return 0;
}

/* Also for the libraries. */
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until)
{
	static typeof(&pthread_cond_timedwait) next;

	if (!next)
		next = (typeof(next))dlsym(RTLD_NEXT, "pthread_cond_timedwait");
	return in_vain ? ETIMEDOUT : next(cond, lock, until);
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock, clockid_t clock,
			   const struct timespec *until)
{
	static typeof(&pthread_cond_clockwait) next;

	if (!next)
		next = (typeof(next))dlsym(RTLD_NEXT, "pthread_cond_clockwait");
	return in_vain ? ETIMEDOUT : next(cond, lock, clock, until);
}

static void tell(int rank)
{
	if (rank != own && meeting->length[rank])
		check(control->address_set(rank, meeting->address[rank], meeting->length[rank]),
		      "address_set");
}

static void tell_asked(void)
{
	for (int i = 0; i < ranks; i++)
		if (atomic_exchange(&asked[i], false))
			tell(i);
}

static void sleep_and_tell(const struct timespec *nap)
{
	nanosleep(nap, NULL);
	tell_asked();
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
		sleep_and_tell(&nap);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* In a drain every third wish for memory is refused: it fails, and is tried again. */
static __thread bool scarce;

static bool refused(void)
{
	static __thread unsigned int wishes;

	if (!scarce || ++wishes % 3)
		return false;
	errno = ENOMEM;
	return true;
}

extern void *__libc_malloc(size_t size);
extern void *__libc_realloc(void *old, size_t size);

/* Also for the libraries. */
void *malloc(size_t size)
{
	return refused() ? NULL : __libc_malloc(size);
}

void *realloc(void *old, size_t size)
{
	return refused() ? NULL : __libc_realloc(old, size);
}

/*
 * Returns whether there was no memory.  If a message was changed, as hook/cr does: the gate opens
 * again, and the program is to hear of it.
 */
static bool drain(int rank)
{
	int rc;

	scarce = true;
	rc = control->drain(rank, meeting->sent[rank][own], PATIENCE);
	scarce = false;
	if (rc == -ENOMEM)
		return true;
	if (rc == -EBADMSG) {
		check(control->gate_open(), "gate_open");
		for (;;)
			pause();
	}
	check(rc, "drain");
	return false;
}

static void drain_all(void)
{
	struct mca_btl_cr_bookmark marks[RANKS];
	uint64_t had[RANKS] = { 0 };
	int count = control->bookmarks(marks, RANKS);
	bool again;

	check(count, "bookmarks");
	memset(meeting->sent[own], 0, sizeof(meeting->sent[own]));
	for (int i = 0; i < count; i++) {
		meeting->sent[own][marks[i].rank] = marks[i].sent;
		had[marks[i].rank] = marks[i].received;
	}
	meet();
	do {
		again = false;
		for (int i = 0; i < ranks; i++)
			again |= meeting->sent[i][own] && drain(i);
	} while (again);
	for (int i = 0; i < ranks; i++)
		if (meeting->sent[i][own])
			atomic_fetch_add(&meeting->drained, meeting->sent[i][own] - had[i]);
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

/* All addresses, or those of peers so far as in a job (hook/), or none. */
static void tell_peers(void)
{
	struct mca_btl_cr_bookmark marks[RANKS];
	int count = meeting->seed & 1 ? control->bookmarks(marks, RANKS) : 0;

	check(count, "bookmarks");
	for (int i = 0; i < ranks && meeting->kind != 'a'; i++)
		tell(i);
	for (int i = 0; i < count; i++)
		tell(marks[i].rank);
}

/* There nobody listens any more. */
static void go_where_they_were(void)
{
	for (int i = 0; i < ranks; i++)
		tell(i);
	check(control->reconnect(AWAY), "reconnect to where the peers were");
	meet();
}

static void restart(void)
{
	if (meeting->kind == 'm')
		move();
	check(control->restart(), "restart");
	if (meeting->kind == 'l')
		go_where_they_were();
	meeting->length[own] = control->address_get(meeting->address[own], MCA_BTL_CR_ADDRESS_MAX);
	check(meeting->length[own], "address_get");
	meet();
	tell_peers();
	check(control->reconnect(PATIENCE), "reconnect");
}

/* A thread inside may wait for an address. */
static void close_gate(void)
{
	int rc = -ETIMEDOUT;

	for (int waited = 0; rc == -ETIMEDOUT && waited < PATIENCE; waited += STEP) {
		rc = control->gate_close(STEP);
		if (rc == -ETIMEDOUT)
			tell_asked();
	}
	check(rc, "gate_close");
}

static void go_through(void)
{
	double start = now_ms(), took;

	close_gate();
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
	result.restarted += meeting->kind == 'r' || meeting->kind == 'l' || meeting->kind == 'a';
	result.moved += meeting->kind == 'm';
	result.given_up += meeting->kind == 'g';
}

static void *rounds(void *unused)
{
	unsigned int seed = getpid();

	for (;;) {
		if (!own) {
			double until = now_ms() + interval * (0.5 + rand_r(&seed) % 1000 / 1e3);

			while (now_ms() < until)
				sleep_and_tell(&(struct timespec){ 0, 200000 });
			meeting->kind = end ? 0 : kinds[rand_r(&seed) % strlen(kinds)];
			meeting->seed = rand_r(&seed);
		}
		meet();
		if (!meeting->kind)
			break;
		go_through();
		meet();
	}
	/* Another rank has finished; this one's program may be inside yet, and ask. */
	while (!end)
		sleep_and_tell(&(struct timespec){ 0, 200000 });
	return unused;
}

int driver_start(int rank, int size)
{
	const char *path = getenv("KCR_MPI_DRIVER");
	int fd, provided;

	if (!path || !*path)
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
	check(control->address_source(ask), "address_source");
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

/*
 * Until the thread has ended.  Who left the barrier first may owe the others an answer yet, over a
 * connection that is not there again.
 */
static void progress(void)
{
	const struct timespec nap = { 0, 200000 };
	int found;

	while (pthread_tryjoin_np(thread, NULL) == EBUSY) {
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
		nanosleep(&nap, NULL);
	}
}

void driver_stop(struct driver_result *to)
{
	end = true;
	progress();
	for (int i = 0; i < ranks; i++)		/* nobody is there to be asked any more */
		tell(i);
	MPI_T_finalize();
	result.drained = meeting->drained;
	*to = result;
}
