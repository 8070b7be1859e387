/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A callback that answers as the third argument says.  It writes to the file
 * `log` that it was called, and then what cr_checkpoint() returned; a hook for
 * programs that go on is noted there, too.
 */
#include <libcr.h>

#include "tests/programs/check.h"

static const struct {
	const char *name;
	int flags;
} answers[] = {
	{ "ready", CR_CHECKPOINT_READY },
	{ "temporary", CR_CHECKPOINT_TEMP_FAILURE },
	{ "temporary_code", CR_CHECKPOINT_TEMP_FAILURE_CODE(77) },
	{ "temporary_256", CR_CHECKPOINT_TEMP_FAILURE_CODE(256) },
	{ "permanent", CR_CHECKPOINT_PERM_FAILURE },
	{ "permanent_code", CR_CHECKPOINT_PERM_FAILURE_CODE(78) },
	{ "omit", CR_CHECKPOINT_OMIT },
};

static const char *what;
static int log_fd;

static void say(const char *text, int number)
{
	dprintf(log_fd, "%s %d\n", text, number);
}

/* Never called if the outer one fails: a failure skips the rest of the group. */
static int inner(void *arg)
{
	(void)arg;
	say("inner", 0);
	return 0;
}

static int callback(void *arg)
{
	int ret = -1;

	(void)arg;
	say("called", 0);
	if (!strcmp(what, "hang"))
		for (;;)
			pause();
	if (!strcmp(what, "exit"))
		_exit(3);
	if (!strcmp(what, "before"))
		return 79;
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (!strcmp(what, answers[i].name))
			ret = cr_checkpoint(answers[i].flags);
	if (ret == -1)
		ret = cr_checkpoint(CR_CHECKPOINT_READY);
	say("returned", ret > 0 ? 1 : ret);
	if (ret == 0 && !strcmp(what, "after"))
		return 80;
	return ret > 0 && !strcmp(what, "restart") ? 81 : 0;
}

static void hook(cr_hook_event_t event)
{
	say("hook", event);
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	what = argc > 3 ? argv[3] : "ready";
	NEED((log_fd = open("log", O_WRONLY | O_CREAT | O_APPEND, 0666)) >= 0);
	NEED(cr_init() == 0);
	NEED(cr_register_callback(inner, NULL, CR_THREAD_CONTEXT) >= 0);
	NEED(cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
	CHECK(!cr_register_hook(CR_HOOK_CONT_THREAD_CONTEXT, hook));
	check_ready();
	check_wait();
	return check_end();
}
