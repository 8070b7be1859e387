// SPDX-License-Identifier: GPL-2.0
/* Back to the newest snapshot.  See recovery.h. */
#include "launch/recovery.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/relaunch.h"
#include "launch/launcher.h"
#include "proc/proc.h"
#include "proc/spawn.h"
#include "report/report.h"

void recovery_init(struct recovery *r, unsigned int most, bool from_start)
{
	const char *used = getenv(RECOVERY_VARIABLE);

	*r = (struct recovery){ .used = used ? strtoul(used, NULL, 10) : 0, .most = most,
				.from_start = from_start };
}

void recovery_saved(struct recovery *r, const char *path)
{
	char *copy = strdup(path);

	if (!copy)
		return;			/* the older one will do */
	free(r->snapshot);
	r->snapshot = copy;
}

bool recovery_begin(struct recovery *r, const char *text)
{
	const char *restarted = getenv(RELAUNCH_VARIABLE), *from = r->snapshot ?: restarted;

	if (!r->most)
		return false;
	if (!from && !r->from_start) {
		fprintf(stderr, "KCR: %s, and there is no snapshot to go on from\n", text);
		return false;
	}
	if (r->used >= r->most) {
		fprintf(stderr, "KCR: %s: the job ends after %u of %u recoveries%s%s\n", text, r->used,
			r->most, from ? "; its newest snapshot is " : "", from ?: "");
		return false;
	}
	fprintf(stderr, "KCR: %s: the job goes on from %s (recovery %u of %u)\n", text,
		from ?: "its beginning", r->used + 1, r->most);
	r->due = true;
	return true;
}

static bool is_kept(const char *assignment)
{
	return strncmp(assignment, RECOVERY_VARIABLE "=", sizeof(RECOVERY_VARIABLE));
}

/* That which this process was started with: what was added is for the launcher it had. */
static char **environment_for(const struct recovery *r)
{
	char **given = proc_environment(getpid()), **out, *used;
	size_t count = 0, n = 0;

	while (given && given[count])
		count++;
	out = calloc(count + 2, sizeof(*out));
	if (!given || !out || asprintf(&used, RECOVERY_VARIABLE "=%u", r->used + 1) < 0) {
		free(given);
		free(out);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		if (is_kept(given[i]))
			out[n++] = given[i];
	out[n] = used;
	return out;
}

int recovery_go(const struct recovery *r, char *const *arguments)
{
	char *const restart[] = { "cr_restart", r->snapshot, NULL };
	char *path = spawn_beside(r->snapshot ? "cr_restart" : "cr_mpirun");
	char **environment = environment_for(r);

	if (!path || !environment)
		return report_fail(-ENOMEM, "no memory");
	launcher_release_signals();
	execve(path, r->snapshot ? restart : arguments, environment);
	return report_errno(-errno, "cannot start %s", path);
}

void recovery_free(struct recovery *r)
{
	free(r->snapshot);
	r->snapshot = NULL;
}
