// SPDX-License-Identifier: GPL-2.0
/*
 * PR_SET_PTRACER where Yama is at work: whom a process lets read its memory still may, and
 * nobody else.  Argument: `none`, `one`, `any`; `parent`, which lets the parent, and so all its
 * descendants; or the PID of a process outside.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include "check.h"

static char secret = 's';

/* What a child is asked; it answers with a number. */
enum what { READ, LET, WHO };

struct command {
	enum what what;		/* read the memory of that process; let it trace; tell its own PID */
	pid_t pid;
};

struct child {
	pid_t pid;
	int tell, hear;
};

static bool can_read(pid_t pid)
{
	char got = 0;
	struct iovec here = { &got, 1 }, there = { &secret, 1 };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == 1 && got == secret;
}

static int answer(const struct command *c)
{
	switch (c->what) {
	case READ:
		return can_read(c->pid);
	case LET:
		return !prctl(PR_SET_PTRACER, (long)c->pid, 0, 0, 0);
	default:
		return getpid();
	}
}

static void obey(int hear, int tell)
{
	struct command c;
	int said;

	while (read(hear, &c, sizeof(c)) == sizeof(c)) {
		said = answer(&c);
		NEED(write(tell, &said, sizeof(said)) == sizeof(said));
	}
	_exit(0);
}

static struct child make(void)
{
	int to[2], from[2];
	pid_t pid;

	NEED(!pipe(to) && !pipe(from));
	pid = fork();
	NEED(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		close(to[1]);
		obey(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	return (struct child){ pid, to[1], from[0] };
}

static int ask(const struct child *child, enum what what, pid_t pid)
{
	struct command c = { what, pid };
	int said;

	if (write(child->tell, &c, sizeof(c)) != sizeof(c) ||
	    read(child->hear, &said, sizeof(said)) != sizeof(said))
		return -1;
	return said;
}

/* A restart may have given it another PID. */
static void meet_again(struct child *child)
{
	child->pid = ask(child, WHO, 0);
	CHECK(child->pid > 0);
}

static pid_t let_by(const char *name)
{
	if (!strcmp(name, "any"))
		return -1;
	return !strcmp(name, "parent") ? getpid() : atoi(name);
}

int main(int argc, char **argv)
{
	struct child traced, tracer, other;
	bool all, one;

	check_begin(argc, argv);
	NEED(argc == 4);
	/* It is the oldest: its tracer is made after it. */
	traced = make();
	tracer = make();
	other = make();
	one = !strcmp(argv[3], "one");
	all = !strcmp(argv[3], "any") || !strcmp(argv[3], "parent");
	NEED(!ask(&tracer, READ, traced.pid));
	if (one)
		NEED(ask(&traced, LET, tracer.pid) == 1);
	else if (strcmp(argv[3], "none"))
		NEED(ask(&traced, LET, let_by(argv[3])) == 1);
	checkpoint_here();
	meet_again(&traced);
	meet_again(&tracer);
	CHECK(can_read(traced.pid));
	CHECK(ask(&tracer, READ, traced.pid) == (one || all));
	CHECK(ask(&other, READ, traced.pid) == all);
	CHECK(!ask(&traced, READ, tracer.pid));
	return check_end();
}
