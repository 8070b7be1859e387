// SPDX-License-Identifier: GPL-2.0
/*
 * The layout of the structures of /dev/kcr, checked when this file is compiled: no
 * structure has implicit padding, and none shrinks or grows unnoticed.  A request
 * may grow at its end (see kmod/request.h), so its size here changes with it; array
 * records and members of other structures never do.
 */
#include <linux/build_bug.h>
#include <linux/ioctl.h>
#include <linux/types.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"
#include "uapi/linux/kcr.h"
#pragma GCC diagnostic pop

#define HAS_SIZE(type, bytes)	static_assert(sizeof(struct type) == (bytes))

/* ---- requests ------------------------------------------------------------------ */

HAS_SIZE(kcr_info, 24);
HAS_SIZE(kcr_add, 16);
HAS_SIZE(kcr_park, 32);
HAS_SIZE(kcr_list, 24);
HAS_SIZE(kcr_threads, 32);
HAS_SIZE(kcr_signals, 32);
HAS_SIZE(kcr_sigactions, 2064);
HAS_SIZE(kcr_timers, 24);
HAS_SIZE(kcr_mm, 632);
HAS_SIZE(kcr_vmas, 40);
HAS_SIZE(kcr_mapped_file, 24);
HAS_SIZE(kcr_map, 40);
HAS_SIZE(kcr_descriptor, 16);
HAS_SIZE(kcr_mempolicies, 24);
HAS_SIZE(kcr_settings, 40);
HAS_SIZE(kcr_undos, 32);
HAS_SIZE(kcr_scan, 64);
HAS_SIZE(kcr_track, 24);
HAS_SIZE(kcr_aio, 24);
HAS_SIZE(kcr_uring_requests, 32);
HAS_SIZE(kcr_uring, 72);
HAS_SIZE(kcr_packet_ring, 32);
HAS_SIZE(kcr_pages, 56);
HAS_SIZE(kcr_snapshot, 16);
HAS_SIZE(kcr_release, 24);
HAS_SIZE(kcr_notify, 64);
HAS_SIZE(kcr_cancel, 16);
HAS_SIZE(kcr_finish, 24);
HAS_SIZE(kcr_clone, 32);
HAS_SIZE(kcr_enter, 344);
HAS_SIZE(kcr_wait, 16);
HAS_SIZE(kcr_resume, 16);
HAS_SIZE(kcr_faulting, 24);
HAS_SIZE(kcr_hold, 32);
HAS_SIZE(kcr_client_new, 16);
HAS_SIZE(kcr_client_wait, 32);
HAS_SIZE(kcr_client_answer, 48);
HAS_SIZE(kcr_client_done, 16);
HAS_SIZE(kcr_client_forward, 16);

/* ---- records, and members of other structures ------------------------------------ */

HAS_SIZE(kcr_process, 56);
HAS_SIZE(kcr_thread, 336);
HAS_SIZE(kcr_restart_block, 40);
HAS_SIZE(kcr_timer, 56);
HAS_SIZE(kcr_vma, 64);
HAS_SIZE(kcr_mempolicy, 160);
HAS_SIZE(kcr_setting, 48);
HAS_SIZE(kcr_dispatch, 32);
HAS_SIZE(kcr_undo, 8);
HAS_SIZE(kcr_run, 16);
HAS_SIZE(kcr_aio_context, 40);
HAS_SIZE(kcr_faulting_range, 24);
HAS_SIZE(kcr_notice, 16);
HAS_SIZE(kcr_answer_thread, 8);
