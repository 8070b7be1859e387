/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A thread that changes its part of memory all the time and knows what must be there: it
 * drops, unmaps, moves, grows and protects pieces, passes them to system calls, forks
 * children that look at everything of the thread and do such work themselves, and some that
 * call exec.
 */
#ifndef KCR_TESTS_LAZY_WORK_H
#define KCR_TESTS_LAZY_WORK_H

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"

#define PAGE		4096ul
#define MAX_THREADS	16u
#define PIECES		24u

/* Pages that are together; page i is filled with first + i, or zero if wiped[i]. */
struct piece {
	uint64_t *at;
	uint64_t first;
	size_t pages;
	uint8_t *wiped;
};

struct worker {
	pthread_t thread;
	struct piece piece[PIECES];
	unsigned int seed;
	uint64_t next;
	size_t pages;			/* of a new piece */
};

static struct worker workers[MAX_THREADS];
static const char *own_path;		/* of a program that lazy_exec() begins; NULL: none */
static volatile bool stop;

static unsigned int pick(struct worker *w, unsigned int below)
{
	return rand_r(&w->seed) % below;
}

static uint64_t *page_at(const struct piece *p, size_t i)
{
	return p->at + i * (PAGE / sizeof(uint64_t));
}

static uint64_t expected(const struct piece *p, size_t i)
{
	return p->wiped[i] ? 0 : p->first + i;
}

static void make(struct worker *w, struct piece *p)
{
	p->pages = w->pages / 2 + pick(w, w->pages) + 1;
	p->at = mmap(NULL, p->pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p->wiped = calloc(1, p->pages);
	p->first = w->next;
	NEED(p->at != MAP_FAILED && p->wiped);
	w->next += p->pages;
	for (size_t i = 0; i < p->pages; i++)
		for (size_t k = 0; k < PAGE / sizeof(uint64_t); k++)
			page_at(p, i)[k] = p->first + i;
}

static void look(const struct piece *p, size_t i)
{
	const uint64_t *page = page_at(p, i), want = expected(p, i);

	if (page[0] == want && page[PAGE / sizeof(uint64_t) - 1] == want && page[77] == want)
		return;
	fprintf(stderr, "# page %zu of %zu at %p: %#lx, not %#lx\n", i, p->pages, (void *)page, page[0],
		want);
	CHECK(!"the page is what it was");
}

static void look_at_all(const struct worker *w)
{
	for (size_t i = 0; i < PIECES; i++)
		for (size_t k = 0; k < w->piece[i].pages; k++)
			look(&w->piece[i], k);
}

/* The kernel reads the page, in a system call. */
static void pass(const struct piece *p, size_t i)
{
	uint64_t got[2] = { 1, 1 };
	int fd[2];

	CHECK(!pipe2(fd, O_CLOEXEC));
	CHECK(write(fd[1], page_at(p, i), sizeof(got)) == sizeof(got));
	CHECK(read(fd[0], got, sizeof(got)) == sizeof(got));
	CHECK(got[0] == expected(p, i) && got[1] == got[0]);
	close(fd[0]);
	close(fd[1]);
}

static void drop(struct worker *w, struct piece *p)
{
	size_t first = pick(w, p->pages), count = pick(w, p->pages - first) + 1;

	CHECK(!madvise(page_at(p, first), count * PAGE, MADV_DONTNEED));
	memset(p->wiped + first, 1, count);
	look(p, first);
}

static void move(struct worker *w, struct piece *p)
{
	size_t more = pick(w, 4);
	uint8_t *wiped = realloc(p->wiped, p->pages + more);
	void *at = mremap(p->at, p->pages * PAGE, (p->pages + more) * PAGE, MREMAP_MAYMOVE);

	CHECK(wiped && at != MAP_FAILED);
	memset(wiped + p->pages, 1, more);
	p->wiped = wiped;
	p->at = at;
	p->pages += more;
	/* And to a place that was just free. */
	at = mmap(NULL, p->pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at != MAP_FAILED);
	p->at = mremap(p->at, p->pages * PAGE, p->pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at);
	CHECK(p->at == at);
}

static void replace(struct worker *w, struct piece *p)
{
	CHECK(!munmap(p->at, p->pages * PAGE));
	free(p->wiped);
	make(w, p);
}

static void protect(struct worker *w, struct piece *p)
{
	size_t i = pick(w, p->pages);

	CHECK(!mprotect(page_at(p, i), PAGE, PROT_READ));
	look(p, i);
	CHECK(!mprotect(page_at(p, i), PAGE, PROT_READ | PROT_WRITE));
}

static void act(struct worker *w);

/* A child, which has only this thread, or calls exec with an argument from its memory. */
static void have_child(struct worker *w)
{
	const struct piece *p = &w->piece[0];
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid && own_path && !pick(w, 3)) {
		char text[32];

		snprintf(text, sizeof(text), "%lu", *page_at(p, p->pages - 1));
		execl(own_path, own_path, "exec", text, NULL);
		_exit(9);
	}
	if (!pid) {
		check_failures = 0;
		for (int i = 0; i < 20; i++)
			act(w);
		look_at_all(w);
		_exit(check_failures != 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	CHECK(WEXITSTATUS(status) == (WEXITSTATUS(status) >= 10 ?
				      10 + (int)(expected(p, p->pages - 1) % 100) : 0));
}

static void act(struct worker *w)
{
	struct piece *p = &w->piece[pick(w, PIECES)];
	size_t i = pick(w, p->pages);

	look(p, i);
	switch (pick(w, 16)) {
	case 0:
		drop(w, p);
		break;
	case 1:
	case 2:
		move(w, p);
		break;
	case 3:
		if (!pick(w, 4))
			replace(w, p);
		break;
	case 4:
		protect(w, p);
		break;
	case 5:
		if (!pick(w, 4))
			have_child(w);
		break;
	default:
		pass(p, i);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (!stop)
		act(w);
	look_at_all(w);
	return NULL;
}

#endif /* KCR_TESTS_LAZY_WORK_H */
