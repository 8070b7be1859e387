// SPDX-License-Identifier: GPL-2.0
/*
 * Callbacks that are replaced: disabled from outside, and by themselves for the
 * next checkpoint.  To be checkpointed twice at least.
 */
#include <libcr.h>

#include "tests/programs/check.h"

static int first_called, second_called, disabled_called, next_called;
static cr_callback_id_t id;

static int disabled(void *arg)
{
	(void)arg;
	disabled_called++;
	return 0;
}

static int second(void *arg)
{
	CHECK(arg == &second_called);
	second_called++;
	return 0;
}

static int first(void *arg)
{
	(void)arg;
	first_called++;
	CHECK(cr_replace_callback(id, disabled, NULL, CR_THREAD_CONTEXT) == -1 && errno == EBUSY);
	CHECK(cr_replace_self(second, NULL, CR_SIGNAL_CONTEXT) == -1 && errno == EINVAL);
	CHECK(cr_replace_self(second, NULL, 0) == -1 && errno == EINVAL);
	CHECK(cr_replace_self(second, &second_called, CR_THREAD_CONTEXT) == 0);
	CHECK(cr_checkpoint(CR_CHECKPOINT_READY) >= 0);
	CHECK(cr_replace_callback(id, disabled, NULL, CR_THREAD_CONTEXT) == -1 && errno == EBUSY);
	return 0;
}

static int next(void *arg)
{
	(void)arg;
	next_called++;
	return 0;
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	NEED(cr_init() == 0);
	CHECK(cr_register_callback(first, NULL, CR_THREAD_CONTEXT) == (0 | CR_THREAD_CONTEXT));
	id = cr_register_callback(disabled, NULL, CR_THREAD_CONTEXT);
	CHECK(cr_replace_callback(id, disabled, NULL, CR_SIGNAL_CONTEXT) == -1 && errno == EINVAL);
	CHECK(cr_replace_callback(id + 1, disabled, NULL, CR_THREAD_CONTEXT) == -1 &&
	      errno == EINVAL);
	CHECK(cr_replace_callback(-1, disabled, NULL, CR_THREAD_CONTEXT) == -1 && errno == EINVAL);
	CHECK(cr_replace_callback(id, NULL, NULL, CR_THREAD_CONTEXT) == 0);
	/* Its place stays: the next one gets another. */
	CHECK(cr_register_callback(next, NULL, CR_THREAD_CONTEXT) == (2 | CR_THREAD_CONTEXT));
	check_ready();
	check_wait();
	CHECK(first_called == 1 && second_called >= 1 && !disabled_called);
	CHECK(next_called == first_called + second_called);
	return check_end();
}
