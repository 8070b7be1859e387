// SPDX-License-Identifier: GPL-2.0
/*
 * Single calls: a valid request, then perhaps with some words replaced, perhaps
 * moved to the arena, where others overwrite it while the module reads.
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuzz.h"

#define MAP_PLACE	((char *)0x520000000000)

union request {
	struct { uint32_t size, flags; } head;
	struct kcr_info info;
	struct kcr_add add;
	struct kcr_park park;
	struct kcr_list list;
	struct kcr_threads threads;
	struct kcr_signals signals;
	struct kcr_sigactions sigactions;
	struct kcr_timers timers;
	struct kcr_mm mm;
	struct kcr_vmas vmas;
	struct kcr_mempolicies mempolicies;
	struct kcr_settings settings;
	struct kcr_undos undos;
	struct kcr_mapped_file mapped_file;
	struct kcr_descriptor descriptor;
	struct kcr_scan scan;
	struct kcr_track track;
	struct kcr_aio aio;
	struct kcr_uring uring;
	struct kcr_uring_requests uring_requests;
	struct kcr_packet_ring packet_ring;
	struct kcr_socket socket;
	struct kcr_userfault userfault;
	struct kcr_map map;
	struct kcr_pages pages;
	struct kcr_snapshot snapshot;
	struct kcr_release release;
	struct kcr_notify notify;
	struct kcr_cancel cancel;
	struct kcr_finish finish;
	struct kcr_clone clone;
	struct kcr_enter enter;
	struct kcr_wait wait;
	struct kcr_resume resume;
	struct kcr_faulting faulting;
	struct kcr_hold hold;
	struct kcr_client_new client;
	uint32_t words[256];
};

int any_job(struct actor *actor)
{
	return actor->world->jobs[below(&actor->random, JOBS)];
}

pid_t any_pid(struct actor *actor)
{
	uint32_t which = below(&actor->random, 100);

	if (which < 88)
		return actor->world->pids[below(&actor->random, TARGETS)];
	if (which < 94)
		return setting->canaries[below(&actor->random, CANARIES)];
	return below(&actor->random, 2) ? (pid_t)below(&actor->random, 3) : getpid();
}

/* Mostly a buffer of its own; else one that others overwrite. */
static uint64_t any_buffer(struct actor *actor)
{
	uint32_t which = below(&actor->random, 100);

	if (which < 70)
		return (uintptr_t)actor->out;
	if (which < 97)
		return (uintptr_t)actor->world->arena + below(&actor->random, ARENA_SIZE);
	return random_next(&actor->random);
}

static int memory_of(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* ---- requests ---------------------------------------------------------------------- */

static void fill_add(struct actor *actor, union request *r)
{
	r->add.pid = any_pid(actor);
	r->add.mem_fd = memory_of(chance(&actor->random, 90) ? r->add.pid : any_pid(actor));
}

static void fill_park(struct actor *actor, union request *r)
{
	r->park.timeout_ms = 1 + below(&actor->random, 200);
}

static void fill_list(struct actor *actor, union request *r)
{
	r->list.count = below(&actor->random, 200);
	r->list.processes = any_buffer(actor);
}

static void fill_buffer(struct actor *actor, union request *r)
{
	struct kcr_info info = { .size = sizeof(info) };

	r->threads.pid = any_pid(actor);	/* SIGNALS and TIMERS start likewise */
	r->threads.count = below(&actor->random, 12);
	ioctl(any_job(actor), KCR_IOC_INFO, &info);
	r->threads.stride = sizeof(struct kcr_thread) + info.xstate_size;
	r->threads.buffer = any_buffer(actor);
}

static void fill_signals(struct actor *actor, union request *r)
{
	r->signals.pid = any_pid(actor);
	r->signals.tid = chance(&actor->random, 50) ? r->signals.pid : 0;
	r->signals.count = below(&actor->random, 64);
	r->signals.siginfo = any_buffer(actor);
}

static void fill_timers(struct actor *actor, union request *r)
{
	r->timers.pid = any_pid(actor);
	r->timers.count = below(&actor->random, 20);
	r->timers.timers = any_buffer(actor);
}

/* At the same offsets in SETTINGS and UNDOS. */
static void fill_mempolicies(struct actor *actor, union request *r)
{
	r->mempolicies.pid = any_pid(actor);
	r->mempolicies.count = below(&actor->random, 20);
	r->mempolicies.policies = any_buffer(actor);
}

static void fill_pid(struct actor *actor, union request *r)
{
	r->mm.pid = any_pid(actor);	/* at the same offset in SIGACTIONS and MM */
}

static void fill_vmas(struct actor *actor, union request *r)
{
	r->vmas.pid = any_pid(actor);
	r->vmas.flags = below(&actor->random, 2);
	r->vmas.count = below(&actor->random, 500);
	r->vmas.vmas = any_buffer(actor);
	r->vmas.strings_len = below(&actor->random, 8192);
	r->vmas.strings = any_buffer(actor);
}

static void fill_mapped_file(struct actor *actor, union request *r)
{
	r->mapped_file.pid = chance(&actor->random, 30) ? 0 : any_pid(actor);
	r->mapped_file.flags = chance(&actor->random, 20) ? 1 + below(&actor->random, 3) : 0;
	r->mapped_file.fd = r->mapped_file.flags & KCR_FILE_SAME ? (int)below(&actor->random, 12) : 0;
	r->mapped_file.address = (uintptr_t)TOKEN;
}

static void fill_descriptor(struct actor *actor, union request *r)
{
	r->descriptor.pid = any_pid(actor);
	r->descriptor.fd = chance(&actor->random, 90) ? (int)below(&actor->random, 12) : FUZZ_FD;
	r->descriptor.flags = below(&actor->random, 4) ? 0 : KCR_DESCRIPTOR_CLOEXEC;
}

static void fill_scan(struct actor *actor, union request *r)
{
	r->scan.pid = any_pid(actor);
	r->scan.flags = below(&actor->random, 64);
	r->scan.start = (uintptr_t)(chance(&actor->random, 30) ? TOKEN : actor->world->arena);
	r->scan.end = r->scan.start + 4096 * (1 + below(&actor->random, 40));
	r->scan.max_pages = below(&actor->random, 5000);
	r->scan.count = below(&actor->random, 200);
	r->scan.runs = any_buffer(actor);
}

static void fill_track(struct actor *actor, union request *r)
{
	r->track.pid = any_pid(actor);
	r->track.flags = below(&actor->random, 2);
	r->track.id = 1 + below(&actor->random, 3);
}

static void fill_aio(struct actor *actor, union request *r)
{
	r->aio.pid = chance(&actor->random, 30) ? 0 : any_pid(actor);
	r->aio.count = below(&actor->random, 8);
	r->aio.contexts = any_buffer(actor);
}

/* Mostly one that all actors have. */
static int any_ring(struct actor *actor)
{
	static _Atomic int ring;
	struct io_uring_params made = { .flags = 0 };

	if (!ring)
		ring = (int)syscall(SYS_io_uring_setup, 4, &made);
	return chance(&actor->random, 70) ? ring : (int)below(&actor->random, 12) - 1;
}

static void fill_uring(struct actor *actor, union request *r)
{
	r->uring.flags = below(&actor->random, 2);
	r->uring.fd = any_ring(actor);
	r->uring.like = any_ring(actor);
}

static void fill_uring_requests(struct actor *actor, union request *r)
{
	r->uring_requests.pid = chance(&actor->random, 20) ? 0 : any_pid(actor);
	r->uring_requests.fd = (int)below(&actor->random, 40) - 1;
}

static void fill_packet_ring(struct actor *actor, union request *r)
{
	r->packet_ring.flags = below(&actor->random, 4);
	r->packet_ring.fd = any_packet_socket(actor);
	r->packet_ring.next = below(&actor->random, 24);
	r->packet_ring.sequence = random_next(&actor->random);
}

static void fill_socket(struct actor *actor, union request *r)
{
	r->socket.fd = any_socket(actor);
}

static void fill_userfault(struct actor *actor, union request *r)
{
	static _Atomic int own;

	if (!own)
		own = (int)syscall(SYS_userfaultfd, UFFD_USER_MODE_ONLY);
	r->userfault.pid = chance(&actor->random, 20) ? 0 : any_pid(actor);
	r->userfault.fd = chance(&actor->random, 70) ? own : (int)below(&actor->random, 40) - 1;
	r->userfault.count = below(&actor->random, 20);
	r->userfault.ranges = any_buffer(actor);
}

/* In one of a few places, so that there are not more and more. */
static void fill_map(struct actor *actor, union request *r)
{
	char *place = MAP_PLACE + 0x100000 * below(&actor->random, 8);

	munmap(place, 4096);
	r->map.fd = any_ring(actor);
	r->map.prot = below(&actor->random, 4);
	r->map.address = (uintptr_t)place;
	r->map.length = 4096;
}

/* The runs are in the last page of the buffer, after the space for pages. */
static void fill_pages(struct actor *actor, union request *r)
{
	struct kcr_run *runs = (struct kcr_run *)(actor->out + OUT_SIZE - 4096);
	uint32_t i;

	r->pages.pid = any_pid(actor);
	r->pages.flags = below(&actor->random, 4);
	r->pages.fd = actor->file;
	r->pages.count = below(&actor->random, 4);
	r->pages.buffer = any_buffer(actor);
	for (i = 0; i < r->pages.count; i++) {
		runs[i].address = (uintptr_t)(chance(&actor->random, 30) ? TOKEN :
					      chance(&actor->random, 10) ? (char *)SECRET_PLACE :
					      actor->world->arena);
		runs[i].nr_pages = 1 + below(&actor->random, 8);
	}
	r->pages.runs = chance(&actor->random, 80) ? (uintptr_t)runs : any_buffer(actor);
	lseek(actor->file, 0, SEEK_SET);
}

static void fill_release(struct actor *actor, union request *r)
{
	static const int signals[] = { 0, 0, 0, 0, SIGCONT, SIGUSR2, SIGSTOP, SIGKILL };

	static const int flags[] = { 0, 0, 0, KCR_RELEASE_HOLD, KCR_RELEASE_TEST };

	r->release.flags = flags[below(&actor->random, 5)];
	r->release.signal = r->release.flags ? 0 : signals[below(&actor->random, 8)];
}

static void fill_notify(struct actor *actor, union request *r)
{
	r->notify.path = chance(&actor->random, 70) ? (uintptr_t)"somewhere" : any_buffer(actor);
	r->notify.timeout_ms = 1 + below(&actor->random, 100);
	r->notify.pid = chance(&actor->random, 50) ? any_pid(actor) : 0;
	r->notify.result = below(&actor->random, 3);
}

static void fill_cancel(struct actor *actor, union request *r)
{
	r->cancel.error = below(&actor->random, 40);
	r->cancel.flags = chance(&actor->random, 10) ? KCR_CANCEL_KILL : 0;
}

static void fill_finish(struct actor *actor, union request *r)
{
	r->finish.timeout_ms = 1 + below(&actor->random, 50);
}

static void fill_wait(struct actor *actor, union request *r)
{
	r->wait.pid = any_pid(actor);
	r->wait.timeout_ms = 1 + below(&actor->random, 50);
}

static void fill_resume(struct actor *actor, union request *r)
{
	r->resume.flags = below(&actor->random, 8);
}

static void fill_faulting(struct actor *actor, union request *r)
{
	r->faulting.fd = (int32_t)below(&actor->random, 40) - 1;
	r->faulting.count = below(&actor->random, 200);
	r->faulting.ranges = any_buffer(actor);
}

/* Of the actor's own children; other actors send them signals. */
static void fill_hold(struct actor *actor, union request *r)
{
	r->hold.signals = chance(&actor->random, 20) ? 1ull << below(&actor->random, 64) :
		KCR_HOLD_SIGNALS & below(&actor->random, UINT32_MAX);
	r->hold.limit_ms = below(&actor->random, 300);
}

/* Must fail: a thread that entered would not return. */
static void fill_enter(struct actor *actor, union request *r)
{
	r->enter.nr_threads = 1 + below(&actor->random, 3);
	r->enter.exe_fd = r->enter.job_fd = -1;
	r->enter.dumpable = 2;
	r->enter.flags = below(&actor->random, 8);
}

/* Must fail, too: the child would be a second actor on the same stack. */
static void fill_clone(struct actor *actor, union request *r)
{
	r->clone.clone_flags = 1ull << below(&actor->random, 64) | 0x20000000;
	r->clone.tid = below(&actor->random, 30000);
}

static void fill_client(struct actor *actor, union request *r)
{
	r->client.flags = chance(&actor->random, 30) ? KCR_CLIENT_RESTARTED : 0;
	r->client.path = any_buffer(actor);
}

static void fill_nothing(struct actor *actor, union request *r)
{
	(void)actor;
	(void)r;
}

static const struct {
	unsigned long number;
	void (*fill)(struct actor *actor, union request *r);
} kinds[] = {
	{ KCR_IOC_INFO, fill_nothing }, { KCR_IOC_ADD, fill_add }, { KCR_IOC_ADD, fill_add },
	{ KCR_IOC_PARK, fill_park }, { KCR_IOC_PARK, fill_park }, { KCR_IOC_LIST, fill_list },
	{ KCR_IOC_THREADS, fill_buffer }, { KCR_IOC_SIGNALS, fill_signals },
	{ KCR_IOC_SIGACTIONS, fill_pid }, { KCR_IOC_TIMERS, fill_timers },
	{ KCR_IOC_MM, fill_pid }, { KCR_IOC_VMAS, fill_vmas },
	{ KCR_IOC_MEMPOLICIES, fill_mempolicies }, { KCR_IOC_SETTINGS, fill_mempolicies },
	{ KCR_IOC_UNDOS, fill_mempolicies },
	{ KCR_IOC_MAPPED_FILE, fill_mapped_file }, { KCR_IOC_SCAN, fill_scan },
	{ KCR_IOC_TRACK, fill_track }, { KCR_IOC_AIO, fill_aio },
	{ KCR_IOC_URING, fill_uring }, { KCR_IOC_URING_REQUESTS, fill_uring_requests },
	{ KCR_IOC_USERFAULT, fill_userfault }, { KCR_IOC_MAP, fill_map },
	{ KCR_IOC_PACKET_RING, fill_packet_ring }, { KCR_IOC_SOCKET, fill_socket },
	{ KCR_IOC_WRITE, fill_pages }, { KCR_IOC_READ, fill_pages },
	{ KCR_IOC_SNAPSHOT, fill_nothing }, { KCR_IOC_RELEASE, fill_release },
	{ KCR_IOC_NOTIFY, fill_notify }, { KCR_IOC_CANCEL, fill_cancel },
	{ KCR_IOC_FINISH, fill_finish }, { KCR_IOC_DESCRIPTOR, fill_descriptor },
	{ KCR_IOC_CLONE, fill_clone }, { KCR_IOC_ENTER, fill_enter },
	{ KCR_IOC_WAIT, fill_wait }, { KCR_IOC_FILL, fill_pages },
	{ KCR_IOC_STORE, fill_pages }, { KCR_IOC_RESUME, fill_resume },
	{ KCR_IOC_FAULTING, fill_faulting }, { KCR_IOC_HOLD, fill_hold },
	{ KCR_IOC_CLIENT, fill_client },
};

#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- noise ------------------------------------------------------------------------- */

static uint32_t any_word(struct actor *actor)
{
	static const uint32_t words[] = { 0, 1, 2, 7, 64, 65, 4095, 4096, 4097, 0x7fffffff,
					  0x80000000, 0xffffffff, 0xfffffff0, 0xffff8880, 0x7fff };
	uint32_t which = below(&actor->random, 20);

	return which < 15 ? words[which] : (uint32_t)random_next(&actor->random);
}

/* These two must not be changed so that they succeed: see above. */
static bool is_tame(unsigned long number)
{
	return number != KCR_IOC_CLONE && number != KCR_IOC_ENTER;
}

static void spoil_request(struct actor *actor, unsigned long number, union request *r)
{
	uint32_t i, words = _IOC_SIZE(number) / 4, times = 1 + below(&actor->random, 3);

	if (!is_tame(number) || chance(&actor->random, 55))
		return;
	for (i = 0; i < times; i++)
		r->words[2 + below(&actor->random, words - 2)] = any_word(actor);
	if (chance(&actor->random, 10))
		r->words[below(&actor->random, 2)] = any_word(actor);
}

/* Anywhere in the arena, also across a page boundary. */
static void *place(struct actor *actor, unsigned long number, union request *r)
{
	size_t size = _IOC_SIZE(number);
	void *at = actor->world->arena + (below(&actor->random, ARENA_SIZE - size) & ~3u);

	if (is_tame(number) && chance(&actor->random, 25) &&
	    pwrite(FUZZ_FD + 2, r, size, (uintptr_t)at) == (ssize_t)size)
		return at;
	return r;
}

static int any_descriptor(struct actor *actor)
{
	uint32_t which = below(&actor->random, 50);

	return which ? any_job(actor) : (int)below(&actor->random, 64);
}

void noise(struct actor *actor)
{
	uint32_t which = below(&actor->random, NR_KINDS);
	unsigned long number = kinds[which].number;
	union request r;
	int fd = -1;
	long ret;

	memset(&r, 0, sizeof(r));
	kinds[which].fill(actor, &r);
	r.head.size = _IOC_SIZE(number);
	if (number == KCR_IOC_ADD)
		fd = r.add.mem_fd;
	spoil_request(actor, number, &r);
	if (chance(&actor->random, 1) && is_tame(number))
		number = _IOC(below(&actor->random, 4), KCR_IOC_MAGIC, below(&actor->random, 80),
			      below(&actor->random, 1024));
	ret = call(actor, any_descriptor(actor), number, place(actor, number, &r));
	if (number == KCR_IOC_CLIENT && ret >= 0) {
		nap_us(below(&actor->random, 1000));
		close(ret);
	}
	if (fd >= 0)
		close(fd);
}

/* ---- against others ---------------------------------------------------------------- */

static void expect_refusal(struct actor *actor, unsigned long number, union request *r)
{
	r->head.size = _IOC_SIZE(number);
	if (call(actor, any_job(actor), number, r) >= 0)
		fuzz_failed("call %#lx for a process of another user succeeded", number);
}

/* Tries to have a member's PID checked, but another's used. */
static void attack_mapped_file(struct actor *actor, union request *r)
{
	void *at = actor->world->arena + (below(&actor->random, FLIPPED) << 5);
	int i;

	r->mapped_file.size = sizeof(r->mapped_file);
	r->mapped_file.address = (uintptr_t)TOKEN;
	r->mapped_file.pid = actor->owner ? actor->world->pids[below(&actor->random, TARGETS)] : 0;
	for (i = 0; i < 4; i++)
		if (pwrite(FUZZ_FD + 2, r, sizeof(r->mapped_file), (uintptr_t)at) > 0)
			call(actor, any_job(actor), KCR_IOC_MAPPED_FILE, at);
}

void attack(struct actor *actor)
{
	pid_t pid = setting->canaries[below(&actor->random, CANARIES)];
	static const unsigned long reads[] = { KCR_IOC_THREADS, KCR_IOC_SIGNALS,
		KCR_IOC_SIGACTIONS, KCR_IOC_TIMERS, KCR_IOC_MM, KCR_IOC_VMAS, KCR_IOC_MAPPED_FILE,
		KCR_IOC_SCAN, KCR_IOC_TRACK, KCR_IOC_WRITE, KCR_IOC_READ, KCR_IOC_FILL,
		KCR_IOC_STORE, KCR_IOC_WAIT, KCR_IOC_DESCRIPTOR, KCR_IOC_MEMPOLICIES,
		KCR_IOC_SETTINGS, KCR_IOC_UNDOS };
	uint32_t which = below(&actor->random, 34);
	union request r;
	size_t i;

	memset(&r, 0, sizeof(r));
	if (which < 18) {
		for (i = 0; i < NR_KINDS; i++)
			if (kinds[i].number == reads[which])
				kinds[i].fill(actor, &r);
		r.mm.pid = pid;		/* at the same offset in all of them */
		expect_refusal(actor, reads[which], &r);
	} else if (which < 26) {
		attack_mapped_file(actor, &r);
	} else if (which < 30) {
		r.add.pid = pid;
		r.add.mem_fd = which & 1 ? FUZZ_FD + 2 : memory_of(any_pid(actor));
		expect_refusal(actor, KCR_IOC_ADD, &r);
		if (r.add.mem_fd != FUZZ_FD + 2)
			close(r.add.mem_fd);
	} else {
		r.descriptor.pid = pid;
		r.descriptor.fd = SECRET_FD;
		expect_refusal(actor, KCR_IOC_DESCRIPTOR, &r);
	}
}

/* ---- overwriting requests of others ------------------------------------------------ */

/* Flips the PIDs of MAPPED_FILE requests. */
static void flip_numbers(struct actor *actor)
{
	char *at = actor->world->arena + (below(&actor->random, FLIPPED) << 5) +
		   offsetof(struct kcr_mapped_file, pid);
	pid_t pids[2] = { actor->world->pids[below(&actor->random, TARGETS)], 0 };
	int i;

	if (chance(&actor->random, 50))
		pids[1] = setting->canaries[below(&actor->random, CANARIES)];
	for (i = 0; i < 100000; i++)
		*(volatile pid_t *)at = pids[i & 1];
}

void spoil(struct actor *actor)
{
	char *page = actor->world->arena +
		     4096 * (1 + below(&actor->random, ARENA_SIZE / 4096 - 1));

	switch (below(&actor->random, 6)) {
	case 0:
		mprotect(page, 4096, below(&actor->random, 4));
		break;
	case 1:
		munmap(page, 4096);
		nap_us(below(&actor->random, 300));
		mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		     actor->world->arena_file, page - actor->world->arena);
		break;
	case 2:
		madvise(page, 4096, MADV_REMOVE);
		break;
	case 3:
		mprotect(page, 4096, PROT_READ | PROT_WRITE);
		*(volatile uint32_t *)(page + 4 * below(&actor->random, 1024)) = any_word(actor);
		break;
	default:
		flip_numbers(actor);
	}
}
