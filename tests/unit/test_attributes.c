// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of a process, without the module: a child sets them, they are
 * saved from outside, a second child rebuilds them (the script's calls are made
 * at once), and what is saved of that one must be the same bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "report/report.h"
#include "resource/attribute.h"
#include "saved_child.h"

static void nothing(void *argument)
{
	(void)argument;
}

static void plain(void **state)
{
	(void)state;
	child_round_trip(nothing);
}

static void set_simple(void *argument)
{
	struct rlimit limit = { 100, 200 };

	(void)argument;
	child_need(prctl(PR_SET_NAME, ") a\\b\n") == 0);
	child_need(personality(ADDR_NO_RANDOMIZE) >= 0);
	child_need(chdir("/usr") == 0);
	umask(0137);
	child_need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max = 7;
	child_need(setrlimit(RLIMIT_SIGPENDING, &limit) == 0);
	child_need(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
	child_need(prctl(PR_SET_TIMERSLACK, 77777, 0, 0, 0) == 0);
	child_need(attribute_write_self("coredump_filter", "0x11") == 0);
	child_need(attribute_write_self("oom_score_adj", "500") == 0);
}

static void simple(void **state)
{
	struct child child = child_start(set_simple, NULL);
	Kcr__Process *p;

	(void)state;
	assert_int_equal(child_save(child.pid, &p), 0);
	child_finish(child);
	assert_string_equal(p->name, ") a\\b\n");
	assert_string_equal(p->thread[0]->name, ") a\\b\n");
	assert_string_equal(p->cwd, "/usr");
	assert_int_equal(p->umask, 0137);
	assert_int_equal(p->personality, ADDR_NO_RANDOMIZE);
	assert_int_equal(p->limit[RLIMIT_NOFILE]->soft, 100);
	assert_int_equal(p->limit[RLIMIT_NOFILE]->hard, 200);
	assert_true(p->thp_disable);
	assert_int_equal(p->coredump_filter, 0x11);
	assert_int_equal(p->oom_score_adj, 500);
	kcr__process__free_unpacked(p, NULL);
	child_round_trip(set_simple);
}

static void set_sched(void *argument)
{
	struct sched_param parameter = { .sched_priority = 0 };
	cpu_set_t cpus;

	(void)argument;
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	child_need(sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
	child_need(setpriority(PRIO_PROCESS, 0, 7) == 0);
	child_need(sched_setscheduler(0, SCHED_BATCH, &parameter) == 0);
	child_need(syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
			   IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 6)) == 0);
}

static void scheduling(void **state)
{
	(void)state;
	child_round_trip(set_sched);
}

static void set_realtime(void *argument)
{
	struct sched_param parameter = { .sched_priority = 3 };

	(void)argument;
	child_need(sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &parameter) == 0);
}

static void realtime(void **state)
{
	(void)state;
	if (!have_capability(CAP_SYS_NICE))
		skip();
	child_round_trip(set_realtime);
}

static void set_user(void *argument)
{
	const gid_t groups[] = { 3, 4, 5000 };

	(void)argument;
	child_need(setgroups(3, groups) == 0);
	child_need(setresgid(1001, 1002, 1003) == 0);
	child_need(setresuid(2001, 2002, 2003) == 0);
	child_need(prctl(PR_SET_DUMPABLE, 1) == 0);
}

static void set_capabilities(void *argument)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ 1 << CAP_CHOWN, 1 << CAP_CHOWN | 1 << CAP_KILL, 1 << CAP_CHOWN | 1 << CAP_KILL },
	};

	(void)argument;
	child_need(prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT) == 0);
	child_need(prctl(PR_SET_KEEPCAPS, 1) == 0);
	child_need(setgroups(0, NULL) == 0);
	child_need(setresuid(2001, 2001, 2001) == 0);
	child_need(syscall(SYS_capset, &header, data) == 0);
	child_need(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0) == 0);
	child_need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	child_need(prctl(PR_SET_DUMPABLE, 1) == 0);
}

static void privileged_credentials(void **state)
{
	(void)state;
	if (geteuid() || !have_capability(CAP_SETPCAP))
		skip();
	child_round_trip(set_user);
	child_round_trip(set_capabilities);
}

/* Saved as root, restarted by an ordinary user: refused before anything happens. */
static void become_user(void *argument)
{
	struct remake *m = argument;
	struct context context = { .process = &m->p, .nr_processes = 1 };
	struct rebuild r = { .context = &context };

	set_user(NULL);
	if (attribute_credentials.rebuild(&r, m->p) != -EPERM)
		_exit(1);
	if (!report_message())
		_exit(1);
}

static void no_raise(void **state)
{
	struct child child;
	struct remake remake;

	(void)state;
	if (geteuid())
		skip();
	child = child_start(nothing, NULL);
	assert_int_equal(child_save(child.pid, &remake.p), 0);
	child_finish(child);
	child_finish(child_start(become_user, &remake));
	kcr__process__free_unpacked(remake.p, NULL);
}

/* ---- groups of an ordinary user ------------------------------------------------- */

#define MARK	65400			/* of Grid Engine's gid_range: it has no name */

struct groups {
	size_t count;
	gid_t id[4];			/* in order */
};

static void become_member(void *argument)
{
	const struct groups *groups = argument;

	child_need(!getgrgid(MARK) && !getgrgid(MARK + 1) && getgrgid(3) && getgrgid(4));
	child_need(setgroups(groups->count, groups->id) == 0);
	child_need(setresgid(2001, 2001, 2001) == 0 && setresuid(2001, 2001, 2001) == 0);
	child_need(prctl(PR_SET_DUMPABLE, 1) == 0);
}

struct remake_as {
	struct remake remake;
	struct groups groups;		/* of the caller */
	int expected;
};

/* In a restart by a user with such groups: refused, or the process has these. */
static void remake_as_member(void *argument)
{
	struct remake_as *as = argument;
	Kcr__Process *p = as->remake.p;
	struct context context = { .process = &p, .nr_processes = 1 };
	struct rebuild r = { .context = &context };
	gid_t now[8];

	become_member(&as->groups);
	if (attribute_credentials.rebuild(&r, p) != as->expected)
		_exit(1);
	if (as->expected)
		return;
	if (attribute_credentials.script_thread(&r, p, p->thread[0], NULL) || child_script_failed)
		_exit(1);
	if (getgroups(8, now) != (int)as->groups.count ||
	    memcmp(now, as->groups.id, as->groups.count * sizeof(*now)))
		_exit(1);
}

static void marks_of_jobs(void **state)
{
	static const struct {
		struct groups saved, caller;
		int expected;
	} rows[] = {
		{ { 3, { 3, 4, MARK } }, { 3, { 3, 4, MARK + 1 } }, 0 },	/* the next run */
		{ { 3, { 3, 4, MARK } }, { 2, { 3, 4 } }, 0 },
		{ { 2, { 3, 4 } }, { 3, { 3, 4, MARK } }, 0 },
		{ { 0, {} }, { 1, { MARK } }, 0 },
		{ { 3, { 3, 4, MARK } }, { 2, { 3, MARK } }, -EPERM },
		{ { 2, { 3, MARK } }, { 3, { 3, 4, MARK } }, -EPERM },
		{ { 2, { 3, MARK } }, { 2, { 4, MARK } }, -EPERM },
	};

	(void)state;
	if (geteuid())
		skip();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct remake_as as = { .groups = rows[i].caller, .expected = rows[i].expected };
		struct child child = child_start(become_member, (void *)&rows[i].saved);

		assert_int_equal(child_save(child.pid, &as.remake.p), 0);
		child_finish(child);
		child_finish(child_start(remake_as_member, &as));
		kcr__process__free_unpacked(as.remake.p, NULL);
	}
}

static void go_to_lost_folder(void *argument)
{
	char path[] = "/tmp/kcr-attribute.XXXXXX";

	(void)argument;
	child_need(mkdtemp(path) && chdir(path) == 0 && rmdir(path) == 0);
}

static void lost_folder(void **state)
{
	(void)state;
	child_round_trip(go_to_lost_folder);
}

/* Rebuilds, then looks at itself. */
static void rebuild_and_look(void *argument)
{
	struct remake *m = argument;
	const struct timespec now = { 0, 0 };
	struct itimerspec posix;
	struct itimerval real;
	struct sigaction action;
	siginfo_t info;
	sigset_t set;

	child_rebuild(m);
	child_need(sigaction(SIGUSR1, NULL, &action) == 0);
	child_need(action.sa_handler == SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	child_need(sigtimedwait(&set, &info, &now) == SIGRTMIN + 3);
	child_need(info.si_code == SI_QUEUE && info.si_pid == 4711 && info.si_uid == 12 &&
		   info.si_value.sival_int == 815);
	child_need(getitimer(ITIMER_REAL, &real) == 0);
	child_need(real.it_interval.tv_sec == 3 && real.it_value.tv_sec >= 900 &&
		   real.it_value.tv_sec <= 1000);
	child_need(syscall(SYS_timer_gettime, 2, &posix) == 0);
	child_need(posix.it_interval.tv_nsec == 500 && posix.it_value.tv_sec >= 1900 &&
		   posix.it_value.tv_sec <= 2000);
}

static void signals_and_timers(void **state)
{
	struct child child;
	struct remake remake;

	(void)state;
	memset(&canned_signal, 0, sizeof(canned_signal));
	canned_signal.si_signo = SIGRTMIN + 3;
	canned_signal.si_code = SI_QUEUE;
	canned_signal.si_pid = 4711;
	canned_signal.si_uid = 12;
	canned_signal.si_value.sival_int = 815;
	canned_timer[0] = (struct kcr_timer){ .kind = KCR_TIMER_ITIMER, .id = ITIMER_REAL,
		.remaining_ns = 1000000000000, .interval_ns = 3000000000 };
	canned_timer[1] = (struct kcr_timer){ .kind = KCR_TIMER_POSIX, .id = 2,
		.clock = CLOCK_MONOTONIC, .notify = SIGEV_SIGNAL, .signal = SIGUSR2, .value = 99,
		.remaining_ns = 2000000000000, .interval_ns = 500 };
	nr_canned_signals = 1;
	nr_canned_timers = 2;
	child = child_start(nothing, NULL);
	assert_int_equal(child_save(child.pid, &remake.p), 0);
	child_finish(child);
	assert_int_equal(remake.p->n_pending, 1);
	assert_int_equal(remake.p->n_timer, 2);
	remake.p->n_action = SIGUSR1;
	remake.p->action = calloc(SIGUSR1, sizeof(*remake.p->action));
	for (size_t i = 0; i < remake.p->n_action; i++) {
		remake.p->action[i] = malloc(sizeof(**remake.p->action));
		kcr__sig_action__init(remake.p->action[i]);
	}
	remake.p->action[SIGUSR1 - 1]->handler = (uintptr_t)SIG_IGN;
	child_finish(child_start(rebuild_and_look, &remake));
	kcr__process__free_unpacked(remake.p, NULL);
	nr_canned_signals = nr_canned_timers = 0;
}

/* No machine here has it: by what /proc would say. */
static void shadow_stack(void **state)
{
	struct process_probe probe = { .pid = 1234, .status = "Seccomp:\t0\n"
				       "x86_Thread_features:\tshstk wrss \n"
				       "x86_Thread_features_locked:\t\n" };

	(void)state;
	assert_int_equal(attribute_prctl.check(&probe), -EOPNOTSUPP);
	assert_non_null(strstr(report_message(), "shadow stack"));
	report_clear();
	probe.status = "Seccomp:\t0\nx86_Thread_features:\t\n"
		       "x86_Thread_features_locked:\tshstk \n";
	assert_int_equal(attribute_prctl.check(&probe), 0);
}

/* Nor this. */
static void tagged_addresses(void **state)
{
	struct process_probe probe = { .pid = 1234, .status = "Seccomp:\t0\n"
				       "untag_mask:\t0x81ffffffffffffff\n" };

	(void)state;
	assert_int_equal(attribute_prctl.check(&probe), -EOPNOTSUPP);
	assert_non_null(strstr(report_message(), "tags in its addresses"));
	report_clear();
	probe.status = "Seccomp:\t0\nuntag_mask:\t0xffffffffffffffff\n";
	assert_int_equal(attribute_prctl.check(&probe), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),
		cmocka_unit_test(tagged_addresses),
		cmocka_unit_test(simple),
		cmocka_unit_test(scheduling),
		cmocka_unit_test(realtime),
		cmocka_unit_test(privileged_credentials),
		cmocka_unit_test(no_raise),
		cmocka_unit_test(marks_of_jobs),
		cmocka_unit_test(lost_folder),
		cmocka_unit_test(signals_and_timers),
		cmocka_unit_test(shadow_stack),
	};

	report_set_level(-1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
