// SPDX-License-Identifier: GPL-2.0
/*
 * A job that runs on while its ranks are written: they run on when all of them are copied
 * and not earlier, and a snapshot is complete or does not exist, whatever happens
 * meanwhile.  copied_job.h has the stage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include "copied_job.h"
#include "job/snapshot.h"

#define ANSWER_S	4

/* All run on, and none is written, before the last one is copied; all at once after it. */
static void all_or_none(void **state)
{
	(void)state;
	stage_mark("late", RANKS - 1);
	request_begins();
	usleep(200000);
	ranks_are_told_nothing();
	for (int i = 0; i < RANKS; i++)
		assert_false(staged("writing", i));
	stage_mark("copy", RANKS - 1);
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	stage_wait_for("writing", 0);
	assert_false(staged("saved.kcr", -1));
	stage_mark("write", -1);
	assert_int_equal(pthread_join(stage.client, NULL), 0);
	assert_int_equal(stage.result, 0);
	assert_int_equal(stage.answer.code, 0);
	assert_int_equal(stage.answer.ranks, RANKS);
	assert_int_equal(stage.answer.not_copied, 0);
	assert_true(stage.answer.copy_ms > 0);
	assert_true(stage.answer.dump_ms > 0);
	close(stage.request_fd);
	job_answer_free(&stage.answer);
	assert_true(snapshot_is_complete());
	ranks_are_told_nothing();
}

/* A rank that cannot be saved is refused before anybody stops, */
static void refused(void **state)
{
	(void)state;
	stage_mark("refused", 3);
	request_comes();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	request_ends(95, "rank 3: it uses io_uring");
	assert_false(staged("saved.kcr", -1));
	for (int i = 0; i < RANKS; i++)
		assert_false(staged("copying", i));
	unlink(staged_path("refused", 3));
	snapshot_is_saved();
}

/* What was checked is copied when the job is at rest. */
static void checked_first(void **state)
{
	(void)state;
	request_comes();
	ranks_are_told(WIRE_PREPARE, WIRE_BOOKMARKS);
	rank_is_told(0, WIRE_DRAIN);
	usleep(100000);
	for (int i = 0; i < RANKS; i++)
		assert_false(staged("copying", i));
	assert_int_equal(wire_write(stage.rank_fd[0], WIRE_DRAINED, 0, stage.id, NULL, 0), 0);
	for (int i = 1; i < RANKS; i++) {
		rank_is_told(i, WIRE_DRAIN);
		assert_int_equal(wire_write(stage.rank_fd[i], WIRE_DRAINED, i, stage.id, NULL, 0), 0);
	}
	ranks_are_told(WIRE_SUSPEND, WIRE_SUSPENDED);
	stage_mark("write", -1);
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	request_ends(0, NULL);
	assert_true(snapshot_is_complete());
}

/* The commit takes the word of those who have written: no file is opened again. */
static void not_read_back(void **state)
{
	char events[4096] __attribute__((aligned(8))) = "";
	struct snapshot *s;
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	(void)state;
	request_begins();
	assert_true(inotify_add_watch(watch, staged_path("saved.kcr.partial", -1), IN_OPEN) >= 0);
	stage_mark("write", -1);
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	request_ends(0, NULL);
	assert_true(snapshot_is_complete());
	for (ssize_t n, at; (n = read(watch, events, sizeof(events))) > 0;) {
		const struct inotify_event *e;

		for (at = 0; at < n; at += sizeof(*e) + e->len) {
			e = (const void *)(events + at);
			assert_false(e->len && !strncmp(e->name, "rank.", 5));
		}
	}
	close(watch);
	assert_int_equal(snapshot_load_one(staged_path("saved.kcr", -1), &s), 0);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(s->rank[i].file.id, ID + i);
	snapshot_free(s);
}

/* Who writes the rank's file. */
static pid_t writer_of(int rank)
{
	pid_t writer = 0;
	FILE *in;

	stage_wait_for("writing", rank);
	while (!writer) {
		in = fopen(staged_path("writing", rank), "r");
		assert_non_null(in);
		if (fscanf(in, "%d", &writer) != 1)
			writer = 0;
		fclose(in);
	}
	return writer;
}

/* The older file of each rank that the snapshot has; rank 4 may have none. */
static void has_older(uint32_t expected, bool rank_4)
{
	struct snapshot *s;
	uint32_t elsewhere;

	assert_int_equal(snapshot_load_one(staged_path("saved.kcr", -1), &s), 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		assert_int_equal(s->rank[i].nr_older, i < 4 || rank_4 ? expected : 0);
		if (s->rank[i].nr_older)
			assert_int_equal(s->rank[i].older[0].id, OLDER_ID + i);
	}
	assert_int_equal(snapshot_check(staged_path("saved.kcr", -1), s, NULL, &elsewhere), 0);
	snapshot_free(s);
}

/*
 * Ranks are told where the last snapshot has their files, if there is one and the request wants
 * it, and what they need of these is in the manifest; a failure leaves the last one whole.
 */
static void continued(void **state)
{
	(void)state;
	stage.incremental = true;
	snapshot_is_saved();
	has_older(0, false);
	snapshot_is_saved();
	has_older(1, true);
	stage_mark("full", 2);
	request_begins();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	stage_mark("write", -1);
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);	/* it is cancelled */
	request_ends(ENOSPC, "rank 2: the disk is full");
	snapshot_stays();
	has_older(1, true);
	unlink(staged_path("full", 2));
	unlink(staged_path("write", -1));
	unlink(staged_path("writing", 0));
	request_begins();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	kill(writer_of(0), SIGKILL);
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	request_ends(EIO, "rank 0: cr_checkpoint ended without a result");
	snapshot_stays();
	has_older(1, true);
	unlink(staged_path("saved.kcr/rank.4.ctx", -1));
	snapshot_is_saved();
	has_older(1, false);
	stage.incremental = false;
	snapshot_is_saved();
	has_older(0, false);
}

/* What is warned of while a rank is saved reaches the one who has asked. */
static void warned(void **state)
{
	(void)state;
	stage_mark("warns", 2);
	stage_mark("write", -1);
	request_begins();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	assert_int_equal(pthread_join(stage.client, NULL), 0);
	assert_int_equal(stage.answer.code, 0);
	assert_non_null(stage.answer.warning[0]);
	assert_string_equal(stage.answer.warning[0], "rank 2: a \"thing\" is lost");
	assert_non_null(stage.answer.warning[1]);
	assert_string_equal(stage.answer.warning[1], "rank 2: another");
	assert_null(stage.answer.warning[2]);
	close(stage.request_fd);
	job_answer_free(&stage.answer);
	unlink(staged_path("warns", 2));
}

/* One that is written standing still is reported. */
static void not_copied(void **state)
{
	(void)state;
	stage_mark("uncopied", 1);
	stage_mark("write", -1);
	request_begins();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	assert_int_equal(pthread_join(stage.client, NULL), 0);
	assert_int_equal(stage.answer.code, 0);
	assert_int_equal(stage.answer.not_copied, 1);
	close(stage.request_fd);
	job_answer_free(&stage.answer);
}

static void disk_is_full(void **state)
{
	(void)state;
	snapshot_is_saved();
	stage_mark("full", 2);
	request_begins();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	stage_mark("write", -1);
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);	/* it is cancelled */
	request_ends(ENOSPC, "rank 2: the disk is full");
	snapshot_stays();
	unlink(staged_path("full", 2));
	unlink(staged_path("saved.kcr/rank.2.ctx", -1));
	snapshot_is_saved();
}

/* A rank that dies then has been copied, so its file and the snapshot become complete. */
static void rank_is_lost(void **state)
{
	(void)state;
	request_begins();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	close(stage.rank_fd[0]);
	usleep(100000);
	stage_mark("write", -1);
	request_ends(0, NULL);
	assert_true(snapshot_is_complete());
}

/* Its file cannot be completed either. */
static void rank_and_disk(void **state)
{
	(void)state;
	stage_mark("full", 0);
	request_begins();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	close(stage.rank_fd[0]);
	usleep(100000);
	stage_mark("write", -1);
	for (int i = 1; i < RANKS; i++) {
		rank_is_told(i, WIRE_CONTINUE);
		assert_int_equal(wire_write(stage.rank_fd[i], WIRE_CONTINUED, i, stage.id, NULL, 0), 0);
	}
	request_ends(ENOSPC, "rank 0: the disk is full");
	assert_false(staged("saved.kcr", -1));
}

/* The request ends before all is written: what writes is ended, too. */
static void withdrawn(void **state)
{
	pid_t writer;

	(void)state;
	snapshot_is_saved();
	request_begins();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	writer = writer_of(0);
	shutdown(stage.request_fd, SHUT_RDWR);
	assert_int_equal(pthread_join(stage.client, NULL), 0);
	assert_int_equal(stage.result, -ECONNRESET);
	close(stage.request_fd);
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	snapshot_stays();
	for (double end = now() + 20; !kill(writer, 0) && now() < end;)
		usleep(2000);
	assert_int_equal(kill(writer, 0), -1);
}

/* The node's daemon dies: what it has begun is no snapshot. */
static void daemon_dies(void **state)
{
	(void)state;
	snapshot_is_saved();
	request_begins();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	kill(stage.node, SIGKILL);
	request_ends(ESRCH, "the daemon on node is lost");
	snapshot_stays();
}

/* The limit is the node's. */
static void limited(void **state)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	char share[48];

	(void)state;
	stage.limit = "--bandwidth=6000000";
	snapshot_is_saved();
	stage.limit = NULL;
	snprintf(share, sizeof(share), "bandwidth=%ld", 6000000 / (processors < RANKS ? processors : RANKS));
	for (int i = 0; i < RANKS; i++)
		assert_true(staged(share, i));
}

/* It is stopped; but as long as it answers, files may take longer than it has for that. */
static void daemon_hangs(void **state)
{
	(void)state;
	snapshot_is_saved();
	request_begins();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	sleep(2 * ANSWER_S);
	stage_mark("write", -1);
	request_ends(0, NULL);
	unlink(staged_path("write", -1));
	request_begins();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	kill(stage.node, SIGSTOP);
	request_ends(ETIMEDOUT, "the daemon of node node does not answer: the other nodes' ranks go on, "
		     "and the job can be saved once cr_node there is no longer stopped, or held up by a disk");
	request_comes();
	request_ends(ETIMEDOUT, NULL);
	ranks_are_told_nothing();
	kill(stage.node, SIGCONT);
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	snapshot_stays();
	wait_for_ranks();
	snapshot_is_saved();
}

/* Another request, while files are written, is refused and changes nothing. */
static void second_request(void **state)
{
	struct job_request request;
	struct job_answer other;
	int fd;

	(void)state;
	request_begins();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	stage_wait_for("writing", 0);
	fd = request_connect(&request);
	assert_int_equal(job_ask(fd, &request, &other), 0);
	assert_int_equal(other.code, EBUSY);
	assert_string_equal(other.message, "a checkpoint of the job is under way");
	job_answer_free(&other);
	close(fd);
	stage_mark("write", -1);
	request_ends(0, NULL);
	assert_true(snapshot_is_complete());
}

/* ---- checkpoints that no command asks for ------------------------------------------------------ */

static void asks(int rank, uint32_t alone)
{
	struct {
		struct wire_ask head;
		char path[4096];
	} request_start_thread = { .head = { .keep = 1, .alone = alone } };

	strcpy(request_start_thread.path, staged_path("saved.kcr", -1));
	assert_int_equal(wire_write(stage.rank_fd[rank], WIRE_ASK, rank, 0, &request_start_thread,
				    sizeof(request_start_thread.head) + strlen(request_start_thread.path) + 1), 0);
}

/* The ranks stand still until all is written. */
static void is_written_first(void)
{
	ranks_are_prepared();
	stage_wait_for("writing", 0);
	usleep(100000);
	ranks_are_told_nothing();
	stage_mark("write", -1);
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
}

/* One rank asks: the others run on when all are copied, and it when all is written. */
static void asked_alone(void **state)
{
	(void)state;
	asks(1, 1);
	ranks_are_prepared();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	stage_wait_for("writing", 0);
	ranks_are_told_nothing();
	stage_mark("write", -1);
	rank_is_told(1, WIRE_ANSWER);
	assert_true(snapshot_is_complete());
}

static void ask_together(void)
{
	for (int i = 0; i < RANKS; i++)
		asks(i, 0);
	is_written_first();
	for (int i = 0; i < RANKS; i++)
		rank_is_told(i, WIRE_ANSWER);
	assert_true(snapshot_is_complete());
}

/* All ask, and wait for the end: copies would be of no use. */
static void asked_together(void **state)
{
	(void)state;
	ask_together();
}

static void switched_off(void **state)
{
	(void)state;
	asks(0, 1);
	is_written_first();
	rank_is_told(0, WIRE_ANSWER);
	assert_true(snapshot_is_complete());
}

/* Copies, then none: nothing is left of what was checked for the first. */
static void once_each_way(void **state)
{
	(void)state;
	snapshot_is_saved();
	ask_together();
}

static int set_up_impatient(void **state)
{
	int err;

	mpirun_settings.answer_s = ANSWER_S;
	err = stage_set_up(state);
	mpirun_settings.answer_s = 0;
	return err;
}

static int set_up_without(void **state)
{
	int err;

	mpirun_settings.stand_still = true;
	err = stage_set_up(state);
	mpirun_settings.stand_still = false;
	return err;
}

#define WITH_JOB(test) cmocka_unit_test_setup_teardown(test, stage_set_up, stage_clean_up)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WITH_JOB(all_or_none), WITH_JOB(refused), WITH_JOB(checked_first),
		WITH_JOB(once_each_way), WITH_JOB(not_read_back), WITH_JOB(warned),
		WITH_JOB(not_copied), WITH_JOB(disk_is_full), WITH_JOB(continued),
		WITH_JOB(rank_is_lost), WITH_JOB(rank_and_disk), WITH_JOB(withdrawn),
		WITH_JOB(daemon_dies), WITH_JOB(second_request), WITH_JOB(asked_alone),
		WITH_JOB(asked_together), WITH_JOB(limited),
		cmocka_unit_test_setup_teardown(daemon_hangs, set_up_impatient, stage_clean_up),
		cmocka_unit_test_setup_teardown(switched_off, set_up_without, stage_clean_up),
	};

	if (!strcmp(basename(argv[0]), "cr_checkpoint"))
		return stage_be_cr_checkpoint(argc, argv);
	return seal_init() ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
