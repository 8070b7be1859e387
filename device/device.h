/* SPDX-License-Identifier: GPL-2.0 */
/*
 * /dev/kcr for C programs: one function per ioctl that sizes and grows the
 * buffers.  All return 0 (or a file descriptor or count) or -errno, and
 * leave a message with report_fail() if a user could see the error.
 */
#ifndef KCR_DEVICE_H
#define KCR_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <signal.h>
#include <linux/kcr.h>

/* Opens a job. ENOSYS: the module is not loaded (the message says how to load it). */
int device_open(struct kcr_info *info);
/*
 * From now on device_open() opens the device that has the name now, also in another mount
 * namespace.  0 or -errno, as device_open().
 */
int device_pin(void);

/*
 * Opens /proc/THREAD/mem itself; thread: a live one, which may be the first.  Waits for a lazy
 * restart of the process to load all of its memory until that time of now_ns(): -EINPROGRESS.
 */
int device_add(int job, pid_t pid, pid_t thread, uint64_t until_ns);
int device_park(int job, unsigned int timeout_ms, struct kcr_park *result);
/* *out: malloc'ed array; returns the count. */
int device_list(int job, struct kcr_process **out);
/* Records of `*stride` bytes. */
int device_threads(int job, pid_t pid, const struct kcr_info *info, void **out, size_t *stride);
int device_signals(int job, pid_t pid, pid_t tid, siginfo_t **out);
int device_sigactions(int job, pid_t pid, struct kcr_sigactions *out);
int device_timers(int job, pid_t pid, struct kcr_timer **out);
/*
 * The settings of the process and, in *out, to be freed, of its threads: their number.  0 of an
 * older module, which does not tell them.
 */
int device_settings(int job, pid_t pid, struct kcr_settings *all, struct kcr_setting **out);
/*
 * What the end of the process undoes of its semaphore operations; *state: KCR_UNDOS_*.  0 of an
 * older module; -EOPNOTSUPP, without a message: there may be some, but the kernel does not tell.
 */
int device_undos(int job, pid_t pid, uint32_t *state, struct kcr_undo **out);
/* NUMA memory policies; none if the module in memory, an older one, does not tell. */
int device_mempolicies(int job, pid_t pid, struct kcr_mempolicy **out);
int device_mm(int job, pid_t pid, struct kcr_mm *out);
/*
 * The contexts of io_setup(2); pid 0: the caller's.  Their number, or -errno without a message:
 * -EOPNOTSUPP: the kernel, or the module in memory, does not tell.
 */
int device_aio(int job, pid_t pid, struct kcr_aio_context **out);
/* Likewise, as the ioctls; `like`: -1: none.  flags: KCR_URING_*. */
int device_uring(int job, int fd, int like, uint32_t flags, struct kcr_uring *out);
int device_uring_requests(int job, pid_t pid, int fd, struct kcr_uring_requests *out);
/* Likewise; flags: KCR_PACKET_RING_TX, _SET. */
int device_packet_ring(int job, int fd, uint32_t flags, struct kcr_packet_ring *ring);
/* Likewise, as the ioctl, of our descriptor of a socket; -ENOTTY: the module is too old. */
int device_socket(int job, int fd, struct kcr_socket *out);
/*
 * Likewise of our descriptor of a userfaultfd, and the mappings of process pid (0: none) that send
 * it their faults.  -EBADF: it is none.  *out gets no ranges; *ranges: malloc'ed, or NULL.
 */
int device_userfault(int job, pid_t pid, int fd, struct kcr_userfault *out,
		     struct kcr_userfault_range **ranges);
/*
 * One allocation holds both: free(*out). vma.path is an offset into *strings.
 * flags: KCR_VMAS_*.
 */
int device_vmas(int job, pid_t pid, uint32_t flags, struct kcr_vma **out, const char **strings);
int device_mapped_file(int job, pid_t pid, uint64_t address);	/* descriptor */
/* Is the file mapped at this address that of our descriptor?  bool, or -errno, reported. */
int device_maps_file(int job, pid_t pid, uint64_t address, int fd);
int device_exe_file(int job, pid_t pid);			/* descriptor */
int device_descriptor(int job, pid_t pid, int number);		/* descriptor, or -errno silently */
int device_closes_on_exec(int job, pid_t pid, int number);	/* bool, or -errno silently */
int device_scan(int job, struct kcr_scan *scan);
/* As the ioctl, without a message. */
int device_track(int job, pid_t pid, uint64_t id, uint32_t flags);
/* *sum: the XXH64 of the pages; NULL: it is not wanted, which for read and store saves time. */
int device_write(int job, pid_t pid, uint32_t flags, int fd, const struct kcr_run *runs,
		 size_t count, uint64_t *sum);
int device_read(int job, pid_t pid, uint32_t flags, void *buffer, const struct kcr_run *runs,
		size_t count, uint64_t *sum);
int device_fill(int job, pid_t pid, int fd, const struct kcr_run *runs, size_t count,
		uint64_t *sum);
int device_store(int job, pid_t pid, const void *buffer, const struct kcr_run *runs,
		 size_t count, uint64_t *sum);
int device_snapshot(int job, uint64_t *elapsed_ns);
int device_release(int job, int signal, uint64_t *stopped_ns);
/* Of a module with KCR_FEATURE_RELEASE_TEST. */
int device_release_test(int job);
/* As the ioctls; messages for all errors except those reported in *notify. */
int device_notify(int job, struct kcr_notify *notify);
int device_cancel(int job, int error, bool kill);
int device_release_clients(int job);
/* *code: with which a callback of process *pid ended the request; 0: none. */
int device_finish(int job, unsigned int timeout_ms, int *code, pid_t *pid);
/* For a rebuilt process to enter: as the ioctl, without a message. */
int device_wait(int job, pid_t pid, unsigned int timeout_ms);
/*
 * As fork(2), with this PID (0: any) and clone(2) flags: the child's PID, 0 in the child, or
 * -errno without a message.  module: by the job, which then has the child as one of its
 * processes; otherwise by clone3(2), which needs privileges.
 */
pid_t device_fork(int job, bool module, pid_t number, uint64_t flags, int exit_signal);
/*
 * Holds these signals back from the caller's descendants, as the ioctl; *held, unless NULL: those
 * that were held.  0 or -errno with a message.
 */
int device_hold(int job, uint64_t signals, unsigned int limit_ms, uint64_t *held);
/* flags: KCR_RESUME_*. */
int device_resume(int job, uint32_t flags, unsigned int *nr_threads);
/*
 * The mappings whose faults this userfaultfd of a guarded process gets; *out: malloc'ed.  Their
 * number, or -errno without a message: -ENOENT: there are none.
 */
int device_faulting(int job, int fd, struct kcr_faulting_range **out);

#endif /* KCR_DEVICE_H */
