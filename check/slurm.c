// SPDX-License-Identifier: GPL-2.0
/*
 * Slurm and what KCR adds to it; see check.h.  That is a site's choice: whatever is missing
 * is no failure.  The plugin is looked for by the option that it gives sbatch, as only sbatch
 * knows which it loads.
 */
#include "check/check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batch/command.h"

#define ANSWER_ROOM	(1 << 17)
#define LIMIT_S		15
#define SEE		"the package kcr-slurm and kcr-batch(7) are for this; without it, a script calls " \
			"cr_batch itself"

struct slurm {
	char version[64];		/* as "slurm-wlm 22.05.8" */
	bool has_option;		/* sbatch knows --kcr */
	bool has_lua;			/* the controller's job_submit is written in Lua */
	enum { UNKNOWN, CALLED, NOT_CALLED } rewrites;	/* … and calls kcr.lua */
};

/* Has the file a line with that text?  NOT_CALLED: none; UNKNOWN: it cannot be read. */
static int find_text(const char *path, const char *text)
{
	FILE *in = fopen(path, "re");
	char line[1024];
	bool found = false;

	if (!in)
		return UNKNOWN;
	while (!found && fgets(line, sizeof(line), in))
		found = strstr(line, text) && strncmp(line, "--", 2);
	fclose(in);
	return found ? CALLED : NOT_CALLED;
}

/* The value of "NAME   = VALUE" in what scontrol says, cut off behind it; "": none. */
static const char *value_of(char *config, const char *name, char *out, size_t size)
{
	char *line = strstr(config, name);
	char *value = line ? strchr(line, '=') : NULL;

	*out = '\0';
	if (value) {
		value += 1 + strspn(value + 1, " ");
		snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
	}
	return out;
}

static void read_config(struct slurm *s, char *config)
{
	char plugins[256], folder[512], path[544], *slash;

	s->has_lua = strstr(value_of(config, "JobSubmitPlugins", plugins, sizeof(plugins)), "lua");
	value_of(config, "SLURM_CONF", folder, sizeof(folder));
	slash = strrchr(folder, '/');
	if (!slash)
		return;
	*slash = '\0';
	snprintf(path, sizeof(path), "%s/job_submit.lua", folder);
	s->rewrites = find_text(path, "kcr.lua");
}

static void say(const struct slurm *s, struct check_answer *answer)
{
	const char *option = s->has_option ? "sbatch has --kcr" : "sbatch lacks --kcr";

	if (!s->has_lua || s->rewrites == NOT_CALLED)
		check_answer(answer, CHECK_NOTE, SEE, "%s: %s; %s", s->version, option, s->has_lua ?
			     "job_submit.lua does not call kcr.lua" :
			     "JobSubmitPlugins in slurm.conf has no lua, so kcr.lua is not called");
	else
		check_answer(answer, s->has_option ? CHECK_OK : CHECK_NOTE, s->has_option ? "" : SEE,
			     "%s: %s; %s", s->version, option, s->rewrites == CALLED ?
			     "job_submit.lua calls kcr.lua" :
			     "job_submit.lua is at the controller only: whether it calls kcr.lua is not "
			     "known here");
}

/* Asks for all of it, with room for what is said; true: there is something to say. */
static bool ask_slurm(struct slurm *s, char *text, struct check_answer *answer)
{
	static const char *const version[] = { "sbatch", "--version", NULL };
	static const char *const help[] = { "sbatch", "--help", NULL };
	static const char *const config[] = { "scontrol", "show", "config", NULL };
	int status = command_run(version, LIMIT_S, text, ANSWER_ROOM);

	if (status == 127) {
		check_answer(answer, CHECK_NOTE, "", "Slurm is not installed (no sbatch in PATH)");
		return false;
	}
	if (!status) {
		snprintf(s->version, sizeof(s->version), "%.*s", (int)strcspn(text, "\n"), text);
		status = command_run(help, LIMIT_S, text, ANSWER_ROOM);
	}
	if (status) {
		check_answer(answer, CHECK_NOTE, "run sbatch --help to see why, if jobs are to be "
			     "submitted here", "Slurm is installed, but sbatch does not work");
		return false;
	}
	s->has_option = strstr(text, "--kcr");
	if (command_run(config, LIMIT_S, text, ANSWER_ROOM)) {
		check_answer(answer, CHECK_NOTE, "run scontrol show config to see why",
			     "%s: the controller does not answer", s->version);
		return false;
	}
	read_config(s, text);
	return true;
}

void check_slurm(struct check_answer *answer)
{
	char *text = malloc(ANSWER_ROOM);
	struct slurm s = {};

	if (!text)
		check_answer(answer, CHECK_FAILED, "", "no memory");
	else if (ask_slurm(&s, text, answer))
		say(&s, answer);
	free(text);
}
