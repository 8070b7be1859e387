// SPDX-License-Identifier: GPL-2.0
/*
 * How a run begins.  Every restart is counted before it is tried, so that a program which
 * takes its supervisor or the node down each time cannot be requeued for ever.
 */
#include <errno.h>
#include <linux/kcr.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "batch/job_script.h"
#include "batch/log.h"
#include "batch/program.h"
#include "batch/run.h"
#include "batch/scratch.h"
#include "device/device.h"
#include "job/snapshot.h"
#include "proc/clock.h"
#include "report/report.h"
#include "util/follow.h"

#define LONGEST_PAUSE_S	60

static int start_anew(struct run *r)
{
	pid_t leader = r->script ? job_script_copy(&r->folder, r->script) : 0;

	if (!leader)
		leader = program_start(r->options->command);
	if (leader < 0) {
		log_event(LOG_FAILURE, "%s", report_message());
		return leader == -ENOENT ? 127 : 126;
	}
	r->leader = r->child = leader;
	log_event(LOG_ROUTINE, "started %s as process %d", r->options->command[0], leader);
	return 0;
}

bool run_ends_waiting(const struct run *r, int signal)
{
	return sigismember(&r->options->leave_on, signal) || run_is_to_end(signal);
}

/*
 * Waits before a restart that follows others without a new checkpoint: 1 s, 2, 4 … 60.  0,
 * or -EINTR if a warning comes meanwhile: then nothing is lost, as nothing runs.
 */
static int back_off(struct run *r)
{
	unsigned int doubled = r->state.fruitless < 2 ? 0 : r->state.fruitless - 2;
	uint64_t pause = doubled < 6 ? 1ull << doubled : LONGEST_PAUSE_S, end;
	siginfo_t info;

	if (r->state.fruitless < 2)
		return 0;
	log_event(LOG_NOTICE, "restart %u in a row without a new checkpoint: waiting for %u s",
		  r->state.fruitless, (unsigned int)pause);
	end = now_ns() + pause * 1000000000;
	for (uint64_t now = now_ns(); now < end; now = now_ns()) {
		if (!follow_wait(&info, end - now) || !run_ends_waiting(r, info.si_signo))
			continue;
		log_event(LOG_NOTICE, "SIG%s before the restart: the checkpoints stay for the next run",
			  sigabbrev_np(info.si_signo));
		r->warning = info.si_signo;
		return -EINTR;
	}
	return 0;
}

static const char *when(time_t time, char *out, size_t size)
{
	struct tm local;

	if (!localtime_r(&time, &local) || !strftime(out, size, "%F %T", &local))
		*out = '\0';
	return out;
}

/*
 * A restart has failed: is it the checkpoint's fault?  Then it will not be tried again: 0.
 * Otherwise -errno; -EINTR: a signal came before that was known.
 */
static int set_aside_damaged(struct run *r, const struct folder_checkpoint *c, const char *path)
{
	char why[512], time[32];
	int err = run_verify(path, why, sizeof(why));

	if (err != -EINVAL)
		return err ? err : -EEXIST;
	log_event(LOG_FAILURE, "checkpoint %u of %s is damaged (%s): going back to the one before, "
		  "what was computed since then is lost", c->number,
		  when(c->created, time, sizeof(time)), why);
	run_set_aside(r, c);
	return 0;
}

/* 0 or -errno, as program_restart(). */
static int restart_one(struct run *r, const struct folder_checkpoint *c, const char *path)
{
	struct program_restart how = { .path = path, .mpi = c->mpi,
				       .pid_namespace = r->options->pid_namespace && !c->mpi };
	char why[512];
	/* cr_restart would become an mpirun first, and its exit code the job's. */
	int err = c->mpi ? run_verify(path, why, sizeof(why)) : 0;

	if (c->mpi && r->options->pid_namespace)
		log_event(LOG_NOTICE, "warning: --pids=namespace is not for MPI jobs: ranks get new "
			  "process IDs where the old ones are in use");
	if (err && err != -EINVAL)
		log_event(LOG_FAILURE, "checkpoint %u cannot be verified: %s", c->number, why);
	if (err)
		return err;
	err = scratch_rules(r->state.scratch, &how.rules);
	if (!err)
		err = program_restart(&how, &r->leader, &r->child);
	if ((err == -EBUSY || err == -EPERM) && !r->options->keep_pids && !how.pid_namespace) {
		log_event(LOG_NOTICE, "warning: %s (--pids=keep would end this run instead)",
			  err == -EBUSY ?
			  "a process or thread ID of the program is in use here: it gets new ones" :
			  "the restart is not permitted, see above: it is tried with new process and "
			  "thread IDs");
		how.new_ids = true;
		err = program_restart(&how, &r->leader, &r->child);
	}
	strings_free(how.rules);
	return err;
}

static int hopeless(struct run *r)
{
	r->state.phase = STATE_FAILED;
	run_note(r);
	return EXIT_HOPELESS;
}

static int no_good_one(struct run *r)
{
	log_event(LOG_FAILURE, "no undamaged checkpoint of the job %s is left in %s: remove %s.* there "
		  "to begin anew", r->folder.name, r->folder.path, r->folder.name);
	return hopeless(r);
}

/* Tries the newest, then those before it as long as they are damaged. */
static int restart_any(struct run *r, const struct folder_checkpoint *all, ssize_t count)
{
	char path[PATH_MAX], time[32];

	for (ssize_t i = 0; i < count; i++) {
		int err, damaged;

		folder_checkpoint_path(&r->folder, &all[i], path);
		err = restart_one(r, &all[i], path);
		if (!err) {
			log_event(LOG_NOTICE, "restarted from checkpoint %u of %s as process %d",
				  all[i].number, when(all[i].created, time, sizeof(time)), r->leader);
			return 0;
		}
		if (err == -EBUSY && r->options->keep_pids) {
			log_event(LOG_FAILURE, "checkpoint %u needs a process or thread ID that is in "
				  "use here: try again, or without --pids=keep", all[i].number);
			return EXIT_TEMPORARY;
		}
		damaged = err == -EINTR ? -EINTR : set_aside_damaged(r, &all[i], path);
		if (damaged == -EINTR) {
			log_event(LOG_NOTICE, "the restart was interrupted: the checkpoints stay for the "
				  "next run");
			return -EINTR;
		}
		if (damaged) {
			log_event(LOG_FAILURE, "checkpoint %u is not damaged, but cannot be restarted here "
				  "(%s), see above; it stays for the next run",
				  all[i].number, strerror(-err));
			return hopeless(r);
		}
	}
	return no_good_one(r);
}

static int restart_newest(struct run *r, const struct folder_checkpoint *all, ssize_t count)
{
	int code;

	if (r->options->max_restarts && r->state.fruitless >= r->options->max_restarts) {
		log_event(LOG_FAILURE, "%u restarts in a row have led to no new checkpoint "
			  "(--max-restarts): find out why, then remove %s/%s.json to try again",
			  r->state.fruitless, r->folder.path, r->folder.name);
		return hopeless(r);
	}
	if (r->script && job_script_is_other(&r->folder, r->script))
		log_event(LOG_NOTICE, "warning: the script is not the one of which this job has "
			  "checkpoints: that one goes on; for the new one choose another --name, or remove them");
	r->state.restarts++;
	r->state.fruitless++;
	run_note(r);
	code = back_off(r) ?: restart_any(r, all, count);
	if (code == -EINTR)
		r->state.fruitless--;	/* that is no fault of the program's */
	return code;
}

/*
 * The program of a run whose cr_batch was killed may still run; no second one may be let
 * loose on its files.  It is saved, if it can be, and ended.  0 or the exit code.
 */
static int end_survivor(struct run *r, ssize_t *count)
{
	pid_t leader = r->state.leader.pid;
	int err;

	if (!state_leader_runs(&r->state))
		return 0;
	if (r->options->verify)		/* which may have left it stopped: saved so, it would stay so */
		program_run_on(leader);
	err = run_save(r, leader, true);
	if (!err) {
		log_event(LOG_NOTICE, "process %d of the run before, whose cr_batch was killed, was "
			  "still there: it is saved and ended", leader);
		++*count;
	} else if (*count) {
		log_event(LOG_NOTICE, "process %d of the run before, whose cr_batch was killed, is ended; "
			  "it could not be saved (%s)", leader, report_message());
		program_end(leader);
	} else {
		log_event(LOG_FAILURE, "process %d of the run before, whose cr_batch was killed, still "
			  "runs, and cannot be saved (%s): end it first", leader, report_message());
		return EXIT_TEMPORARY;
	}
	report_clear();
	for (int tries = 0; state_leader_runs(&r->state) && tries < 500; tries++)
		usleep(20000);
	if (!state_leader_runs(&r->state))
		return 0;
	log_event(LOG_FAILURE, "process %d of the run before does not end: a second one would work on its "
		  "files; end it first", leader);
	return EXIT_TEMPORARY;
}

/* Is the command that of the runs before?  True as well if that is not known. */
static bool is_same_command(const struct run *r)
{
	char **known = r->state.command, **now = r->options->command;

	while (known && *known && *now && !strcmp(*known, *now))
		known++, now++;
	return !known || (!*known && !*now);
}

/* A folder's checkpoints must not be taken for those of another command. */
static int check_command(struct run *r)
{
	if (!is_same_command(r)) {
		log_event(LOG_FAILURE, "the checkpoints of the job %s in %s are of another command (%s …): "
			  "choose another --name or --dir, or remove them", r->folder.name,
			  r->folder.path, r->state.command[0]);
		return EXIT_HOPELESS;
	}
	if (r->state.command)
		return 0;
	return state_set_command(&r->state, r->options->command) ? EXIT_FOLDER : 0;
}

bool run_is_done(const struct run *r)
{
	return r->options->once && r->state.phase == STATE_ENDED && !r->state.status &&
	       r->state.command && is_same_command(r);
}

/* It may have anything in it. */
static int unreadable(void)
{
	log_event(LOG_FAILURE, "%s", report_message());
	return EXIT_FOLDER;
}

/* Nothing to go on from: because there is nothing yet, or because all was damaged? */
static int begin_anew(struct run *r)
{
	struct folder_checkpoint *damaged;
	ssize_t count = folder_list(&r->folder, true, &damaged);

	free(damaged);
	if (count < 0)
		return unreadable();
	return count > 0 ? no_good_one(r) : start_anew(r);
}

/* With --keep-at-end. */
static int ended_before(struct run *r)
{
	log_event(LOG_FAILURE, "the job %s has ended with 0, and its checkpoints were kept: remove "
		  "%s.* in %s to run it again", r->folder.name, r->folder.name, r->folder.path);
	return EXIT_HOPELESS;
}

/*
 * Can programs be saved and restarted here at all?  Better known now than from the first save,
 * which may be due shortly before the end of the allocation.  0 or the exit code.
 */
static int try_module(const struct run *r, bool anew)
{
	struct kcr_info info;
	int job = device_open(&info);
	bool passing = job == -EDQUOT || job == -ENOMEM || job == -EMFILE || job == -ENFILE;

	if (job >= 0)
		close(job);
	else if (passing)
		log_event(LOG_FAILURE, "warning: %s", report_message());
	else if (r->options->require)
		log_event(LOG_FAILURE, "nothing can be saved here: %s", report_message());
	else if (anew)		/* else cr_restart will say it */
		log_event(LOG_FAILURE, "warning: nothing can be saved here: %s; this run has no "
			  "checkpoints (--require would end it)", report_message());
	report_clear();
	return job < 0 && !passing && r->options->require ? EXIT_TEMPORARY : 0;
}

int run_begin(struct run *r)
{
	struct folder_checkpoint *all;
	ssize_t count = folder_list(&r->folder, false, &all), before = count;
	int code = count < 0 ? unreadable() : 0;

	if (!code && !count && !state_leader_runs(&r->state)) {
		state_free(&r->state);
		r->state = (struct state){};
	}
	if (!code && count && r->state.phase == STATE_ENDED && !r->state.status)
		code = ended_before(r);
	code = code ?: check_command(r) ?: try_module(r, !count) ?: end_survivor(r, &count);
	if (!code && count != before) {
		free(all);
		count = folder_list(&r->folder, false, &all);
		code = count < 0 ? unreadable() : 0;
	}
	if (!code)
		code = count > 0 ? restart_newest(r, all, count) : begin_anew(r);
	free(all);
	if (!code && scratch_note(&r->state.scratch))
		log_event(LOG_NOTICE, "warning: no memory to note TMPDIR for the next run");
	return code;
}
