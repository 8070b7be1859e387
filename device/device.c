// SPDX-License-Identifier: GPL-2.0
/*
 * One function per ioctl of /dev/kcr: fills in the structure, sizes and grows
 * the buffers, and turns an errno into a message.  Holds no state but device_pin()'s: a job
 * is the descriptor that device_open() returned.  See device.h and kcr(4).
 */
#include "device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/internal.h"
#include "device/refused.h"
#include "proc/clock.h"
#include "proc/proc.h"
#include "report/code.h"
#include "report/report.h"

#define BUSY_US		20000	/* between tries to resume processes … */
#define BUSY_TRIES	1500	/* … for thirty seconds */
#define LOADING_US	20000	/* between looks whether a lazy restart has loaded a process */
#define FIRST_COUNT	64u
#define FIRST_STRINGS	16384u
#define MOST		(1u << 20)	/* elements: more than any call gives */

int device_call(int job, unsigned long request, void *argument)
{
	return ioctl(job, request, argument) < 0 ? -errno : 0;
}

int device_call_array(int job, unsigned long request, void *argument, uint32_t *count,
		      __u64 *array, size_t element, void **out)
{
	uint32_t capacity = FIRST_COUNT;
	void *buffer = NULL;

	for (;;) {
		void *larger = realloc(buffer, capacity * element);
		int err;

		if (!larger) {
			free(buffer);
			return -ENOMEM;
		}
		buffer = larger;
		*count = capacity;
		*array = (uintptr_t)buffer;
		err = device_call(job, request, argument);
		if (err && err != -ENOSPC) {
			free(buffer);
			return err;
		}
		if (!err && *count <= capacity)
			break;
		capacity = *count > capacity ? *count : 2 * capacity;
		if (capacity > MOST) {
			free(buffer);
			return -E2BIG;
		}
	}
	*out = buffer;
	return *count;
}

static int pinned = -1;		/* the device, with O_PATH */

int device_pin(void)
{
	struct kcr_info info;
	int job;

	if (pinned >= 0)
		close(pinned);
	pinned = -1;
	job = device_open(&info);
	if (job < 0)
		return job;
	close(job);
	pinned = open(KCR_DEVICE, O_PATH | O_CLOEXEC);
	return pinned < 0 ? refused_open(-errno) : 0;
}

/* Who might open it is not looked up in a container, whose files would answer. */
static int open_pinned(void)
{
	int job = proc_fd_reopen(pinned, O_RDWR);

	return job < 0 ? report_errno(job, "cannot open " KCR_DEVICE) : job;
}

int device_open(struct kcr_info *info)
{
	struct kcr_info answer = { .size = sizeof(answer) };
	int job = pinned < 0 ? open(KCR_DEVICE, O_RDWR | O_CLOEXEC) : open_pinned();
	int err;

	if (job < 0)
		return pinned < 0 ? refused_open(-errno) : job;
	err = device_call(job, KCR_IOC_INFO, &answer);
	if (!err && answer.abi != KCR_ABI_VERSION)
		err = -EINVAL;
	if (err) {
		close(job);
		return report_fail(-CR_EVERSION, "the loaded kernel module kcr is of another "
				   "version than this program: load that of the same release");
	}
	*info = answer;
	device_pages_know(&answer);
	return job;
}

static int add_message(pid_t pid, int err)
{
	switch (-err) {
	case ESRCH:
		return report_fail(err, "process %d: no such process", pid);
	case EPERM:
		return report_fail(err, "process %d is a kernel thread or belongs to "
				   "another pid namespace", pid);
	case EDEADLK:
		return report_fail(err, "process %d is this program itself", pid);
	case EBUSY:
		return report_fail(err, "process %d is being checkpointed by another request", pid);
	case EINPROGRESS:
		report_fail(-EBUSY, "process %d is still being loaded by cr_restart --lazy: try again when "
			    "that is done", pid);
		return err;
	case EDQUOT:
		return refused_process(pid, err);
	case EACCES:
		return refused_trace(pid);
	default:
		return report_errno(err, "process %d: cannot begin a checkpoint", pid);
	}
}

/*
 * An exiting thread drops its memory before it is a zombie; from then on its files in
 * /proc belong to root, and others get EACCES.
 */
static bool has_memory(pid_t thread)
{
	char pages[128];
	ssize_t length = proc_read(thread, "statm", pages, sizeof(pages));

	if (length < 0)		/* hidden (hidepid of /proc), not ended */
		return length != -ENOENT && length != -ESRCH;
	return strtoul(pages, NULL, 10);
}

int device_add(int job, pid_t pid, pid_t thread, uint64_t until_ns)
{
	struct kcr_add add = { .size = sizeof(add), .pid = pid };
	int err;

	add.mem_fd = proc_open(thread, "mem", O_RDONLY);
	if (add.mem_fd < 0) {
		err = add.mem_fd;
		if (err == -ENOENT || err == -ESRCH || !has_memory(thread))
			return add_message(pid, -ESRCH);
		if (err == -EACCES || err == -EPERM)
			return refused_trace(pid);
		return report_errno(err, "cannot open the memory of process %d", thread);
	}
	while ((err = device_call(job, KCR_IOC_ADD, &add)) == -EINPROGRESS && now_ns() < until_ns)
		usleep(LOADING_US);
	close(add.mem_fd);
	return err ? add_message(pid, err) : 0;
}

int device_park(int job, unsigned int timeout_ms, struct kcr_park *result)
{
	struct kcr_park park = { .size = sizeof(park), .timeout_ms = timeout_ms };
	int err = device_call(job, KCR_IOC_PARK, &park);

	*result = park;
	switch (-err) {
	case 0:
		return 0;
	case EBUSY:
		return report_fail(err, "process %d did not come to rest in time: a thread of it is "
				   "in an uninterruptible wait; try again or use a longer --time",
				   park.failed_pid);
	case EINPROGRESS:
		return report_fail(err, "processes with callbacks appear faster than they can be "
				   "notified of the checkpoint");
	case EAGAIN:
		return report_fail(err, "process %d executed another program meanwhile",
				   park.failed_pid);
	case ESRCH:
		return report_fail(err, "no process is left to checkpoint");
	case EDQUOT:
		return refused_process(park.failed_pid, err);
	case EACCES:
		return refused_trace(park.failed_pid);
	case EINTR:
		return report_fail(err, "interrupted");
	default:
		return report_errno(err, "cannot stop the processes");
	}
}

int device_list(int job, struct kcr_process **out)
{
	struct kcr_list list = { .size = sizeof(list) };
	void *array;
	int count = device_call_array(job, KCR_IOC_LIST, &list, &list.count, &list.processes,
				      sizeof(struct kcr_process), &array);

	if (count < 0)
		return report_errno(count, "cannot list the stopped processes");
	*out = array;
	return count;
}

int device_threads(int job, pid_t pid, const struct kcr_info *info, void **out, size_t *stride)
{
	struct kcr_threads threads = { .size = sizeof(threads), .pid = pid };
	void *array;
	int count;

	threads.stride = (sizeof(struct kcr_thread) + info->xstate_size + 63) / 64 * 64;
	count = device_call_array(job, KCR_IOC_THREADS, &threads, &threads.count, &threads.buffer,
				  threads.stride, &array);
	if (count < 0)
		return report_errno(count, "process %d: cannot read its threads", pid);
	*stride = threads.stride;
	*out = array;
	return count;
}

int device_signals(int job, pid_t pid, pid_t tid, siginfo_t **out)
{
	struct kcr_signals signals = { .size = sizeof(signals), .pid = pid, .tid = tid };
	void *array;
	int count = device_call_array(job, KCR_IOC_SIGNALS, &signals, &signals.count, &signals.siginfo,
				      sizeof(siginfo_t), &array);

	if (count == -E2BIG)
		return report_fail(count, "process %d has more than 65536 pending signals, which cannot be "
				   "saved: let it take some of them first", pid);
	if (count < 0)
		return report_errno(count, "process %d: cannot read its pending signals", pid);
	*out = array;
	return count;
}

int device_sigactions(int job, pid_t pid, struct kcr_sigactions *out)
{
	int err;

	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	out->pid = pid;
	err = device_call(job, KCR_IOC_SIGACTIONS, out);
	return err ? report_errno(err, "process %d: cannot read its signal handlers", pid) : 0;
}

int device_timers(int job, pid_t pid, struct kcr_timer **out)
{
	struct kcr_timers timers = { .size = sizeof(timers), .pid = pid };
	void *array;
	int count = device_call_array(job, KCR_IOC_TIMERS, &timers, &timers.count, &timers.timers,
				      sizeof(struct kcr_timer), &array);

	if (count < 0)
		return report_errno(count, "process %d: cannot read its timers", pid);
	*out = array;
	return count;
}

int device_settings(int job, pid_t pid, struct kcr_settings *all, struct kcr_setting **out)
{
	void *array = NULL;
	int count;

	*all = (struct kcr_settings){ .size = sizeof(*all), .pid = pid };
	count = device_call_array(job, KCR_IOC_SETTINGS, all, &all->count, &all->settings,
				  sizeof(struct kcr_setting), &array);
	if (count == -ENOTTY)
		count = 0;
	if (count < 0)
		return report_errno(count, "process %d: cannot read its settings", pid);
	*out = array;
	return count;
}

int device_mempolicies(int job, pid_t pid, struct kcr_mempolicy **out)
{
	struct kcr_mempolicies list = { .size = sizeof(list), .pid = pid };
	void *array = NULL;
	int count = device_call_array(job, KCR_IOC_MEMPOLICIES, &list, &list.count, &list.policies,
				      sizeof(struct kcr_mempolicy), &array);

	if (count == -ENOTTY)
		count = 0;
	if (count < 0)
		return report_errno(count, "process %d: cannot read its memory policies", pid);
	*out = array;
	return count;
}

int device_mm(int job, pid_t pid, struct kcr_mm *out)
{
	int err;

	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	out->pid = pid;
	err = device_call(job, KCR_IOC_MM, out);
	return err ? report_errno(err, "process %d: cannot read its memory map", pid) : 0;
}

int device_vmas(int job, pid_t pid, uint32_t flags, struct kcr_vma **out, const char **strings)
{
	uint32_t capacity = 2 * FIRST_COUNT, length = FIRST_STRINGS;

	for (;;) {
		struct kcr_vmas vmas = {
			.size = sizeof(vmas), .flags = flags, .pid = pid, .count = capacity,
			.strings_len = length,
		};
		char *buffer = malloc(capacity * sizeof(struct kcr_vma) + length);
		int err;

		if (!buffer)
			return report_errno(-ENOMEM, "process %d: cannot read its memory map", pid);
		vmas.vmas = (uintptr_t)buffer;
		vmas.strings = vmas.vmas + capacity * sizeof(struct kcr_vma);
		err = device_call(job, KCR_IOC_VMAS, &vmas);
		if (!err) {
			*out = (struct kcr_vma *)buffer;
			*strings = buffer + capacity * sizeof(struct kcr_vma);
			return vmas.count;
		}
		free(buffer);
		if (err != -ENOSPC)
			return report_errno(err, "process %d: cannot read its memory map", pid);
		if (vmas.count > MOST)
			return report_fail(-E2BIG, "process %d has %u mappings, of which at most %u can be "
					   "saved", pid, vmas.count, MOST);
		capacity = vmas.count > capacity ? vmas.count : capacity;
		length = vmas.strings_len > length ? vmas.strings_len : length;
	}
}

static int mapped_file(int job, pid_t pid, uint32_t flags, uint64_t address)
{
	struct kcr_mapped_file mapped = {
		.size = sizeof(mapped), .flags = flags, .pid = pid, .address = address,
	};
	int fd = ioctl(job, KCR_IOC_MAPPED_FILE, &mapped);

	return fd < 0 ? -errno : fd;
}

int device_mapped_file(int job, pid_t pid, uint64_t address)
{
	int fd = mapped_file(job, pid, 0, address);

	if (fd == -EACCES)
		return report_fail(-EPERM, "process %d: the file mapped at %#llx belongs to "
				   "another user and has no path to open it by: only root can "
				   "save it", pid, (unsigned long long)address);
	return fd >= 0 ? fd : report_errno(fd, "process %d: cannot get the file mapped at %#llx",
					   pid, (unsigned long long)address);
}

int device_maps_file(int job, pid_t pid, uint64_t address, int fd)
{
	struct kcr_mapped_file mapped = {
		.size = sizeof(mapped), .flags = KCR_FILE_SAME, .pid = pid, .fd = fd,
		.address = address,
	};
	int same = ioctl(job, KCR_IOC_MAPPED_FILE, &mapped);

	return same < 0 ? report_errno(-errno, "process %d: file mapped at %#llx", pid,
				       (unsigned long long)address) : same;
}

int device_exe_file(int job, pid_t pid)
{
	int fd = mapped_file(job, pid, KCR_FILE_EXE, 0);

	return fd >= 0 ? fd : report_errno(fd, "process %d: cannot get its executable", pid);
}

static int ask_descriptor(int job, pid_t pid, int number, uint32_t flags)
{
	struct kcr_descriptor descriptor = {
		.size = sizeof(descriptor), .flags = flags, .pid = pid, .fd = number,
	};
	int ret = ioctl(job, KCR_IOC_DESCRIPTOR, &descriptor);

	return ret < 0 ? -errno : ret;
}

int device_descriptor(int job, pid_t pid, int number)
{
	return ask_descriptor(job, pid, number, 0);
}

int device_closes_on_exec(int job, pid_t pid, int number)
{
	return ask_descriptor(job, pid, number, KCR_DESCRIPTOR_CLOEXEC);
}

int device_scan(int job, struct kcr_scan *scan)
{
	int err;

	scan->size = sizeof(*scan);
	err = device_call(job, KCR_IOC_SCAN, scan);
	return err ? report_errno(err, "process %d: cannot look through its memory at %#llx",
				  scan->pid, (unsigned long long)scan->start) : 0;
}

int device_track(int job, pid_t pid, uint64_t id, uint32_t flags)
{
	struct kcr_track track = { .size = sizeof(track), .flags = flags, .pid = pid, .id = id };

	return device_call(job, KCR_IOC_TRACK, &track);
}

int device_snapshot(int job, uint64_t *elapsed_ns)
{
	struct kcr_snapshot snapshot = { .size = sizeof(snapshot) };
	int err = device_call(job, KCR_IOC_SNAPSHOT, &snapshot);

	if (err == -EOPNOTSUPP)
		return report_fail(err, "no snapshot is possible here (the kernel lacks it, or all "
				   "threads of a process are stopped): leave --snapshot out");
	if (err)
		return report_errno(err, "cannot make the snapshot");
	*elapsed_ns = snapshot.elapsed_ns;
	return 0;
}

#define TORN "a stopped process was continued, or a process killed, during the checkpoint"

int device_release(int job, int signal, uint64_t *stopped_ns)
{
	struct kcr_release release = { .size = sizeof(release), .signal = signal };
	int err = device_call(job, KCR_IOC_RELEASE, &release);

	*stopped_ns = release.stopped_ns;
	if (err == -EAGAIN)
		return report_fail(err, TORN);
	return err ? report_errno(err, "cannot let the processes run on") : 0;
}

int device_release_test(int job)
{
	struct kcr_release release = { .size = sizeof(release), .flags = KCR_RELEASE_TEST };
	int err = device_call(job, KCR_IOC_RELEASE, &release);

	if (err == -EAGAIN)
		return report_fail(err, TORN);
	return err ? report_errno(err, "cannot check the stopped processes") : 0;
}

int device_notify(int job, struct kcr_notify *notify)
{
	int err = device_call(job, KCR_IOC_NOTIFY, notify);

	switch (-err) {
	case 0:
		return 0;
	case ETIMEDOUT:
		return report_fail(err, "process %d has not run its callbacks in the time given",
				   notify->pid);
	case EINTR:
		return report_fail(err, "interrupted");
	default:
		return report_errno(err, "cannot notify the processes of the checkpoint");
	}
}

int device_cancel(int job, int error, bool kill)
{
	struct kcr_cancel cancel = {
		.size = sizeof(cancel), .error = error, .flags = kill ? KCR_CANCEL_KILL : 0,
	};

	return device_call(job, KCR_IOC_CANCEL, &cancel);
}

int device_release_clients(int job)
{
	struct kcr_release release = { .size = sizeof(release), .flags = KCR_RELEASE_HOLD };
	int err = device_call(job, KCR_IOC_RELEASE, &release);

	return err ? report_errno(err, "cannot let the callbacks run on") : 0;
}

int device_finish(int job, unsigned int timeout_ms, int *code, pid_t *pid)
{
	struct kcr_finish finish = { .size = sizeof(finish), .timeout_ms = timeout_ms };
	int err = device_call(job, KCR_IOC_FINISH, &finish);

	*code = finish.code;
	*pid = finish.failed_pid;
	switch (-err) {
	case 0:
		return 0;
	case ETIMEDOUT:
		return report_fail(err, "the callbacks of process %d have not finished in the time "
				   "given", *pid);
	case EINTR:
		return report_fail(err, "interrupted");
	default:
		return report_errno(err, "cannot wait for callbacks");
	}
}

int device_wait(int job, pid_t pid, unsigned int timeout_ms)
{
	struct kcr_wait wait = { .size = sizeof(wait), .pid = pid, .timeout_ms = timeout_ms };

	return device_call(job, KCR_IOC_WAIT, &wait);
}

int device_resume(int job, uint32_t flags, unsigned int *nr_threads)
{
	struct kcr_resume resume = { .size = sizeof(resume), .flags = flags };
	int err;

	/* Somebody may be trying to save a process that is only half there, and will give up. */
	for (int i = 0; (err = device_call(job, KCR_IOC_RESUME, &resume)) == -EBUSY && i < BUSY_TRIES; i++)
		usleep(BUSY_US);
	if (err)
		return report_errno(err, "cannot let the rebuilt processes run");
	if (nr_threads)
		*nr_threads = resume.nr_threads;
	return 0;
}

int device_faulting(int job, int fd, struct kcr_faulting_range **out)
{
	struct kcr_faulting faulting = { .size = sizeof(faulting), .fd = fd };
	void *array;
	int count = device_call_array(job, KCR_IOC_FAULTING, &faulting, &faulting.count, &faulting.ranges,
				      sizeof(struct kcr_faulting_range), &array);

	if (count >= 0)
		*out = array;
	return count;
}

int device_hold(int job, uint64_t signals, unsigned int limit_ms, uint64_t *held)
{
	struct kcr_hold hold = { .size = sizeof(hold), .signals = signals, .limit_ms = limit_ms };
	int err = device_call(job, KCR_IOC_HOLD, &hold);

	if (err == -EPERM)
		return report_fail(err, "the administrator does not allow signals to be held back "
				   "(hold_signals of the module kcr)");
	if (err)
		return report_errno(err, "signals cannot be held back");
	if (held)
		*held = hold.held;
	return 0;
}

pid_t device_fork(int job, bool module, pid_t number, uint64_t flags, int exit_signal)
{
	struct kcr_clone request = {
		.size = sizeof(request), .clone_flags = flags, .tid = number,
		.exit_signal = (uint32_t)exit_signal,
	};
	struct clone_args args = {
		.flags = flags, .exit_signal = (uint64_t)exit_signal,
		.set_tid = number ? (uint64_t)(uintptr_t)&number : 0, .set_tid_size = number != 0,
	};
	long pid;

	if (module)
		pid = ioctl(job, KCR_IOC_CLONE, &request);
	else
		pid = syscall(SYS_clone3, &args, sizeof(args));
	return pid < 0 ? -errno : (pid_t)pid;
}
