// SPDX-License-Identifier: GPL-2.0
/*
 * A static program with a callback, linked with libcr.a and libcr_run.a, which
 * has called cr_init() before main().  kcr-build: -static -u cr_run_link_me -lcr_run -lcr
 */
#include <kcr.h>
#include <libcr.h>

#include "tests/programs/check.h"

static volatile int called, restarted;

static int callback(void *arg)
{
	(void)arg;
	called++;
	restarted += cr_checkpoint(CR_CHECKPOINT_READY) > 0;
	return 0;
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	CHECK(cr_status() == CR_STATE_IDLE);
	NEED(cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
	check_ready();
	check_wait();
	CHECK(called == 1);
	CHECK(restarted == kcr_restarted(NULL, NULL, 0));
	return check_end();
}
