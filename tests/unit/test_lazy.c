// SPDX-License-Identifier: GPL-2.0
/*
 * Lazy loading without the module: a process whose memory is missing works on it in several
 * threads (tests/programs/lazy_work.h), while this one brings the pages from a made-up image.
 * And what becomes of a damaged one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "report/report.h"
#include "restart/lazy_state.h"
#include "sample.h"
#include "tests/memory_section.h"
#include "tests/programs/lazy_work.h"

#define BASE		0x200000000000ul
#define PIECE_PAGES	80u
#define CHUNK_PAGES	256u
#define THREADS		3u
#define ALL_PAGES	((size_t)THREADS * PIECES * PIECE_PAGES)

static char path[] = "/tmp/kcr-test-lazy-XXXXXX";

/* Every tenth page is not in the image: it is zero. */
static bool is_saved(size_t page)
{
	return page % 10 != 9;
}

static void fill(char *to, size_t page)
{
	for (size_t k = 0; k < PAGE; k += sizeof(uint64_t))
		memcpy(to + k, &(uint64_t){ page + 1 }, sizeof(uint64_t));
}

static void write_chunk(struct context_writer *w, size_t first, enum context_compression how)
{
	static char data[CHUNK_PAGES * PAGE];
	struct kcr_run run[CHUNK_PAGES];
	size_t nr_runs = 0, count = 0;

	for (size_t page = first; page < first + CHUNK_PAGES && page < ALL_PAGES; page++) {
		if (!is_saved(page))
			continue;
		fill(data + count++ * PAGE, page);
		if (nr_runs && is_saved(page - 1))
			run[nr_runs - 1].nr_pages++;
		else
			run[nr_runs++] = (struct kcr_run){ BASE + page * PAGE, 1 };
	}
	assert_int_equal(section_write(w, SAMPLE_PID, run, nr_runs, data, how), 0);
}

static int write_image(void **state)
{
	struct context_writer *w;
	struct sample sample;
	int fd = mkstemp(path);

	(void)state;
	sample_make(&sample);
	if (fd < 0 || context_writer_new(&w, fd, 0) || sample_write_metadata(&sample, w))
		return -1;
	for (size_t first = 0; first < ALL_PAGES; first += CHUNK_PAGES)
		write_chunk(w, first, first / CHUNK_PAGES % 3);
	if (context_writer_finish(w))
		return -1;
	context_writer_free(w);
	sample_free(&sample);
	return close(fd);
}

static int remove_image(void **state)
{
	(void)state;
	return unlink(path);
}

/* ---- the process --------------------------------------------------------------------- */

static void adopt(struct worker *w, unsigned int number, unsigned int seed)
{
	w->seed = seed * THREADS + number + 1;
	w->next = (number + 1) * 0x100000000ul;
	w->pages = PIECE_PAGES;
	for (size_t i = 0; i < PIECES; i++) {
		size_t first = (number * PIECES + i) * PIECE_PAGES;
		struct piece *p = &w->piece[i];

		p->at = (void *)(BASE + first * PAGE);
		p->first = first + 1;
		p->pages = PIECE_PAGES;
		p->wiped = calloc(1, PIECE_PAGES);
		for (size_t k = 0; k < PIECE_PAGES; k++)
			p->wiped[k] = !is_saved(first + k);
	}
}

/* With one end of a socket: offers its userfaultfd, and works for a while when it may. */
static void live(int end, unsigned int seed)
{
	int fd = faults_open();
	char go;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	NEED(mmap((void *)BASE, ALL_PAGES * PAGE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)BASE);
	NEED(write(end, &fd, sizeof(fd)) == sizeof(fd));
	NEED(read(end, &go, 1) == 1);
	close(fd);
	for (unsigned int t = 0; t < THREADS; t++) {
		adopt(&workers[t], t, seed);
		NEED(!pthread_create(&workers[t].thread, NULL, work, &workers[t]));
	}
	check_sleep_ms(20 + seed % 100);
	stop = true;
	for (unsigned int t = 0; t < THREADS; t++)
		NEED(!pthread_join(workers[t].thread, NULL));
	_exit(check_end());
}

static pid_t start(int *end, int *fd, unsigned int seed)
{
	int pair[2], pidfd;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid = fork();
	if (!pid)
		live(pair[1], seed);
	close(pair[1]);
	assert_int_equal(read(pair[0], fd, sizeof(*fd)), sizeof(*fd));
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	*fd = syscall(SYS_pidfd_getfd, pidfd, *fd, 0);
	assert_true(*fd >= 0);
	close(pidfd);
	*end = pair[0];
	return pid;
}

/* Returns what lazy_run() does; *status: of the process. */
static int load(unsigned int seed, int *status)
{
	struct lazy *l = lazy_new();
	struct context_reader *reader;
	struct space s = { 0 };
	int image = open(path, O_RDONLY | O_CLOEXEC), end, result;
	pid_t pid = start(&end, &s.fd, seed);

	s.pid = pid;
	assert_int_equal(context_reader_new(&reader, image, path), 0);
	assert_int_equal(page_index_read(&l->index, reader, NULL), 0);
	assert_int_equal(missing_init(&s.missing, l->index, SAMPLE_PID), 0);
	assert_int_equal(missing_add(&s.missing, BASE, BASE + ALL_PAGES * PAGE), 0);
	assert_int_equal(faults_begin(s.fd), 0);
	assert_int_equal(faults_register(s.fd, BASE, BASE + ALL_PAGES * PAGE), 0);
	assert_int_equal(lazy_add_space(l, &s), 0);
	assert_int_equal(write(end, "g", 1), 1);
	result = lazy_run(l);
	if (result)			/* as closing the job would */
		kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, status, 0), pid);
	lazy_free(l);
	context_reader_free(reader);
	close(image);
	close(end);
	return result;
}

static void needs_userfaultfd(void)
{
	if (!faults_check())
		return;
	print_message("# skipped: %s\n", report_message());
	report_clear();
	skip();
}

static void busy(void **state)
{
	const char *rounds = getenv("KCR_LAZY_ROUNDS"), *first = getenv("KCR_LAZY_SEED");
	unsigned int seed = first ? (unsigned int)atoi(first) : 1;
	int status;

	(void)state;
	needs_userfaultfd();
	for (int i = rounds ? atoi(rounds) : 20; i > 0; i--, seed++) {
		if (load(seed, &status))
			fail_msg("seed %u: %s", seed, report_message());
		if (status)
			fail_msg("seed %u: status %#x", seed, status);
	}
}

/* Flips a bit of the first page, which is stored as it is. */
static void flip(void)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint64_t word[2] = { 0, 0 };
	off_t at = 0;

	do
		at += PAGE;
	while (pread(fd, word, sizeof(word), at) == sizeof(word) && word[1] != 1);
	assert_int_equal(word[1], 1);
	word[0] ^= 16;
	assert_int_equal(pwrite(fd, word, sizeof(word), at), sizeof(word));
	close(fd);
}

static void damaged(void **state)
{
	int status;

	(void)state;
	needs_userfaultfd();
	flip();
	assert_int_equal(load(1, &status), -EINVAL);
	assert_non_null(strstr(report_message(), "damaged context file"));
	report_clear();
	flip();
}

/* ---- events in another order than that of the calls ------------------------------------- */

#define A	BASE			/* the first pages of each are in the image */
#define B	(BASE + 100 * PAGE)
#define ELSEWHERE (BASE + ALL_PAGES * PAGE)
#define LENGTH	(50 * PAGE)

static struct page_index *index_of_image;
static struct missing missing;
static int looks;			/* what look() says */

static int look_so(int fd, uint64_t address)
{
	(void)fd;
	(void)address;
	return looks;
}

static int set_up(void **state)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct context_reader *reader;

	(void)state;
	looks = -ENOENT;
	if (context_reader_new(&reader, fd, path) || page_index_read(&index_of_image, reader, NULL))
		return -1;
	context_reader_free(reader);
	close(fd);
	return missing_init(&missing, index_of_image, SAMPLE_PID) || missing_add(&missing, A, A + LENGTH) ||
	       missing_add(&missing, B, B + LENGTH);
}

static int tear_down(void **state)
{
	(void)state;
	missing_free(&missing);
	page_index_free(index_of_image);
	report_clear();
	return 0;
}

/* The address in the image of what is missing there; 0: nothing is. */
static uint64_t image_of(uint64_t address)
{
	uint64_t image;

	return missing_find(&missing, address, &image) ? image : 0;
}

static void settles(void)
{
	assert_int_equal(missing_settle(&missing, look_so, -1), 0);
	assert_false(missing_has_hidden(&missing));
}

static void moving(void **state)
{
	(void)state;
	assert_int_equal(missing.left, 90);
	assert_int_equal(missing_move(&missing, A, ELSEWHERE, LENGTH), 0);
	/* A part of the call: not of what another thread has moved there meanwhile. */
	assert_int_equal(missing_move(&missing, B, A, LENGTH), 0);
	assert_int_equal(missing_unmap(&missing, A, A + LENGTH), 0);
	assert_int_equal(missing_unmap(&missing, B, B + LENGTH), 0);
	settles();
	assert_int_equal(image_of(ELSEWHERE + PAGE), A + PAGE);
	assert_int_equal(image_of(A + PAGE), B + PAGE);
	assert_int_equal(image_of(B + PAGE), 0);
	assert_int_equal(missing.left, 90);
}

static void late_unmapping(void **state)
{
	(void)state;
	/* B was unmapped, and A moved there, which is reported first. */
	assert_int_equal(missing_move(&missing, A, B, LENGTH), 0);
	assert_int_equal(missing_unmap(&missing, B, B + LENGTH), 0);
	assert_int_equal(missing_unmap(&missing, A, A + LENGTH), 0);
	settles();
	assert_int_equal(image_of(B + PAGE), A + PAGE);
	assert_int_equal(missing.left, 45);
}

static void late_moving(void **state)
{
	(void)state;
	assert_int_equal(missing_move(&missing, A, B, LENGTH), 0);
	assert_int_equal(missing_move(&missing, B, ELSEWHERE, LENGTH), -EDEADLK);
	tear_down(NULL);
	set_up(NULL);
	/* Only what was there before goes on. */
	assert_int_equal(missing_move(&missing, A, B, LENGTH), 0);
	assert_int_equal(missing_unmap(&missing, B, B + PAGE), 0);
	settles();
	assert_int_equal(image_of(B + PAGE), A + PAGE);
}

static void unmapped_after_moving(void **state)
{
	(void)state;
	assert_int_equal(missing_move(&missing, A, ELSEWHERE, LENGTH), 0);
	assert_int_equal(missing_unmap(&missing, A, A + LENGTH), 0);
	assert_int_equal(missing_unmap(&missing, ELSEWHERE, ELSEWHERE + LENGTH), 0);
	assert_int_equal(image_of(ELSEWHERE + PAGE), 0);
	assert_true(missing_has_hidden(&missing));
	settles();
	assert_int_equal(missing.left, 45);
}

static void contradiction(void **state)
{
	(void)state;
	/* As before, but it is still there: the event was for what had been there, unlisted. */
	assert_int_equal(missing_move(&missing, A, ELSEWHERE, LENGTH), 0);
	assert_int_equal(missing_unmap(&missing, A, A + LENGTH), 0);
	assert_int_equal(missing_unmap(&missing, ELSEWHERE, ELSEWHERE + LENGTH), 0);
	looks = 0;
	assert_int_equal(missing_settle(&missing, look_so, -1), -EDEADLK);
}

static void parts(void **state)
{
	struct missing child;

	(void)state;
	missing_drop(&missing, A, A + 5 * PAGE);
	assert_int_equal(missing.left, 85);
	assert_int_equal(image_of(A + PAGE), 0);
	assert_int_equal(missing_unmap(&missing, A + 20 * PAGE, B + 10 * PAGE), 0);
	assert_int_equal(image_of(A + 19 * PAGE), 0);	/* not in the image */
	assert_int_equal(image_of(A + 18 * PAGE), A + 18 * PAGE);
	assert_int_equal(image_of(A + 20 * PAGE), 0);
	assert_int_equal(missing.left, 13 + 36);
	assert_int_equal(missing_fork(&child, &missing), 0);
	missing_drop(&missing, B, B + LENGTH);
	assert_int_equal(missing.left, 13);
	assert_int_equal(child.left, 13 + 36);
	missing_free(&child);
}

#define ORDER(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busy),
		cmocka_unit_test(damaged),
		ORDER(moving),
		ORDER(late_unmapping),
		ORDER(late_moving),
		ORDER(unmapped_after_moving),
		ORDER(contradiction),
		ORDER(parts),
	};

	return cmocka_run_group_tests(tests, write_image, remove_image);
}
