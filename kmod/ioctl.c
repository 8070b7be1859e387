// SPDX-License-Identifier: GPL-2.0
/*
 * The table of commands, and how one is executed: its request is copied in,
 * the caller's permission and the job's state are checked, it runs, and its results
 * are copied out.  No locks but job->lock, which is taken here.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mutex.h>

#include "arch/x86/registers.h"
#include "guard.h"
#include "hold.h"
#include "ioctl.h"
#include "job.h"
#include "lookup.h"
#include "park.h"
#include "request.h"
#include "track.h"

/* Who may call, and when (else -EINVAL).  All but SHARED run under job->lock. */
enum rule {
	SHARED,		/* the owner and half-restored processes: the command locks and checks */
	OWNER,		/* the process that opened the job */
	CHECKPOINT,	/* … of a job that has not begun a restart */
	PARKED,		/* … of one whose programs are all parked */
};

static long info(struct kcr_job *job, void *request)
{
	struct kcr_info *info = request;

	info->abi = KCR_ABI_VERSION;
	info->features = KCR_FEATURE_NO_SUM | KCR_FEATURE_READ_BACK | KCR_FEATURE_RELEASE_TEST;
	if (kcr_have_clone())
		info->features |= KCR_FEATURE_SNAPSHOT | KCR_FEATURE_CLONE;
	if (kcr_track_works())
		info->features |= KCR_FEATURE_TRACK;
	if (kcr_guard_works())
		info->features |= KCR_FEATURE_GUARD;
	if (kcr_hold_works())
		info->features |= KCR_FEATURE_HOLD;
	info->xstate_size = kcr_xstate_size();
	return 0;
}

#define SCAN_FLAGS	(KCR_SCAN_SNAPSHOT | KCR_SCAN_PRIVATE | KCR_SCAN_ALL | \
			 KCR_SCAN_KEEP_ZERO | KCR_SCAN_CHANGES | KCR_SCAN_MARKERS)
#define ENTER_FLAGS	(KCR_ENTER_STOPPED | KCR_ENTER_HELD | KCR_ENTER_LEADERLESS)
#define RESUME_FLAGS	(KCR_RESUME_HOLD | KCR_RESUME_GUARD | KCR_RESUME_LOADED)

static const struct command {
	struct kcr_request_type request;
	enum rule rule;
	long (*run)(struct kcr_job *job, void *request);
} commands[] = {
	/* ioctl, size in its first version, flags; rule; function */
	{ { KCR_IOC_INFO, 24, 0 }, SHARED, info },
	{ { KCR_IOC_ADD, 16, 0 }, CHECKPOINT, kcr_ioc_add },
	{ { KCR_IOC_PARK, 32, 0 }, CHECKPOINT, kcr_ioc_park },
	{ { KCR_IOC_LIST, 24, 0 }, PARKED, kcr_ioc_list },
	{ { KCR_IOC_THREADS, 32, 0 }, PARKED, kcr_ioc_threads },
	{ { KCR_IOC_SIGNALS, 32, 0 }, PARKED, kcr_ioc_signals },
	{ { KCR_IOC_SIGACTIONS, 2064, 0 }, PARKED, kcr_ioc_sigactions },
	{ { KCR_IOC_TIMERS, 24, 0 }, PARKED, kcr_ioc_timers },
	{ { KCR_IOC_MM, 624, 0 }, PARKED, kcr_ioc_mm },
	{ { KCR_IOC_VMAS, 40, KCR_VMAS_ORIGINS }, PARKED, kcr_ioc_vmas },
	{ { KCR_IOC_MEMPOLICIES, 24, 0 }, PARKED, kcr_ioc_mempolicies },
	{ { KCR_IOC_SETTINGS, 40, 0 }, PARKED, kcr_ioc_settings },
	{ { KCR_IOC_UNDOS, 32, 0 }, PARKED, kcr_ioc_undos },
	{ { KCR_IOC_MAPPED_FILE, 24, KCR_FILE_EXE | KCR_FILE_SAME }, SHARED, kcr_ioc_mapped_file },
	{ { KCR_IOC_DESCRIPTOR, 16, KCR_DESCRIPTOR_CLOEXEC }, OWNER, kcr_ioc_descriptor },
	{ { KCR_IOC_TRACK, 24, KCR_TRACK_TEST }, PARKED, kcr_ioc_track },
	/* Not PARKED: of the caller, too. */
	{ { KCR_IOC_AIO, 24, 0 }, OWNER, kcr_ioc_aio },
	{ { KCR_IOC_URING_REQUESTS, 32, 0 }, OWNER, kcr_ioc_uring_requests },
	{ { KCR_IOC_USERFAULT, 40, 0 }, OWNER, kcr_ioc_userfault },
	{ { KCR_IOC_URING, 72, KCR_URING_IN_USE }, OWNER, kcr_ioc_uring },
	{ { KCR_IOC_PACKET_RING, 32, KCR_PACKET_RING_TX | KCR_PACKET_RING_SET }, OWNER,
	  kcr_ioc_packet_ring },
	{ { KCR_IOC_SOCKET, 48, 0 }, OWNER, kcr_ioc_socket },
	/* Not PARKED: a snapshot is read while the programs run. */
	{ { KCR_IOC_SCAN, 64, SCAN_FLAGS }, OWNER, kcr_ioc_scan },
	{ { KCR_IOC_WRITE, 56, KCR_PAGES_SNAPSHOT }, OWNER, kcr_ioc_write },
	{ { KCR_IOC_READ, 56, KCR_PAGES_SNAPSHOT | KCR_PAGES_NO_SUM }, OWNER, kcr_ioc_read },
	{ { KCR_IOC_SNAPSHOT, 16, 0 }, PARKED, kcr_ioc_snapshot },
	{ { KCR_IOC_RELEASE, 24, KCR_RELEASE_HOLD | KCR_RELEASE_TEST }, OWNER, kcr_ioc_release },
	{ { KCR_IOC_NOTIFY, 64, 0 }, CHECKPOINT, kcr_ioc_notify },
	{ { KCR_IOC_CANCEL, 16, KCR_CANCEL_KILL }, CHECKPOINT, kcr_ioc_cancel },
	/* The owner's, too, but without the lock: callbacks may wait for what takes it. */
	{ { KCR_IOC_FINISH, 24, 0 }, SHARED, kcr_ioc_finish },
	{ { KCR_IOC_CLIENT, 16, KCR_CLIENT_RESTARTED }, SHARED, kcr_ioc_client },
	{ { KCR_IOC_CLONE, 32, 0 }, SHARED, kcr_ioc_clone },
	{ { KCR_IOC_ENTER, 312, ENTER_FLAGS }, SHARED, kcr_ioc_enter },
	{ { KCR_IOC_MAP, 40, 0 }, SHARED, kcr_ioc_map },
	{ { KCR_IOC_WAIT, 16, 0 }, SHARED, kcr_ioc_wait },
	{ { KCR_IOC_FILL, 56, 0 }, OWNER, kcr_ioc_fill },
	{ { KCR_IOC_STORE, 56, KCR_PAGES_NO_SUM }, OWNER, kcr_ioc_store },
	{ { KCR_IOC_RESUME, 16, RESUME_FLAGS }, OWNER, kcr_ioc_resume },
	{ { KCR_IOC_FAULTING, 24, 0 }, SHARED, kcr_ioc_faulting },
	{ { KCR_IOC_HOLD, 32, 0 }, OWNER, kcr_ioc_hold },
};

static bool is_allowed(const struct kcr_job *job, enum rule rule)
{
	lockdep_assert_held(&job->lock);
	switch (rule) {
	case CHECKPOINT:
		return !job->restart;
	case PARKED:
		return job->parked;
	default:
		return true;
	}
}

static long run_owned(struct kcr_job *job, const struct command *command, void *request)
{
	long ret = kcr_job_lock(job);

	if (ret)
		return ret;
	ret = is_allowed(job, command->rule) ? command->run(job, request) : -EINVAL;
	mutex_unlock(&job->lock);
	return ret;
}

static long run_command(struct kcr_job *job, const struct command *command, unsigned int number,
			void __user *argp)
{
	void *request = kcr_request_get(&command->request, number, argp);
	long ret;

	if (IS_ERR(request))
		return PTR_ERR(request);
	if (command->rule == SHARED)
		ret = command->run(job, request);
	else
		ret = run_owned(job, command, request);
	return kcr_request_put(&command->request, number, request, argp, ret);
}

long kcr_ioctl(struct file *file, unsigned int number, unsigned long arg)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (kcr_request_is(&commands[i].request, number))
			return run_command(file->private_data, &commands[i], number,
					   (void __user *)arg);
	return -ENOTTY;
}
