// SPDX-License-Identifier: GPL-2.0
/*
 * CLOCK_MONOTONIC and CLOCK_BOOTTIME as the programs see them: each time namespace among
 * them is noted once, with what its clocks are ahead of ours.  The clocks themselves are read
 * at the end of the description, behind all times that are left: so no timer comes too early
 * after a restart.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

#include "proc/clock.h"
#include "proc/proc.h"
#include "report/report.h"

static int no_memory(pid_t pid)
{
	return report_errno(-ENOMEM, "process %d: clocks", pid);
}

/* What its clocks are ahead of ours. */
static int compare_clocks(pid_t thread, uint64_t id, struct time_offsets *ahead)
{
	struct time_offsets own;
	uint64_t own_id;
	int err = time_namespace_id(PROC_SELF, &own_id);

	*ahead = (struct time_offsets){ 0 };
	if (err || own_id == id)
		return err;
	err = time_namespace_offsets(PROC_SELF, &own);
	if (!err)
		err = time_namespace_offsets(thread, ahead);
	ahead->monotonic_ns -= own.monotonic_ns;
	ahead->boottime_ns -= own.boottime_ns;
	return err;
}

/* A new one in the description. */
static int add(struct description *d, uint64_t id, const struct time_offsets *ahead)
{
	size_t count = d->preamble.n_clocks;
	struct time_view *views = realloc(d->view, (count + 1) * sizeof(*views));
	Kcr__Clocks **list, *clocks;

	if (!views)
		return -ENOMEM;
	d->view = views;
	list = realloc(d->preamble.clocks, (count + 1) * sizeof(Kcr__Clocks *));
	if (!list)
		return -ENOMEM;
	d->preamble.clocks = list;
	clocks = malloc(sizeof(*clocks));
	if (!clocks)
		return -ENOMEM;
	kcr__clocks__init(clocks);
	views[count] = (struct time_view){ .id = id, .ahead = *ahead };
	list[count] = clocks;
	d->preamble.n_clocks++;
	return 0;
}

int clocks_describe(struct description *d, pid_t thread, Kcr__Process *p)
{
	struct time_offsets ahead;
	size_t i = 0;
	uint64_t id;
	int err = time_namespace_id(thread, &id);

	while (!err && i < d->preamble.n_clocks && d->view[i].id != id)
		i++;
	if (!err && i == d->preamble.n_clocks) {
		err = compare_clocks(thread, id, &ahead);
		if (!err && add(d, id, &ahead))
			return no_memory(p->pid);
	}
	if (err == -ESRCH)
		return report_fail(err, "process %d ended during the checkpoint", p->pid);
	if (err)
		return report_errno(err, "process %d: cannot see its time namespace", p->pid);
	p->has_clocks = true;
	p->clocks = i + 1;
	return 0;
}

uint64_t clocks_now(const struct description *d, const Kcr__Process *p, clockid_t clock)
{
	const struct time_view *view = &d->view[p->clocks - 1];

	return clock_ns(clock) + (clock == CLOCK_BOOTTIME ? view->ahead.boottime_ns :
							    view->ahead.monotonic_ns);
}

void clocks_read(struct description *d)
{
	uint64_t monotonic_ns = clock_ns(CLOCK_MONOTONIC), boottime_ns = clock_ns(CLOCK_BOOTTIME);

	d->preamble.monotonic_ns = monotonic_ns;
	for (size_t i = 0; i < d->preamble.n_clocks; i++) {
		d->preamble.clocks[i]->monotonic_ns = monotonic_ns + d->view[i].ahead.monotonic_ns;
		d->preamble.clocks[i]->boottime_ns = boottime_ns + d->view[i].ahead.boottime_ns;
	}
}

void clocks_free(struct description *d)
{
	for (size_t i = 0; i < d->preamble.n_clocks; i++)
		free(d->preamble.clocks[i]);
	free(d->preamble.clocks);
	free(d->view);
}
