// SPDX-License-Identifier: GPL-2.0
/*
 * migrate_cut MESSAGE[.COUNT] VICTIM COMMAND…: stands between the two ends of a migration, the
 * source at our standard input and output and the target, the command, and passes their
 * messages on (restart/link.h).  Just before the first (COUNT-th) message of that type something
 * dies: "connection", "source" (its cr_migrate), "target" (the receiver), "restart" (its
 * cr_restart) or, of a lazy migration, "pages" (the one that passes on pages to that).
 */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "restart/link.h"

static uint32_t wanted, count = 1;
static const char *victim;
static pid_t target;
static int source_ended;

static int is_named(const char *pid, const char *name, const char *argument)
{
	char path[300], text[4096] = "";
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	f = fopen(path, "r");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	if (!n || !strstr(text, name))
		return 0;
	/* An argument that ends in '=' may go on. */
	return memmem(text, n, argument, strlen(argument) + (argument[strlen(argument) - 1] != '=')) &&
	       !strstr(text, "nsenter");
}

/* Wherever it is: our PID namespace has those of the hosts in it. */
static void kill_named(const char *name, const char *argument)
{
	DIR *all = opendir("/proc");
	struct dirent *each;

	while (all && (each = readdir(all)))
		if (atoi(each->d_name) > 0 && is_named(each->d_name, name, argument))
			kill(atoi(each->d_name), SIGKILL);
	if (all)
		closedir(all);
}

static void strike(void)
{
	wanted = 0;
	if (!strcmp(victim, "connection"))
		_exit(0);
	else if (!strcmp(victim, "source"))
		kill_named("cr_migrate", "--rsh=");
	else if (!strcmp(victim, "target"))
		kill_named("cr_migrate", "--receive");
	else if (!strcmp(victim, "pages"))
		kill_named("cr_migrate", "--receive-pages");
	else
		kill_named("cr_restart", "--hold-fd=");
	usleep(100000);			/* it is dead when the message arrives */
}

/* The end of one side; as the target ends we end. */
static void side_ends(int from, int to)
{
	int status = 0;

	close(to);
	if (!from) {
		source_ended = 1;
		return;
	}
	waitpid(target, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void pass(int from, int to, size_t length)
{
	static char data[LINK_DATA_MAX];
	size_t done = 0;

	while (done < length) {
		ssize_t n = read(from, data + done, length - done);

		if (n <= 0)
			_exit(0);
		done += n;
	}
	if (length && write(to, data, length) != (ssize_t)length)
		_exit(0);
}

static void pass_message(int from, int to)
{
	struct link_head head;
	size_t done = 0;

	while (done < sizeof(head)) {
		ssize_t n = read(from, (char *)&head + done, sizeof(head) - done);

		if (n <= 0) {
			side_ends(from, to);
			return;
		}
		done += n;
	}
	if (head.length > LINK_DATA_MAX)
		_exit(1);
	if (head.type == wanted && !--count)
		strike();
	if (write(to, &head, sizeof(head)) != sizeof(head))
		_exit(0);
	pass(from, to, head.length);
}

int main(int argc, char **argv)
{
	int there[2], back[2];

	if (argc < 4 || pipe(there) || pipe(back))
		return 2;
	wanted = atoi(argv[1]);
	if (strchr(argv[1], '.'))
		count = atoi(strchr(argv[1], '.') + 1);
	victim = argv[2];
	signal(SIGPIPE, SIG_IGN);
	target = fork();
	if (!target) {
		dup2(there[0], 0);
		dup2(back[1], 1);
		close(there[1]);
		close(back[0]);
		signal(SIGPIPE, SIG_DFL);
		execvp(argv[3], argv + 3);
		_exit(127);
	}
	close(there[0]);
	close(back[1]);
	for (;;) {
		struct pollfd p[] = {
			{ .fd = source_ended ? -1 : 0, .events = POLLIN }, { .fd = back[0], .events = POLLIN },
		};

		if (poll(p, 2, -1) < 0)
			return 1;
		if (p[1].revents)
			pass_message(back[0], 1);
		else if (p[0].revents)
			pass_message(0, there[1]);
	}
}
