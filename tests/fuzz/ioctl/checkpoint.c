// SPDX-License-Identifier: GPL-2.0
/*
 * A checkpoint as cr_checkpoint takes it, except that now and then a step is skipped,
 * repeated or out of order; other threads use the same job.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

#define LISTED 32

struct list {
	struct kcr_process processes[LISTED];
	uint32_t count;
};

static bool skip(struct actor *actor)
{
	return chance(&actor->random, 5);
}

static void add(struct actor *actor, int job, pid_t pid)
{
	struct kcr_add request = { .size = sizeof(request), .pid = pid };
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	request.mem_fd = open(path, O_RDWR | O_CLOEXEC);
	if (request.mem_fd < 0)
		return;
	call(actor, job, KCR_IOC_ADD, &request);
	close(request.mem_fd);
}

static void add_some(struct actor *actor, int job)
{
	uint32_t i, count = 1 + below(&actor->random, 4);

	for (i = 0; i < count; i++)
		add(actor, job, actor->world->pids[below(&actor->random, TARGETS)]);
}

static long park(struct actor *actor, int job)
{
	struct kcr_park request = { .size = sizeof(request) };

	request.timeout_ms = chance(&actor->random, 15) ? 1 + below(&actor->random, 3) :
							    500 * setting->slow;
	return call(actor, job, KCR_IOC_PARK, &request);
}

static void notify(struct actor *actor, int job)
{
	struct kcr_notify request = { .size = sizeof(request), .path = (uintptr_t)"image",
				      .timeout_ms = 200 * setting->slow };
	int i;

	for (i = 0; i < 8; i++) {
		if (call(actor, job, KCR_IOC_NOTIFY, &request) ||
		    request.event == KCR_EVENT_READY)
			return;
		request.result = below(&actor->random, 2);
		if (request.event == KCR_EVENT_FORWARD)
			add_some(actor, job);
		else
			request.pid = 0;
	}
}

static void list(struct actor *actor, int job, struct list *listed)
{
	struct kcr_list request = { .size = sizeof(request), .count = LISTED,
				    .processes = (uintptr_t)listed->processes };

	listed->count = call(actor, job, KCR_IOC_LIST, &request) ? 0 : request.count;
}

/* ---- the state of a process -------------------------------------------------------- */

static void read_threads(struct actor *actor, int job, pid_t pid)
{
	struct kcr_info info = { .size = sizeof(info) };
	struct kcr_threads request = { .size = sizeof(request), .pid = pid,
				       .buffer = (uintptr_t)actor->out };
	struct kcr_thread *first = (struct kcr_thread *)actor->out;
	struct kcr_signals signals = { .size = sizeof(signals), .pid = pid, .count = 100,
				       .siginfo = (uintptr_t)actor->out + 16384 };

	if (call(actor, job, KCR_IOC_INFO, &info))
		return;
	request.stride = (sizeof(struct kcr_thread) + info.xstate_size + 63) & ~63u;
	request.count = OUT_SIZE / 2 / request.stride;
	if (!call(actor, job, KCR_IOC_THREADS, &request) && request.count)
		signals.tid = chance(&actor->random, 50) ? first->tid : 0;
	call(actor, job, KCR_IOC_SIGNALS, &signals);
}

static void read_rest(struct actor *actor, int job, pid_t pid)
{
	struct kcr_sigactions actions = { .size = sizeof(actions), .pid = pid };
	struct kcr_timers timers = { .size = sizeof(timers), .pid = pid, .count = 20,
				     .timers = (uintptr_t)actor->out };
	struct kcr_mm mm = { .size = sizeof(mm), .pid = pid };
	struct kcr_mapped_file file = { .size = sizeof(file), .pid = pid,
					.address = (uintptr_t)TOKEN };
	struct kcr_descriptor descriptor = { .size = sizeof(descriptor), .pid = pid,
					     .fd = below(&actor->random, 20) };

	struct kcr_aio aio = { .size = sizeof(aio), .pid = pid, .count = 20,
			       .contexts = (uintptr_t)actor->out };
	struct kcr_uring_requests requests = { .size = sizeof(requests), .pid = pid,
					       .fd = below(&actor->random, 20) };
	struct kcr_userfault userfault = { .size = sizeof(userfault), .pid = pid, .count = 20,
					   .fd = below(&actor->random, 20),
					   .ranges = (uintptr_t)actor->out };
	struct kcr_mempolicies policies = { .size = sizeof(policies), .pid = pid, .count = 20,
					    .policies = (uintptr_t)actor->out };
	struct kcr_settings settings = { .size = sizeof(settings), .pid = pid, .count = 20,
					 .settings = (uintptr_t)actor->out };
	struct kcr_undos undos = { .size = sizeof(undos), .pid = pid, .count = below(&actor->random, 20),
				   .undos = (uintptr_t)actor->out };

	call(actor, job, KCR_IOC_MEMPOLICIES, &policies);
	call(actor, job, KCR_IOC_SETTINGS, &settings);
	call(actor, job, KCR_IOC_UNDOS, &undos);
	call(actor, job, KCR_IOC_AIO, &aio);
	call(actor, job, KCR_IOC_URING_REQUESTS, &requests);
	call(actor, job, KCR_IOC_USERFAULT, &userfault);
	call(actor, job, KCR_IOC_SIGACTIONS, &actions);
	call(actor, job, KCR_IOC_TIMERS, &timers);
	call(actor, job, KCR_IOC_MM, &mm);
	file.flags = chance(&actor->random, 20) ? KCR_FILE_EXE : 0;
	call(actor, job, KCR_IOC_MAPPED_FILE, &file);
	call(actor, job, KCR_IOC_DESCRIPTOR, &descriptor);
}

/* ---- its memory -------------------------------------------------------------------- */

static bool scan(struct actor *actor, int job, struct kcr_scan *request)
{
	request->size = sizeof(*request);
	request->max_pages = 64;
	request->count = 16;
	request->runs = (uintptr_t)actor->out + OUT_SIZE - 4096;
	return !call(actor, job, KCR_IOC_SCAN, request) && request->count;
}

/* Two owners of one process may do so at a time, and its end comes at any moment. */
static void track(struct actor *actor, int job, pid_t pid)
{
	struct kcr_track request = { .size = sizeof(request), .pid = pid,
				     .id = 1 + below(&actor->random, 2) };
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/clear_refs", pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (write(fd, "4", 1) != 1)
			request.flags = KCR_TRACK_TEST;
		close(fd);
	}
	call(actor, job, KCR_IOC_TRACK, &request);
	request.flags = KCR_TRACK_TEST;
	call(actor, job, KCR_IOC_TRACK, &request);
}

static void move(struct actor *actor, int job, const struct kcr_scan *found)
{
	struct kcr_pages request = { .size = sizeof(request), .pid = found->pid,
				     .flags = found->flags & KCR_SCAN_SNAPSHOT,
				     .fd = actor->file, .runs = found->runs,
				     .count = found->count };

	lseek(actor->file, 0, SEEK_SET);
	if (chance(&actor->random, 50)) {
		call(actor, job, KCR_IOC_WRITE, &request);
		return;
	}
	request.count = 1;
	request.buffer = (uintptr_t)actor->out;
	call(actor, job, KCR_IOC_READ, &request);
}

static void read_memory(struct actor *actor, int job, pid_t pid, bool snapshot)
{
	struct kcr_vma *vmas = (struct kcr_vma *)actor->out;
	struct kcr_vmas request = { .size = sizeof(request), .pid = pid, .count = 200,
				    .vmas = (uintptr_t)vmas,
				    .strings = (uintptr_t)actor->out + 32768,
				    .strings_len = 16384 };
	struct kcr_scan found;
	struct kcr_vma vma;
	uint32_t i;

	if (call(actor, job, KCR_IOC_VMAS, &request))
		return;
	for (i = 0; i < 4 && request.count; i++) {
		vma = vmas[below(&actor->random, request.count)];
		memset(&found, 0, sizeof(found));
		found.pid = pid;
		found.flags = snapshot ? KCR_SCAN_SNAPSHOT : 0;
		if (vma.ino && !(vma.flags & KCR_VMA_SHARED))
			found.flags |= KCR_SCAN_PRIVATE;
		if (chance(&actor->random, 50))
			found.flags |= KCR_SCAN_CHANGES | KCR_SCAN_MARKERS;
		found.start = vma.start;
		found.end = vma.end;
		if (scan(actor, job, &found))
			move(actor, job, &found);
		/* The pages read have overwritten the list. */
		if (call(actor, job, KCR_IOC_VMAS, &request))
			return;
	}
}

static void read_some(struct actor *actor, int job, const struct list *listed)
{
	uint32_t i;
	pid_t pid;

	for (i = 0; i < 2 && listed->count; i++) {
		pid = listed->processes[below(&actor->random, listed->count)].pid;
		read_threads(actor, job, pid);
		read_rest(actor, job, pid);
		if (!skip(actor))
			read_memory(actor, job, pid, false);
		if (!skip(actor))
			track(actor, job, pid);
	}
}

/* ---- the end ----------------------------------------------------------------------- */

static void release(struct actor *actor, int job, bool hold)
{
	static const int signals[] = { 0, 0, 0, 0, 0, 0, SIGUSR2, SIGCONT, SIGSTOP, SIGKILL };
	struct kcr_release request = { .size = sizeof(request) };

	if (chance(&actor->random, 30)) {
		request.flags = KCR_RELEASE_TEST;
		call(actor, job, KCR_IOC_RELEASE, &request);
		request.flags = 0;
	}
	if (hold)
		request.flags = KCR_RELEASE_HOLD;
	else
		request.signal = signals[below(&actor->random, 10)];
	call(actor, job, KCR_IOC_RELEASE, &request);
}

static void finish(struct actor *actor, int job)
{
	struct kcr_finish request = { .size = sizeof(request), .timeout_ms = 100 * setting->slow };
	struct kcr_cancel cancel = { .size = sizeof(cancel), .error = ECANCELED };

	if (chance(&actor->random, 30)) {
		cancel.flags = chance(&actor->random, 5) ? KCR_CANCEL_KILL : 0;
		call(actor, job, KCR_IOC_CANCEL, &cancel);
	}
	call(actor, job, KCR_IOC_FINISH, &request);
}

void checkpoint(struct actor *actor, int job)
{
	struct kcr_snapshot snapshot = { .size = sizeof(snapshot) };
	struct list listed = { .count = 0 };
	int close_later = -1;
	bool parked;

	if (chance(&actor->random, 50))
		job = close_later = open(KCR_DEVICE, O_RDWR | O_CLOEXEC);
	add_some(actor, job);
	if (chance(&actor->random, 60))
		notify(actor, job);
	parked = !skip(actor) && (!park(actor, job) || !park(actor, job));
	if (!parked && chance(&actor->random, 70))
		goto out;
	list(actor, job, &listed);
	if (!skip(actor))
		read_some(actor, job, &listed);
	if (listed.count && chance(&actor->random, 25))
		steal(actor, job, listed.processes[0].pid);
	if (chance(&actor->random, 75))
		call(actor, job, KCR_IOC_SNAPSHOT, &snapshot);
	if (chance(&actor->random, 50)) {
		release(actor, job, true);
		read_some(actor, job, &listed);
	}
	if (!skip(actor))
		release(actor, job, false);
	if (listed.count && chance(&actor->random, 60))
		read_memory(actor, job, listed.processes[0].pid, true);
	finish(actor, job);
out:
	close(close_later);
}
