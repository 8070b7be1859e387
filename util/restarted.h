/* SPDX-License-Identifier: GPL-2.0 */
/* What cr_restart says of a restart: see cr_restart(1), FIGURES. */
#ifndef KCR_UTIL_RESTARTED_H
#define KCR_UTIL_RESTARTED_H

#include "restart/restart.h"

/* --json: one line. */
void restarted_json(const struct restart_result *r);

#endif /* KCR_UTIL_RESTARTED_H */
