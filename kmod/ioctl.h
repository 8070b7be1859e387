/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The commands of /dev/kcr.  kmod/ioctl.c has the table that says which
 * structure each one takes and when it is allowed; each is one function of the
 * file that is named beside it.
 *
 * `request` is the module's own copy of that structure (kmod/request.h), made once; it
 * is copied back to the caller, after an error too, if the direction of the ioctl
 * says that it has results.
 */
#ifndef KCR_IOCTL_H
#define KCR_IOCTL_H

struct file;
struct kcr_job;

/* The device's unlocked_ioctl; -ENOTTY: there is no such command. */
long kcr_ioctl(struct file *file, unsigned int number, unsigned long arg);

long kcr_ioc_add(struct kcr_job *job, void *request);			/* member.c */
long kcr_ioc_list(struct kcr_job *job, void *request);			/* list.c */
long kcr_ioc_park(struct kcr_job *job, void *request);			/* park.c */
long kcr_ioc_release(struct kcr_job *job, void *request);		/* park.c */
long kcr_ioc_threads(struct kcr_job *job, void *request);		/* thread.c */
long kcr_ioc_signals(struct kcr_job *job, void *request);		/* signal.c */
long kcr_ioc_sigactions(struct kcr_job *job, void *request);		/* signal.c */
long kcr_ioc_timers(struct kcr_job *job, void *request);		/* timer.c */
long kcr_ioc_mm(struct kcr_job *job, void *request);			/* mm.c */
long kcr_ioc_vmas(struct kcr_job *job, void *request);			/* vma.c */
long kcr_ioc_settings(struct kcr_job *job, void *request);		/* settings.c */
long kcr_ioc_undos(struct kcr_job *job, void *request);		/* undo.c */
long kcr_ioc_mempolicies(struct kcr_job *job, void *request);		/* mempolicy.c */
long kcr_ioc_mapped_file(struct kcr_job *job, void *request);		/* mapped_file.c */
long kcr_ioc_descriptor(struct kcr_job *job, void *request);		/* descriptor.c */
long kcr_ioc_aio(struct kcr_job *job, void *request);			/* aio.c */
long kcr_ioc_uring(struct kcr_job *job, void *request);			/* uring.c */
long kcr_ioc_userfault(struct kcr_job *job, void *request);		/* userfault.c */
long kcr_ioc_packet_ring(struct kcr_job *job, void *request);		/* packet.c */
long kcr_ioc_socket(struct kcr_job *job, void *request);			/* socket.c */
long kcr_ioc_uring_requests(struct kcr_job *job, void *request);	/* uring_task.c */
long kcr_ioc_scan(struct kcr_job *job, void *request);			/* scan.c */
long kcr_ioc_track(struct kcr_job *job, void *request);			/* track.c */
long kcr_ioc_write(struct kcr_job *job, void *request);			/* pages.c */
long kcr_ioc_read(struct kcr_job *job, void *request);			/* pages.c */
long kcr_ioc_fill(struct kcr_job *job, void *request);			/* pages.c */
long kcr_ioc_store(struct kcr_job *job, void *request);			/* pages.c */
long kcr_ioc_snapshot(struct kcr_job *job, void *request);		/* snapshot.c */
long kcr_ioc_clone(struct kcr_job *job, void *request);			/* clone.c */
long kcr_ioc_enter(struct kcr_job *job, void *request);			/* enter.c */
long kcr_ioc_map(struct kcr_job *job, void *request);			/* map.c */
long kcr_ioc_wait(struct kcr_job *job, void *request);			/* restart.c */
long kcr_ioc_resume(struct kcr_job *job, void *request);		/* restart.c */
long kcr_ioc_faulting(struct kcr_job *job, void *request);		/* guard.c */
long kcr_ioc_hold(struct kcr_job *job, void *request);			/* hold.c */
long kcr_ioc_client(struct kcr_job *job, void *request);		/* client.c */
long kcr_ioc_notify(struct kcr_job *job, void *request);		/* notify.c */
long kcr_ioc_cancel(struct kcr_job *job, void *request);		/* notify.c */
long kcr_ioc_finish(struct kcr_job *job, void *request);		/* notify.c */

#endif /* KCR_IOCTL_H */
