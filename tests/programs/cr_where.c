// SPDX-License-Identifier: GPL-2.0
/*
 * Writes what callbacks are told of a checkpoint and of a restart to the file
 * `log`; after a restart, what a request is answered there.  With a third
 * argument the restart branch becomes another program: a shell with it.
 */
#include <libcr.h>

#include "tests/programs/check.h"

static const char *command;

static void say(const char *what, const char *path, int signal, int requester, int target,
		int scope)
{
	FILE *log = fopen("log", "a");

	NEED(log);
	fprintf(log, "%s %s %d %d %d %d\n", what, *path ? path : "none", signal, requester, target,
		scope);
	fclose(log);
}

static void request(void)
{
	cr_checkpoint_handle_t handle;
	cr_checkpoint_args_t args;

	cr_initialize_checkpoint_args_t(&args);
	args.cr_scope = CR_SCOPE_PROC;
	args.cr_fd = CR_DEST_CWD;
	CHECK(cr_request_checkpoint(&args, &handle) == -1 && errno == EBUSY);
}

static int callback(void *arg)
{
	const struct cr_checkpoint_info *c = cr_get_checkpoint_info();
	const struct cr_restart_info *r;
	int ret;

	(void)arg;
	CHECK(c && !cr_get_restart_info());
	if (c)
		say("saved", c->dest, c->signal, c->requester, c->target, c->scope);
	request();
	ret = cr_checkpoint(CR_CHECKPOINT_READY);
	CHECK(ret >= 0 && !cr_get_checkpoint_info());
	r = cr_get_restart_info();
	CHECK(!r == !ret);
	request();
	if (!r)
		return 0;
	CHECK(r->requester == ret);
	say("restarted", r->src, 0, r->requester, 0, 0);
	if (command)
		execl("/bin/sh", "sh", "-c", command, NULL);
	return 0;
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	command = argc > 3 ? argv[3] : NULL;
	NEED(cr_init() == 0);
	NEED(cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
	check_ready();
	check_wait();
	return check_end();
}
