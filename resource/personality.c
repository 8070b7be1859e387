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

static int read_personality(pid_t thread, uint32_t *value)
{
	char text[32];
	ssize_t length = proc_read(thread, "personality", text, sizeof(text));

	if (length < 0)
		return report_errno(length, "thread %d: cannot read its personality", thread);
	*value = strtoul(text, NULL, 16);
	return 0;
}

static int personality_save(const struct process_probe *probe, Kcr__Process *p)
{
	int err = read_personality(probe->thread, &p->personality);

	p->has_personality = true;
	for (size_t i = 0; i < p->n_thread && !err; i++) {
		Kcr__Thread *t = p->thread[i];

		if (t->tid == probe->thread)
			continue;
		err = read_personality(t->tid, &t->personality);
		t->has_personality = t->personality != p->personality;
	}
	return err;
}

static int personality_script_thread(struct rebuild *r, const Kcr__Process *p,
				     const Kcr__Thread *t, struct script *s)
{
	uint32_t wanted = t->has_personality ? t->personality : p->personality;

	(void)r;
	if (p->has_personality && (uint32_t)personality(0xffffffff) != wanted)
		script_call(s, "personality", SYS_personality, wanted, 0, 0, 0, 0, 0);
	return 0;
}

const struct attribute attribute_personality = {
	.name = "personality",
	.save = personality_save,
	.script_thread = personality_script_thread,
};
