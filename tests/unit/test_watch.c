// SPDX-License-Identifier: GPL-2.0
/*
 * When cr_mpirun's main loop (launch/watch.h) has the job go back, and without which nodes.  The test
 * is the daemons of two nodes with a rank each, "sleep" the launcher.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/coordinator/greeting.h"
#include "job/coordinator/root.h"
#include "launch/launcher.h"
#include "launch/rank_message.h"
#include "launch/recovery.h"
#include "launch/watch.h"
#include "mpirun.h"

#define NODES	2
#define LATE_S	15
#define LOADING_S 3

/* What cr_mpirun tells the test once watch_job() has returned. */
struct outcome {
	bool due;
	int status;
	char lost[64], suspects[64], nodes[64];
};

static struct wire node[NODES];
static uint64_t interval_ns;		/* from one snapshot to the next */
static int said = -1;			/* its standard error */
static int outcome_fd;

/* ---- cr_mpirun -------------------------------------------------------------------------- */

static void be_cr_mpirun(int out, char *const *launcher)
{
	static struct snapshot snapshot = { .openmpi = "4.1.4", .kcr = KCR_VERSION, .cwd = "/" };
	int messages = -1;
	const struct root_settings settings = { .launch = &messages, .silence_s = 3,
						.interval_ns = interval_ns, .path = "/nowhere.kcr" };
	struct recovery recovery;
	struct outcome outcome = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	assert_non_null(freopen("/dev/null", "r", stdin));
	if (said >= 0)
		dup2(said, STDERR_FILENO);
	launcher_hold_signals(0);
	if (root_start(&snapshot, &settings, job.address, sizeof(job.address), job.secret) ||
	    write(out, &job, sizeof(job)) != sizeof(job))
		_exit(1);
	recovery_init(&recovery, 9, true);
	recovery.silence_s = 3;
	recovery.late_s = LATE_S;
	recovery.loading_s = LOADING_S;
	outcome.status = watch_job(launcher, messages, &recovery);
	outcome.due = recovery.due;
	snprintf(outcome.lost, sizeof(outcome.lost), "%s", recovery.lost ?: "");
	snprintf(outcome.suspects, sizeof(outcome.suspects), "%s", recovery.suspects ?: "");
	snprintf(outcome.nodes, sizeof(outcome.nodes), "%s", recovery.nodes ?: "");
	_exit(write(out, &outcome, sizeof(outcome)) != sizeof(outcome));
}

static void begin(char *const *launcher)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	mpirun = fork();
	if (!mpirun)
		be_cr_mpirun(ends[1], launcher);
	close(ends[1]);
	assert_int_equal(read(ends[0], &job, sizeof(job)), sizeof(job));
	outcome_fd = ends[0];
}

/* A job that has gone back once; the variable is one more word of the cr_mpirun before. */
static void begin_again(char *const *launcher, const char *variable, const char *value)
{
	setenv("KCR_MPI_RECOVERIES", "1", 1);
	setenv(variable, value, 1);
	begin(launcher);
	unsetenv("KCR_MPI_RECOVERIES");
	unsetenv(variable);
}

/* Within so many seconds; false: it has not returned by then. */
static bool returns(struct outcome *outcome, double seconds)
{
	struct pollfd p = { outcome_fd, POLLIN, 0 };

	return poll(&p, 1, seconds * 1000) == 1 &&
	       read(outcome_fd, outcome, sizeof(*outcome)) == sizeof(*outcome);
}

static int end(void **state)
{
	(void)state;
	kill(mpirun, SIGKILL);
	waitpid(mpirun, NULL, 0);
	close(outcome_fd);
	for (int i = 0; i < NODES; i++)
		wire_close(&node[i]);
	return 0;
}

/* ---- daemons ---------------------------------------------------------------------------- */

static void joins_with(int number, const char *name, bool takes_input)
{
	const uint32_t size = NODES;

	assert_int_equal(greeting_daemon(&node[number], come(), job.secret, name), 0);
	rank_message_queue(&node[number], RANK_STARTED, number, 0, takes_input, &size, sizeof(size));
	wire_flush(&node[number]);
}

static void joins(int number, const char *name)
{
	joins_with(number, name, false);
}

static void join(void)
{
	joins(0, "a");
	joins(1, "b");
}

static void says(int number, enum rank_message_type type, int value)
{
	rank_message_queue(&node[number], type, number, 0, value, NULL, 0);
	assert_int_equal(wire_flush(&node[number]), 0);
}

/* Its rank has been through MPI_Init, or is restored. */
static void says_hello(int number, bool restarted)
{
	const struct {
		struct wire_hello head;
		struct wire_version version;
	} hello = { { 1, 1, NODES, restarted, 0 }, { WIRE_VERSION, WIRE_CAN_0 | WIRE_CAN_FIND } };

	wire_send(&node[number], WIRE_HELLO, number, 0, &hello, sizeof(hello));
}

/* Within so many seconds, for all of its ranks? */
static bool is_told(int number, enum rank_message_type type, double seconds)
{
	struct pollfd p = { node[number].fd, POLLIN, 0 };
	struct wire_header header;
	struct rank_message m;
	const uint8_t *data;
	size_t length;

	for (double limit = now() + seconds; now() < limit; poll(&p, 1, 100)) {
		assert_int_equal(wire_fill(&node[number]), 0);
		while (wire_next(&node[number], &header, &data) == 1)
			if (rank_message_read(&header, &data, &m, &length) && m.type == type &&
			    header.rank == WIRE_ALL && (type != RANK_SIGNAL || m.value == SIGKILL))
				return true;
	}
	return false;
}

static void is_told_to_kill(int number)
{
	if (!is_told(number, RANK_SIGNAL, 10))
		fail_msg("node %d is not told to kill its ranks", number);
}

/* In which there is an srun that is no more than sleep. */
static void use_path(char *path, size_t size)
{
	const char *before = getenv("PATH");
	char name[64], whole[4096];

	snprintf(path, size, "/tmp/kcr-watch-XXXXXX");
	assert_non_null(mkdtemp(path));
	snprintf(name, sizeof(name), "%s/srun", path);
	assert_int_equal(symlink("/bin/sleep", name), 0);
	snprintf(whole, sizeof(whole), "%s:%s", path, before);
	setenv("PATH", whole, 1);
}

static void leave_path(const char *path)
{
	char name[64];

	setenv("PATH", strchr(getenv("PATH"), ':') + 1, 1);
	snprintf(name, sizeof(name), "%s/srun", path);
	unlink(name);
	rmdir(path);
}

/* ---- tests ------------------------------------------------------------------------------ */

static char *const sleeps[] = { "sleep", "1000", NULL };

/* A node whose daemon is slow, or stands still, may still have ranks. */
static void waits_for_ranks(void **state)
{
	struct outcome outcome;

	(void)state;
	begin(sleeps);
	join();
	says(0, RANK_ENDED, SIGKILL);
	is_told_to_kill(0);
	is_told_to_kill(1);
	says(0, RANK_SYNCED, 1);
	assert_false(returns(&outcome, LATE_S - 5));
	says(1, RANK_ENDED, SIGKILL);
	assert_false(returns(&outcome, 1));	/* what it has started may run on */
	says(1, RANK_SYNCED, 0);		/* said before it was told */
	assert_false(returns(&outcome, 1));
	says(1, RANK_SYNCED, 1);
	assert_true(returns(&outcome, 10));
	assert_true(outcome.due);
	assert_string_equal(outcome.lost, "");
	assert_string_equal(outcome.nodes, "a=127.0.0.1,b=127.0.0.1");
}

/* But not for ever. */
static void leaves_node(void **state)
{
	struct outcome outcome;

	(void)state;
	begin(sleeps);
	join();
	says(0, RANK_ENDED, SIGKILL);
	is_told_to_kill(0);
	says(0, RANK_SYNCED, 1);
	assert_true(returns(&outcome, LATE_S + 10));
	assert_true(outcome.due);
	assert_string_equal(outcome.lost, "b");
}

/* A node whose daemon has failed once, and on which the ranks are back, is as good as others. */
static void forgives(void **state)
{
	struct outcome outcome;

	(void)state;
	begin_again(sleeps, "KCR_MPI_SUSPECTS", "a");
	join();
	says_hello(0, false);
	says_hello(1, false);
	assert_false(returns(&outcome, 0.5));
	wire_close(&node[1]);
	is_told_to_kill(0);
	says(0, RANK_ENDED, SIGKILL);
	says(0, RANK_SYNCED, 1);
	assert_true(returns(&outcome, 10));
	assert_true(outcome.due);
	assert_string_equal(outcome.suspects, "b");
}

/* A node that was there before, and is not when the ranks are to come back. */
static void leaves_silent(void **state)
{
	char *const fails[] = { "false", NULL };
	char own[128], nodes[200];
	struct outcome outcome;

	(void)state;
	setenv("KCR_MPI_SUSPECTS", "c", 1);
	begin_again(fails, "KCR_MPI_NODES", "a=127.0.0.1,b=255.255.255.255,c=127.0.0.2");
	assert_true(returns(&outcome, 10));
	assert_true(outcome.due);
	assert_string_equal(outcome.lost, "b");
	assert_string_equal(outcome.nodes, "a=127.0.0.1,b=255.255.255.255,c=127.0.0.2");
	end(NULL);
	/* Perhaps a firewall's doing. */
	assert_int_equal(gethostname(own, sizeof(own)), 0);
	snprintf(nodes, sizeof(nodes), "%s=127.0.0.1,b=255.255.255.255", own);
	begin_again(fails, "KCR_MPI_NODES", nodes);
	unsetenv("KCR_MPI_SUSPECTS");
	assert_true(returns(&outcome, 10));
	assert_true(outcome.due);
	assert_string_equal(outcome.lost, "c");
}

/* A rank that hangs while it reads its image, or is in PMIx_Init. */
static void leaves_loading(void **state)
{
	struct outcome outcome;

	(void)state;
	begin_again(sleeps, "KCR_MPI_RESTART", "/nowhere");
	join();
	assert_false(returns(&outcome, LOADING_S - 1));
	says_hello(0, true);
	assert_false(returns(&outcome, LOADING_S - 1));
	is_told_to_kill(0);
	for (int i = 0; i < NODES; i++) {
		says(i, RANK_ENDED, SIGKILL);
		says(i, RANK_SYNCED, 1);
	}
	assert_true(returns(&outcome, 10));
	assert_true(outcome.due);
	end(NULL);
	begin_again(sleeps, "KCR_MPI_RESTART", "/nowhere");
	join();
	says_hello(0, true);
	says_hello(1, true);
	assert_false(returns(&outcome, LOADING_S + 1));
}

static void rank_1_fails(void)
{
	join();
	says_hello(0, true);
	says(1, RANK_ENDED, 2 << 8);
}

static void all_are_killed(void)
{
	is_told_to_kill(0);
	says(0, RANK_ENDED, SIGKILL);
	says(0, RANK_SYNCED, 1);
	says(1, RANK_SYNCED, 1);
}

/*
 * A rank cannot be restored, so the launcher ends its daemons, and then itself.  Whoever has been
 * restored by then does not wait for that rank for ever.
 */
static void ends_failed_start(void **state)
{
	char *const fails[] = { "sh", "-c", "sleep 1; exit 1", NULL };
	struct outcome outcome;

	(void)state;
	setenv("KCR_MPI_UNSTARTED", "99", 1);
	begin_again(fails, "KCR_MPI_RESTART", "/nowhere");
	unsetenv("KCR_MPI_UNSTARTED");
	rank_1_fails();
	usleep(100000);				/* it is heard of first */
	says(0, RANK_ORPHANED, 0);
	assert_false(is_told(0, RANK_ALONE, 2));
	all_are_killed();
	assert_true(returns(&outcome, 10));
	assert_false(outcome.due);
	assert_int_not_equal(outcome.status, 0);
	end(NULL);
	/* Nor is it tried again as if the daemon had failed, where a user restarts the job. */
	setenv("KCR_MPI_RESTART", "/nowhere", 1);
	begin(fails);
	unsetenv("KCR_MPI_RESTART");
	rank_1_fails();
	usleep(100000);
	says(0, RANK_ORPHANED, 0);
	all_are_killed();
	assert_true(returns(&outcome, 10));
	assert_false(outcome.due);
}

/* But it is if the launcher was killed, which the rank may have needed. */
static void starts_again(void **state)
{
	char *const dies[] = { "sh", "-c", "sleep 1; kill -KILL $$", NULL };
	struct outcome outcome;

	(void)state;
	begin_again(dies, "KCR_MPI_RESTART", "/nowhere");
	rank_1_fails();
	all_are_killed();
	assert_true(returns(&outcome, 10));
	assert_true(outcome.due);
}

/* A signal ends a job that is to come back, though its launcher hangs. */
static void ends_start(void **state)
{
	char *const hangs[] = { "sh", "-c", "trap '' TERM; exec sleep 1000", NULL };
	struct outcome outcome;

	(void)state;
	setenv("KCR_MPI_RECOVERIES", "1", 1);
	begin(hangs);
	unsetenv("KCR_MPI_RECOVERIES");
	assert_false(returns(&outcome, 0.5));	/* until it ignores the signal */
	kill(mpirun, SIGTERM);
	assert_true(returns(&outcome, 12));
	assert_false(outcome.due);
}

static void kill_launcher(void)
{
	char path[64];
	FILE *children;
	int pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", mpirun, mpirun);
	children = fopen(path, "r");
	assert_non_null(children);
	assert_int_equal(fscanf(children, "%d", &pid), 1);
	fclose(children);
	kill(pid, SIGKILL);
}

/* Without the launcher a failure is told before all that the rank has written has been sent. */
static void waits_for_output(void **state)
{
	struct outcome outcome;

	(void)state;
	begin(sleeps);
	join();
	says_hello(0, false);
	says_hello(1, false);
	assert_false(returns(&outcome, 1.5));	/* they need no launcher any more */
	kill_launcher();
	for (int i = 0; i < NODES; i++) {
		assert_true(is_told(i, RANK_SYNC, 10));
		says(i, RANK_SYNCED, 0);
	}
	assert_false(returns(&outcome, 0.5));
	says(0, RANK_ENDED, 3 << 8);
	says(1, RANK_ENDED, SIGTERM);
	for (int i = 0; i < NODES; i++)
		assert_true(is_told(i, RANK_SYNC, 10));
	assert_false(returns(&outcome, 1));
	for (int i = 0; i < NODES; i++)
		says(i, RANK_SYNCED, 1);
	assert_true(returns(&outcome, 4));
	assert_false(outcome.due);
}

/*
 * srun's daemon of a node ends with the last rank of it, while others run; rank 2 of 3 is the second
 * that starts, so there is room for a fourth by then.
 */
static void ends_with_its_ranks(void **state)
{
	char *const srun[] = { "srun", "1000", NULL };
	const uint32_t size = 3;
	struct outcome outcome;
	char path[32];

	(void)state;
	use_path(path, sizeof(path));
	begin(srun);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(greeting_daemon(&node[i], come(), job.secret, i ? "b" : "a"), 0);
	for (uint32_t i = 1; i <= size; i++) {
		struct wire *its = &node[i == size];

		rank_message_queue(its, RANK_STARTED, i % size, 0, false, &size, sizeof(size));
		wire_flush(its);
	}
	assert_false(returns(&outcome, 0.5));	/* until all are known */
	leave_path(path);
	rank_message_queue(&node[0], RANK_ENDED, 1, 0, 0, NULL, 0);
	rank_message_queue(&node[0], RANK_ENDED, 2, 0, 0, NULL, 0);
	says(0, RANK_ORPHANED, 0);
	assert_false(is_told(1, RANK_ALONE, 0.7));
	says(1, RANK_ORPHANED, 0);		/* and this one has died */
	assert_true(is_told(1, RANK_ALONE, 10));
}

/* A node's daemon cannot reach cr_mpirun: the ranks there run all the same, but are never known. */
static void lacks_a_daemon(void **state)
{
	char *const ends[] = { "sleep", "2", NULL };
	struct outcome outcome;

	(void)state;
	for (int fails = 0; fails < 2; fails++) {
		begin(fails ? sleeps : ends);
		joins_with(0, "a", true);
		says_hello(0, false);
		assert_false(is_told(0, RANK_INPUT, 0.3));
		wire_send(&node[0], WIRE_UNABLE, 0, 0, NULL, 0);	/* others may still come */
		assert_false(is_told(0, RANK_INPUT, 0.3));
		wire_send(&node[0], WIRE_UNABLE, 0, 0, "", 1);
		assert_true(is_told(0, RANK_INPUT, 10));
		says(0, RANK_ENDED, fails ? SIGKILL : 0);
		if (fails) {
			assert_false(returns(&outcome, 0.5));	/* mpirun would end it */
			kill_launcher();
			is_told_to_kill(0);
		} else {
			assert_true(is_told(0, RANK_SYNC, 10));
		}
		says(0, RANK_SYNCED, 1);
		assert_true(returns(&outcome, 10));
		assert_false(outcome.due);
		assert_int_equal(!outcome.status, !fails);
		end(NULL);
	}
}

/* The end of a pipe that is full; *reader: the other one. */
static int open_full(int *reader)
{
	char page[4096];
	int ends[2];

	memset(page, '.', sizeof(page));
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	while (write(ends[1], page, sizeof(page)) > 0)
		;
	fcntl(ends[1], F_SETFL, 0);
	*reader = ends[0];
	return ends[1];
}

/* Until the second text comes, behind the first. */
static void are_read(int reader, const char *first, const char *second)
{
	char all[1 << 17] = "";
	size_t length = 0;
	ssize_t n = 1;

	while (n > 0 && !strstr(all, second)) {
		n = read(reader, all + length, sizeof(all) - 1 - length);
		length += n > 0 ? n : 0;
	}
	assert_non_null(strstr(all, first));
	assert_true(strstr(all, first) < strstr(all, second));
}

/* What the main loop and the coordinator's thread do does not wait for who reads what they say. */
static void is_not_read(void **state)
{
	struct outcome outcome;
	int reader;

	(void)state;
	for (int ends = 0; ends < 2; ends++) {
		said = open_full(&reader);
		interval_ns = 200000000;
		begin(sleeps);
		close(said);
		said = -1;
		interval_ns = 0;
		join();
		says_hello(0, false);
		wire_send(&node[0], WIRE_UNABLE, 0, 0, "", 1);
		says_hello(1, false);
		assert_false(returns(&outcome, 0.7));	/* it is not saved by then */
		says(0, RANK_ENDED, SIGKILL);
		for (int i = 0; i < NODES; i++) {
			is_told_to_kill(i);
			says(i, RANK_ENDED, SIGKILL);
			says(i, RANK_SYNCED, 1);
		}
		assert_false(returns(&outcome, 0.5));
		if (ends) {
			kill(mpirun, SIGTERM);
		} else {
			are_read(reader, "KCR: not saved: ", "the job goes on from its beginning");
		}
		assert_true(returns(&outcome, 10));
		assert_int_equal(outcome.due, !ends);
		close(reader);
		end(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(waits_for_ranks, end),
		cmocka_unit_test_teardown(leaves_node, end),
		cmocka_unit_test_teardown(forgives, end),
		cmocka_unit_test_teardown(leaves_silent, end),
		cmocka_unit_test_teardown(leaves_loading, end),
		cmocka_unit_test_teardown(ends_failed_start, end),
		cmocka_unit_test_teardown(starts_again, end),
		cmocka_unit_test_teardown(ends_start, end),
		cmocka_unit_test_teardown(waits_for_output, end),
		cmocka_unit_test_teardown(ends_with_its_ranks, end),
		cmocka_unit_test_teardown(lacks_a_daemon, end),
		cmocka_unit_test_teardown(is_not_read, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
