/* SPDX-License-Identifier: GPL-2.0 */
/* Signals as people write them: 15, TERM, SIGTERM, RTMIN+3. */
#ifndef KCR_PROC_SIGNAL_NAME_H
#define KCR_PROC_SIGNAL_NAME_H

/* The signal's number (0 … 64), or -1. */
int signal_number(const char *text);

#endif /* KCR_PROC_SIGNAL_NAME_H */
