// SPDX-License-Identifier: GPL-2.0
/*
 * PR_SET_MDWE: memory that was not executable cannot become so.  It cannot be undone, and so
 * comes last.
 */
#include "resource/attribute.h"

#include <errno.h>
#include <linux/kcr.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "rebuild/script.h"
#include "report/report.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE		65		/* Linux 6.3 */
#define PR_GET_MDWE		66
#define PR_MDWE_REFUSE_EXEC_GAIN (1UL << 0)
#endif
#ifndef PR_MDWE_NO_INHERIT
#define PR_MDWE_NO_INHERIT	(1UL << 1)	/* Linux 6.6 */
#endif

static int mdwe_save(const struct process_probe *probe, Kcr__Process *p)
{
	if (!(probe->info->flags & KCR_PROCESS_MDWE))
		return 0;
	p->has_mdwe = true;
	p->mdwe = PR_MDWE_REFUSE_EXEC_GAIN;
	if (probe->info->flags & KCR_PROCESS_MDWE_OWN)
		p->mdwe |= PR_MDWE_NO_INHERIT;
	return 0;
}

static int mdwe_rebuild(struct rebuild *r, const Kcr__Process *p)
{
	(void)r;
	if (!p->mdwe || prctl(PR_GET_MDWE, 0, 0, 0, 0) >= 0)
		return 0;
	return report_fail(-EOPNOTSUPP, "process %d refuses memory that becomes executable "
			   "(PR_SET_MDWE), which needs Linux 6.3", p->pid);
}

static int mdwe_script_last(struct rebuild *r, const Kcr__Process *p, struct script *s)
{
	(void)r;
	if (p->mm && p->mdwe)
		script_call(s, "prctl(PR_SET_MDWE)", SYS_prctl, PR_SET_MDWE, p->mdwe, 0, 0, 0, 0);
	return 0;
}

const struct attribute attribute_mdwe = {
	.name = "mdwe",
	.save = mdwe_save,
	.rebuild = mdwe_rebuild,
	.script_last = mdwe_script_last,
};
