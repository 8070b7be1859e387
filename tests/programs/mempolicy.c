// SPDX-License-Identifier: GPL-2.0
/*
 * mempolicy READY GO [free|many]: NUMA memory policies: of three threads, and of mappings in all modes
 * that the kernel has; pages are on the nodes that these name.  Which nodes there are does not
 * matter; with two or more it is seen where pages lie.  free: after a restart it must not be kept
 * to nodes.  many: thousands of mappings, no two alike beside each other.
 */
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "check.h"

#define PAGES		64
#define LENGTH		(PAGES * 4096)
#define MANY		2000
#define WORDS		16
#define MAX_NODE	(64 * WORDS + 1)
#define WEIGHTED	6	/* MPOL_WEIGHTED_INTERLEAVE, Linux 6.9 */
#define HOME_NODE	450	/* set_mempolicy_home_node, Linux 5.17 */

struct set {
	unsigned long word[WORDS];
};

static struct set all, first, last;	/* of the nodes */
static int first_node, last_node;
static pthread_barrier_t barrier;
static bool is_free;

static void set_nodes(void)
{
	NEED(!syscall(SYS_get_mempolicy, NULL, &all, MAX_NODE, NULL, MPOL_F_MEMS_ALLOWED));
	first_node = -1;
	for (int node = 0; node < 64 * WORDS; node++) {
		if (!(all.word[node / 64] & 1ul << node % 64))
			continue;
		first_node = first_node < 0 ? node : first_node;
		last_node = node;
	}
	first.word[first_node / 64] = 1ul << first_node % 64;
	last.word[last_node / 64] = 1ul << last_node % 64;
}

/* The policy of the thread, or of that mapping. */
static bool get(const void *mapping, int *mode, struct set *nodes)
{
	*mode = -1;
	memset(nodes, 0, sizeof(*nodes));
	return !syscall(SYS_get_mempolicy, mode, nodes, MAX_NODE, mapping, mapping ? MPOL_F_ADDR : 0);
}

static bool has(const void *mapping, int mode, const struct set *nodes)
{
	static const struct set none;
	struct set now;
	int is;

	return get(mapping, &is, &now) && is == mode && !memcmp(&now, nodes ?: &none, sizeof(now));
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *bound(void *argument)
{
	NEED(!syscall(SYS_set_mempolicy, MPOL_BIND | MPOL_F_STATIC_NODES, &last, MAX_NODE));
	pthread_barrier_wait(&barrier);
	check_wait();
	CHECK(is_free ? has(NULL, MPOL_DEFAULT, NULL) : has(NULL, MPOL_BIND | MPOL_F_STATIC_NODES, &last));
	return argument;
}

static void *without(void *argument)
{
	NEED(!syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0));
	pthread_barrier_wait(&barrier);
	check_wait();
	CHECK(has(NULL, MPOL_DEFAULT, NULL));
	return argument;
}

/* ---- mappings -------------------------------------------------------------------------------- */

static struct mapping {
	const char *name;
	int mode;
	const struct set *nodes;
	bool shared;
	bool home;		/* has a home node */
	char *at;		/* NULL: this kernel does not have the mode */
	int told_mode;		/* as the kernel tells, which is not the same in all releases */
	struct set told_nodes;
} mappings[] = {
	{ .name = "as the thread", .mode = -1 },
	{ .name = "bind", .mode = MPOL_BIND, .nodes = &last },
	{ .name = "bind, with a home", .mode = MPOL_BIND, .nodes = &all, .home = true },
	{ .name = "bind, relative", .mode = MPOL_BIND | MPOL_F_RELATIVE_NODES, .nodes = &first },
	{ .name = "preferred", .mode = MPOL_PREFERRED, .nodes = &last },
	{ .name = "preferred, static", .mode = MPOL_PREFERRED | MPOL_F_STATIC_NODES, .nodes = &last },
	{ .name = "interleave", .mode = MPOL_INTERLEAVE, .nodes = &all },
	{ .name = "interleave, shared", .mode = MPOL_INTERLEAVE, .nodes = &all, .shared = true },
	{ .name = "local", .mode = MPOL_LOCAL },
	{ .name = "preferred many", .mode = MPOL_PREFERRED_MANY, .nodes = &all },
	{ .name = "weighted interleave", .mode = WEIGHTED, .nodes = &all },
};

#define NR_MAPPINGS	(sizeof(mappings) / sizeof(*mappings))

static void make(struct mapping *m)
{
	char *at = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
			MAP_ANONYMOUS | (m->shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);

	NEED(at != MAP_FAILED);
	if (m->mode >= 0 && syscall(SYS_mbind, at, LENGTH, m->mode, m->nodes,
				    m->nodes ? MAX_NODE : 0, 0)) {
		bool unknown = errno == EINVAL;

		NEED(unknown && m->mode >= MPOL_PREFERRED_MANY);
		return;
	}
	if (m->home)
		syscall(HOME_NODE, at, LENGTH, last_node, 0);
	NEED(get(at, &m->told_mode, &m->told_nodes));
	m->at = at;
	for (int i = 0; i < PAGES; i++)
		at[4096 * i] = i + 1;
}

/* How many of its pages are on the last node? */
static int count_on_last(const struct mapping *m)
{
	int on_last = 0, node;

	for (int i = 0; i < PAGES; i++) {
		node = -1;
		CHECK(m->at[4096 * i] == i + 1);
		CHECK(!syscall(SYS_get_mempolicy, &node, NULL, 0, m->at + 4096 * i,
			       MPOL_F_NODE | MPOL_F_ADDR));
		on_last += node == last_node;
	}
	return on_last;
}

static bool has_own(const struct mapping *m)
{
	int mode = m->mode & ~MPOL_MODE_FLAGS;

	return m->mode >= 0 && !(is_free && (mode == MPOL_BIND || mode == MPOL_PREFERRED ||
					     mode == MPOL_PREFERRED_MANY));
}

static void check_mapping(const struct mapping *m)
{
	int on_last = count_on_last(m), before = check_failures;

	CHECK(has_own(m) ? has(m->at, m->told_mode, &m->told_nodes) : has(m->at, MPOL_DEFAULT, NULL));
	if (has_own(m) && m->nodes == &last)
		CHECK(on_last == PAGES);
	/*
	 * One that has none is under that of the thread.  The contents of shared memory are there
	 * before it is mapped.
	 */
	else if (first_node != last_node && (!has_own(m) || m->mode == MPOL_INTERLEAVE) && !m->shared)
		CHECK(on_last > 0 && on_last < PAGES);
	if (check_failures != before)
		fprintf(stderr, "# %s: %d of %d pages are on node %d\n", m->name, on_last, PAGES, last_node);
}

static void many(void)
{
	char *at = mmap(NULL, MANY * 4096ul, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);

	NEED(at != MAP_FAILED);
	for (int i = 0; i < MANY; i++) {
		NEED(!syscall(SYS_mbind, at + 4096 * i, 4096, i % 2 ? MPOL_PREFERRED : MPOL_BIND,
			      i % 2 ? &last : &all, MAX_NODE, 0));
		if (!(i % 2))
			syscall(HOME_NODE, at + 4096 * i, 4096, last_node, 0);
	}
	check_ready();
	check_wait();
	for (int i = 0; i < MANY; i++)
		CHECK(has(at + 4096 * i, i % 2 ? MPOL_PREFERRED : MPOL_BIND, i % 2 ? &last : &all));
}

int main(int argc, char **argv)
{
	pthread_t thread[2];

	check_begin(argc, argv);
	if (syscall(SYS_get_mempolicy, NULL, NULL, 0, NULL, 0) && errno == ENOSYS)
		check_skip("this kernel has no memory policies");
	set_nodes();
	if (argc > 3 && !strcmp(argv[3], "many")) {
		many();
		return check_end();
	}
	is_free = argc > 3 && !strcmp(argv[3], "free");
	pthread_barrier_init(&barrier, NULL, 3);
	NEED(!syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &all, MAX_NODE));
	NEED(!pthread_create(&thread[0], NULL, bound, NULL));
	NEED(!pthread_create(&thread[1], NULL, without, NULL));
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < NR_MAPPINGS; i++)
		make(&mappings[i]);
	check_ready();
	check_wait();
	CHECK(has(NULL, MPOL_INTERLEAVE, &all));
	for (size_t i = 0; i < NR_MAPPINGS; i++)
		if (mappings[i].at)
			check_mapping(&mappings[i]);
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(thread[i], NULL));
	return check_end();
}
