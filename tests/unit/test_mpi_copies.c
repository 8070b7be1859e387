// SPDX-License-Identifier: GPL-2.0
/*
 * A job that runs on while its ranks are written: the coordinator and a daemon of a node
 * with ranks played by this test, which run on when all of them are copied and not
 * earlier, and a snapshot that is complete or does not exist, whatever happens meanwhile.
 * This program also plays the cr_checkpoint that the daemon starts: it waits for files
 * in the test's folder to appear, and leaves others there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/coordinator/node.h"
#include "job/request.h"
#include "job/snapshot.h"
#include "mpirun.h"

#define RANKS	5		/* more than may be written at a time on a small machine */
#define FOLDER	"KCR_TEST_FOLDER"
#define ID	0xabcdef00u	/* of the first rank's file */

static char *folder;
static pid_t node;			/* the daemon */
static int rank_fd[RANKS];
static uint32_t id;			/* of the checkpoint */

/* ---- files in the folder: what may happen, what has happened ------------------------------ */

static const char *at(const char *name, int number)
{
	static char path[4096];

	snprintf(path, sizeof(path), number < 0 ? "%s/%s" : "%s/%s.%d", folder, name, number);
	return path;
}

static bool there_is(const char *name, int number)
{
	return !access(at(name, number), F_OK);
}

static void mark(const char *name, int number)
{
	FILE *out = fopen(at(name, number), "w");

	if (!out || fprintf(out, "%d", getpid()) < 0 || fclose(out))
		abort();
}

static void wait_for(const char *name, int number)
{
	double end = now() + 20;

	while (!there_is(name, number) && now() < end)
		usleep(2000);
	if (!there_is(name, number))
		abort();
}

/* ---- cr_checkpoint -------------------------------------------------------------------------- */

static int finish(int rank, const char *path)
{
	struct stat st;

	wait_for("write", -1);
	if (there_is("full", rank)) {
		puts("{\"event\":\"error\",\"code\":28,\"message\":\"the disk is full\"}");
		return 28;
	}
	if (rename(at("writing", rank), path) || stat(path, &st))
		return 1;
	printf("{\"event\":\"done\",\"bytes\":%d,\"id\":\"%016x\"}\n", (int)st.st_size, ID + rank);
	return 0;
}

static int be_cr_checkpoint(int argc, char **argv)
{
	const char *path = NULL;
	bool copies = false;
	char byte;
	int rank;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	folder = getenv(FOLDER);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--file"))
			path = argv[i + 1];
		copies = copies || !strcmp(argv[i], "--snapshot");
	}
	if (!path || sscanf(strrchr(path, '/'), "/rank.%d.ctx", &rank) != 1)
		return 1;
	if (!copies) {
		mark("writing", rank);
		return finish(rank, path);
	}
	if (there_is("refused", rank)) {
		puts("{\"event\":\"error\",\"code\":95,\"message\":\"it uses io_uring\"}");
		return 95;
	}
	puts("{\"event\":\"ready\"}");
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) != 1)
		return 1;
	mark("copying", rank);
	if (there_is("late", rank))
		wait_for("copy", rank);
	printf("{\"event\":\"released\",\"copied\":%s}\n", there_is("uncopied", rank) ? "false" : "true");
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) != 1)
		return 1;
	mark("writing", rank);
	return finish(rank, path);
}

/* ---- ranks ------------------------------------------------------------------------------------ */

static void come_as(int rank, const char *daemon)
{
	const struct timeval patience = { .tv_sec = 20 };
	const struct wire_hello hello = { .pid = getpid(), .top = getpid(), .size = RANKS };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path + 1, daemon);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, offsetof(struct sockaddr_un,
			 sun_path) + 1 + strlen(daemon)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(wire_write(fd, WIRE_HELLO, rank, 0, &hello, sizeof(hello)), 0);
	rank_fd[rank] = fd;
}

static void is_told(int rank, uint32_t type)
{
	struct wire_header h;
	uint8_t *data;

	assert_int_equal(wire_read(rank_fd[rank], &h, &data, 1000), 0);
	assert_int_equal(h.type, type);
	id = h.id;
	free(data);
}

static void all_are_told(uint32_t type, uint32_t answer)
{
	for (int i = 0; i < RANKS; i++) {
		is_told(i, type);
		assert_int_equal(wire_write(rank_fd[i], answer, i, id, NULL, 0), 0);
	}
}

static void nobody_is_told_anything(void)
{
	char byte;

	for (int i = 0; i < RANKS; i++)
		assert_true(recv(rank_fd[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0);
}

/* A checkpoint begins, up to the dumps. */
static void is_prepared(void)
{
	all_are_told(WIRE_PREPARE, WIRE_BOOKMARKS);
	all_are_told(WIRE_DRAIN, WIRE_DRAINED);
	all_are_told(WIRE_SUSPEND, WIRE_SUSPENDED);
}

/* ---- requests --------------------------------------------------------------------------------- */

static int request_fd;
static pthread_t client;
static struct job_answer answer;
static int result;

static int connect_client(struct job_request *request)
{
	int fd = job_connect(mpirun);

	assert_true(fd >= 0);
	*request = (struct job_request){
		.path = (char *)at("saved.kcr", -1), .keep = 1, .snapshot = true,
	};
	return fd;
}

static void *ask(void *unused)
{
	struct job_request request;

	(void)unused;
	request_fd = connect_client(&request);
	result = job_ask(request_fd, &request, &answer);
	return NULL;
}

static void begin(void)
{
	memset(&answer, 0, sizeof(answer));
	assert_int_equal(pthread_create(&client, NULL, ask, NULL), 0);
	is_prepared();
}

/* The request ends with this. */
static void ends(int code, const char *text)
{
	assert_int_equal(pthread_join(client, NULL), 0);
	assert_int_equal(result, 0);
	assert_int_equal(answer.code, code);
	if (text)
		assert_string_equal(answer.message, text);
	close(request_fd);
	job_answer_free(&answer);
}

/* Only the rank files of a complete snapshot have the name. */
static bool is_complete(void)
{
	for (int i = 0; i < RANKS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "saved.kcr/rank.%d.ctx", i);
		if (!there_is(name, -1))
			return false;
	}
	return there_is("saved.kcr/manifest.json", -1) && !there_is("saved.kcr.partial", -1);
}

static void save_once(void)
{
	mark("write", -1);
	begin();
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	ends(0, NULL);
	assert_true(is_complete());
	unlink(at("write", -1));
}

/* The snapshot that save_once() has made is still there, and nothing else. */
static void old_one_stays(void)
{
	double end = now() + 20;

	while (there_is("saved.kcr.partial", -1) && now() < end)
		usleep(2000);
	assert_true(is_complete());
	assert_false(there_is("saved.kcr.~1~", -1));
}

/* A request that may come too early: all ranks are known as soon as it does not. */
static void wait_for_ranks(void)
{
	struct job_request request;
	double end = now() + 20;
	int code = EBUSY;

	while (code == EBUSY && now() < end) {
		int fd = connect_client(&request);

		request.path = (char *)"/nowhere/saved.kcr";
		assert_int_equal(job_ask(fd, &request, &answer), 0);
		code = answer.code;
		job_answer_free(&answer);
		close(fd);
	}
	assert_int_equal(code, ENOENT);
}

/* ---- tests ------------------------------------------------------------------------------------ */

/* In a process of its own, as mpirun. */
static void be_daemon(int out)
{
	char daemon[NODE_NAME_MAX];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN);		/* it does not wait for what it starts */
	if (node_start(job.address, job.secret, "node", daemon) ||
	    write(out, daemon, sizeof(daemon)) != sizeof(daemon))
		_exit(1);
	for (;;)
		pause();
}

static int start_daemon(char daemon[NODE_NAME_MAX])
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	node = fork();
	if (!node)
		be_daemon(ends[1]);
	close(ends[1]);
	if (node < 0 || read(ends[0], daemon, NODE_NAME_MAX) != NODE_NAME_MAX)
		return -1;
	close(ends[0]);
	return 0;
}

static int set_up(void **state)
{
	static char name[4096];
	char daemon[NODE_NAME_MAX];
	const char *parent = getenv("TMPDIR");

	snprintf(name, sizeof(name), "%s/copies.XXXXXX", parent ? parent : "/tmp");
	folder = mkdtemp(name);
	if (!folder || setenv(FOLDER, folder, 1) || setenv("PATH", folder, 1) ||
	    symlink("/proc/self/exe", at("cr_checkpoint", -1)) || start_mpirun(state) ||
	    start_daemon(daemon))
		return -1;
	for (int i = 0; i < RANKS; i++)
		come_as(i, daemon);
	wait_for_ranks();
	return 0;
}

static int clean_up(void **state)
{
	char command[5000];
	int err = end_mpirun(state);

	kill(node, SIGKILL);
	waitpid(node, NULL, 0);
	for (int i = 0; i < RANKS; i++)
		close(rank_fd[i]);
	snprintf(command, sizeof(command), "/bin/rm -rf '%s'", folder);
	return system(command) || err ? -1 : 0;
}

/* All run on, and none is written, before the last one is copied; all at once after it. */
static void all_or_none(void **state)
{
	(void)state;
	mark("late", RANKS - 1);
	begin();
	usleep(200000);
	nobody_is_told_anything();
	for (int i = 0; i < RANKS; i++)
		assert_false(there_is("writing", i));
	mark("copy", RANKS - 1);
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	wait_for("writing", 0);
	assert_false(there_is("saved.kcr", -1));
	mark("write", -1);
	assert_int_equal(pthread_join(client, NULL), 0);
	assert_int_equal(result, 0);
	assert_int_equal(answer.code, 0);
	assert_int_equal(answer.ranks, RANKS);
	assert_int_equal(answer.not_copied, 0);
	assert_true(answer.copy_ms > 0);
	assert_true(answer.dump_ms > 0);
	close(request_fd);
	job_answer_free(&answer);
	assert_true(is_complete());
	nobody_is_told_anything();
}

/* A rank that cannot be saved is refused before anybody stops, */
static void refused(void **state)
{
	(void)state;
	mark("refused", 3);
	memset(&answer, 0, sizeof(answer));
	assert_int_equal(pthread_create(&client, NULL, ask, NULL), 0);
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	ends(95, "rank 3: it uses io_uring");
	assert_false(there_is("saved.kcr", -1));
	for (int i = 0; i < RANKS; i++)
		assert_false(there_is("copying", i));
	unlink(at("refused", 3));
	save_once();
}

/* What was checked is copied when the job is at rest. */
static void checked_first(void **state)
{
	(void)state;
	memset(&answer, 0, sizeof(answer));
	assert_int_equal(pthread_create(&client, NULL, ask, NULL), 0);
	all_are_told(WIRE_PREPARE, WIRE_BOOKMARKS);
	is_told(0, WIRE_DRAIN);
	usleep(100000);
	for (int i = 0; i < RANKS; i++)
		assert_false(there_is("copying", i));
	assert_int_equal(wire_write(rank_fd[0], WIRE_DRAINED, 0, id, NULL, 0), 0);
	for (int i = 1; i < RANKS; i++) {
		is_told(i, WIRE_DRAIN);
		assert_int_equal(wire_write(rank_fd[i], WIRE_DRAINED, i, id, NULL, 0), 0);
	}
	all_are_told(WIRE_SUSPEND, WIRE_SUSPENDED);
	mark("write", -1);
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	ends(0, NULL);
	assert_true(is_complete());
}

/* The commit takes the word of those who have written: no file is opened again. */
static void not_read_back(void **state)
{
	char events[4096] __attribute__((aligned(8))) = "";
	struct snapshot *s;
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	(void)state;
	begin();
	assert_true(inotify_add_watch(watch, at("saved.kcr.partial", -1), IN_OPEN) >= 0);
	mark("write", -1);
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	ends(0, NULL);
	assert_true(is_complete());
	for (ssize_t n, at; (n = read(watch, events, sizeof(events))) > 0;) {
		const struct inotify_event *e;

		for (at = 0; at < n; at += sizeof(*e) + e->len) {
			e = (const void *)(events + at);
			assert_false(e->len && !strncmp(e->name, "rank.", 5));
		}
	}
	close(watch);
	assert_int_equal(snapshot_load_one(at("saved.kcr", -1), &s), 0);
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(s->rank[i].id, ID + i);
	snapshot_free(s);
}

/* One that is written standing still is reported. */
static void not_copied(void **state)
{
	(void)state;
	mark("uncopied", 1);
	mark("write", -1);
	begin();
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	assert_int_equal(pthread_join(client, NULL), 0);
	assert_int_equal(answer.code, 0);
	assert_int_equal(answer.not_copied, 1);
	close(request_fd);
	job_answer_free(&answer);
}

static void disk_is_full(void **state)
{
	(void)state;
	save_once();
	mark("full", 2);
	begin();
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	mark("write", -1);
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);	/* it is cancelled */
	ends(ENOSPC, "rank 2: the disk is full");
	old_one_stays();
	unlink(at("full", 2));
	unlink(at("saved.kcr/rank.2.ctx", -1));
	save_once();
}

/* A rank that dies then has been copied, so its file and the snapshot become complete. */
static void rank_is_lost(void **state)
{
	(void)state;
	begin();
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	close(rank_fd[0]);
	usleep(100000);
	mark("write", -1);
	ends(0, NULL);
	assert_true(is_complete());
}

/* Its file cannot be completed either. */
static void rank_and_disk(void **state)
{
	(void)state;
	mark("full", 0);
	begin();
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	close(rank_fd[0]);
	usleep(100000);
	mark("write", -1);
	for (int i = 1; i < RANKS; i++) {
		is_told(i, WIRE_CONTINUE);
		assert_int_equal(wire_write(rank_fd[i], WIRE_CONTINUED, i, id, NULL, 0), 0);
	}
	ends(ENOSPC, "rank 0: the disk is full");
	assert_false(there_is("saved.kcr", -1));
}

/* The request ends before all is written: what writes is ended, too. */
static void withdrawn(void **state)
{
	pid_t writer = 0;
	FILE *in;

	(void)state;
	save_once();
	begin();
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	wait_for("writing", 0);
	while (!writer) {
		in = fopen(at("writing", 0), "r");
		assert_non_null(in);
		if (fscanf(in, "%d", &writer) != 1)
			writer = 0;
		fclose(in);
	}
	shutdown(request_fd, SHUT_RDWR);
	assert_int_equal(pthread_join(client, NULL), 0);
	assert_int_equal(result, -ECONNRESET);
	close(request_fd);
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	old_one_stays();
	for (double end = now() + 20; !kill(writer, 0) && now() < end;)
		usleep(2000);
	assert_int_equal(kill(writer, 0), -1);
}

/* The node's daemon dies: what it has begun is no snapshot. */
static void daemon_dies(void **state)
{
	(void)state;
	save_once();
	begin();
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	kill(node, SIGKILL);
	ends(ESRCH, "the daemon on node is lost");
	old_one_stays();
}

/* Another request, while files are written, is refused and changes nothing. */
static void second_request(void **state)
{
	struct job_request request;
	struct job_answer other;
	int fd;

	(void)state;
	begin();
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	wait_for("writing", 0);
	fd = connect_client(&request);
	assert_int_equal(job_ask(fd, &request, &other), 0);
	assert_int_equal(other.code, EBUSY);
	assert_string_equal(other.message, "a checkpoint of the job is under way");
	job_answer_free(&other);
	close(fd);
	mark("write", -1);
	ends(0, NULL);
	assert_true(is_complete());
}

/* ---- checkpoints that no command asks for ------------------------------------------------------ */

static void asks(int rank, uint32_t alone)
{
	struct {
		struct wire_ask head;
		char path[4096];
	} ask = { .head = { .keep = 1, .alone = alone } };

	strcpy(ask.path, at("saved.kcr", -1));
	assert_int_equal(wire_write(rank_fd[rank], WIRE_ASK, rank, 0, &ask,
				    sizeof(ask.head) + strlen(ask.path) + 1), 0);
}

/* The ranks stand still until all is written. */
static void is_written_first(void)
{
	is_prepared();
	wait_for("writing", 0);
	usleep(100000);
	nobody_is_told_anything();
	mark("write", -1);
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
}

/* One rank asks: the others run on when all are copied, and it when all is written. */
static void asked_alone(void **state)
{
	(void)state;
	asks(1, 1);
	is_prepared();
	all_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	wait_for("writing", 0);
	nobody_is_told_anything();
	mark("write", -1);
	is_told(1, WIRE_ANSWER);
	assert_true(is_complete());
}

/* All ask, and wait for the end: copies would be of no use. */
static void asked_together(void **state)
{
	(void)state;
	for (int i = 0; i < RANKS; i++)
		asks(i, 0);
	is_written_first();
	for (int i = 0; i < RANKS; i++)
		is_told(i, WIRE_ANSWER);
	assert_true(is_complete());
}

static void switched_off(void **state)
{
	(void)state;
	asks(0, 1);
	is_written_first();
	is_told(0, WIRE_ANSWER);
	assert_true(is_complete());
}

/* Copies, then none: nothing is left of what was checked for the first. */
static void once_each_way(void **state)
{
	(void)state;
	save_once();
	for (int i = 0; i < RANKS; i++)
		asks(i, 0);
	is_written_first();
	for (int i = 0; i < RANKS; i++)
		is_told(i, WIRE_ANSWER);
	assert_true(is_complete());
}

static int set_up_without(void **state)
{
	int err;

	mpirun_settings.stand_still = true;
	err = set_up(state);
	mpirun_settings.stand_still = false;
	return err;
}

#define WITH_JOB(test) cmocka_unit_test_setup_teardown(test, set_up, clean_up)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WITH_JOB(all_or_none), WITH_JOB(refused), WITH_JOB(checked_first),
		WITH_JOB(once_each_way), WITH_JOB(not_read_back), WITH_JOB(not_copied), WITH_JOB(disk_is_full),
		WITH_JOB(rank_is_lost), WITH_JOB(rank_and_disk), WITH_JOB(withdrawn),
		WITH_JOB(daemon_dies), WITH_JOB(second_request), WITH_JOB(asked_alone),
		WITH_JOB(asked_together),
		cmocka_unit_test_setup_teardown(switched_off, set_up_without, clean_up),
	};

	if (!strcmp(basename(argv[0]), "cr_checkpoint"))
		return be_cr_checkpoint(argc, argv);
	return seal_init() ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
