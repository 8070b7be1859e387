// SPDX-License-Identifier: GPL-2.0
/*
 * Private memory of all kinds, and what the kernel knows of an address space.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "check.h"

#define PAGE	4096

/* ---- anonymous ---- */

#define RANGES	64

/*
 * Private anonymous memory: many small ranges with holes, pages that were never
 * touched, pages of zeros, and read-only ones.
 */
static void mem_anonymous(void)
{
	char *range[RANGES], *sparse;

	for (int i = 0; i < RANGES; i++) {
		size_t length = (i % 7 + 1) * PAGE;

		range[i] = mmap(NULL, length + PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		NEED(range[i] != MAP_FAILED);
		munmap(range[i] + length, PAGE);
		check_fill(range[i], length, i);
		if (i % 3 == 0)
			NEED(!mprotect(range[i], length, PROT_READ));
	}
	sparse = mmap(NULL, 1000 * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(sparse != MAP_FAILED);
	for (int i = 0; i < 1000; i += 100)
		sparse[i * PAGE + i] = i % 300 ? 'x' : 0;
	checkpoint_here();
	for (int i = 0; i < RANGES; i++) {
		size_t length = (i % 7 + 1) * PAGE;

		CHECK(check_filled(range[i], length, i));
		CHECK(i % 3 || !mprotect(range[i], length, PROT_READ | PROT_WRITE));
		check_fill(range[i], length, i + 1000);
		CHECK(check_filled(range[i], length, i + 1000));
	}
	for (int i = 0; i < 1000 * PAGE; i++) {
		int page = i / PAGE;
		char expected = page % 100 == 0 && i % PAGE == page && page % 300 ? 'x' : 0;

		if (sparse[i] != expected) {
			CHECK(sparse[i] == expected);
			break;
		}
	}
	CHECK(!madvise(sparse, 1000 * PAGE, MADV_DONTNEED) && !sparse[100 * PAGE + 100]);
}

/* ---- brk ---- */

/* The heap made by brk(2): contents, its end, growing and shrinking it. */
static void mem_brk(void)
{
	const size_t length = 1 << 18;
	char *start, *end;

	start = sbrk(length);
	NEED(start != (void *)-1);
	check_fill(start, length, 5);
	end = sbrk(0);
	checkpoint_here();
	CHECK(sbrk(0) == end);
	CHECK(check_filled(start, length, 5));
	CHECK(sbrk(length) == end);
	check_fill(end, length, 6);
	CHECK(check_filled(start, length, 5) && check_filled(end, length, 6));
	CHECK(sbrk(-(intptr_t)length) != (void *)-1 && sbrk(0) == end);
}

/* ---- stack ---- */

static int deep(int depth)
{
	volatile char frame[16384];

	for (size_t i = 0; i < sizeof(frame); i++)
		frame[i] = depth + i;
	if (depth && deep(depth - 1))
		return 1;
	for (size_t i = 0; i < sizeof(frame); i++)
		if (frame[i] != (char)(depth + i))
			return 1;
	return 0;
}

/* The stack: what is on it, growth after the restart, and its limit. */
static void mem_stack(void)
{
	uint64_t local[2048];
	int status;
	pid_t child;

	check_fill(local, sizeof(local), 1);
	NEED(!deep(20));
	checkpoint_here();
	CHECK(check_filled(local, sizeof(local), 1));
	CHECK(!deep(300));	/* 5 MB: it must grow */
	child = fork();
	if (!child)
		_exit(deep(100000));
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

/* ---- sparse ---- */

/*
 * Sixteen gigabytes of address space of which sixty-four pages are touched, and a
 * range that must not be accounted for (MAP_NORESERVE).
 */
static void mem_sparse(void)
{
	const uint64_t length = 16ull << 30;
	char *map;

	map = mmap(NULL, length, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	NEED(map != MAP_FAILED);
	madvise(map, length, MADV_NOHUGEPAGE);	/* or every page touched would be 2 MB */
	for (uint64_t i = 0; i < 64; i++)
		check_fill(map + i * (length / 64), 4096, i);
	checkpoint_here();
	for (uint64_t i = 0; i < 64; i++)
		CHECK(check_filled(map + i * (length / 64), 4096, i));
	map[length - 1] = 1;
	CHECK(map[length - 1] == 1 && map[length - 4097] == 0);
}

/* ---- thp ---- */

#define HUGE	(2 << 20)

/* Transparent huge pages, partly written to. */
static void mem_thp(void)
{
	char *map, *start;

	map = mmap(NULL, 4 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(map != MAP_FAILED);
	start = (char *)(((uintptr_t)map + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	if (madvise(start, 2 * HUGE, MADV_HUGEPAGE))
		check_skip("no transparent huge pages");
	check_fill(start, HUGE, 80);
	check_fill(start + HUGE + 8192, 4096, 81);
	checkpoint_here();
	CHECK(check_filled(start, HUGE, 80) && check_filled(start + HUGE + 8192, 4096, 81));
	CHECK(!start[HUGE] && !start[2 * HUGE - 1]);
	check_fill(start, HUGE, 82);
	CHECK(check_filled(start, HUGE, 82));
	CHECK(!munmap(start + 4096, 4096) && check_filled(start, 4096, 82));
}

/* ---- hugetlb ---- */

/*
 * Memory of huge pages from the pool, private and shared.  With the argument `writing`, half
 * of the private one is written to all the time.
 */
static void mem_hugetlb(void)
{
	const int length = 2 << 20;
	char *private, *shared;

	private = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	shared = mmap(NULL, length, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (private == MAP_FAILED || shared == MAP_FAILED)
		check_skip("no huge pages in the pool");
	check_fill(private, length, 70);
	check_fill(shared, length, 71);
	if (check_argument)
		check_fill(private + length / 2, length / 2, 74);
	check_ready();
	for (uint64_t round = 1; check_argument && !check_gone(); round++)
		check_fill(private, length / 2, round);
	check_wait();
	if (check_argument) {
		CHECK(check_filled(private + length / 2, length / 2, 74));
		check_fill(private, length, 70);
	}
	CHECK(check_filled(private, length, 70) && check_filled(shared, length, 71));
	CHECK(munmap(private, 4096) < 0 && errno == EINVAL);
	check_fill(private, length, 72);
	check_fill(shared, length, 73);
	CHECK(check_filled(private, length, 72) && check_filled(shared, length, 73));
	CHECK(!munmap(private, length) && !munmap(shared, length));
}

/* ---- prot_none ---- */

#define FORBIDDEN	(8 * PAGE)

static char *forbidden;
static volatile int faults;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	faults++;
	if ((char *)info->si_addr < forbidden || (char *)info->si_addr >= forbidden + FORBIDDEN ||
	    mprotect(forbidden, FORBIDDEN, PROT_READ | PROT_WRITE))
		_exit(1);
}

/*
 * Memory that may not be touched keeps its contents and its protection; and a
 * handler that opens it on a fault works on.
 */
static void mem_prot_none(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	NEED(!sigaction(SIGSEGV, &action, NULL));
	forbidden = mmap(NULL, FORBIDDEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	NEED(forbidden != MAP_FAILED);
	check_fill(forbidden, FORBIDDEN, 90);
	NEED(!mprotect(forbidden, FORBIDDEN, PROT_NONE));
	checkpoint_here();
	CHECK(!faults);
	CHECK(check_filled(forbidden, FORBIDDEN, 90));
	CHECK(faults == 1);
}

/* ---- flags ---- */

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK	18
#endif

static const struct {
	int advice;	/* 0: mlock; -1: none */
	const char *flag;
} kinds[] = {
	{ -1, "" }, { 0, " lo" }, { MADV_DONTFORK, " dc" }, { MADV_WIPEONFORK, " wf" },
	{ MADV_DONTDUMP, " dd" }, { MADV_MERGEABLE, " mg" }, { MADV_NOHUGEPAGE, " nh" },
	{ MADV_HUGEPAGE, " hg" }, { MADV_SEQUENTIAL, " sr" }, { MADV_RANDOM, " rr" },
};
#define KINDS	(sizeof(kinds) / sizeof(*kinds))

static const char *flags_of(const char *address)
{
	static char text[1 << 20], line[256];
	char start[32];
	const char *at;

	snprintf(start, sizeof(start), "%lx-", (unsigned long)address);
	check_slurp("/proc/self/smaps", text, sizeof(text));
	at = strstr(text, start);
	at = at ? strstr(at, "VmFlags:") : NULL;
	line[0] = '\0';
	if (at)
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
	return line;
}

/*
 * What mlock(2) and madvise(2) say of ranges is found again in the VmFlags of smaps,
 * and has its effects in a child.
 */
static void mem_flags(void)
{
	const int length = 4 * PAGE;
	char *map[KINDS], before[KINDS][256];
	bool have[KINDS];
	int status;
	pid_t child;

	for (size_t i = 0; i < KINDS; i++) {
		map[i] = mmap(NULL, 3 * length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		NEED(map[i] != MAP_FAILED);
		map[i] += length;
		NEED(!mprotect(map[i], length, PROT_READ | PROT_WRITE));
		check_fill(map[i], length, i);
		have[i] = kinds[i].advice < 0 ||
			  !(kinds[i].advice ? madvise(map[i], length, kinds[i].advice) :
					      mlock(map[i], length));
		strcpy(before[i], flags_of(map[i]));
		NEED(!have[i] || strstr(before[i], kinds[i].flag));
	}
	checkpoint_here();
	for (size_t i = 0; i < KINDS; i++) {
		char sd_less[256], now[256];

		CHECK(check_filled(map[i], length, i));
		strcpy(now, flags_of(map[i]));
		strcpy(sd_less, before[i]);
		/* soft-dirty is the kernel's own business */
		if (strstr(sd_less, " sd"))
			memmove(strstr(sd_less, " sd"), strstr(sd_less, " sd") + 3,
				strlen(strstr(sd_less, " sd") + 3) + 1);
		if (strstr(now, " sd"))
			memmove(strstr(now, " sd"), strstr(now, " sd") + 3,
				strlen(strstr(now, " sd") + 3) + 1);
		if (strcmp(now, sd_less))
			fprintf(stderr, "# %s became %s\n", sd_less, now);
		CHECK(!strcmp(now, sd_less));
	}
	child = fork();
	if (!child) {
		CHECK(!have[3] || map[3][0] == 0);
		CHECK(!have[2] || (msync(map[2], length, MS_ASYNC) < 0 && errno == ENOMEM));
		_exit(check_end());
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- droppable ---- */

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE	0x08
#endif

/*
 * Memory that the kernel may drop (MAP_DROPPABLE), where the state of random numbers
 * is: after a restart, when there is a file `restarted`, it is empty, and such memory again, which
 * the next checkpoint leaves out, too.
 */
static void mem_droppable(void)
{
	static const char zero[8 * PAGE];
	const size_t length = sizeof(zero);
	char *memory;

	memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_DROPPABLE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		check_skip("this kernel has no MAP_DROPPABLE");
	memset(memory, 'x', length);
	checkpoint_here();
	CHECK(!access("restarted", F_OK) == !memcmp(memory, zero, length));
	CHECK(strstr(flags_of(memory), " dp"));
	memset(memory, 'y', length);
	CHECK(memory[length - 1] == 'y');
}

/* ---- mlockall ---- */

static void *wait_too(void *arg)
{
	check_wait();
	return arg;
}

static char *map_beyond_end(int length)
{
	int fd = open("short_file", O_CREAT | O_RDWR | O_CLOEXEC, 0666);
	char *map;

	NEED(fd >= 0 && !ftruncate(fd, 4096));
	map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(map != MAP_FAILED);
	close(fd);
	return map;
}

/*
 * mlockall(2): everything there is and everything to come is locked, also what
 * cannot be in memory: the guard page of a thread, a reserve without access, and
 * what lies beyond the end of a mapped file.
 */
static void mem_mlockall(void)
{
	const int length = 64 << 10;
	long long before;
	pthread_t thread;
	char *map, *reserve, *file;

	reserve = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(reserve != MAP_FAILED);
	file = map_beyond_end(length);
	NEED(!pthread_create(&thread, NULL, wait_too, NULL));
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		check_skip("may not lock memory");
	before = check_status("VmLck", 10);
	checkpoint_here();
	CHECK(!pthread_join(thread, NULL));
	CHECK(check_status("VmLck", 10) == before);
	CHECK(!mprotect(reserve, length, PROT_READ | PROT_WRITE));
	reserve[0] = file[0] = 1;
	map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(map != MAP_FAILED && check_status("VmLck", 10) >= before + 1024);
	CHECK(!munlockall() && check_status("VmLck", 10) == 0);
}

/* ---- maps ---- */

static char maps_before[4][1 << 16], maps_after[4][1 << 16];
static const char *const maps_files[4] = {
	"/proc/self/maps", "/proc/self/cmdline", "/proc/self/environ", "/proc/self/auxv",
};

/* Says which lines differ. */
static void compare(char *a, char *b)
{
	while (*a || *b) {
		size_t x = strcspn(a, "\n"), y = strcspn(b, "\n");

		if (x != y || memcmp(a, b, x))
			fprintf(stderr, "# was %.*s\n# is  %.*s\n", (int)x, a, (int)y, b);
		a += x + (a[x] != '\0');
		b += y + (b[y] != '\0');
	}
}

/*
 * The list of mappings in /proc/self/maps is the same, line by line, and so are
 * the executable, command line, environment and auxiliary vector of /proc/self.
 */
static void mem_maps(void)
{
	char exe[2][256] = { "", "" };

	for (int i = 0; i < 4; i++)
		check_slurp(maps_files[i], maps_before[i], sizeof(maps_before[i]));
	NEED(readlink("/proc/self/exe", exe[0], 255) > 0);
	checkpoint_here();
	for (int i = 0; i < 4; i++)
		check_slurp(maps_files[i], maps_after[i], sizeof(maps_after[i]));
	for (int i = 0; i < 4; i++)
		CHECK(!memcmp(maps_before[i], maps_after[i], sizeof(maps_before[i])));
	compare(maps_before[0], maps_after[0]);
	CHECK(readlink("/proc/self/exe", exe[1], 255) > 0 && !strcmp(exe[0], exe[1]));
}

/* ---- vdso ---- */

static void check_vdso(void)
{
	struct timespec real;
	struct timeval day;

	CHECK(!clock_gettime(CLOCK_REALTIME, &real) && !gettimeofday(&day, NULL));
	CHECK(day.tv_sec - real.tv_sec < 60 && day.tv_sec >= real.tv_sec);
	CHECK(time(NULL) >= real.tv_sec - 1);	/* of the last tick */
	CHECK(sched_getcpu() >= 0);
}

/* The vdso: the C library calls it for the time and the processor, before and after. */
static void mem_vdso(void)
{
	struct timespec before, after;

	NEED(!clock_gettime(CLOCK_MONOTONIC, &before));
	check_ready();
	do {
		for (int i = 0; i < 1000; i++)
			CHECK(!clock_gettime(CLOCK_MONOTONIC, &after));
	} while (!check_gone());
	CHECK(after.tv_sec > before.tv_sec ||
	      (after.tv_sec == before.tv_sec && after.tv_nsec >= before.tv_nsec));
	check_vdso();
}

#define TRAP_FLAG	0x100
#define USER_END	0x7ffffffff000
#define JUMP_LENGTH	16	/* which a restart on another kernel writes to the beginning */
#define CODE_LENGTH	128

static uintptr_t clock_code, jump_end;
static bool was_inside;

/* Comes after each instruction; the program is saved within the clock's function. */
static void on_step(int number, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t at = (uintptr_t)regs[REG_RIP];

	(void)number, (void)info;
	regs[REG_EFL] |= TRAP_FLAG;
	if (at < jump_end || at >= clock_code + CODE_LENGTH)
		return;
	regs[REG_EFL] &= ~TRAP_FLAG;
	was_inside = true;
	checkpoint_here();
}

/* Is room where a jump leads of which only the first byte is changed? */
static bool is_room_far(void)
{
	unsigned char here;
	uintptr_t target;
	int32_t distance;

	memcpy(&distance, (const void *)(clock_code + 1), sizeof(distance));
	target = (clock_code + 5 + distance) & -PAGE;
	return distance > 0 && target < USER_END - 2 * PAGE && mincore((void *)target, PAGE, &here);
}

/* A signal has interrupted the vdso, and its handler runs. */
static void mem_vdso_handler(void)
{
	struct sigaction act = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
	struct timespec before, after;

	NEED(vdso && !sigaction(SIGTRAP, &act, NULL) && !clock_gettime(CLOCK_MONOTONIC, &before));
	clock_code = (uintptr_t)dlsym(vdso, "__vdso_clock_gettime");
	NEED(clock_code);
	jump_end = clock_code + (is_room_far() ? 1 : JUMP_LENGTH);
	NEED(!raise(SIGTRAP));
	CHECK(!clock_gettime(CLOCK_MONOTONIC, &after));
	NEED(was_inside);
	CHECK(after.tv_sec >= before.tv_sec && after.tv_sec < before.tv_sec + 3600);
	check_vdso();
}

/* ---- guard regions ---- */

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL	102
#endif
#define GUARDED			1000	/* pages, more than one answer of the kernel tells of */

static sigjmp_buf guarded;

static void on_guard(int number)
{
	siglongjmp(guarded, number);
}

static bool can_be_read(volatile const char *page)
{
	if (sigsetjmp(guarded, 1))
		return false;
	return *page || true;
}

static bool is_guarded(int page)
{
	return page % 3 == 0 || (page >= 500 && page < 550);
}

/* Pages whose use is a fault (MADV_GUARD_INSTALL), between others of the same mapping. */
static void mem_guard(void)
{
	struct sigaction act = { .sa_handler = on_guard };
	char *page = mmap(NULL, GUARDED * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	NEED(page != MAP_FAILED && !sigaction(SIGSEGV, &act, NULL));
	if (madvise(NULL, 0, MADV_GUARD_INSTALL))
		check_skip("this kernel has no guard regions");
	for (int i = 0; i < GUARDED; i++)
		check_fill(page + i * PAGE, PAGE, i);
	for (int i = 0; i < GUARDED; i++)
		NEED(!is_guarded(i) || !madvise(page + i * PAGE, PAGE, MADV_GUARD_INSTALL));
	checkpoint_here();
	for (int i = 0; i < GUARDED; i++)
		CHECK(is_guarded(i) ? !can_be_read(page + i * PAGE) :
				      check_filled(page + i * PAGE, PAGE, i));
	NEED(!madvise(page, GUARDED * PAGE, MADV_GUARD_INSTALL + 1));	/* they are removed */
	for (int i = 0; i < GUARDED; i++)
		if (is_guarded(i))
			CHECK(!page[i * PAGE]);
	munmap(page, GUARDED * PAGE);
}

static const struct check checks[] = {
	{ "anonymous", mem_anonymous },
	{ "brk", mem_brk },
	{ "stack", mem_stack },
	{ "sparse", mem_sparse },
	{ "thp", mem_thp },
	{ "hugetlb", mem_hugetlb },
	{ "prot_none", mem_prot_none },
	{ "droppable", mem_droppable },
	{ "flags", mem_flags },
	{ "guard", mem_guard },
	{ "mlockall", mem_mlockall },
	{ "maps", mem_maps },
	{ "vdso", mem_vdso },
	{ "vdso_handler", mem_vdso_handler },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
