// SPDX-License-Identifier: GPL-2.0
/* The kinds of open files.  The first whose match() is true is used. */
#include "resource/file.h"

const struct file_kind *const file_kinds[] = {
	&file_kind_directory,
	&file_kind_terminal,
	&file_kind_device,
	&file_kind_pipe,
	&file_kind_unix_socket,
	&file_kind_inet_socket,
	&file_kind_netlink_socket,
	&file_kind_packet_socket,
	&file_kind_client,
	&file_kind_eventfd,
	&file_kind_epoll,
	&file_kind_signalfd,
	&file_kind_timerfd,
	&file_kind_pidfd,
	&file_kind_inotify,
	&file_kind_fanotify,
	&file_kind_io_uring,
	&file_kind_user_fault,
	&file_kind_memfd,
	&file_kind_message_queue,
	&file_kind_shared_memory,
	&file_kind_regular,
	NULL
};
