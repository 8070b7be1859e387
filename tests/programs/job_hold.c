// SPDX-License-Identifier: GPL-2.0
/*
 * Signals that a job holds back: job_hold PART.  The program itself is a stranger who sends
 * signals; its child is the owner of the job, which gives orders to it; the owner's
 * child is the target, which notes the signals that it gets.
 */
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "job.h"

#define TERM_ONLY	sigbit(SIGTERM)
#define LONG_MS		60000
#define CROWD		150	/* targets with seven signals each are more than KCR_HOLD_MAX */

static uint64_t sigbit(int signal)
{
	return 1ull << (signal - 1);
}

enum order_kind { HOLD, SEND, CLOSE, ADOPT, STRANGER_JOB };

/* From the stranger to the owner. */
struct order {
	enum order_kind kind;
	uint64_t signals;
	unsigned int limit_ms;
	pid_t to;			/* SEND: SIGTERM to this process */
};

struct answer {
	int ret;
	uint64_t held;
};

static struct shared {
	volatile unsigned int count;	/* of signals that the target got */
	siginfo_t got[16];
	volatile pid_t target;
	volatile bool child_sends;	/* the target forks a child that sends SIGTERM to it */
	volatile bool rise;		/* the target, a user's, becomes root's, and says so: */
	volatile bool has_risen;
	volatile pid_t crowd[CROWD];
} *shared;

static int to_owner[2], from_owner[2];
static pid_t owner;
static unsigned int targets = 1;
static bool as_user, far_away;	/* the owner is one; the target is a daemon */
static bool rises;		/* the target is a user's, and may become root's */

/* ---- the target ---------------------------------------------------------------------- */

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	NEED(!sigprocmask(SIG_BLOCK, &all, NULL));
}

static void send_from_child(void)
{
	shared->child_sends = false;
	if (!fork()) {
		kill(getppid(), SIGTERM);
		_exit(0);
	}
}

static void be_users(void)
{
	NEED(!prctl(PR_SET_KEEPCAPS, 1) && !setresuid(1000, 1000, 1000));
}

static void rise(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2] = {
		{ .effective = 1 << CAP_SETUID, .permitted = 1 << CAP_SETUID },
	};

	NEED(!syscall(SYS_capset, &head, sets) && !setresuid(0, 0, 0));
	shared->rise = false;
	shared->has_risen = true;
}

static void be_target(void)
{
	struct timespec soon = { 0, 20000000 };
	sigset_t all;

	if (rises)
		be_users();
	shared->target = getpid();
	while (targets == CROWD)	/* all signals are blocked, and stay pending */
		pause();
	sigfillset(&all);
	for (;;) {
		siginfo_t info;

		if (shared->child_sends)
			send_from_child();
		if (shared->rise)
			rise();
		if (sigtimedwait(&all, &info, &soon) <= 0 || info.si_signo == SIGCHLD)
			continue;
		shared->got[shared->count % 16] = info;
		shared->count++;
	}
}

/* ---- the owner ------------------------------------------------------------------------ */

static struct answer hold(int job, uint64_t signals, unsigned int limit_ms)
{
	struct kcr_hold request = {
		.size = sizeof(request), .signals = signals, .limit_ms = limit_ms, .held = -1,
	};
	struct answer answer = { .ret = job_call(job, KCR_IOC_HOLD, &request) };

	answer.held = request.held;
	return answer;
}

static struct answer obey(int *job, const struct order *order)
{
	struct answer answer = {};

	switch (order->kind) {
	case HOLD:
		return hold(*job, order->signals, order->limit_ms);
	case SEND:
		answer.ret = kill(order->to, SIGTERM);
		break;
	case CLOSE:
		answer.ret = close(*job);
		break;
	case ADOPT:
		*job = job_open();
		answer.ret = *job < 0 ? *job : 0;
		break;
	case STRANGER_JOB:
		return hold(job_open(), order->signals, order->limit_ms);
	}
	return answer;
}

static void start_targets(void)
{
	for (unsigned int i = 0; i < targets; i++) {
		pid_t pid = fork();

		if (!pid && far_away && fork())
			_exit(0);
		if (!pid)
			be_target();
		if (i < CROWD)
			shared->crowd[i] = pid;
	}
}

static void be_owner(void)
{
	struct order order;
	int job;

	block_all();
	NEED(!setpgid(0, 0));
	NEED(!prctl(PR_SET_PDEATHSIG, SIGKILL) && !prctl(PR_SET_CHILD_SUBREAPER, 1));
	start_targets();
	if (as_user)
		job_be_user();
	job = job_open();
	NEED(job >= 0);
	while (read(to_owner[0], &order, sizeof(order)) == sizeof(order)) {
		struct answer answer = obey(&job, &order);

		NEED(write(from_owner[1], &answer, sizeof(answer)) == sizeof(answer));
	}
	_exit(0);
}

/* ---- the stranger ---------------------------------------------------------------------- */

static struct answer command(struct order order)
{
	struct answer answer;

	NEED(write(to_owner[1], &order, sizeof(order)) == sizeof(order));
	NEED(read(from_owner[0], &answer, sizeof(answer)) == sizeof(answer));
	return answer;
}

static struct answer ask(uint64_t signals, unsigned int limit_ms)
{
	return command((struct order){ .kind = HOLD, .signals = signals, .limit_ms = limit_ms });
}

static void begin(void)
{
	NEED(!pipe(to_owner) && !pipe(from_owner));
	owner = fork();
	NEED(owner >= 0);
	if (!owner)
		be_owner();
	for (int i = 0; i < 500 && !shared->target; i++)
		check_sleep_ms(20);
	NEED(shared->target);
	CHECK(ask(TERM_ONLY, LONG_MS).ret == 0);
}

/* Comes this many signals to the target, and no more? */
static bool arrived(unsigned int count)
{
	for (int i = 0; i < 500 && shared->count < count; i++)
		check_sleep_ms(20);
	check_sleep_ms(200);
	return shared->count == count;
}

static void end(void)
{
	CHECK(ask(0, 0).ret == 0);
	kill(shared->target, SIGKILL);
	job_kill(owner);
}

static void held(void)
{
	struct answer answer;

	begin();
	CHECK(kill(shared->target, SIGTERM) == 0);
	CHECK(kill(shared->target, SIGTERM) == 0);
	CHECK(arrived(0));
	answer = ask(TERM_ONLY, 0);
	CHECK(answer.ret == 0 && answer.held == TERM_ONLY);
	CHECK(arrived(1));
	CHECK(shared->got[0].si_signo == SIGTERM && shared->got[0].si_code == SI_USER);
	CHECK(shared->got[0].si_pid == getpid() && shared->got[0].si_uid == getuid());
	CHECK(ask(TERM_ONLY, 0).held == 0);
	end();
}

static void queued(void)
{
	const union sigval value = { .sival_int = 4711 };

	begin();
	CHECK(ask(TERM_ONLY | sigbit(SIGUSR1), LONG_MS).ret == 0);
	CHECK(sigqueue(shared->target, SIGUSR1, value) == 0);
	CHECK(kill(shared->target, SIGTERM) == 0);
	CHECK(arrived(0));
	CHECK(ask(0, 0).held == (TERM_ONLY | sigbit(SIGUSR1)));
	CHECK(arrived(2));
	for (int i = 0; i < 2; i++)
		if (shared->got[i].si_signo == SIGUSR1)
			CHECK(shared->got[i].si_value.sival_int == 4711 &&
			      shared->got[i].si_code == SI_QUEUE);
	end();
}

/* Each by itself when its time is over; the time of what is held can be changed. */
static void bounded(void)
{
	begin();
	CHECK(ask(TERM_ONLY, 300).ret == 0);
	CHECK(kill(shared->target, SIGTERM) == 0);
	CHECK(arrived(1));
	CHECK(ask(TERM_ONLY, 1000).ret == 0);
	CHECK(kill(shared->target, SIGTERM) == 0);
	CHECK(ask(TERM_ONLY, LONG_MS).held == TERM_ONLY);
	check_sleep_ms(1500);
	CHECK(shared->count == 1);
	CHECK(ask(TERM_ONLY, 100).held == TERM_ONLY);
	CHECK(arrived(2));
	end();
}

/* What is not held: other signals, other ways, and what comes from within. */
static void passed(void)
{
	begin();
	CHECK(kill(shared->target, SIGCONT) == 0 && arrived(1));
	CHECK(kill(shared->target, SIGRTMIN) == 0 && arrived(2));
	CHECK(kill(shared->target, SIGUSR1) == 0 && arrived(3));
	CHECK(syscall(SYS_tgkill, shared->target, shared->target, SIGTERM) == 0 && arrived(4));
	CHECK(command((struct order){ .kind = SEND, .to = shared->target }).ret == 0 && arrived(5));
	shared->child_sends = true;
	CHECK(arrived(6));
	/* A process that is no descendant. */
	CHECK(kill(owner, SIGTERM) == 0);
	CHECK(ask(TERM_ONLY, LONG_MS).held == 0);
	end();
}

/* All of a process group; one that is killed meanwhile is no matter. */
static void group(void)
{
	targets = 3;
	begin();
	while (!shared->crowd[2])
		check_sleep_ms(20);
	NEED(getpgid(shared->crowd[2]) == owner);
	CHECK(kill(-owner, SIGTERM) == 0);
	CHECK(arrived(0));
	CHECK(kill(shared->crowd[0], SIGKILL) == 0);
	CHECK(ask(TERM_ONLY, 0).held == TERM_ONLY);
	CHECK(arrived(2));
	kill(shared->crowd[1], SIGKILL);
	kill(shared->crowd[2], SIGKILL);
	end();
}

static void daemon_too(void)
{
	far_away = true;
	begin();
	check_sleep_ms(300);		/* its parent has ended */
	CHECK(kill(shared->target, SIGTERM) == 0 && arrived(0));
	CHECK(ask(TERM_ONLY, 0).held == TERM_ONLY && arrived(1));
	end();
}

static void closed(void)
{
	begin();
	CHECK(kill(shared->target, SIGTERM) == 0 && arrived(0));
	CHECK(command((struct order){ .kind = CLOSE }).ret == 0);
	CHECK(arrived(1));
	CHECK(kill(shared->target, SIGTERM) == 0 && arrived(2));
	CHECK(command((struct order){ .kind = ADOPT }).ret == 0);
	CHECK(ask(TERM_ONLY, LONG_MS).ret == 0);
	CHECK(kill(shared->target, SIGTERM) == 0 && arrived(2));
	job_kill(owner);
	CHECK(arrived(3));
	kill(shared->target, SIGKILL);
}

static unsigned int pending_of(pid_t pid)
{
	char path[64], text[8192];
	const char *line;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	line = strstr(check_slurp(path, text, sizeof(text)), "ShdPnd:");
	return line ? __builtin_popcountll(strtoull(line + 7, NULL, 16)) : 0;
}

/* More than there is room for are delivered at once. */
static void full(void)
{
	static const int signals[] = {
		SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGXCPU,
	};
	unsigned int sent = 0, pending = 0;

	targets = CROWD;
	begin();
	CHECK(ask(KCR_HOLD_SIGNALS, LONG_MS).ret == 0);
	while (!shared->crowd[CROWD - 1])
		check_sleep_ms(20);
	for (int i = 0; i < CROWD; i++)
		for (size_t k = 0; k < sizeof(signals) / sizeof(*signals); k++, sent++)
			CHECK(kill(shared->crowd[i], signals[k]) == 0);
	for (int i = 0; i < CROWD; i++)
		pending += pending_of(shared->crowd[i]);
	CHECK(sent - pending == KCR_HOLD_MAX);
	CHECK(ask(0, 0).held == KCR_HOLD_SIGNALS);
	for (int i = 0; i < CROWD; i++) {
		CHECK(pending_of(shared->crowd[i]) == sizeof(signals) / sizeof(*signals));
		kill(shared->crowd[i], SIGKILL);
	}
	job_kill(owner);
}

/* What a set-user-ID program gets is no matter for who started it. */
static void other_user(void)
{
	as_user = true;
	begin();
	CHECK(kill(shared->target, SIGTERM) == 0 && arrived(1));
	end();
}

/* What a user sends, who says that root does. */
static void send_as_user(void)
{
	siginfo_t info = { .si_signo = SIGTERM, .si_code = SI_QUEUE };
	pid_t sender = fork();
	int status;

	NEED(sender >= 0);
	if (!sender) {
		NEED(!setgid(1000) && !setuid(1000));
		_exit(!!syscall(SYS_rt_sigqueueinfo, shared->target, SIGTERM, &info));
	}
	NEED(waitpid(sender, &status, 0) == sender && !status);
}

static void become_roots(void)
{
	shared->rise = true;
	for (int i = 0; i < 500 && !shared->has_risen; i++)
		check_sleep_ms(20);
	NEED(shared->has_risen);
	CHECK(ask(TERM_ONLY, 0).held == TERM_ONLY);
}

/* A signal is not kept until its receiver is a program that the sender could not send it to … */
static void risen(void)
{
	as_user = rises = true;
	begin();
	send_as_user();
	CHECK(arrived(0));
	become_roots();
	CHECK(arrived(0));
	end();
}

/* … but root always could. */
static void risen_root(void)
{
	as_user = rises = true;
	begin();
	send_as_user();
	CHECK(kill(shared->target, SIGTERM) == 0);
	CHECK(arrived(0));
	become_roots();
	CHECK(arrived(1));
	end();
}

static void refused(void)
{
	begin();
	CHECK(ask(sigbit(SIGKILL), 1000).ret == -EINVAL);
	CHECK(ask(sigbit(SIGSTOP), 1000).ret == -EINVAL);
	CHECK(ask(sigbit(SIGCHLD) | TERM_ONLY, 1000).ret == -EINVAL);
	CHECK(ask(TERM_ONLY, KCR_HOLD_MAX_MS + 1).ret == -EINVAL);
	CHECK(command((struct order){ STRANGER_JOB, TERM_ONLY, 1000, 0 }).ret == -EEXIST);
	end();
}

/* The administrator's word. */
static void forbidden(void)
{
	int job = job_open();

	NEED(job >= 0);
	CHECK(hold(job, TERM_ONLY, 1000).ret == -EPERM);
	CHECK(hold(job, 0, 0).ret == 0);
}

static const struct part {
	const char *name;
	void (*run)(void);
} parts[] = {
	{ "held", held }, { "queued", queued }, { "bounded", bounded }, { "passed", passed },
	{ "group", group }, { "daemon", daemon_too }, { "closed", closed }, { "full", full },
	{ "other_user", other_user }, { "risen", risen }, { "risen_root", risen_root },
	{ "refused", refused }, { "forbidden", forbidden },
};

int main(int argc, char **argv)
{
	NEED(argc == 2);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	NEED(shared != MAP_FAILED);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (!strcmp(argv[1], parts[i].name)) {
			parts[i].run();
			return !!check_failures;
		}
	}
	return 2;
}
