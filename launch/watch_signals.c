// SPDX-License-Identifier: GPL-2.0
/* What signals to cr_mpirun do to the job.  See watch.h. */
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launch/watch_internal.h"
#include "proc/clock.h"

#define STOP_NS	(100 * MS)		/* from the message that stops ranks to our own stop */

bool watch_is_deadly(int number)
{
	return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

/* The coordinator's thread has to send what the ranks are told before. */
static void stop_soon(struct watch *w)
{
	if (!w->stop_ns)
		w->stop_ns = now_ns() + STOP_NS;
}

static void go_on(struct watch *w)
{
	w->stop_ns = 0;
	w->stops = false;
	watch_expect_ranks(w);
	launcher_continue(&w->launcher);
	watch_tell_all(w, RANK_SIGNAL, SIGCONT);
}

void watch_stop(struct watch *w)
{
	raise(SIGSTOP);
	go_on(w);
}

/* The launcher is dead, or as good as that. */
static void signal_ranks(struct watch *w, int number)
{
	if (watch_is_deadly(number))
		watch_end_job(w);
	else if (number == SIGTSTP)
		stop_soon(w);
	else if (number == SIGUSR1 || number == SIGUSR2 || number == SIGABRT)
		watch_tell_all(w, RANK_SIGNAL, number);
}

static void take_child(struct watch *w)
{
	if (w->launcher.ended)
		return;
	if (launcher_check(&w->launcher))
		watch_launcher_ended(w);
	else if (w->launcher.stopped && w->stops)
		stop_soon(w);
}

/* Who sends it wants the end, whatever has been going on. */
static void end_on_purpose(struct watch *w)
{
	if (w->recovery->due)
		show_say(&w->show, "the job does not go on: a signal ends it");
	w->recovery->due = false;
	w->ends = w->asked = true;
	w->stop_ns = 0;
	watch_end_start(w);
	if (w->launcher.ended)
		show_drop(&w->show);
}

/* What the launcher does not do: its children are not the ranks. */
static void stop_or_continue(struct watch *w, int number)
{
	if (number == SIGTSTP) {
		watch_tell_all(w, RANK_SIGNAL, SIGSTOP);
		w->stops = true;
		if (w->launcher.stopped)
			stop_soon(w);
	} else if (number == SIGCONT) {
		go_on(w);
	}
}

/* Before there are ranks it would only kill the launcher, which then does not pass it on yet. */
static bool has_nobody(const struct watch *w, int number)
{
	return (number == SIGUSR1 || number == SIGUSR2) && w->wire.fd >= 0 && !w->ranks.started;
}

/* What the terminal sends goes to the whole process group, the launcher included. */
static void take_signal(struct watch *w, const struct signalfd_siginfo *info)
{
	int number = info->ssi_signo;

	if (number == SIGCHLD) {
		take_child(w);
		return;
	}
	if (number == SIGPIPE && info->ssi_pid == (uint32_t)getpid())
		return;			/* show.c has noticed it */
	stop_or_continue(w, number);
	if (w->alone)
		signal_ranks(w, number);
	if (watch_is_deadly(number) || number == SIGABRT)
		end_on_purpose(w);
	if (!w->alone && info->ssi_code != SI_KERNEL && !w->launcher.ended && !has_nobody(w, number))
		kill(w->launcher.pid, number);
}

void watch_take_signals(struct watch *w)
{
	struct signalfd_siginfo info;

	while (read(w->signals, &info, sizeof(info)) == sizeof(info))
		take_signal(w, &info);
}
