// SPDX-License-Identifier: GPL-2.0
/*
 * Strangers at the port where mpirun waits for its daemons: however many come,
 * whatever they say, they neither get in nor keep a daemon out, and cost mpirun few
 * files.  What daemons say is worth nothing when it is said again or changed.
 * The coordinator is a process of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "job/coordinator/greeting.h"
#include "job/coordinator/root_internal.h"
#include "mpirun.h"
#include "report/report.h"

#define CROWD		3000
#define FILES_MAX	150		/* of mpirun, in any crowd */
#define RANKS		2

/* ---- mpirun ---------------------------------------------------------------------------- */

static int files_of_mpirun(void)
{
	char path[64];
	int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", mpirun);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static double processor_time(void)
{
	struct timespec t;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(mpirun, &clock), 0);
	assert_int_equal(clock_gettime(clock, &t), 0);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* ---- who comes ------------------------------------------------------------------------- */

static void hello(struct wire *w, uint32_t rank)
{
	struct wire_hello hello = { .pid = 1, .top = 1, .size = RANKS };

	wire_send(w, WIRE_HELLO, rank, 0, &hello, sizeof(hello));
}

/* The other end closes the connection in so many seconds; how many it took. */
static double closed_within(int fd, double patience)
{
	struct pollfd p = { fd, POLLIN, 0 };
	double start = now();
	char text[4096];

	for (;;) {
		double left = start + patience - now();

		assert_true(left > 0 && poll(&p, 1, left * 1000) > 0);
		if (recv(fd, text, sizeof(text), MSG_DONTWAIT) <= 0)
			break;
	}
	close(fd);
	return now() - start;
}

static int *crowd;

static void crowd_comes(int count)
{
	crowd = calloc(count, sizeof(*crowd));
	for (int i = 0; i < count; i++)
		crowd[i] = come();
}

static void crowd_goes(int count)
{
	for (int i = 0; i < count; i++)
		close(crowd[i]);
	free(crowd);
}

/* ---- the tests ------------------------------------------------------------------------- */

/* All ranks have come: nobody else is waited for. */
static void closed_ports(void **state)
{
	double end = now() + 5;
	struct wire w;
	int fd;

	(void)state;
	daemon_comes(&w, job.secret, 5);
	hello(&w, 0);
	close(come());
	hello(&w, 1);
	/* A port that is being closed resets those that it had not taken yet. */
	while (((fd = try_connect()) >= 0 || fd == -ECONNRESET) && now() < end)
		if (fd >= 0)
			close(fd);
	assert_int_equal(fd, -ECONNREFUSED);
	assert_int_equal(wire_fill_once(&w), 0);
	wire_close(&w);
}

static void wrong_secret(void **state)
{
	char secret[] = "00000000000000000000000000000000";
	struct wire w;
	int fd = come();

	(void)state;
	assert_int_equal(greeting_daemon(&w, fd, secret, "node"), -ECONNRESET);
	close(fd);
	daemon_comes(&w, job.secret, 5);
	wire_close(&w);
}

/* The challenge, and a right answer to `answered`. */
static int answer_with(const struct greeting_challenge *answered, const uint8_t *answer,
		       size_t length, struct greeting_challenge *challenge)
{
	struct wire_header h;
	uint8_t *data;
	int fd = come();

	assert_int_equal(wire_read(fd, &h, &data, sizeof(*challenge)), 0);
	assert_true(h.type == WIRE_CHALLENGE && h.length == sizeof(*challenge));
	memcpy(challenge, data, sizeof(*challenge));
	free(data);
	if (answered)
		assert_true(memcmp(challenge, answered, sizeof(*challenge)));
	if (answer)
		assert_int_equal(send(fd, answer, length, MSG_NOSIGNAL), length);
	return fd;
}

/* What a daemon has said, said again. */
static void replay(void **state)
{
	struct greeting_challenge first, second;
	struct { struct wire_header h; struct greeting_node node; char name[5]; } answer = {
		.h = { sizeof(answer) - sizeof(answer.h), WIRE_NODE, WIRE_ALL, 0 }, .name = "node",
	};
	const struct iovec part[] = {
		{ &first, sizeof(first) }, { answer.node.number, GREETING_NUMBER }, { "node", 4 },
	};
	struct wire_header h;
	uint8_t *data;
	int fd = answer_with(NULL, NULL, 0, &first);

	(void)state;
	seal_proof(answer.node.proof, job.secret, WIRE_SECRET, "kcr-mpi daemon", part, 3);
	assert_int_equal(send(fd, &answer, sizeof(answer), 0), sizeof(answer));
	assert_int_equal(wire_read(fd, &h, &data, SEAL_KEY), 0);
	assert_int_equal(h.type, WIRE_WELCOME);
	free(data);
	close(fd);
	fd = answer_with(&first, (uint8_t *)&answer, sizeof(answer), &second);
	closed_within(fd, 2);
}

/*
 * A daemon that meets an mpirun of that version, which gives no proof of the secret: what
 * becomes of its greeting.  ends[1] is mpirun's.
 */
static int greet_mpirun(uint32_t version, int ends[2])
{
	struct greeting_challenge challenge = { .version = version };
	uint8_t proof[SEAL_KEY] = { 0 };
	struct wire w;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(wire_write(ends[1], WIRE_CHALLENGE, WIRE_ALL, 0, &challenge,
				    sizeof(challenge)), 0);
	assert_int_equal(wire_write(ends[1], WIRE_WELCOME, WIRE_ALL, 0, proof, sizeof(proof)), 0);
	report_clear();
	return greeting_daemon(&w, ends[0], job.secret, "node");
}

/* An end of mpirun's that does not know the secret is not believed either. */
static void wrong_mpirun(void **state)
{
	int ends[2];

	(void)state;
	assert_int_equal(greet_mpirun(GREETING_VERSION, ends), -EACCES);
	close(ends[0]);
	close(ends[1]);
}

/* mpirun's end is of another version: that is told with both of them. */
static void other_mpirun(void **state)
{
	struct wire_header h;
	uint8_t *data;
	int ends[2];

	(void)state;
	assert_int_equal(greet_mpirun(GREETING_VERSION + 7, ends), -EPROTONOSUPPORT);
	assert_non_null(strstr(report_message(), "mpirun has version 9 "));
	assert_non_null(strstr(report_message(), "daemon has version 2: install the same release"));
	/* It lets mpirun tell, too. */
	assert_int_equal(wire_read(ends[1], &h, &data, 1000), 0);
	assert_int_equal(h.type, WIRE_NODE);
	assert_int_equal(h.id, GREETING_VERSION);
	free(data);
	close(ends[0]);
	close(ends[1]);
}

/* A daemon is of another version: only who knows the secret can have mpirun say so. */
static void other_daemon(void **state)
{
	struct { struct wire_header h; struct greeting_node node; char name[5]; } answer = {
		.h = { sizeof(answer) - sizeof(answer.h), WIRE_NODE, WIRE_ALL, GREETING_VERSION + 7 },
	};
	struct greeting_challenge challenge;
	struct iovec part[] = {
		{ &challenge, sizeof(challenge) }, { answer.node.number, GREETING_NUMBER },
		{ answer.name, 4 },
	};

	(void)state;
	for (int knows = 0; knows < 2; knows++) {
		int fd = answer_with(NULL, NULL, 0, &challenge);

		strcpy(answer.name, knows ? "kcr7" : "evil");
		if (knows)
			seal_proof(answer.node.proof, job.secret, WIRE_SECRET, "kcr-mpi daemon", part, 3);
		assert_int_equal(send(fd, &answer, sizeof(answer), 0), sizeof(answer));
		closed_within(fd, 3);
	}
	mpirun_says("KCR: the ranks on kcr7 cannot be checkpointed: its daemon has version 9 of "
		    "the greeting, mpirun has version 2: install the same release");
	assert_false(mpirun_has_said("evil"));
}

static void garbage(void **state)
{
	struct wire_header part = { 100, WIRE_NODE, WIRE_ALL, 0 }, huge = { ~0u, WIRE_NODE, 0, 0 };
	char text[8192];
	struct wire w;
	int fd;

	(void)state;
	memset(text, 'x', sizeof(text));
	fd = come();
	send(fd, text, sizeof(text), MSG_NOSIGNAL);
	closed_within(fd, 2);
	fd = come();
	send(fd, &huge, sizeof(huge), MSG_NOSIGNAL);
	closed_within(fd, 2);
	fd = come();
	send(fd, &part, sizeof(part), MSG_NOSIGNAL);
	assert_true(closed_within(fd, 15) > 3);
	fd = come();
	send(fd, &part, sizeof(part) / 2, MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	closed_within(fd, 2);
	daemon_comes(&w, job.secret, 5);
	wire_close(&w);
}

/* A message as it would be sent, which it is not. */
static size_t sealed(struct wire *w, uint8_t *out)
{
	size_t length;
	int fd = w->fd;

	wire_queue(w, WIRE_GONE, 0, 0, NULL, 0);
	w->fd = -1;
	wire_flush(w);
	w->fd = fd;
	length = w->out_end - w->out_begin;
	memcpy(out, w->out + w->out_begin, length);
	w->out_begin = w->out_end;
	return length;
}

static void say(struct wire *w, const void *data, size_t length)
{
	assert_int_equal(send(w->fd, data, length, MSG_NOSIGNAL), length);
}

/* A message that is changed, repeated, or not sealed ends the connection. */
static void changed(void **state)
{
	struct wire_header plain[4] = { { 0, WIRE_GONE, 0, 0 }, { 0, WIRE_GONE, 0, 0 } };
	uint8_t bytes[256];
	struct wire w;
	size_t length;

	(void)state;
	for (int repeats = 0; repeats < 2; repeats++) {
		daemon_comes(&w, job.secret, 5);
		length = sealed(&w, bytes);
		bytes[length - 1] ^= !repeats;
		say(&w, bytes, length);
		if (repeats)
			say(&w, bytes, length);
		closed_within(dup(w.fd), 3);
		wire_close(&w);
	}
	daemon_comes(&w, job.secret, 5);
	say(&w, plain, sizeof(plain));
	closed_within(dup(w.fd), 3);
	wire_close(&w);
	/* One after the other, unchanged. */
	daemon_comes(&w, job.secret, 5);
	for (int i = 0; i < 3; i++) {
		length = sealed(&w, bytes);
		say(&w, bytes, length);
	}
	usleep(300000);
	assert_int_equal(wire_fill_once(&w), 0);
	wire_close(&w);
}

static void idle_crowd(void **state)
{
	double used;
	struct wire w;

	(void)state;
	crowd_comes(CROWD);
	daemon_comes(&w, job.secret, 20);
	assert_true(files_of_mpirun() < FILES_MAX);
	/* It is not busy with them either. */
	used = processor_time();
	sleep(2);
	assert_true(processor_time() - used < 0.5);
	hello(&w, 0);
	crowd_goes(CROWD);
	wire_close(&w);
}

/* Exactly as many as there are slots, and nobody who would push them out. */
static void full(void **state)
{
	double used;

	(void)state;
	crowd_comes(STRANGERS_MAX);
	usleep(300000);
	used = processor_time();
	sleep(1);
	assert_true(processor_time() - used < 0.1);
	for (int i = 0; i < STRANGERS_MAX; i++)
		closed_within(crowd[i], 15);
	free(crowd);
}

static void flood(void **state)
{
	struct wire w;

	(void)state;
	for (int i = 0; i < CROWD; i++)
		close(come());
	daemon_comes(&w, job.secret, 20);
	assert_true(files_of_mpirun() < FILES_MAX);
	wire_close(&w);
}

/* Others go on coming and going while a daemon comes. */
static void flood_meanwhile(void **state)
{
	struct wire w;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			close(try_connect());
	}
	usleep(200000);
	daemon_comes(&w, job.secret, 20);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(files_of_mpirun() < FILES_MAX);
	wire_close(&w);
}

#define WITH_MPIRUN(test) cmocka_unit_test_setup_teardown(test, start_mpirun, end_mpirun)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_MPIRUN(closed_ports), WITH_MPIRUN(wrong_secret), WITH_MPIRUN(replay),
		WITH_MPIRUN(wrong_mpirun), WITH_MPIRUN(other_mpirun),
		cmocka_unit_test_setup_teardown(other_daemon, start_heard_mpirun, end_mpirun),
		WITH_MPIRUN(garbage), WITH_MPIRUN(changed),
		WITH_MPIRUN(idle_crowd), WITH_MPIRUN(full), WITH_MPIRUN(flood),
		WITH_MPIRUN(flood_meanwhile),
	};
	struct rlimit limit;

	if (seal_init() || getrlimit(RLIMIT_NOFILE, &limit))
		return 1;
	/* mpirun has what is usual; the crowd is in this process, too. */
	if (limit.rlim_max < CROWD + 100)
		return 4;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
