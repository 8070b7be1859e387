// SPDX-License-Identifier: GPL-2.0
/* Back to the newest snapshot.  See recovery.h. */
#include "launch/recovery.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/identity.h"
#include "job/relaunch.h"
#include "job/snapshot.h"
#include "launch/hosts.h"
#include "launch/launcher.h"
#include "launch/openmpi.h"
#include "launch/show.h"
#include "launch/silent.h"
#include "proc/proc.h"
#include "proc/spawn.h"
#include "report/report.h"

/* For the process after this one: how many failures there were; nodes. */
static const char used_variable[] = RELAUNCH_RECOVERIES, lost_variable[] = "KCR_MPI_LOST",
		  suspects_variable[] = "KCR_MPI_SUSPECTS", avoided_variable[] = "KCR_MPI_AVOIDED",
		  unstarted_variable[] = "KCR_MPI_UNSTARTED", nodes_variable[] = "KCR_MPI_NODES";

#define ANSWER_MS	3000	/* for nodes to show that they are there */
#define NODES_MAX	100000	/* bytes: a variable may have 128 KiB */

/* The launcher and the ranks do not get it. */
static char *take_variable(const char *name)
{
	const char *value = getenv(name);
	char *copy = value && *value ? strdup(value) : NULL;

	unsetenv(name);
	return copy;
}

static unsigned int take_number(const char *name)
{
	char *text = take_variable(name);
	unsigned int number = text ? strtoul(text, NULL, 10) : 0;

	free(text);
	return number;
}

void recovery_init(struct recovery *r, unsigned int most, bool from_start)
{
	*r = (struct recovery){ .used = take_number(used_variable), .most = most,
				.from_start = from_start, .lost = take_variable(lost_variable),
				.suspects = take_variable(suspects_variable),
				.avoided = take_variable(avoided_variable),
				.nodes = take_variable(nodes_variable),
				.unstarted = take_number(unstarted_variable) };
	identity_own();			/* taken likewise */
}

static void add_name(char **list, const char *name)
{
	char *longer;

	if (asprintf(&longer, "%s%s%s", *list ?: "", *list ? "," : "", name) < 0)
		return;			/* it is tried again, then */
	free(*list);
	*list = longer;
}

/* `names` without those that are in `others`; malloc()ed, NULL: none. */
static char *names_but(const char *names, const char *others)
{
	char *copy = names ? strdup(names) : NULL, *rest = NULL, *out = NULL;

	for (char *name = copy ? strtok_r(copy, ",", &rest) : NULL; name;
	     name = strtok_r(NULL, ",", &rest))
		if (!hosts_has(others, name))
			add_name(&out, name);
	free(copy);
	return out;
}

/* They do not answer any more, so they are no nodes that were given up although they did. */
static void forget_avoided(struct recovery *r, const char *silent)
{
	char *others = names_but(r->avoided, silent);

	free(r->avoided);
	r->avoided = others;
}

void recovery_node_gone(struct recovery *r, const char *name, bool silent)
{
	char **list = silent ? &r->lost : &r->suspects;

	if (*name && !hosts_has(*list, name))
		add_name(list, name);
	if (silent)
		forget_avoided(r, name);
}

void recovery_has_nodes(struct recovery *r, char *nodes)
{
	char *all = nodes ? silent_keep(nodes, r->nodes, r->lost) : NULL;

	free(nodes);
	if (!all)
		return;			/* those of the process before will do */
	free(r->nodes);
	r->nodes = all;
}

void recovery_done(struct recovery *r)
{
	free(r->suspects);
	r->suspects = NULL;
	r->unstarted = 0;
}

/* Those that had daemons before and do not answer are lost.  Were there any of which that is new? */
static bool avoid_silent(struct recovery *r)
{
	char *silent = silent_among(r->nodes, r->lost, ANSWER_MS);

	if (!silent)
		return false;
	show_say(r->show, "no answer of %s", silent);
	add_name(&r->lost, silent);
	forget_avoided(r, silent);
	free(silent);
	return true;
}

/* Those that have failed, and answer, are lost from now on.  Were there any? */
static bool avoid_suspects(struct recovery *r)
{
	if (!r->suspects)
		return false;
	add_name(&r->lost, r->suspects);
	add_name(&r->avoided, r->suspects);
	free(r->suspects);
	r->suspects = NULL;
	return true;
}

bool recovery_take_back(struct recovery *r)
{
	char *back = r->avoided, *found = silent_no_more(r->nodes, r->lost, ANSWER_MS);
	char *others = names_but(found, back), *lost;

	free(found);
	r->avoided = NULL;
	if (others)
		add_name(&back, others);
	free(others);
	if (!back)
		return false;
	show_say(r->show, "nodes that answer are used again: %s", back);
	lost = names_but(r->lost, back);
	free(r->lost);
	r->lost = lost;
	free(back);
	return true;
}

const char *recovery_snapshot(const struct recovery *r)
{
	return r->snapshot ?: getenv(RELAUNCH_VARIABLE);
}

void recovery_saved(struct recovery *r, const char *path)
{
	char *copy = strdup(path);

	if (!copy)
		return;			/* the older one will do */
	free(r->snapshot);
	r->snapshot = copy;
}

bool recovery_starts_again(struct recovery *r, const char *launcher, char *text, size_t size)
{
	const char *snapshot = recovery_snapshot(r);

	if (avoid_silent(r) || avoid_suspects(r)) {
		snprintf(text, size, "not all ranks could be started where they had been");
		return true;
	}
	snprintf(text, size, "%s could not start the ranks", launcher);
	if (r->unstarted >= RELAUNCH_RETRIES) {
		show_say(r->show, "%s again, and the job ends%s%s", text,
			 snapshot ? "; its newest snapshot is " : "", snapshot ?: "");
		return false;
	}
	r->unstarted++;
	r->pauses = !recovery_take_back(r);
	return true;
}

bool recovery_begin(struct recovery *r, const char *text)
{
	const char *from = recovery_snapshot(r);

	if (!r->most)
		return false;
	if (!from && !r->from_start) {
		show_say(r->show, "%s, and there is no snapshot to go on from", text);
		return false;
	}
	if (r->used >= r->most) {
		show_say(r->show, "%s: the job ends after %u of %u recoveries%s%s", text, r->used,
			 r->most, from ? "; its newest snapshot is " : "", from ?: "");
		return false;
	}
	show_say(r->show, "%s: the job goes on from %s (recovery %u of %u)", text,
		 from ?: "its beginning", r->used + 1, r->most);
	r->due = true;
	return true;
}

static bool is_ours(const char *assignment)
{
	static const char *const names[] = { used_variable, lost_variable, suspects_variable,
					     avoided_variable, unstarted_variable, nodes_variable,
					     LAUNCHER_MASK_VARIABLE, IDENTITY_VARIABLE,
					     OPENMPI_VARIABLE };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t length = strlen(names[i]);

		if (!strncmp(assignment, names[i], length) && assignment[length] == '=')
			return true;
	}
	return false;
}

static int add_variable(char ***out, const char *name, const char *value)
{
	char *text;
	int err;

	if (!value)
		return 0;
	if (asprintf(&text, "%s=%s", name, value) < 0)
		return -ENOMEM;
	err = strings_add(out, text);
	free(text);
	return err;
}

/* That which this process was started with: what was added is for the launcher it had. */
static char **environment_for(const struct recovery *r, const char *mask)
{
	char **given = proc_environment(getpid()), **out = NULL, used[16], unstarted[16], identity[24];
	int err = given ? 0 : -ENOMEM;

	snprintf(used, sizeof(used), "%u", r->used + 1);
	snprintf(unstarted, sizeof(unstarted), "%u", r->unstarted);
	snprintf(identity, sizeof(identity), "%016" PRIx64, identity_own());
	for (size_t i = 0; !err && given[i]; i++)
		if (!is_ours(given[i]))
			err = strings_add(&out, given[i]);
	if (!err)
		err = add_variable(&out, used_variable, used);
	if (!err)
		err = add_variable(&out, IDENTITY_VARIABLE, identity);
	if (!err)
		err = add_variable(&out, lost_variable, r->lost);
	if (!err)
		err = add_variable(&out, suspects_variable, r->suspects);
	if (!err)
		err = add_variable(&out, avoided_variable, r->avoided);
	if (!err && r->nodes && strlen(r->nodes) < NODES_MAX)
		err = add_variable(&out, nodes_variable, r->nodes);
	if (!err && r->unstarted)
		err = add_variable(&out, unstarted_variable, unstarted);
	if (!err)
		err = add_variable(&out, LAUNCHER_MASK_VARIABLE, mask);
	if (!err)
		err = add_variable(&out, OPENMPI_VARIABLE, openmpi_found());
	free(given);
	if (!err)
		return out;
	strings_free(out);
	return NULL;
}

int recovery_go(const struct recovery *r, char *const *arguments)
{
	char *const restart[] = { "cr_restart", r->snapshot, NULL };
	char *path = spawn_beside(r->snapshot ? "cr_restart" : "cr_mpirun");
	char **environment, mask[LAUNCHER_MASK];

	launcher_keep_signals(mask);
	environment = environment_for(r, mask);
	if (!path || !environment)
		return report_fail(-ENOMEM, "no memory");
	if (r->pauses)
		sleep(RELAUNCH_PAUSE_S);
	execve(path, r->snapshot ? restart : arguments, environment);
	return report_errno(-errno, "cannot start %s", path);
}

void recovery_free(struct recovery *r)
{
	free(r->snapshot);
	free(r->lost);
	free(r->suspects);
	free(r->avoided);
	free(r->nodes);
	*r = (struct recovery){ 0 };
}
