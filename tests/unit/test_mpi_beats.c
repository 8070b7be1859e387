// SPDX-License-Identifier: GPL-2.0
/*
 * A daemon that is told how long mpirun may be silent looks itself whether it answers, however long
 * that is: TCP's own probes may notice a cut later than mpirun, which begins again without the node.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/coordinator/node.h"
#include "mpirun.h"

#define SILENCE_S	80
#define BEAT_S		15		/* with time to spare */

enum { DAEMON, ROOT };

/* A daemon that takes `port` for mpirun's. */
static pid_t start_daemon(unsigned short port)
{
	char address[32], name[NODE_NAME_MAX];
	pid_t child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(address, sizeof(address), "127.0.0.1:%hu", port);
	if (node_start(address, job.secret, "node", SILENCE_S, name, NULL))
		_exit(1);
	for (;;)
		pause();
}

/* Whose message comes within so many seconds is passed on; -1: there is none. */
static int pass_on(const int end[2], double seconds)
{
	struct pollfd p[] = { { end[DAEMON], POLLIN, 0 }, { end[ROOT], POLLIN, 0 } };
	char data[4096];
	ssize_t length;
	int from;

	if (poll(p, 2, seconds * 1000) <= 0)
		return -1;
	from = p[DAEMON].revents ? DAEMON : ROOT;
	length = read(end[from], data, sizeof(data));
	assert_true(length > 0);
	assert_int_equal(write(end[!from], data, length), length);
	return from;
}

static void beats(void **state)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), end[2];
	socklen_t length = sizeof(here);
	pid_t daemon;

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&here, sizeof(here)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &length), 0);
	daemon = start_daemon(ntohs(here.sin_port));
	end[DAEMON] = accept(listener, NULL, NULL);
	end[ROOT] = come();
	assert_true(end[DAEMON] >= 0);
	while (pass_on(end, 2) >= 0)		/* their greeting, and the first beat */
		;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pass_on(end, BEAT_S), DAEMON);
		assert_int_equal(pass_on(end, 2), ROOT);
	}
	kill(daemon, SIGKILL);
	waitpid(daemon, NULL, 0);
	close(end[DAEMON]);
	close(end[ROOT]);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(beats, start_mpirun, end_mpirun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
