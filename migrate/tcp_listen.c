// SPDX-License-Identifier: GPL-2.0
/*
 * The target's end; see tcp.h.  Each connection has a process of its own.  The first that knows
 * the key gets the receiver of the migration, whose end is ours; while that runs, another one may have
 * the pages of a lazy migration.
 */
#include "migrate/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/coordinator/greeting.h"
#include "migrate/address.h"
#include "migrate/key.h"
#include "migrate/tunnel.h"
#include "proc/clock.h"
#include "report/report.h"

#define GREETING_NS	10000000000ull	/* for a stranger to prove that it is none */
#define MOST_AT_ONCE	16		/* connections */
#define RECEIVE		"cr_migrate --receive"
#define RECEIVE_PAGES	"cr_migrate --receive-pages"

/* Of all processes here. */
struct shared {
	atomic_int receiver;		/* who serves it, 0: nobody yet */
};

struct listener {
	int fd;
	const char *program;
	char key[WIRE_SECRET + 1];
	struct shared *shared;
	unsigned int running;
};

static pid_t program;			/* of the connection that this process serves */

/* ---- one connection ------------------------------------------------------------------------- */

/* The next message, within the time: 1, or -errno. */
static int next(struct wire *w, uint64_t until, struct wire_header *header, const uint8_t **data)
{
	int got;

	while (!(got = wire_next(w, header, data))) {
		uint64_t now = now_ns();
		struct pollfd p = { .fd = w->fd, .events = POLLIN };

		if (now >= until || !poll(&p, 1, (int)((until - now) / 1000000) + 1))
			return -ETIMEDOUT;
		got = wire_fill_once(w);
		if (got < 0)
			return got;
		if (!w->sealed && w->in_end - w->in_begin > GREETING_MAX)
			return -EPROTO;
	}
	return got;
}

/* Does it know the key? */
static int greet(const struct listener *l, struct wire *w, uint64_t until)
{
	struct greeting_challenge challenge;
	struct wire_header header;
	const uint8_t *data;
	char *name = NULL;
	int err = greeting_challenge(w, &challenge);

	if (!err)
		err = next(w, until, &header, &data);
	if (err == 1)
		err = greeting_take(w, &challenge, l->key, &header, data, &name);
	if (!err)
		err = wire_flush(w);
	if (!err)
		report_verbose("%s knows the key", name);
	free(name);
	return err;
}

/* Only one is served, and it has pages only once it has begun. */
static int admit(const struct listener *l, const char *command)
{
	int nobody = 0;

	if (!strncmp(command, RECEIVE_PAGES " ", strlen(RECEIVE_PAGES " ")))
		return atomic_load(&l->shared->receiver) ? 0 : -EPROTO;
	if (strncmp(command, RECEIVE " ", strlen(RECEIVE " ")))
		return -EPROTO;
	return atomic_compare_exchange_strong(&l->shared->receiver, &nobody, getpid()) ? 0 : -EBUSY;
}

static void become(const struct listener *l, const int ends[TUNNEL_STREAMS], const char *arguments)
{
	char *script;

	if (asprintf(&script, "exec \"$0\" %s", arguments) < 0)
		_exit(126);
	for (int i = 0; i < TUNNEL_STREAMS; i++)
		if (dup2(ends[i], i) < 0)
			_exit(126);
	execl("/bin/sh", "sh", "-c", script, l->program, NULL);
	_exit(127);
}

/* Our ends of its pipes are in *t. */
static int start(const struct listener *l, struct tunnel *t, const char *command)
{
	int ends[TUNNEL_STREAMS];

	for (int i = 0; i < TUNNEL_STREAMS; i++) {
		int both[2];

		if (pipe2(both, O_CLOEXEC))
			return -errno;
		t->sends[i] = i != STDIN_FILENO;
		t->fd[i] = both[!t->sends[i]];
		ends[i] = both[t->sends[i]];
	}
	program = fork();
	if (!program)
		become(l, ends, command + strlen("cr_migrate"));
	for (int i = 0; i < TUNNEL_STREAMS; i++)
		close(ends[i]);
	if (program < 0)
		return -errno;
	t->program = (int)syscall(SYS_pidfd_open, program, 0);
	return t->program < 0 ? -errno : 0;
}

static int wait_for_program(void)
{
	int status = 0;

	while (waitpid(program, &status, 0) < 0 && errno == EINTR)
		;
	program = 0;
	return status;
}

/* What it is to run. */
static int take_command(struct wire *w, uint64_t until, char **command)
{
	struct wire_header header;
	const uint8_t *data;
	int err = next(w, until, &header, &data);

	if (err < 0)
		return err;
	if (header.type != TUNNEL_COMMAND || memchr(data, '\0', header.length))
		return -EPROTO;
	*command = strndup((const char *)data, header.length);
	return *command ? 0 : -ENOMEM;
}

/* The status of what was run; or -errno: nothing was. */
static int serve(const struct listener *l, int fd)
{
	struct tunnel t = { .fd = { -1, -1, -1 }, .program = -1 };
	uint64_t until = now_ns() + GREETING_NS;
	char *command = NULL;
	int err;

	wire_open(&t.wire, fd);
	err = greet(l, &t.wire, until);
	if (!err)
		err = take_command(&t.wire, until, &command);
	if (!err)
		err = admit(l, command);
	if (!err) {
		tcp_watch(fd, command);
		err = start(l, &t, command);
	}
	free(command);
	if (!err)
		tunnel_run(&t, wait_for_program);
	/* Where the connection is lost, it notices that by its standard input. */
	tunnel_close(&t);
	if (program > 0)
		t.status = wait_for_program();
	return err ?: t.status;
}

static void of_child(struct listener *l, int fd)
{
	sigset_t none;
	int status;

	/* Nor is it blocked in what runs here. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	close(l->fd);
	status = serve(l, fd);
	if (status < 0) {
		report_warn("a connection was refused: %s", status == -EPERM ? "it does not know the key" :
			    status == -EBUSY ? "there was another one before" :
			    status == -EPROTONOSUPPORT ? "it is of another release of KCR: install the same "
			    "on both machines" : strerror(-status));
		_exit(255);
	}
	/* Its own status for whoever waits; cr_migrate itself takes no signal for its end. */
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void take_connection(struct listener *l)
{
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	pid_t pid;

	if (fd < 0)
		return;
	pid = fork();
	if (!pid)
		of_child(l, fd);
	close(fd);
	l->running += pid > 0;
}

/* Has the receiver's ended?  Then with its status. */
static bool reap(struct listener *l, int *status)
{
	int each;
	pid_t pid;

	while ((pid = waitpid(-1, &each, WNOHANG)) > 0) {
		l->running--;
		if (pid != atomic_load(&l->shared->receiver))
			continue;
		*status = each;
		return true;
	}
	return false;
}

static void on_child(int number)
{
	(void)number;
}

static void serve_all(struct listener *l, int *status)
{
	const struct sigaction wake = { .sa_handler = on_child };
	sigset_t children, before;

	sigaction(SIGCHLD, &wake, NULL);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, &before);
	while (!reap(l, status)) {
		struct pollfd p = { .fd = l->running < MOST_AT_ONCE ? l->fd : -1, .events = POLLIN };

		if (ppoll(&p, 1, NULL, &before) > 0)
			take_connection(l);
	}
	/* The pages' connection ends by itself. */
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

int tcp_listen(const char *where, const char *key_file, const char *program_path, int *status)
{
	struct listener l = { .program = program_path };
	int err = seal_init(), port;

	l.shared = mmap(NULL, sizeof(*l.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			0);
	if (err || l.shared == MAP_FAILED)
		return report_errno(err ?: -ENOMEM, "--listen");
	l.fd = address_listen(where, &port);
	if (l.fd < 0)
		return l.fd;
	err = key_make(key_file, l.key);
	if (err)
		return err;
	printf("cr_migrate: waiting at port %d for one with the key %s\n", port, key_file);
	fflush(stdout);
	serve_all(&l, status);
	key_remove();
	return 0;
}
