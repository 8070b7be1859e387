// SPDX-License-Identifier: GPL-2.0
/*
 * Process groups and sessions of children: members, leaders, an own session, a
 * group whose leader has gone, one whose leader is in another.  Signals to the groups still find their members.
 */
#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static pid_t child(int new_session, pid_t group)
{
	int ready[2];
	pid_t pid;
	char byte;

	NEED(!pipe(ready));
	pid = fork();
	NEED(pid >= 0);
	if (!pid) {
		if (new_session)
			NEED(setsid() > 0);
		else if (group >= 0)
			NEED(!setpgid(0, group));
		NEED(write(ready[1], "", 1) == 1);
		for (;;)
			pause();
	}
	NEED(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

int main(int argc, char **argv)
{
	pid_t own_group = getpgrp(), own_session = getsid(0);
	pid_t leader, member, session, left, gone, moved, behind, home, back;
	int status;

	check_begin(argc, argv);
	leader = child(0, 0);
	member = child(0, leader);
	session = child(1, 0);
	gone = child(0, 0);
	left = child(0, gone);
	kill(gone, SIGKILL);
	NEED(waitpid(gone, NULL, 0) == gone);
	moved = child(0, 0);
	behind = child(0, moved);
	NEED(!setpgid(moved, leader));
	home = child(0, 0);
	back = child(0, home);
	NEED(!setpgid(home, own_group));
	check_ready();
	check_wait();
	CHECK(getpgrp() == own_group && getsid(0) == own_session);
	CHECK(getpgid(leader) == leader && getpgid(member) == leader);
	CHECK(getsid(leader) == own_session);
	CHECK(getpgid(session) == session && getsid(session) == session);
	CHECK(getpgid(left) == gone);
	CHECK(getpgid(moved) == leader && getpgid(behind) == moved);
	CHECK(getpgid(home) == own_group && getpgid(back) == home);
	CHECK(kill(-moved, SIGTERM) == 0);
	CHECK(waitpid(behind, &status, 0) == behind && WTERMSIG(status) == SIGTERM);
	CHECK(kill(-home, SIGTERM) == 0);
	CHECK(waitpid(back, &status, 0) == back && WTERMSIG(status) == SIGTERM);
	CHECK(kill(home, SIGTERM) == 0);
	CHECK(waitpid(home, &status, 0) == home && WTERMSIG(status) == SIGTERM);
	CHECK(kill(-leader, SIGTERM) == 0);
	CHECK(waitpid(-leader, &status, 0) > 0 && WTERMSIG(status) == SIGTERM);
	CHECK(waitpid(-leader, &status, 0) > 0 && WTERMSIG(status) == SIGTERM);
	CHECK(waitpid(-leader, &status, 0) > 0 && WTERMSIG(status) == SIGTERM);
	CHECK(kill(-gone, SIGTERM) == 0);
	CHECK(waitpid(left, &status, 0) == left && WTERMSIG(status) == SIGTERM);
	CHECK(kill(-session, SIGTERM) == 0);
	CHECK(waitpid(session, &status, 0) == session && WTERMSIG(status) == SIGTERM);
	return check_end();
}
