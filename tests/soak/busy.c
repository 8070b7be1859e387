// SPDX-License-Identifier: GPL-2.0
/*
 * soak_busy READY GO: two processes that do all at once, and check it all the time:
 * messages over TCP, UDP, a Unix socket and a pair of pipes, each answered by the other
 * process; memory shared by both, anonymous and System V; a file, timers, signals, children
 * and threads that live for moments, memory that changes page by page.  It ends at the
 * first fault, or when there is GO.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "tests/programs/check.h"

#define LARGEST		1024		/* bytes of a message's body */
#define PAUSE_US	15000
#define STILL		2400		/* turns of 50 ms without progress */
#define NR_PAGES	1024
#define SMALL_KEY	5		/* a segment as PostgreSQL has: of some bytes, with a key */
#define SMALL_SIZE	56

struct message {
	uint64_t number;
	unsigned char body[LARGEST];
};

/* What both processes write to: the main one `question`, the other one `answer`. */
struct common {
	unsigned char question[LARGEST], answer[LARGEST];
};

static struct common *anonymous, *segment;
static uint64_t *small;			/* the segment with a key */
static volatile bool stop;
extern char **environ;

/* ---- messages ---------------------------------------------------------------------- */

enum { MAIN, OTHER };

struct channel {
	int in[2], out[2];		/* of each process */
	bool packets;
	void (*beside)(uint64_t number, int who);
};

static bool transfer(bool writes, int fd, void *data, size_t length)
{
	char *at = data;

	while (length) {
		ssize_t n = writes ? write(fd, at, length) : read(fd, at, length);

		if (n <= 0)
			return false;
		at += n;
		length -= n;
	}
	return true;
}

/* A datagram comes whole or not at all. */
static bool receive(const struct channel *c, int who, struct message *m)
{
	return c->packets ? read(c->in[who], m, sizeof(*m)) == sizeof(*m) :
			    transfer(false, c->in[who], m, sizeof(*m));
}

static void in_memory(uint64_t number, int who)
{
	struct common *both[] = { anonymous, segment };

	for (int i = 0; i < 2; i++) {
		if (who == MAIN && number)
			CHECK(check_filled(both[i]->answer, LARGEST, ~number + i));
		if (who == MAIN)
			check_fill(both[i]->question, LARGEST, number + 1 + i);
		else
			CHECK(check_filled(both[i]->question, LARGEST, number + i));
		if (who == OTHER)
			check_fill(both[i]->answer, LARGEST, ~number + i);
	}
	if (who == MAIN) {
		CHECK(*small == number);
		*small = number + 1;
	}
}

/* The answer to that question.  False: of datagrams, none has come in time. */
static bool get_answer(const struct channel *c, uint64_t number, struct message *m)
{
	while (receive(c, MAIN, m))
		if (!c->packets || m->number == ~number)
			return true;
	return false;
}

/*
 * Questions 1, 2 …; an answer has the number's complement.  A restart loses datagrams that
 * were not read: such a question is asked again.
 */
static void ask(struct channel *c, uint64_t number)
{
	struct message question = { .number = number }, answer = {};
	bool answered;

	/* What the last answer has left in memory, and the next question. */
	if (c->beside)
		c->beside(number - 1, MAIN);
	check_fill(question.body, LARGEST, number);
	do {
		CHECK(transfer(true, c->out[MAIN], &question, sizeof(question)));
		answered = get_answer(c, number, &answer);
	} while (!answered && c->packets);
	CHECK(answer.number == ~number);
	CHECK(check_filled(answer.body, LARGEST, ~number));
}

static void *answer_all(void *channel)
{
	struct channel *c = (struct channel *)channel;
	uint64_t last = 0;
	struct message m;

	while (receive(c, OTHER, &m) && m.number) {
		CHECK(m.number == last + 1 || (c->packets && m.number == last));
		last = m.number;
		CHECK(check_filled(m.body, LARGEST, last));
		if (c->beside)
			c->beside(last, OTHER);
		m.number = ~last;
		check_fill(m.body, LARGEST, ~last);
		CHECK(transfer(true, c->out[OTHER], &m, sizeof(m)));
	}
	return NULL;
}

static void open_tcp(struct channel *c)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	NEED(!bind(listener, (struct sockaddr *)&address, length) && !listen(listener, 1));
	NEED(!getsockname(listener, (struct sockaddr *)&address, &length));
	c->in[MAIN] = c->out[MAIN] = socket(AF_INET, SOCK_STREAM, 0);
	NEED(!connect(c->in[MAIN], (struct sockaddr *)&address, length));
	c->in[OTHER] = c->out[OTHER] = accept(listener, NULL, NULL);
	NEED(c->in[OTHER] >= 0);
}

static void open_udp(struct channel *c)
{
	struct sockaddr_in address[2];
	socklen_t length = sizeof(address[0]);
	struct timeval in_time = { .tv_sec = 1 };

	for (int i = 0; i < 2; i++) {
		address[i] = (struct sockaddr_in){ .sin_family = AF_INET };
		address[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		c->in[i] = c->out[i] = socket(AF_INET, SOCK_DGRAM, 0);
		NEED(!bind(c->in[i], (struct sockaddr *)&address[i], length));
		NEED(!getsockname(c->in[i], (struct sockaddr *)&address[i], &length));
	}
	for (int i = 0; i < 2; i++)
		NEED(!connect(c->in[i], (struct sockaddr *)&address[!i], length));
	NEED(!setsockopt(c->in[MAIN], SOL_SOCKET, SO_RCVTIMEO, &in_time, sizeof(in_time)));
}

static void open_unix(struct channel *c)
{
	int end[2];

	NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, end));
	for (int i = 0; i < 2; i++)
		c->in[i] = c->out[i] = end[i];
}

static void open_pipes(struct channel *c)
{
	int question[2], answer[2];

	NEED(!pipe(question) && !pipe(answer));
	c->out[MAIN] = question[1];
	c->in[OTHER] = question[0];
	c->out[OTHER] = answer[1];
	c->in[MAIN] = answer[0];
}

/* TCP, UDP, Unix, pipes. */
#define NR_CHANNELS	4
static struct channel channels[NR_CHANNELS] = {
	{}, { .packets = true }, {}, { .beside = in_memory },
};

/* ---- what the main process does beside ------------------------------------------------ */

static int data_fd, timer_fd;
static timer_t timer;

/* A restart from an older image finds what was written after it: not twice. */
static void use_file(uint64_t number)
{
	unsigned char out[LARGEST], in[LARGEST];
	bool right = false;

	check_fill(out, sizeof(out), number);
	for (int i = 0; i < 2 && !right; i++) {
		CHECK(pwrite(data_fd, out, sizeof(out), number % 64 * LARGEST) == sizeof(out));
		CHECK(pread(data_fd, in, sizeof(in), number % 64 * LARGEST) == sizeof(in));
		right = !memcmp(in, out, sizeof(in));
	}
	CHECK(right);
}

static void use_timers(uint64_t number)
{
	siginfo_t info;
	uint64_t times;
	sigset_t set;

	(void)number;
	CHECK(read(timer_fd, &times, sizeof(times)) == sizeof(times) && times);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	CHECK(sigwaitinfo(&set, &info) == SIGRTMIN + 1 && info.si_value.sival_int == 42);
}

static void use_signals(uint64_t number)
{
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	for (int i = 0; i < 3; i++)
		CHECK(!sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = number + i }));
	for (int i = 0; i < 3; i++) {
		CHECK(sigwaitinfo(&set, &info) == SIGRTMIN);
		CHECK(info.si_value.sival_int == (int)number + i && info.si_pid == getpid());
	}
}

static void use_children(uint64_t number)
{
	static char *const command[] = { "true", NULL };
	int status = 0;
	pid_t pid;

	if (number % 16) {
		pid = fork();
		if (!pid)
			_exit(number % 100);
	} else {
		NEED(!posix_spawn(&pid, "/bin/true", NULL, NULL, command, environ));
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (int)(number % 16 ? number % 100 : 0));
}

static void *same(void *argument)
{
	return argument;
}

static void use_threads(uint64_t number)
{
	pthread_t thread;
	void *result;

	CHECK(!pthread_create(&thread, NULL, same, (void *)(uintptr_t)number));
	CHECK(!pthread_join(thread, &result) && result == (void *)(uintptr_t)number);
}

static unsigned char pages[NR_PAGES][4096];
static uint64_t version[NR_PAGES];

static void use_memory(uint64_t number)
{
	uint64_t i = number * 7919 % NR_PAGES;

	CHECK(check_filled(pages[i], 4096, version[i]));
	version[i] = number;
	check_fill(pages[i], 4096, number);
}

static void (*const uses[])(uint64_t number) = {
	use_file, use_timers, use_signals, use_children, use_threads, use_memory,
};
#define NR_USES		6

/* ---- threads -------------------------------------------------------------------------- */

#define NR_THREADS	(NR_CHANNELS + NR_USES)
static uint64_t turns[NR_THREADS];

static void *run(void *argument)
{
	uintptr_t i = (uintptr_t)argument;

	while (!stop) {
		uint64_t number = __atomic_add_fetch(&turns[i], 1, __ATOMIC_RELAXED);

		if (i < NR_CHANNELS)
			ask(&channels[i], number);
		else
			uses[i - NR_CHANNELS](number);
		usleep(PAUSE_US);
	}
	return NULL;
}

static int other_process(void)
{
	pthread_t thread[NR_CHANNELS];

	for (int i = 0; i < NR_CHANNELS; i++)
		NEED(!pthread_create(&thread[i], NULL, answer_all, &channels[i]));
	for (int i = 0; i < NR_CHANNELS; i++)
		pthread_join(thread[i], NULL);
	return check_end();
}

static void set_up(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1 };
	struct itimerspec often = { { 0, 5000000 }, { 0, 5000000 } };
	int id = shmget(IPC_PRIVATE, sizeof(*segment), 0600 | IPC_CREAT);
	int small_id = shmget(SMALL_KEY, SMALL_SIZE, 0600 | IPC_CREAT);
	sigset_t set;

	anonymous = mmap(NULL, sizeof(*anonymous), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	segment = shmat(id, NULL, 0);
	small = shmat(small_id, NULL, 0);
	NEED(anonymous != MAP_FAILED && segment != (void *)-1 && small != (void *)-1);
	NEED(!shmctl(id, IPC_RMID, NULL));
	*small = 0;
	open_tcp(&channels[0]);
	open_udp(&channels[1]);
	open_unix(&channels[2]);
	open_pipes(&channels[3]);
	NEED((data_fd = open("busy.data", O_RDWR | O_CREAT | O_TRUNC, 0600)) >= 0);
	for (int i = 0; i < NR_PAGES; i++)
		check_fill(pages[i], 4096, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGRTMIN + 1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	event.sigev_value.sival_int = 42;
	NEED(!timer_create(CLOCK_MONOTONIC, &event, &timer) &&
	     !timer_settime(timer, 0, &often, NULL));
	NEED((timer_fd = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0 &&
	     !timerfd_settime(timer_fd, 0, &often, NULL));
}

/* Until GO or a fault, which may be that a thread does not go on. */
static void watch(void)
{
	uint64_t seen[NR_THREADS] = {};
	int still[NR_THREADS] = {};

	while (!check_gone() && !check_failures) {
		usleep(50000);
		for (int i = 0; i < NR_THREADS; i++) {
			uint64_t now = __atomic_load_n(&turns[i], __ATOMIC_RELAXED);

			still[i] = now == seen[i] ? still[i] + 1 : 0;
			seen[i] = now;
			if (still[i] == STILL)
				fprintf(stderr, "# thread %d stands still at %llu\n", i,
					(unsigned long long)now);
			CHECK(still[i] < STILL);
		}
	}
	/* Those that stand still cannot be waited for. */
	if (check_failures)
		_exit(1);
}

int main(int argc, char **argv)
{
	pthread_t thread[NR_THREADS];
	struct message end = {};
	int status;
	pid_t pid;

	check_begin(argc, argv);
	set_up();
	pid = fork();
	if (!pid)
		return other_process();
	for (uintptr_t i = 0; i < NR_THREADS; i++)
		NEED(!pthread_create(&thread[i], NULL, run, (void *)i));
	check_ready();
	watch();
	stop = true;
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < NR_CHANNELS; i++)
		CHECK(transfer(true, channels[i].out[MAIN], &end, sizeof(end)));
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!shmctl(shmget(SMALL_KEY, SMALL_SIZE, 0600), IPC_RMID, NULL));
	return check_end();
}
