/* SPDX-License-Identifier: GPL-2.0 */
/* A tool that is ended early, by a signal or by its own --time, leaves nothing half done. */
#ifndef KCR_UTIL_ENDING_H
#define KCR_UTIL_ENDING_H

#include <stdbool.h>

struct ending {
	void (*abandon)(void);		/* removes what is unfinished; async-signal-safe */
	const char *late;		/* what is said when the time is over */
	unsigned int timeout_s;		/* 0: no limit */
	bool quiet, json;
};

/*
 * From now on SIGHUP, SIGINT, SIGQUIT and SIGTERM (those that are not ignored) call abandon()
 * before they end us, and so does the time-out, which ends us with ETIMEDOUT.  SIGPIPE and
 * SIGXFSZ are ignored, as EPIPE and EFBIG give better messages.
 */
void ending_prepare(const struct ending *ending);
/* The time-out no longer matters, even if it is over and its signal is blocked. */
void ending_in_time(void);

#endif /* KCR_UTIL_ENDING_H */
