// SPDX-License-Identifier: GPL-2.0
/*
 * Timers.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "check.h"

/* ---- alarm ---- */

static volatile int alarms;

static void on_alarm(int signal)
{
	(void)signal;
	alarms++;
}

/* An alarm that is due some seconds later comes once. */
static void time_alarm(void)
{
	struct sigaction action = { .sa_handler = on_alarm };

	NEED(!sigaction(SIGALRM, &action, NULL));
	alarm(4);
	check_ready();
	while (!alarms)		/* pause() would miss one that comes just before */
		usleep(10000);
	while (!check_gone())
		usleep(10000);
	CHECK(alarms == 1 && alarm(0) == 0);
}

/* ---- itimers ---- */

static volatile int fired[3];

static void count_signal(int signal)
{
	fired[signal == SIGALRM ? 0 : signal == SIGVTALRM ? 1 : 2]++;
}

/* The three interval timers: what was left, their intervals, and that they fire. */
static void time_itimers(void)
{
	struct itimerval real = { { 1000, 5000 }, { 5000, 0 } };
	struct itimerval cpu = { { 500, 0 }, { 300, 0 } }, now;
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGVTALRM, &action, NULL);
	sigaction(SIGPROF, &action, NULL);
	NEED(!setitimer(ITIMER_REAL, &real, NULL));
	NEED(!setitimer(ITIMER_VIRTUAL, &cpu, NULL) && !setitimer(ITIMER_PROF, &cpu, NULL));
	checkpoint_here();
	CHECK(!getitimer(ITIMER_REAL, &now));
	CHECK(now.it_interval.tv_sec == 1000 && now.it_interval.tv_usec == 5000);
	CHECK(now.it_value.tv_sec > 4800 && now.it_value.tv_sec < 5000);
	for (int which = ITIMER_VIRTUAL; which <= ITIMER_PROF; which++) {
		CHECK(!getitimer(which, &now));
		CHECK(now.it_interval.tv_sec == 500 && now.it_value.tv_sec > 200 &&
		      now.it_value.tv_sec <= 300);
	}
	CHECK(!fired[0] && !fired[1] && !fired[2]);
	real.it_value.tv_sec = real.it_interval.tv_sec = 0;
	real.it_value.tv_usec = real.it_interval.tv_usec = 20000;
	for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
		CHECK(!setitimer(which, &real, NULL));
	for (volatile long i = 0; (!fired[0] || !fired[1] || !fired[2]) && i < 3000000000l; i++)
		;
	CHECK(fired[0] && fired[1] && fired[2]);
}

/* ---- timerfd ---- */

#define ALARM		"clockid: 9"
#define CANCELED	"settime flags: 03"

/* Is this in what the kernel tells of the descriptor? */
static bool has_mark(int fd, const char *mark)
{
	char name[64], text[512] = "";
	int info;

	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	info = open(name, O_RDONLY);
	return info >= 0 && read(info, text, sizeof(text) - 1) > 0 && !close(info) && strstr(text, mark);
}

/*
 * timerfd: armed, interval, expirations not yet read, an absolute one that a change of the clock
 * cancels, a disarmed one, an alarm clock.
 */
static void time_timerfd(void)
{
	struct itimerspec set = { { 7, 500 }, { 5000, 0 } }, now;
	int alarm = timerfd_create(CLOCK_BOOTTIME_ALARM, 0);	/* takes a privilege */
	int far, due, absolute, idle;
	struct pollfd poller;
	uint64_t count;

	far = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	due = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	absolute = timerfd_create(CLOCK_REALTIME, 0);
	idle = timerfd_create(CLOCK_BOOTTIME, 0);
	NEED(far >= 0 && due >= 0 && absolute >= 0 && idle >= 0);
	NEED(!timerfd_settime(far, 0, &set, NULL));
	NEED(alarm < 0 || (!timerfd_settime(alarm, 0, &set, NULL) && has_mark(alarm, ALARM)));
	set.it_value.tv_sec = 0;
	set.it_value.tv_nsec = set.it_interval.tv_nsec = 20000000;
	set.it_interval.tv_sec = 0;
	NEED(!timerfd_settime(due, 0, &set, NULL));
	set.it_value.tv_sec = time(NULL) + 6000;
	set.it_value.tv_nsec = 0;
	NEED(!timerfd_settime(absolute, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &set, NULL));
	NEED(has_mark(absolute, CANCELED));
	check_sleep_ms(200);
	checkpoint_here();
	CHECK(!timerfd_gettime(far, &now) && now.it_interval.tv_sec == 7 &&
	      now.it_interval.tv_nsec == 500);
	CHECK(now.it_value.tv_sec < 5000 && now.it_value.tv_sec > 4800);
	CHECK(fcntl(far, F_GETFD) == FD_CLOEXEC && fcntl(due, F_GETFL) & O_NONBLOCK);
	CHECK(read(due, &count, 8) == 8 && count >= 9);
	poller = (struct pollfd){ due, POLLIN, 0 };
	CHECK(poll(&poller, 1, 5000) == 1 && read(due, &count, 8) == 8 && count >= 1);
	CHECK(!timerfd_gettime(absolute, &now) && now.it_value.tv_sec > 5800 &&
	      now.it_value.tv_sec <= 6000 && has_mark(absolute, CANCELED));
	CHECK(alarm < 0 || (!timerfd_gettime(alarm, &now) && now.it_value.tv_sec > 4800 &&
			    has_mark(alarm, ALARM)));
	CHECK(!timerfd_gettime(idle, &now) && !now.it_value.tv_sec && !now.it_value.tv_nsec);
}

/* ---- posix ---- */

#define FAR	5000

static volatile int value, who;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	if (info->si_code == SI_TIMER) {
		value = info->si_value.sival_int;
		who = syscall(SYS_gettid);
	}
}

static int make(clockid_t clock, int notify, int number, pid_t tid)
{
	struct sigevent event = { .sigev_notify = notify, .sigev_signo = SIGRTMIN + 2 };
	int id;

	event.sigev_value.sival_int = number;
	event._sigev_un._tid = tid;
	NEED(!syscall(SYS_timer_create, clock, &event, &id));
	return id;
}

static void arm(int id, time_t first, long interval_ns)
{
	struct itimerspec set = { { 0, interval_ns }, { first, first ? 0 : 1000000 } };

	NEED(!syscall(SYS_timer_settime, id, 0, &set, NULL));
}

static void expect(int id, time_t first, long interval_ns)
{
	struct itimerspec now;

	CHECK(!syscall(SYS_timer_gettime, id, &now));
	CHECK(now.it_interval.tv_nsec == interval_ns);
	CHECK(now.it_value.tv_sec <= first && now.it_value.tv_sec > first - 200);
}

static volatile pid_t waiting_tid;
static volatile bool in_wait;

static void *wait_for_timer(void *argument)
{
	waiting_tid = syscall(SYS_gettid);
	check_wait();
	in_wait = true;
	while (!argument || value != 77)
		usleep(1000);
	return argument;
}

static void *leave_timer(void *id)
{
	*(int *)id = make(CLOCK_MONOTONIC, SIGEV_THREAD_ID, 19, syscall(SYS_gettid));
	return NULL;
}

/*
 * POSIX timers: numbers with gaps, clocks, values in signals, a timer for one thread,
 * one for a thread that has ended, a disarmed one and one without a signal.
 */
static void time_posix(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	int monotonic, gap, real, idle, thread_timer, silent, cpu, left, tai;
	pthread_t thread, ended;

	NEED(!sigaction(SIGRTMIN + 2, &action, NULL));
	NEED(!pthread_create(&thread, NULL, wait_for_timer, &action));
	while (!waiting_tid)
		usleep(1000);
	monotonic = make(CLOCK_MONOTONIC, SIGEV_SIGNAL, 11, 0);
	gap = make(CLOCK_MONOTONIC, SIGEV_SIGNAL, 12, 0);
	real = make(CLOCK_REALTIME, SIGEV_SIGNAL, 13, 0);
	idle = make(CLOCK_BOOTTIME, SIGEV_SIGNAL, 14, 0);
	silent = make(CLOCK_MONOTONIC, SIGEV_NONE, 15, 0);
	tai = make(CLOCK_TAI, SIGEV_SIGNAL, 20, 0);
	thread_timer = make(CLOCK_MONOTONIC, SIGEV_THREAD_ID, 77, waiting_tid);
	cpu = make(CLOCK_PROCESS_CPUTIME_ID, SIGEV_SIGNAL, 16, 0);
	NEED(!pthread_create(&ended, NULL, leave_timer, &left) && !pthread_join(ended, NULL));
	NEED(!syscall(SYS_timer_delete, gap));
	arm(left, FAR + 5, 2000);
	arm(monotonic, FAR, 1000);
	arm(real, FAR + 1, 0);
	arm(silent, FAR + 2, 3000);
	arm(thread_timer, FAR + 3, 0);
	arm(cpu, FAR + 4, 0);
	arm(tai, FAR + 6, 0);
	checkpoint_here();
	expect(monotonic, FAR, 1000);
	expect(real, FAR + 1, 0);
	expect(silent, FAR + 2, 3000);
	expect(thread_timer, FAR + 3, 0);
	expect(cpu, FAR + 4, 0);
	expect(left, FAR + 5, 2000);
	expect(tai, FAR + 6, 0);
	expect(idle, 0, 0);
	CHECK(syscall(SYS_timer_getoverrun, gap) < 0 && errno == EINVAL);
	/* From here on signals come: none may end the other thread's check_wait(). */
	while (!in_wait)
		usleep(1000);
	arm(idle, 0, 0);
	while (value != 14)
		usleep(1000);
	arm(left, 0, 0);
	arm(thread_timer, 0, 0);
	CHECK(!pthread_join(thread, NULL) && who == waiting_tid);
}

/* ---- alarm_clocks ---- */

/* Is a timer of this clock in what the kernel tells of the process's? */
static bool has_timer(const char *clock)
{
	char text[1024] = "";
	int timers = open("/proc/self/timers", O_RDONLY);

	return timers >= 0 && read(timers, text, sizeof(text) - 1) > 0 && !close(timers) &&
	       strstr(text, clock);
}

/* Those that wake the machine, which takes a privilege. */
static void time_alarm_clocks(void)
{
	int real = make(CLOCK_REALTIME_ALARM, SIGEV_SIGNAL, 21, 0);
	int boot = make(CLOCK_BOOTTIME_ALARM, SIGEV_SIGNAL, 22, 0);
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	NEED(!sigaction(SIGRTMIN + 2, &action, NULL));
	arm(real, FAR, 0);
	arm(boot, FAR + 1, 4000);
	NEED(has_timer("ClockID: 8") && has_timer("ClockID: 9"));
	checkpoint_here();
	expect(real, FAR, 0);
	expect(boot, FAR + 1, 4000);
	CHECK(has_timer("ClockID: 8") && has_timer("ClockID: 9"));
	arm(boot, 0, 0);
	while (value != 22)
		usleep(1000);
}

/* ---- family, outside ---- */

static clockid_t cpu_time_of(pid_t pid)
{
	clockid_t clock;

	NEED(!clock_getcpuclockid(pid, &clock));
	return clock;
}

/* On the CPU time of the parent and of a child. */
static void time_family(void)
{
	pid_t parent = getpid(), child = fork();
	int timer, status;

	NEED(child >= 0);
	timer = make(cpu_time_of(child ?: parent), SIGEV_SIGNAL, 17, 0);
	arm(timer, FAR, 0);
	if (child)
		check_sleep_ms(200);
	if (child)
		check_ready();
	check_wait();
	expect(timer, FAR, 0);
	if (!child)
		_exit(check_end());
	CHECK(waitpid(child, &status, 0) == child && !status);
}

/* On that of a process that is not saved. */
static void time_outside(void)
{
	int timer = make(cpu_time_of(getppid()), SIGEV_SIGNAL, 18, 0);

	arm(timer, FAR, 0);
	checkpoint_here();
	expect(timer, FAR, 0);
}

/* ---- many ---- */

#define TIMERS	600

static timer_t timers[TIMERS];

static clockid_t clock_of(int i)
{
	clockid_t cpu;

	switch (i % 5) {
	case 0:
		return CLOCK_MONOTONIC;
	case 1:
		return CLOCK_REALTIME;
	case 2:
		return CLOCK_PROCESS_CPUTIME_ID;
	case 3:
		NEED(!pthread_getcpuclockid(pthread_self(), &cpu));
		return cpu;
	default:
		NEED(!clock_getcpuclockid(getpid(), &cpu));
		return cpu;
	}
}

static bool is_armed(int i)
{
	return i % 7;
}

static void set_timer(int i)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec time = {
		.it_value.tv_sec = is_armed(i) ? 10000 + i : 0, .it_interval.tv_sec = i + 1,
	};

	NEED(!timer_create(clock_of(i), &event, &timers[i]));
	NEED(!timer_settime(timers[i], 0, &time, NULL));
}

static void check_timer(int i)
{
	struct itimerspec time;

	CHECK(!timer_gettime(timers[i], &time));
	if (!is_armed(i)) {
		CHECK(!time.it_value.tv_sec && !time.it_value.tv_nsec);
		return;
	}
	CHECK(time.it_interval.tv_sec == i + 1);
	CHECK(time.it_value.tv_sec <= 10000 + i && time.it_value.tv_sec > 8000 + i);
}

/* More timers than are looked at at once, on clocks of all kinds, armed and not. */
static void time_many(void)
{
	for (int i = 0; i < TIMERS; i++)
		set_timer(i);
	checkpoint_here();
	for (int i = 0; i < TIMERS; i++)
		check_timer(i);
}

/* ---- expiry ---- */

#define IDLE	40
#define BY_THREAD	(SIGRTMIN + 1)
#define BY_PROCESS	(SIGRTMIN + 2)

static void wait_for(int signal)
{
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	while (sigwaitinfo(&set, &info) < 0)
		CHECK(errno == EINTR);
}

static timer_t make_for(int notify, int signal)
{
	struct sigevent event = { .sigev_notify = notify, .sigev_signo = signal };
	int id;

	event._sigev_un._tid = syscall(SYS_gettid);
	NEED(!syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id));
	return (timer_t)(long)id;
}

static void *use_posix(void *argument)
{
	int signal = (long)argument;
	timer_t timer = make_for(signal == BY_THREAD ? SIGEV_THREAD_ID : SIGEV_SIGNAL, signal);
	struct itimerspec set = {};

	for (long i = 0; !check_gone(); i++) {
		set.it_value.tv_nsec = 1000000 + i * 13 % 60 * 1000000;
		NEED(!syscall(SYS_timer_settime, (int)(long)timer, 0, &set, NULL));
		wait_for(signal);
	}
	return NULL;
}

static void *use_itimer(void *argument)
{
	struct itimerval set = {};

	for (long i = 0; !check_gone(); i++) {
		set.it_value.tv_usec = 1000 + i * 7 % 50 * 1000;
		NEED(!setitimer(ITIMER_REAL, &set, NULL));
		wait_for(SIGALRM);
	}
	return argument;
}

/* Forty that look often leave a slow machine no time for anything else. */
static void *idle(void *argument)
{
	while (!check_gone())
		check_sleep_ms(500);
	return argument;
}

/*
 * Timers that are set once and again and expire all the time, each waited for without
 * a limit: that of the process, one of a thread, and one of all.  Other threads only
 * make it take longer to save them.
 */
static void time_expiry(void)
{
	pthread_t thread[3 + IDLE];
	sigset_t all;

	sigfillset(&all);
	NEED(!sigprocmask(SIG_BLOCK, &all, NULL));
	NEED(!pthread_create(&thread[0], NULL, use_posix, (void *)(long)BY_THREAD));
	NEED(!pthread_create(&thread[1], NULL, use_posix, (void *)(long)BY_PROCESS));
	NEED(!pthread_create(&thread[2], NULL, use_itimer, NULL));
	for (int i = 3; i < 3 + IDLE; i++)
		NEED(!pthread_create(&thread[i], NULL, idle, NULL));
	check_ready();
	for (int i = 0; i < 3 + IDLE; i++)
		pthread_join(thread[i], NULL);
}

static const struct check checks[] = {
	{ "alarm", time_alarm },
	{ "itimers", time_itimers },
	{ "timerfd", time_timerfd },
	{ "posix", time_posix },
	{ "alarm_clocks", time_alarm_clocks },
	{ "many", time_many },
	{ "expiry", time_expiry },
	{ "family", time_family },
	{ "outside", time_outside },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
