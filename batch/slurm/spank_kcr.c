// SPDX-License-Identifier: GPL-2.0
/*
 * sbatch --kcr and --kcr-dir: a plugin of Slurm, see spank(7) and kcr-batch(7).  What the
 * user wants travels with the job, in its job control environment, to the controller; there
 * kcr.lua has the script run under cr_batch.
 *
 * slurmd and slurmstepd load this file as root and only register the options.  The one
 * thing done on a node is done as the job's user: a script that the controller has left as
 * it was does not start, as it would not be saved.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/spank.h>

#include "proc/duration.h"

SPANK_PLUGIN(kcr, 1)

#define VARIABLE	"KCR"	/* kcr.lua reads it: options of cr_batch without their hyphens */
#define INHERITED	"SLURM_SPANK__SLURM_SPANK_OPTION_kcr_"
#define LENGTH		200	/* of a value, bytes: kcr.lua's line has 255 */
#define ACCEPTED	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/+@-"

static bool asked;
static char interval[LENGTH + 1], folder[LENGTH + 1];	/* "": not given */

static int take_interval(int val, const char *text, int remote)
{
	(void)val;
	asked = true;
	if (remote || !text)
		return 0;
	if (duration_parse(text) < 1 || strlen(text) > LENGTH) {
		slurm_spank_log("kcr: --kcr takes the time between two saves, such as 90, 15m, 12h or "
				"1:30:00, not \"%s\"", text);
		return -1;
	}
	strcpy(interval, text);
	return 0;
}

static int take_folder(int val, const char *text, int remote)
{
	(void)val;
	asked = true;
	if (remote)
		return 0;
	if (!*text || strlen(text) > LENGTH || text[strspn(text, ACCEPTED)]) {
		slurm_spank_log("kcr: --kcr-dir takes a folder's name of letters, digits and _.:/+@-, %d "
				"bytes at most, not \"%s\"", LENGTH, text);
		return -1;
	}
	strcpy(folder, text);
	return 0;
}

static struct spank_option options[] = {
	{ "kcr", "[interval]", "run the script under cr_batch(1), saved every interval",
	  2, 0, take_interval },
	{ "kcr-dir", "folder", "run the script under cr_batch(1), with its checkpoints in folder",
	  1, 0, take_folder },
};

/* salloc, whose context is that of sbatch, has no script. */
static bool has_options(void)
{
	return spank_context() == S_CTX_REMOTE ||
		(spank_context() == S_CTX_ALLOCATOR && strcmp(program_invocation_short_name, "salloc"));
}

/*
 * A job has its options in its environment, where an sbatch in its script would find them
 * and take them for those of the user.
 */
static void forget_outer_job(void)
{
	char **variable = environ;
	char name[SPANK_OPTION_MAXLEN + sizeof(INHERITED)];

	while (*variable) {
		size_t length = strcspn(*variable, "=");

		if (strncmp(*variable, INHERITED, strlen(INHERITED)) || length >= sizeof(name)) {
			variable++;
			continue;
		}
		memcpy(name, *variable, length);
		name[length] = '\0';
		unsetenv(name);		/* the next one is here now */
	}
}

int slurm_spank_init(spank_t spank, int count, char *arguments[])
{
	spank_err_t err = ESPANK_SUCCESS;

	(void)count;
	(void)arguments;
	if (spank_context() == S_CTX_ALLOCATOR)
		forget_outer_job();
	for (size_t i = 0; !err && has_options() && i < sizeof(options) / sizeof(*options); i++)
		err = spank_option_register(spank, &options[i]);
	return err ? -1 : 0;
}

int slurm_spank_init_post_opt(spank_t spank, int count, char *arguments[])
{
	char wish[2 * LENGTH + sizeof("interval=,dir=")];
	spank_err_t err;

	(void)count;
	(void)arguments;
	if (!asked || spank_context() != S_CTX_ALLOCATOR)
		return 0;
	snprintf(wish, sizeof(wish), "%s%s%s%s", *interval ? "interval=" : "", interval,
		 *folder ? ",dir=" : "", folder);
	err = spank_job_control_setenv(spank, VARIABLE, wish, 1);
	if (err)
		slurm_spank_log("kcr: cannot pass --kcr on: %s", spank_strerror(err));
	return err ? -1 : 0;
}

/* By the controller, or by its author. */
static bool mentions_cr_batch(const char *script)
{
	FILE *in = fopen(script, "re");
	bool found = false;
	char *line = NULL;
	size_t room = 0;

	while (in && !found && getline(&line, &room, in) > 0)
		found = strstr(line, "cr_batch");
	free(line);
	if (in)
		fclose(in);
	return found;
}

int slurm_spank_task_init(spank_t spank, int count, char *arguments[])
{
	uint32_t step;
	char **command;
	int words;

	(void)count;
	(void)arguments;
	if (!asked || spank_get_item(spank, S_JOB_STEPID, &step) || step != SLURM_BATCH_SCRIPT ||
	    spank_get_item(spank, S_JOB_ARGV, &words, &command) || words < 1 ||
	    mentions_cr_batch(command[0]))
		return 0;
	slurm_spank_log("kcr: the script is not run, as --kcr had no effect: on Slurm's controller, "
			"job_submit.lua has to call kcr.job_submit (see kcr-batch(7))");
	return -1;
}
