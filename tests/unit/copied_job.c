// SPDX-License-Identifier: GPL-2.0
/* See copied_job.h. */
#include "copied_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/coordinator/node.h"

#define FOLDER	"KCR_TEST_FOLDER"

struct stage stage;

/* ---- files in the folder: what may happen, what has happened ------------------------------ */

const char *staged_path(const char *name, int number)
{
	static char path[4096];

	snprintf(path, sizeof(path), number < 0 ? "%s/%s" : "%s/%s.%d", stage.folder, name, number);
	return path;
}

bool staged(const char *name, int number)
{
	return !access(staged_path(name, number), F_OK);
}

void stage_mark(const char *name, int number)
{
	FILE *out = fopen(staged_path(name, number), "w");

	if (!out || fprintf(out, "%d", getpid()) < 0 || fclose(out))
		abort();
}

void stage_wait_for(const char *name, int number)
{
	double end = now() + 20;

	while (!staged(name, number) && now() < end)
		usleep(2000);
	if (!staged(name, number))
		abort();
}

/* ---- cr_checkpoint -------------------------------------------------------------------------- */

/* Links the file that is continued, if there is one in this folder; its size, or 0. */
static off_t carry(const char *folder, int rank, const char *path)
{
	char from[4096], to[4096];
	struct stat st;

	snprintf(from, sizeof(from), "%s/rank.%d.ctx", folder ?: "/nonexistent", rank);
	snprintf(to, sizeof(to), "%s.1", path);
	return !stat(from, &st) && !link(from, to) ? st.st_size : 0;
}

static int finish(int rank, const char *path, off_t older)
{
	struct stat st;

	stage_wait_for("write", -1);
	if (staged("full", rank)) {
		puts("{\"event\":\"error\",\"code\":28,\"message\":\"the disk is full\"}");
		return 28;
	}
	if (rename(staged_path("writing", rank), path) || stat(path, &st))
		return 1;
	if (staged("warns", rank))
		puts("{\"event\":\"warning\",\"message\":\"a \\\"thing\\\" is lost\"}\n"
		     "{\"event\":\"warning\",\"message\":\"another\"}");
	printf("{\"event\":\"done\",\"bytes\":%d,\"id\":\"%016x\"", (int)st.st_size, ID + rank);
	if (older)
		printf(",\"older\":[{\"bytes\":%d,\"id\":\"%016x\"}]", (int)older, OLDER_ID + rank);
	puts("}");
	return 0;
}

int stage_be_cr_checkpoint(int argc, char **argv)
{
	const char *path = NULL, *parents = NULL, *limit = NULL;
	bool copies = false;
	off_t older;
	char byte;
	int rank;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	stage.folder = getenv(FOLDER);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--file"))
			path = argv[i + 1];
		copies = copies || !strcmp(argv[i], "--snapshot");
		limit = !strncmp(argv[i], "--bandwidth=", 12) ? argv[i] + 2 : limit;
		if (!strncmp(argv[i], "--parent-folder=", 16))
			parents = argv[i] + 16;
	}
	if (!path || sscanf(strrchr(path, '/'), "/rank.%d.ctx", &rank) != 1)
		return 1;
	if (limit)
		stage_mark(limit, rank);
	older = carry(parents, rank, path);
	if (!copies) {
		stage_mark("writing", rank);
		return finish(rank, path, older);
	}
	if (staged("refused", rank)) {
		puts("{\"event\":\"error\",\"code\":95,\"message\":\"it uses io_uring\"}");
		return 95;
	}
	puts("{\"event\":\"ready\"}");
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) != 1)
		return 1;
	stage_mark("copying", rank);
	if (staged("late", rank))
		stage_wait_for("copy", rank);
	printf("{\"event\":\"released\",\"copied\":%s}\n", staged("uncopied", rank) ? "false" : "true");
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) != 1)
		return 1;
	stage_mark("writing", rank);
	return finish(rank, path, older);
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
	stage.rank_fd[rank] = fd;
}

void rank_is_told(int rank, uint32_t type)
{
	struct wire_header h;
	uint8_t *data;

	assert_int_equal(wire_read(stage.rank_fd[rank], &h, &data, 1000), 0);
	assert_int_equal(h.type, type);
	stage.id = h.id;
	free(data);
}

void ranks_are_told(uint32_t type, uint32_t answer)
{
	for (int i = 0; i < RANKS; i++) {
		rank_is_told(i, type);
		assert_int_equal(wire_write(stage.rank_fd[i], answer, i, stage.id, NULL, 0), 0);
	}
}

void ranks_are_told_nothing(void)
{
	char byte;

	for (int i = 0; i < RANKS; i++)
		assert_true(recv(stage.rank_fd[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0);
}

void ranks_are_prepared(void)
{
	ranks_are_told(WIRE_PREPARE, WIRE_BOOKMARKS);
	ranks_are_told(WIRE_DRAIN, WIRE_DRAINED);
	ranks_are_told(WIRE_SUSPEND, WIRE_SUSPENDED);
}

/* ---- requests --------------------------------------------------------------------------------- */

int request_connect(struct job_request *request)
{
	int fd = job_connect(mpirun);

	assert_true(fd >= 0);
	*request = (struct job_request){
		.path = (char *)staged_path("saved.kcr", -1), .keep = 1, .snapshot = true,
		.incremental = stage.incremental,
	};
	if (stage.limit)
		request->argument[request->nr_arguments++] = (char *)stage.limit;
	return fd;
}

static void *ask(void *unused)
{
	struct job_request request;

	(void)unused;
	stage.request_fd = request_connect(&request);
	stage.result = job_ask(stage.request_fd, &request, &stage.answer);
	return NULL;
}

void request_comes(void)
{
	memset(&stage.answer, 0, sizeof(stage.answer));
	assert_int_equal(pthread_create(&stage.client, NULL, ask, NULL), 0);
}

void request_begins(void)
{
	request_comes();
	ranks_are_prepared();
}

void request_ends(int code, const char *text)
{
	assert_int_equal(pthread_join(stage.client, NULL), 0);
	assert_int_equal(stage.result, 0);
	assert_int_equal(stage.answer.code, code);
	if (text)
		assert_string_equal(stage.answer.message, text);
	close(stage.request_fd);
	job_answer_free(&stage.answer);
}

bool snapshot_is_complete(void)
{
	for (int i = 0; i < RANKS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "saved.kcr/rank.%d.ctx", i);
		if (!staged(name, -1))
			return false;
	}
	return staged("saved.kcr/manifest.json", -1) && !staged("saved.kcr.partial", -1);
}

void snapshot_is_saved(void)
{
	stage_mark("write", -1);
	request_begins();
	ranks_are_told(WIRE_CONTINUE, WIRE_CONTINUED);
	request_ends(0, NULL);
	assert_true(snapshot_is_complete());
	unlink(staged_path("write", -1));
}

void snapshot_stays(void)
{
	double end = now() + 20;

	while (staged("saved.kcr.partial", -1) && now() < end)
		usleep(2000);
	assert_true(snapshot_is_complete());
	assert_false(staged("saved.kcr.~1~", -1));
}

void wait_for_ranks(void)
{
	struct job_request request;
	double end = now() + 20;
	int code = EBUSY;

	while ((code == EBUSY || code == ETIMEDOUT) && now() < end) {
		int fd = request_connect(&request);

		request.path = (char *)"/nowhere/saved.kcr";
		assert_int_equal(job_ask(fd, &request, &stage.answer), 0);
		code = stage.answer.code;
		job_answer_free(&stage.answer);
		close(fd);
	}
	assert_int_equal(code, ENOENT);
}

/* ---- beginning and end ------------------------------------------------------------------------ */

/* In a process of its own, as mpirun. */
static void be_daemon(int out)
{
	char daemon[NODE_NAME_MAX];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN);		/* it does not wait for what it starts */
	if (node_start(job.address, job.secret, "node", 0, daemon, NULL) ||
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
	stage.node = fork();
	if (!stage.node)
		be_daemon(ends[1]);
	close(ends[1]);
	if (stage.node < 0 || read(ends[0], daemon, NODE_NAME_MAX) != NODE_NAME_MAX)
		return -1;
	close(ends[0]);
	return 0;
}

int stage_set_up(void **state)
{
	static char name[4096];
	char daemon[NODE_NAME_MAX];
	const char *parent = getenv("TMPDIR");

	snprintf(name, sizeof(name), "%s/copies.XXXXXX", parent ? parent : "/tmp");
	stage.folder = mkdtemp(name);
	if (!stage.folder || setenv(FOLDER, stage.folder, 1) || setenv("PATH", stage.folder, 1) ||
	    symlink("/proc/self/exe", staged_path("cr_checkpoint", -1)) || start_mpirun(state) ||
	    start_daemon(daemon))
		return -1;
	for (int i = 0; i < RANKS; i++)
		come_as(i, daemon);
	wait_for_ranks();
	return 0;
}

int stage_clean_up(void **state)
{
	char command[5000];
	int err = end_mpirun(state);

	kill(stage.node, SIGKILL);
	waitpid(stage.node, NULL, 0);
	for (int i = 0; i < RANKS; i++)
		close(stage.rank_fd[i]);
	snprintf(command, sizeof(command), "/bin/rm -rf '%s'", stage.folder);
	return system(command) || err ? -1 : 0;
}
