// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that changes between two increments, each time in another way.  When it is
 * `ready` an image is made; when a file `change` exists it changes, and makes the file
 * `changed`; then the increment is made that must have it.  A part of the memory never
 * changes, so that increments have something to leave out.
 */
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "check.h"

#ifndef MADV_FREE
#define MADV_FREE	8
#endif

#define PAGE	4096ul
#define TABLE	(2ul << 20)	/* what one page table maps, and one huge page */
#define QUIET	(1024 * PAGE)

static char *quiet;

static void *map(void *at, size_t length)
{
	void *memory = mmap(at, length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	NEED(memory != MAP_FAILED);
	return memory;
}

/* Page tables of its own, with others before and behind them that stay unused. */
static char *map_tables(size_t length)
{
	char *at = mmap(NULL, length + 2 * TABLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEED(at != MAP_FAILED);
	at = map((void *)(((uintptr_t)at + TABLE) & -TABLE), length);
	NEED(!madvise(at, length, MADV_NOHUGEPAGE));
	return at;
}

static void wait_for(const char *name)
{
	while (access(name, F_OK))
		check_sleep_ms(5);
}

static void change_here(void)
{
	check_ready();
	wait_for("change");
}

/* The increment is made, and the program killed and restarted. */
static void changed_here(void)
{
	int fd = open("changed", O_CREAT | O_WRONLY | O_CLOEXEC, 0666);

	NEED(fd >= 0);
	close(fd);
	check_wait();
	CHECK(check_filled(quiet, QUIET, 99));
}

static bool is_zero(const char *at, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (at[i])
			return false;
	return true;
}

/* ---- writing ------------------------------------------------------------------------ */

static void write_some(void)
{
	char *a = map_tables(TABLE);

	check_fill(a, TABLE, 1);
	change_here();
	check_fill(a + 3 * PAGE, PAGE, 2);
	memset(a + 5 * PAGE, 0, PAGE);
	changed_here();
	CHECK(check_filled(a, PAGE, 1) && check_filled(a + 3 * PAGE, PAGE, 2));
	CHECK(is_zero(a + 5 * PAGE, PAGE));
}

static void write_huge(void)
{
	char *a = map_tables(4 * TABLE);

	if (madvise(a, 4 * TABLE, MADV_HUGEPAGE))
		check_skip("no huge pages");
	check_fill(a, 4 * TABLE, 1);
	change_here();
	check_fill(a + TABLE + 7 * PAGE, PAGE, 2);
	changed_here();
	CHECK(check_filled(a, TABLE, 1) && check_filled(a + TABLE + 7 * PAGE, PAGE, 2));
	CHECK(check_filled(a + 3 * TABLE, TABLE, 1 + 3 * TABLE / 8));
}

static void protect(void)
{
	char *a = map_tables(TABLE);

	check_fill(a, TABLE, 1);
	change_here();
	CHECK(!mprotect(a, TABLE, PROT_NONE) && !mprotect(a, TABLE, PROT_READ));
	CHECK(!mprotect(a, TABLE, PROT_READ | PROT_WRITE));
	check_fill(a + PAGE, PAGE, 2);
	changed_here();
	CHECK(check_filled(a + PAGE, PAGE, 2) && check_filled(a, PAGE, 1));
}

/*
 * Written through /proc/self/mem, where there is no page and none may be written; kernels with
 * CONFIG_PROC_MEM_FORCE_PTRACE, as Debian's 7.2, let only a debugger do so.
 */
static void force(void)
{
	char *a = map_tables(TABLE), page[PAGE];
	bool forced, refused;
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	NEED(fd >= 0);
	check_fill(a, TABLE, 1);
	change_here();
	check_fill(page, PAGE, 2);
	CHECK(!mprotect(a, TABLE, PROT_READ) && !madvise(a, 8 * PAGE, MADV_DONTNEED));
	forced = pwrite(fd, page, PAGE, (uintptr_t)a + PAGE) == PAGE;
	refused = !forced && errno == EIO;
	NEED(forced || refused);
	CHECK(!mprotect(a, TABLE, PROT_READ | PROT_WRITE));
	if (!forced)
		check_fill(a + PAGE, PAGE, 2);
	changed_here();
	CHECK(is_zero(a, PAGE) && check_filled(a + PAGE, PAGE, 2));
	CHECK(is_zero(a + 2 * PAGE, 6 * PAGE));
}

/* By its child, which does not share it. */
static void other(void)
{
	char *a = map_tables(TABLE);
	char page[PAGE];
	struct iovec from = { page, PAGE }, to = { a + PAGE, PAGE };
	pid_t pid, parent = getpid();
	int status;

	check_fill(a, TABLE, 1);
	change_here();
	pid = fork();
	if (!pid) {
		check_fill(page, PAGE, 2);
		_exit(process_vm_writev(parent, &from, 1, &to, 1, 0) != PAGE);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	changed_here();
	CHECK(check_filled(a + PAGE, PAGE, 2) && check_filled(a, PAGE, 1));
}

/* After a fork either side writes to what they still share. */
static void forked(void)
{
	char *a = map_tables(TABLE);
	int status;
	pid_t pid;

	check_fill(a, TABLE, 1);
	change_here();
	pid = fork();
	if (!pid) {
		check_fill(a + PAGE, PAGE, 3);
		check_wait();
		CHECK(check_filled(a, PAGE, 1) && check_filled(a + PAGE, PAGE, 3));
		_exit(check_failures);
	}
	check_fill(a + 2 * PAGE, PAGE, 2);
	check_sleep_ms(200);
	changed_here();
	CHECK(check_filled(a, PAGE, 1) && check_filled(a + 2 * PAGE, PAGE, 2));
	CHECK(check_filled(a + PAGE, PAGE, 1 + PAGE / 8));
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

/* ---- discarding ----------------------------------------------------------------------- */

static void discard(void)
{
	char *a = map_tables(TABLE);

	check_fill(a, TABLE, 1);
	change_here();
	CHECK(!madvise(a, 8 * PAGE, MADV_DONTNEED));
	check_fill(a + PAGE, PAGE, 2);
	CHECK(!a[3 * PAGE]);
	changed_here();
	CHECK(is_zero(a, PAGE) && check_filled(a + PAGE, PAGE, 2));
	CHECK(is_zero(a + 2 * PAGE, 6 * PAGE) && check_filled(a + 8 * PAGE, PAGE, 1 + PAGE));
}

/* The kernel may take it, or leave it. */
static void give_up(void)
{
	char *a = map_tables(TABLE);

	check_fill(a, TABLE, 1);
	change_here();
	CHECK(!madvise(a, TABLE, MADV_FREE));
	check_fill(a + PAGE, PAGE, 2);
	changed_here();
	CHECK(check_filled(a + PAGE, PAGE, 2));
	CHECK(is_zero(a, PAGE) || check_filled(a, PAGE, 1));
}

static void map_again(void)
{
	char *a = map_tables(TABLE);

	check_fill(a, TABLE, 1);
	change_here();
	map(a, TABLE);
	check_fill(a + PAGE, PAGE, 2);
	changed_here();
	CHECK(is_zero(a, PAGE) && check_filled(a + PAGE, PAGE, 2));
	CHECK(is_zero(a + 2 * PAGE, TABLE - 2 * PAGE));
}

/* ---- moving --------------------------------------------------------------------------- */

static void move(char *from, char *to)
{
	CHECK(mremap(from, TABLE, TABLE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
}

/* Two buffers change places, as a program does that has an old and a new state. */
static void swap(void)
{
	char *a = map_tables(TABLE), *b = map_tables(TABLE), *c = map_tables(TABLE);

	check_fill(a, TABLE, 1);
	check_fill(b, TABLE, 2);
	change_here();
	move(a, c);
	move(b, a);
	move(c, b);
	changed_here();
	CHECK(check_filled(a, TABLE, 2) && check_filled(b, TABLE, 1));
}

/* … and have done so before the image was made. */
static void swap_back(void)
{
	char *a = map_tables(TABLE), *b = map_tables(TABLE), *c = map_tables(TABLE);

	check_fill(a, TABLE, 1);
	check_fill(b, TABLE, 2);
	move(a, c);
	move(b, a);
	move(c, b);
	change_here();
	move(a, c);
	move(b, a);
	move(c, b);
	changed_here();
	CHECK(check_filled(a, TABLE, 1) && check_filled(b, TABLE, 2));
}

/* Pages return to where they were made, and others, made there too, are gone. */
static void move_back(void)
{
	char *a = map_tables(TABLE), *b = map_tables(TABLE);

	check_fill(a, TABLE, 1);
	move(a, b);
	map(a, TABLE);
	NEED(!madvise(a, TABLE, MADV_NOHUGEPAGE));
	check_fill(a, TABLE, 2);
	change_here();
	move(b, a);
	changed_here();
	CHECK(check_filled(a, TABLE, 1));
}

/* As realloc(3) does. */
static void grow(void)
{
	char *a = map_tables(TABLE), *b;

	check_fill(a, TABLE, 1);
	change_here();
	b = mremap(a, TABLE, 2 * TABLE, MREMAP_MAYMOVE);
	CHECK(b != MAP_FAILED);
	check_fill(b + TABLE, PAGE, 2);
	changed_here();
	CHECK(check_filled(b, TABLE, 1) && check_filled(b + TABLE, PAGE, 2));
	CHECK(is_zero(b + TABLE + PAGE, TABLE - PAGE));
}

/* ---- heap and stack ------------------------------------------------------------------- */

static void heap(void)
{
	char *a = sbrk(64 * PAGE);

	NEED(a != (void *)-1);
	check_fill(a, 64 * PAGE, 1);
	change_here();
	CHECK(!brk(a + 8 * PAGE) && !brk(a + 128 * PAGE));
	check_fill(a + 100 * PAGE, PAGE, 2);
	check_fill(a + 2 * PAGE, PAGE, 3);
	changed_here();
	CHECK(check_filled(a, PAGE, 1) && check_filled(a + 2 * PAGE, PAGE, 3));
	CHECK(is_zero(a + 64 * PAGE, 36 * PAGE) && check_filled(a + 100 * PAGE, PAGE, 2));
}

static void descend(unsigned int depth)
{
	volatile char room[16 * PAGE];
	char *at = (char *)room;

	check_fill(at, sizeof(room), depth);
	if (depth)
		descend(depth - 1);
	else
		changed_here();
	CHECK(check_filled(at, sizeof(room), depth));
}

static void stack(void)
{
	change_here();
	descend(20);
}

/* ---- files, and other programs ---------------------------------------------------------- */

static void private_file(void)
{
	static char contents[16 * PAGE];
	char *a;
	int fd = open("changes.data", O_RDWR | O_CREAT | O_TRUNC, 0600);

	check_fill(contents, sizeof(contents), 1);
	NEED(fd >= 0 && write(fd, contents, sizeof(contents)) == sizeof(contents));
	a = mmap(NULL, sizeof(contents), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	NEED(a != MAP_FAILED);
	check_fill(a + PAGE, 2 * PAGE, 2);
	change_here();
	check_fill(a + PAGE, PAGE, 3);
	check_fill(a + 4 * PAGE, PAGE, 4);
	CHECK(!madvise(a + 2 * PAGE, PAGE, MADV_DONTNEED));
	changed_here();
	CHECK(check_filled(a + PAGE, PAGE, 3) && check_filled(a + 4 * PAGE, PAGE, 4));
	CHECK(check_filled(a, PAGE, 1) && check_filled(a + 2 * PAGE, PAGE, 1 + 2 * PAGE / 8));
}

static void be_another(void)
{
	char *a = map_tables(TABLE);

	check_fill(a, TABLE, 5);
	changed_here();
	CHECK(check_filled(a, TABLE, 5));
}

/* It calls exec: the same process, with other memory. */
static void execute(void)
{
	if (check_argument) {
		be_another();
		return;
	}
	change_here();
	execl("/proc/self/exe", "changes", check_ready_file, check_go_file, "exec", "again", NULL);
	CHECK(false);
}

/* Pages that were equal and were one (KSM) are written to, and are one again. */
static void merged(void)
{
	char *a = map_tables(TABLE);

	if (madvise(a, TABLE, MADV_MERGEABLE))
		check_skip("no KSM");
	memset(a, 7, TABLE);
	change_here();
	memset(a, 8, 100 * PAGE);
	check_sleep_ms(1000);
	changed_here();
	CHECK(a[0] == 8 && a[100 * PAGE - 1] == 8 && a[100 * PAGE] == 7 && a[TABLE - 1] == 7);
}

static const struct check checks[] = {
	{ "write", write_some }, { "huge", write_huge }, { "protect", protect },
	{ "force", force }, { "other", other }, { "fork", forked }, { "discard", discard },
	{ "free", give_up }, { "map_again", map_again }, { "swap", swap },
	{ "swap_back", swap_back }, { "move_back", move_back }, { "grow", grow },
	{ "heap", heap }, { "stack", stack }, { "private_file", private_file },
	{ "exec", execute }, { "merged", merged },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	quiet = map(NULL, QUIET);
	/* Not huge pages, which are read whole, and all of them after a restart. */
	NEED(!madvise(quiet, QUIET, MADV_NOHUGEPAGE));
	check_fill(quiet, QUIET, 99);
	return check_one(argc, argv, checks);
}
