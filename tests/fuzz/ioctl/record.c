// SPDX-License-Identifier: GPL-2.0
/*
 * Makes calls and keeps records of them: how often each was made and how it
 * ended, the last ones of every actor, coverage of the module (KCOV).  Also checks
 * that calls never return what they must not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

#define KCOV_INIT_TRACE	_IOR('c', 1, unsigned long)
#define KCOV_ENABLE	_IO('c', 100)
#define COVER_WORDS	(64 << 10)

static const struct {
	const char *name;
	unsigned long number;
	unsigned int needed;	/* successes, of 1000 permitted calls; at least three */
} kinds[] = {
	{ "INFO", KCR_IOC_INFO, 300 },
	{ "ADD", KCR_IOC_ADD, 100 },
	{ "PARK", KCR_IOC_PARK, 100 },
	{ "LIST", KCR_IOC_LIST, 50 },
	{ "THREADS", KCR_IOC_THREADS, 20 },
	{ "SIGNALS", KCR_IOC_SIGNALS, 20 },
	{ "SIGACTIONS", KCR_IOC_SIGACTIONS, 20 },
	{ "TIMERS", KCR_IOC_TIMERS, 20 },
	{ "MM", KCR_IOC_MM, 20 },
	{ "VMAS", KCR_IOC_VMAS, 20 },
	{ "MEMPOLICIES", KCR_IOC_MEMPOLICIES, 20 },
	{ "SETTINGS", KCR_IOC_SETTINGS, 20 },
	{ "UNDOS", KCR_IOC_UNDOS, 2 },
	{ "MAPPED_FILE", KCR_IOC_MAPPED_FILE, 2 },
	{ "SCAN", KCR_IOC_SCAN, 20 },
	{ "TRACK", KCR_IOC_TRACK, 20 },
	{ "AIO", KCR_IOC_AIO, 2 },
	{ "URING", KCR_IOC_URING, 0 },		/* needs a kernel with BTF, as the next two */
	{ "URING_REQUESTS", KCR_IOC_URING_REQUESTS, 0 },
	{ "USERFAULT", KCR_IOC_USERFAULT, 0 },
	{ "PACKET_RING", KCR_IOC_PACKET_RING, 0 },
	{ "SOCKET", KCR_IOC_SOCKET, 20 },
	{ "WRITE", KCR_IOC_WRITE, 10 },
	{ "READ", KCR_IOC_READ, 10 },
	{ "SNAPSHOT", KCR_IOC_SNAPSHOT, 30 },
	{ "RELEASE", KCR_IOC_RELEASE, 30 },
	{ "NOTIFY", KCR_IOC_NOTIFY, 20 },
	{ "CANCEL", KCR_IOC_CANCEL, 50 },
	{ "FINISH", KCR_IOC_FINISH, 20 },
	{ "DESCRIPTOR", KCR_IOC_DESCRIPTOR, 20 },
	{ "CLONE", KCR_IOC_CLONE, 50 },
	{ "ENTER", KCR_IOC_ENTER, 0 },		/* does not return */
	{ "MAP", KCR_IOC_MAP, 2 },
	{ "WAIT", KCR_IOC_WAIT, 10 },
	{ "FILL", KCR_IOC_FILL, 5 },
	{ "STORE", KCR_IOC_STORE, 5 },
	{ "RESUME", KCR_IOC_RESUME, 20 },
	{ "FAULTING", KCR_IOC_FAULTING, 0 },	/* needs a userfaultfd */
	{ "HOLD", KCR_IOC_HOLD, 30 },
	{ "CLIENT", KCR_IOC_CLIENT, 20 },
	{ "CLIENT_WAIT", KCR_IOC_CLIENT_WAIT, 1 },
	{ "CLIENT_ANSWER", KCR_IOC_CLIENT_ANSWER, 1 },
	{ "CLIENT_DONE", KCR_IOC_CLIENT_DONE, 1 },
	{ "CLIENT_FORWARD", KCR_IOC_CLIENT_FORWARD, 0 },
};

#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const char *name_of(unsigned int number)
{
	size_t i;

	for (i = 0; i < NR_KINDS; i++)
		if (_IOC_NR(kinds[i].number) == number)
			return kinds[i].name;
	return "?";
}

/* ---- coverage ---------------------------------------------------------------------- */

static uint64_t read_number(const char *path, const char *format)
{
	unsigned long long number = 0;
	FILE *file = fopen(path, "r");

	if (file) {
		if (fscanf(file, format, &number) != 1)
			number = 0;
		fclose(file);
	}
	return number;
}

void cover_init(struct setting *made)
{
	made->module_start = read_number("/sys/module/kcr/sections/.text", "%llx");
	made->module_size = read_number("/sys/module/kcr/coresize", "%llu");
	if (made->module_size > sizeof(fuzz->covered) || access("/sys/kernel/debug/kcov", R_OK))
		made->module_start = 0;
}

int cover_open(void)
{
	return setting->module_start ? open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC) : -1;
}

void cover_begin(struct actor *actor, int fd)
{
	if (fd < 0 || ioctl(fd, KCOV_INIT_TRACE, COVER_WORDS))
		return;
	actor->cover = mmap(NULL, COVER_WORDS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (actor->cover == MAP_FAILED || ioctl(fd, KCOV_ENABLE, 0))
		actor->cover = NULL;
}

static void collect(struct actor *actor)
{
	uint64_t i, distance;

	if (!actor->cover)
		return;
	for (i = 1; i <= actor->cover[0] && i < COVER_WORDS; i++) {
		distance = actor->cover[i] - setting->module_start;
		if (distance < setting->module_size)
			fuzz->covered[distance] = 1;
	}
}

void cover_print(const char *path)
{
	FILE *file = path ? fopen(path, "w") : NULL;
	uint32_t i, count = 0;

	if (!setting->module_start)
		return;
	for (i = 0; i < setting->module_size; i++) {
		count += fuzz->covered[i];
		if (fuzz->covered[i] && file)
			fprintf(file, "%#x\n", i);
	}
	printf("coverage: %u places of the module\n", count);
	if (file)
		fclose(file);
}

/* ---- one call ---------------------------------------------------------------------- */

/* Is it a file of a canary, or of a target though we do not own the job? */
static void check_descriptor(const struct actor *actor, unsigned int number, int fd)
{
	struct stat status;
	int i;

	if (fstat(fd, &status))
		return;
	for (i = 0; i < CANARIES; i++)
		if (setting->secret[i].device == status.st_dev &&
		    setting->secret[i].number == status.st_ino)
			fuzz_failed("%s gave a descriptor of another user's file", name_of(number));
	for (i = 0; i < TARGETS && !actor->owner; i++)
		if (fuzz->slots[actor->world->worker][i].token == status.st_ino)
			fuzz_failed("%s gave a member's file to who does not own the job",
				    name_of(number));
}

static void check_pages(unsigned int number, const struct kcr_pages *pages)
{
	uint64_t word;

	/* Copied by the kernel: the buffer may be unmapped. */
	if (pages->bytes < sizeof(word) ||
	    pread(FUZZ_FD + 2, &word, sizeof(word), pages->buffer) != sizeof(word))
		return;
	if (word == setting->seed * 0x9e3779b97f4a7c15)
		fuzz_failed("%s gave memory of another user", name_of(number));
}

static void check_result(const struct actor *actor, unsigned long number, void *request, long ret)
{
	if (number == KCR_IOC_MAPPED_FILE ||
	    (number == KCR_IOC_DESCRIPTOR &&
	     !(((struct kcr_descriptor *)request)->flags & KCR_DESCRIPTOR_CLOEXEC))) {
		check_descriptor(actor, _IOC_NR(number), ret);
		close(ret);
	} else if (number == KCR_IOC_READ) {
		check_pages(_IOC_NR(number), request);
	} else if (number == KCR_IOC_RELEASE) {
		const struct kcr_release *release = request;

		fuzz->nr_held += release->flags == KCR_RELEASE_HOLD;
		fuzz->nr_released += !release->flags;
	}
}

long call(struct actor *actor, int fd, unsigned long number, void *request)
{
	struct call *entry = &actor->log[actor->logged++ % LOGGED];
	unsigned int nr = _IOC_NR(number);
	bool readable = request && (char *)request >= (char *)4096 &&
			!((uintptr_t)request >> 47);
	long ret;

	memset(entry, 0, sizeof(*entry));
	entry->when = now_ns();
	entry->number = number;
	entry->process = getpid();
	entry->result = 1;		/* in progress */
	fuzz->nr_calls[nr]++;
	if (readable)
		pread(FUZZ_FD + 2, entry->words, sizeof(entry->words), (uintptr_t)request);
	if (actor->cover)
		actor->cover[0] = 0;
	ret = ioctl(fd, number, request);
	ret = ret < 0 ? -errno : ret;
	collect(actor);
	entry->result = ret;
	if (ret < 0) {
		fuzz->errors[nr][-ret < ERRORS ? -ret : 0]++;
		return ret;
	}
	fuzz->nr_done[nr]++;
	/* Others may change a request that lies in the arena. */
	if ((char *)request < actor->world->arena ||
	    (char *)request >= actor->world->arena + ARENA_SIZE)
		check_result(actor, number, request, ret);
	else if (number == KCR_IOC_MAPPED_FILE)
		check_result(actor, number, NULL, ret);
	return ret;
}

/* ---- output ------------------------------------------------------------------------ */

static void print_call(const struct call *entry)
{
	size_t actor = (entry - &fuzz->log[0][0][0]) / LOGGED;
	uint32_t i, words = _IOC_SIZE(entry->number) / 4;

	printf("%llu.%06llu worker %zu actor %zu process %d: %s %#x = %d:",
	       (unsigned long long)entry->when / 1000000000,
	       (unsigned long long)entry->when / 1000 % 1000000, actor / ACTORS, actor % ACTORS,
	       entry->process, name_of(_IOC_NR(entry->number)), entry->number, entry->result);
	for (i = 0; i < words && i < sizeof(entry->words) / sizeof(entry->words[0]); i++)
		printf(" %x", entry->words[i]);
	printf("\n");
}

static int by_time(const void *a, const void *b)
{
	uint64_t first = (*(const struct call **)a)->when;
	uint64_t second = (*(const struct call **)b)->when;

	return first < second ? -1 : first > second;
}

void record_print_log(void)
{
	static const struct call *calls[WORKERS * ACTORS * LOGGED];
	size_t i, count = sizeof(calls) / sizeof(calls[0]);

	for (i = 0; i < count; i++)
		calls[i] = &fuzz->log[0][0][i];
	qsort(calls, count, sizeof(calls[0]), by_time);
	for (i = 0; i < count; i++)
		if (calls[i]->when)
			print_call(calls[i]);
}

/* The three most frequent errors. */
static void print_errors(unsigned int nr)
{
	uint32_t worst, limit = UINT32_MAX;
	int i, j, which;

	for (i = 0; i < 3; i++) {
		for (j = 1, worst = 0, which = 0; j < ERRORS; j++)
			if (fuzz->errors[nr][j] > worst && fuzz->errors[nr][j] < limit) {
				worst = fuzz->errors[nr][j];
				which = j;
			}
		if (!which)
			return;
		printf(", %s %u", strerrorname_np(which), worst);
		limit = worst;
	}
}

/*
 * Refusals for lack of permission do not count: they return at once, so a fast machine
 * makes any number of them beside calls that take their time.
 */
static unsigned int needed(size_t kind)
{
	unsigned int nr = _IOC_NR(kinds[kind].number);
	uint64_t part = (uint64_t)(fuzz->nr_calls[nr] - fuzz->errors[nr][EPERM]) *
			kinds[kind].needed;

	return part > 3000 ? part / 1000 : kinds[kind].needed ? 3 : 0;
}

/* The first item that was not reached often enough, or NULL. */
const char *record_missing(void)
{
	size_t i;

	for (i = 0; i < NR_KINDS; i++)
		if (fuzz->nr_done[_IOC_NR(kinds[i].number)] < needed(i))
			return kinds[i].name;
	if (fuzz->nr_held < 3)
		return "RELEASE with HOLD";
	if (fuzz->nr_revived < 3)
		return "life after RESUME";
	return fuzz->nr_privileged < 3 ? "a set-user-ID program" : NULL;
}

void record_print(void)
{
	unsigned int nr;
	size_t i;

	for (i = 0; i < NR_KINDS; i++) {
		nr = _IOC_NR(kinds[i].number);
		printf("%-14s %7u calls, %6u succeeded, at least %u wanted", kinds[i].name,
		       fuzz->nr_calls[nr], fuzz->nr_done[nr], needed(i));
		print_errors(nr);
		printf("\n");
	}
	printf("released %u times, %u times with HOLD; %u threads ran on after RESUME; "
	       "%u set-user-ID programs\n", fuzz->nr_released, fuzz->nr_held, fuzz->nr_revived,
	       fuzz->nr_privileged);
}
