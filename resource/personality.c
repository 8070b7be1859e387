// SPDX-License-Identifier: GPL-2.0
/*
 * The execution domain of personality(2).  Every thread sets its own, late:
 * READ_IMPLIES_EXEC would change the mappings of a restart.
 */
#include "resource/attribute.h"

#include <stdlib.h>
#include <sys/personality.h>
#include <sys/syscall.h>

#include "proc/proc.h"
#include "rebuild/script.h"
#include "report/report.h"

static int personality_save(const struct process_probe *probe, Kcr__Process *p)
{
	char text[32];
	ssize_t length = proc_read(probe->thread, "personality", text, sizeof(text));

	if (length < 0)
		return report_errno(length, "process %d: cannot read its personality", probe->pid);
	p->has_personality = true;
	p->personality = strtoul(text, NULL, 16);
	return 0;
}

static int personality_script_thread(struct rebuild *r, const Kcr__Process *p,
				     const Kcr__Thread *t, struct script *s)
{
	(void)r;
	(void)t;
	if (p->has_personality && (uint32_t)personality(0xffffffff) != p->personality)
		script_call(s, "personality", SYS_personality, p->personality, 0, 0, 0, 0, 0);
	return 0;
}

const struct attribute attribute_personality = {
	.name = "personality",
	.save = personality_save,
	.script_thread = personality_script_thread,
};
