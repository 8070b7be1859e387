// SPDX-License-Identifier: GPL-2.0
/* What Slurm's commands tell and do; see slurm.h. */
#include "batch/slurm.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "batch/ask.h"
#include "report/report.h"

#define ID_ROOM		64

/*
 * This job for Slurm's commands; returns `out`.  The last task that is split off an array
 * has the array's number as its SLURM_JOB_ID, which to them means all tasks.  Another job's
 * variables of an array may be those of the task that submitted it.
 */
static const char *job_id(char out[ID_ROOM])
{
	const char *job = ask_variable("SLURM_JOB_ID"), *task = ask_variable("SLURM_ARRAY_TASK_ID");
	bool shared = *task && !strcmp(job, ask_variable("SLURM_ARRAY_JOB_ID"));

	snprintf(out, ID_ROOM, "%s%s%s", job, shared ? "_" : "", shared ? task : "");
	return out;
}

/* The number that a job has in its array is "N/A" if it is in none. */
bool slurm_is_task(void)
{
	const char *job = ask_variable("SLURM_JOB_ID");
	const char *const argv[] = { "squeue", "--noheader", "--format=%K", "--job", job, NULL };
	static char asked[ID_ROOM];
	static bool is_task;
	char *text;

	if (!strcmp(job, ask_variable("SLURM_ARRAY_JOB_ID")) || !*job)
		return true;
	if (!strcmp(job, asked))
		return is_task;
	text = ask_answer(argv);
	is_task = !text || strncmp(text, "N/A", strlen("N/A"));
	free(text);
	snprintf(asked, sizeof(asked), "%s", job);
	return is_task;
}

int64_t slurm_seconds_left(bool anew)
{
	char id[ID_ROOM];
	const char *const argv[] = { "squeue", "--noheader", "--format=%L", "--job",
				     job_id(id), NULL };
	const char *end = getenv("SLURM_JOB_END_TIME");
	int64_t left;
	char *text;

	if (!anew && end && atoll(end) > 0)
		return atoll(end) > time(NULL) ? atoll(end) - time(NULL) : 0;
	text = ask_answer(argv);
	left = ask_time_behind(text, "");
	free(text);
	return left;
}

/*
 * Has Slurm itself ended this run, other than because its time is over?  As long as the
 * job's processes are ending, it would requeue also a job that was cancelled, and nobody
 * could be rid of it; one that it requeues is to run again in any case.
 */
static bool has_ended_run(void)
{
	char id[ID_ROOM];
	const char *const argv[] = { "squeue", "--noheader", "--format=%T %r", "--states=all",
				     "--job", job_id(id), NULL };
	char *text = ask_answer(argv);
	bool ended = text && !strstr(text, "TimeLimit") &&
		(strstr(text, "COMPLETING") || strstr(text, "CANCELLED") || strstr(text, "PENDING"));

	free(text);
	return ended;
}

/* Is this one of several tasks of a step, which save themselves? */
static bool has_other_tasks(void)
{
	return *ask_variable("SLURM_STEP_ID") && atoi(ask_variable("SLURM_STEP_NUM_TASKS")) > 1;
}

/* Is REQUEUE in the list behind `key`? */
static bool lists_requeue(const char *text, const char *key)
{
	static const char wanted[] = "REQUEUE";
	const char *at = strstr(text, key), *end;

	if (!at)
		return false;
	at += strlen(key);
	at += strspn(at, " =\t");
	for (end = at + strcspn(at, " \t\n"); at < end; at++)
		if (!strncasecmp(at, wanted, strlen(wanted)))
			return true;
	return false;
}

/* Is that what a preemption does to the job that scontrol has described? */
static bool requeues_preempted(const char *job)
{
	static const char *const show_config[] = { "scontrol", "show", "config", NULL };
	char type[64] = "", name[256];
	const char *const show_partition[] = { "scontrol", "--oneliner", "show", "partition", name, NULL };
	const char *const show_qos[] = { "sacctmgr", "--noheader", "--parsable2", "show", "qos", name,
					 "format=PreemptMode", NULL };
	char *config = ask_answer(show_config), *own = NULL;
	bool by_partition, requeues;

	ask_word_behind(config, "PreemptType", type, sizeof(type));
	by_partition = !strcmp(type, "preempt/partition_prio");
	if (ask_word_behind(job, by_partition ? " Partition=" : " QOS=", name, sizeof(name)))
		own = ask_answer(by_partition ? show_partition : show_qos);
	if (own && *own && strncasecmp(own, "cluster", strlen("cluster")))
		requeues = lists_requeue(own, by_partition ? "PreemptMode=" : "");
	else
		requeues = config && lists_requeue(config, "PreemptMode");
	free(config);
	free(own);
	return requeues;
}

/*
 * From 24.05 on Slurm itself requeues a job that ends in the grace time of its preemption
 * (_slurm_rpc_complete_batch_script() of slurmctld).  Told to do so by somebody else, it keeps
 * the mark of that time, and runs the job once more when it has ended in the next run.
 */
static bool requeues_by_itself(const char *id)
{
	static const char *const show_version[] = { "scontrol", "--version", NULL };
	const char *const show_job[] = { "scontrol", "--oneliner", "show", "job", id, NULL };
	char *job = ask_answer(show_job), *version = NULL, word[64];
	unsigned int year = 0, month = 0;
	bool preempted;

	preempted = ask_word_behind(job, " Requeue=", word, sizeof(word)) && !strcmp(word, "1") &&
		    ask_word_behind(job, " PreemptTime=", word, sizeof(word)) && strcmp(word, "None");
	if (preempted)
		version = ask_answer(show_version);
	preempted = version && sscanf(version, "%*s %u.%u", &year, &month) == 2 &&
		    year * 100 + month >= 2405 && requeues_preempted(job);
	free(version);
	free(job);
	return preempted;
}

int slurm_requeue(void)
{
	char id[ID_ROOM];
	const char *const argv[] = { "scontrol", "requeue", job_id(id), NULL };

	if (has_other_tasks())
		return report_fail(-ECANCELED, "that would end the other tasks of the step before they "
				   "are saved: leave it to the job script when srun has ended, or to "
				   "RequeueExit in slurm.conf");
	if (has_ended_run())
		return report_fail(-ECANCELED, "Slurm has ended this run (scancel, scontrol requeue), "
				   "and decides whether there is another");
	return requeues_by_itself(id) ? 0 : ask_order(argv);
}
