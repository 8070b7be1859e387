// SPDX-License-Identifier: GPL-2.0
/*
 * The loop of a run: signals, time and the program's end, until the program has ended or
 * has been saved to go on in the next run.  Signals are blocked and taken one by one
 * (util/follow.h), so one that comes during a save waits for its end.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch/deadline.h"
#include "batch/job_script.h"
#include "batch/log.h"
#include "batch/metrics.h"
#include "batch/program.h"
#include "batch/run.h"
#include "proc/clock.h"
#include "proc/proc.h"
#include "proc/status.h"
#include "report/code.h"
#include "report/report.h"
#include "util/follow.h"

#define SECOND	1000000000ull

/* ---- the beginning ----------------------------------------------------------------- */

static void set_schedule(struct run *r)
{
	const struct options *o = r->options;
	uint64_t now = now_ns();

	r->schedule = (struct schedule){
		.interval_ns = (uint64_t)(o->exit_each_s ? o->exit_each_s : o->interval_s) * SECOND,
		.mttf_ns = (uint64_t)o->mttf_s * SECOND,
		.leave_each = o->exit_each_s > 0,
	};
	deadline_begin(r, now);
	schedule_begin(&r->schedule, now);
}

/* The time of the next save for others, 0: none. */
static time_t next_due(const struct run *r)
{
	const struct schedule *s = &r->schedule;
	uint64_t next = s->next_ns < s->end_ns ? s->next_ns : s->end_ns, now = now_ns();

	if (s->retry_ns > now)
		next = s->retry_ns;
	if (next == SCHEDULE_NEVER)
		return 0;
	return time(NULL) + (next > now ? (time_t)((next - now) / SECOND) : 0);
}

/* For Prometheus; a failure is said once and stops nothing. */
static void note_metrics(struct run *r)
{
	const char *path = r->options->prometheus;
	static bool said;
	int err = path ? metrics_write(path, &r->folder, &r->state) : 0;

	if (err && !said)
		log_event(LOG_FAILURE, "warning: cannot write %s: %s", path, strerror(-err));
	said = err != 0;
}

/* What goes on elsewhere, or is done, is no matter for this machine any more. */
static void remove_metrics(const struct run *r)
{
	if (r->options->prometheus)
		unlink(r->options->prometheus);
}

void run_note(struct run *r)
{
	static bool said;
	int err;

	r->state.next_due = r->state.phase == STATE_RUNNING ? next_due(r) : 0;
	err = state_save(&r->state, &r->folder);
	if (err && !said)
		log_event(LOG_FAILURE, "warning: cannot write %s/%s.json: %s", r->folder.path,
			  r->folder.name, strerror(-err));
	said = err != 0;
	note_metrics(r);
}

/* ---- saving ------------------------------------------------------------------------ */

/* Is a failure due to the moment, so that a later save may work, and not to the program? */
static bool may_pass(int err)
{
	static const int passing[] = {
		EAGAIN, EBUSY, EDQUOT, EINTR, EIO, EMFILE, ENFILE, ENOMEM, ENOSPC, EROFS, ESRCH,
		ESTALE, ETIMEDOUT, CR_ETEMPFAIL, CR_EPTRACED, CR_EPTRACER,
	};

	for (size_t i = 0; i < sizeof(passing) / sizeof(*passing); i++)
		if (err == -passing[i])
			return true;
	return false;
}

/* Whoever wants the program to end is not heard by it as long as a save is to come first. */
static void pass_on_ending(struct run *r, const char *why)
{
	log_event(LOG_FAILURE, "the save has failed: %s; SIG%s goes to the program instead", why,
		  sigabbrev_np(r->ending.si_signo));
	r->told = r->ending.si_signo;
	if (!hold_deliver(&r->hold, r->ending.si_signo))
		follow_pass_on(&r->ending, r->leader);
	r->ending.si_signo = 0;
	r->schedule.leave = false;
}

static void save_failed(struct run *r, enum schedule_action action, int err)
{
	const char *why = report_message() ? report_message() : "for an unknown reason";
	uint64_t now = now_ns();

	r->state.failures++;
	r->state.all_failures++;
	schedule_failed(&r->schedule, now, action);
	if (action == SCHEDULE_LEAVE && r->ending.si_signo && !may_pass(err))
		pass_on_ending(r, why);
	else if (log_is_news(&r->failure, why, now))
		log_event(LOG_FAILURE, "the save has failed: %s; the program runs on, the next attempt "
			  "is in %u s", why, (unsigned int)((r->schedule.retry_ns - now) / SECOND));
	report_clear();
}

static void save_worked(struct run *r, uint64_t start)
{
	uint64_t now = now_ns();

	schedule_saved(&r->schedule, now, now - start);
	r->failure.said_ns = 0;
	r->told = 0;			/* so has what is saved now */
}

/* True: the program has been ended with it. */
static bool save(struct run *r, enum schedule_action action)
{
	uint64_t start = now_ns();
	siginfo_t info;
	int err;

	hold_set(&r->hold, true);
	err = run_save(r, r->leader, action == SCHEDULE_LEAVE);
	/* The program has ended meanwhile, which is no failure. */
	info.si_pid = 0;
	if (err && ((r->child != r->leader && kill(r->leader, 0)) ||
		    (!waitid(P_PID, r->child, &info, WEXITED | WNOHANG | WNOWAIT) &&
		     info.si_pid == r->child))) {
		log_event(LOG_ROUTINE, "no save: the program has ended");
		report_clear();
		return false;
	}
	if (err)
		save_failed(r, action, err);
	else
		save_worked(r, start);
	run_note(r);
	if (!r->schedule.leave)		/* else it is tried again */
		hold_set(&r->hold, false);
	return !err && action == SCHEDULE_LEAVE;
}

/* Asks for the next run; the exit code that goes with it. */
static int requeue(const struct run *r)
{
	const struct scheduler *s = r->options->requeue;
	int err;

	if (!s)
		return r->options->exit_code;
	if (!s->requeue && !s->requeue_code) {
		log_event(LOG_NOTICE, "the job is saved; %s runs it again if it is set up to do that for "
			  "the exit code %d", s->title, r->options->exit_code);
		return r->options->exit_code;
	}
	err = s->requeue ? s->requeue() : 0;
	if (!err && s->ends_by && r->warning == s->ends_by)
		log_event(LOG_NOTICE, "the job is saved; by SIG%s %s has ended this run, and decides "
			  "whether there is another", sigabbrev_np(s->ends_by), s->title);
	else if (err)
		log_event(LOG_FAILURE, "the job is saved, but not requeued: %s", report_message());
	else
		log_event(LOG_NOTICE, "the job is saved and requeued by %s", s->title);
	report_clear();
	return s->requeue_code && !err ? s->requeue_code : r->options->exit_code;
}

static int leave(struct run *r)
{
	r->state.phase = STATE_SAVED;
	run_note(r);
	remove_metrics(r);
	return requeue(r);
}

/* ---- the loop ---------------------------------------------------------------------- */

bool run_is_to_end(int signal)
{
	return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

/* A save is due at once, and whoever has asked for it is told how it goes. */
static void hurry(struct run *r)
{
	r->schedule.retry_ns = 0;
	r->failure.said_ns = 0;
}

static bool is_ignored(const struct run *r, int signal)
{
	char *status = proc_text(r->leader, "status", NULL);
	bool ignored = status && status_number(status, "SigIgn", 16, 0) >> (signal - 1) & 1;

	free(status);
	return ignored;
}

/*
 * Whoever signals a whole job signals the program, too, and that hears of it unless it is held back,
 * as is what other processes send, or ignores it.
 */
static void note_told(struct run *r, const siginfo_t *info)
{
	bool sent = info->si_code == SI_USER || info->si_code == SI_QUEUE;
	int signal = info->si_signo;

	if ((run_is_to_end(signal) || sigismember(&r->options->leave_on, signal)) &&
	    !(sent && hold_covers(&r->hold, signal)) && !is_ignored(r, signal))
		r->told = signal;
}

static void take_signal(struct run *r, const siginfo_t *info)
{
	if (info->si_signo == SIGCHLD)
		return;
	note_told(r, info);
	if (sigismember(&r->options->leave_on, info->si_signo)) {
		log_event(LOG_ROUTINE, "SIG%s: saving, to end", sigabbrev_np(info->si_signo));
		r->warning = info->si_signo;
		if (run_is_to_end(info->si_signo))
			r->ending = *info;
		r->schedule.leave = true;
		hurry(r);
	} else if (sigismember(&r->options->save_on, info->si_signo)) {
		log_event(LOG_ROUTINE, "SIG%s: saving", sigabbrev_np(info->si_signo));
		r->schedule.save = true;
		hurry(r);
	} else {
		follow_pass_on(info, r->leader);
	}
}

/* Reaps what has ended; true: the child that ends as the program does, with that status. */
static bool has_ended(pid_t child, int *status)
{
	pid_t got;

	do
		got = waitpid(-1, status, WNOHANG | __WALL);
	while (got > 0 && got != child);
	return got == child;
}

/* After the save that has ended the program. */
static void wait_for_end(pid_t child)
{
	siginfo_t info;
	int status;

	while (!has_ended(child, &status)) {
		if (errno == ECHILD)
			return;
		follow_wait(&info, UINT64_MAX);
	}
}

/* Until the program has ended (true) or has been saved and ended (false). */
static bool follow_program(struct run *r, int *status)
{
	for (;;) {
		uint64_t wait_ns;
		siginfo_t info;
		enum schedule_action action;

		if (has_ended(r->child, status))
			return true;
		deadline_check(r, now_ns());
		action = schedule_due(&r->schedule, now_ns(), &wait_ns);
		if (action != SCHEDULE_NONE && save(r, action))
			return false;
		if (action == SCHEDULE_NONE && follow_wait(&info, deadline_wait(r, now_ns(), wait_ns)))
			take_signal(r, &info);
	}
}

/*
 * What it was told, too, and has ended because of before we have heard of that: even what can be held
 * back, if it is not held any more.
 */
static void take_rest(struct run *r)
{
	siginfo_t info;

	while (follow_wait(&info, 0)) {
		note_told(r, &info);
		if (hold_covers(&r->hold, info.si_signo) && !hold_deliver(&r->hold, info.si_signo))
			r->told = info.si_signo;
	}
	/* It was held for as long as it may be, and no save has worked meanwhile. */
	if (r->schedule.leave && r->warning && hold_was_needed(&r->hold, r->warning) &&
	    !hold_deliver(&r->hold, r->warning))
		r->told = r->warning;
}

/*
 * The command has ended by itself: its checkpoints have done their duty if it was content, and was
 * not told to end, as some then do with 0: those have not done their work.
 */
static void end_job(struct run *r, int status)
{
	bool done;

	take_rest(r);
	done = !status && !r->told;
	r->state.phase = STATE_ENDED;
	r->state.status = status ? status : r->told;
	run_note(r);		/* before what can be restarted goes, bit by bit */
	if (WIFSIGNALED(status))
		log_event(LOG_ROUTINE, "the program was ended by SIG%s; its checkpoints stay",
			  sigabbrev_np(WTERMSIG(status)));
	else if (!done && !status)
		log_event(LOG_NOTICE, "the program has ended with 0 after SIG%s: its checkpoints stay, and "
			  "the next run goes on with them", sigabbrev_np(r->told));
	else
		log_event(LOG_ROUTINE, "the program has ended with %d%s", WEXITSTATUS(status),
			  WEXITSTATUS(status) ? "; its checkpoints stay" : "");
	if (r->script && done && !r->options->keep_at_end)
		unlink(r->options->command[0]);
	if (done && !r->options->keep_at_end && folder_clear(&r->folder))
		log_event(LOG_NOTICE, "warning: cannot remove all checkpoints in %s", r->folder.path);
	report_clear();
	run_note(r);
	if (done)
		remove_metrics(r);
}

/* What cannot be held back ends the program as it does without cr_batch. */
static void begin_hold(struct run *r)
{
	if (hold_begin(&r->hold, &r->options->leave_on, (unsigned int)r->options->hold_s))
		log_event(LOG_ROUTINE, "signals to the program take effect at once: %s",
			  report_message());
	report_clear();
}

static int run_program(struct run *r)
{
	int status, code;

	if (run_is_done(r)) {
		log_event(LOG_NOTICE, "the job %s has ended with 0 in a run before: nothing to do (--once)",
			  r->folder.name);
		return 0;
	}
	r->schedule.next_ns = r->schedule.end_ns = SCHEDULE_NEVER;
	begin_hold(r);
	code = run_begin(r);
	if (code)
		return code == -EINTR ? leave(r) : code;
	state_set_leader(&r->state, r->leader);
	r->state.phase = STATE_RUNNING;
	run_note(r);		/* who runs, before anything that takes time */
	set_schedule(r);
	run_note(r);
	if (follow_program(r, &status)) {
		end_job(r, status);
		follow_mimic(status);
	}
	wait_for_end(r->child);
	return leave(r);
}

/* A scheduler that can keep a job in its list keeps it, for its user to let it run again. */
static int held(const struct options *o, int code)
{
	bool not_run = code == EXIT_FOLDER || code == EXIT_TEMPORARY || code == EXIT_HOPELESS;

	return not_run && o->requeue && o->requeue->hold_code ? o->requeue->hold_code : code;
}

static int exit_code_of(int err)
{
	log_event(LOG_FAILURE, "%s", report_message() ? report_message() : strerror(-err));
	return err == -EBUSY ? EXIT_TEMPORARY : EXIT_FOLDER;
}

/* The command is the copy of the script from now on, whether that is there or still to be made. */
static void use_copy(struct run *r, char path[PATH_MAX])
{
	if (!r->options->script)
		return;
	r->script = r->options->command[0];
	r->options->command[0] = job_script_path(&r->folder, path);
}

int run_supervise(const struct options *o)
{
	char copy[PATH_MAX];
	struct run r = { .options = o, .start_ns = now_ns() };
	int code, err = folder_open(&r.folder, o->dir, o->name, true);

	follow_begin();
	follow_commit();
	if (!err)
		err = run_lock(&r);
	if (err)
		return err == -EINTR ? requeue(&r) : held(o, exit_code_of(err));
	log_open(&r.folder);
	log_set_level(o->quiet, o->verbose);
	use_copy(&r, copy);
	err = state_load(&r.state, &r.folder, o->name);
	if (!err)
		err = program_adopt();
	if (err)
		return held(o, exit_code_of(err));
	code = held(o, run_program(&r));
	state_free(&r.state);
	folder_close(&r.folder);
	return code;
}
