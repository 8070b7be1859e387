// SPDX-License-Identifier: GPL-2.0
/*
 * A program with libcr, for the images that later releases restart (tests/released): a
 * callback in a thread of libcr's own and one in signal context, a critical section,
 * a named region and a value.  The libcr of its release is in it, so it is static.
 * kcr-build: -static
 */
#include <kcr.h>
#include <libcr.h>

#include "tests/programs/check.h"

static volatile int in_thread, in_signal, restarts;
static char region[4096];

static int by_thread(void *arg)
{
	int ret = cr_checkpoint(CR_CHECKPOINT_READY);

	CHECK(arg == region && ret >= 0);
	in_thread++;
	restarts += ret > 0;
	return 0;
}

static int by_signal(void *arg)
{
	int ret = cr_checkpoint(CR_CHECKPOINT_READY);

	CHECK(arg == region && ret >= 0);
	in_signal++;
	return 0;
}

int main(int argc, char **argv)
{
	cr_client_id_t id;
	char value[8];
	char source[64];

	check_begin(argc, argv);
	id = cr_init();
	NEED(id >= 0);
	NEED(cr_register_callback(by_thread, region, CR_THREAD_CONTEXT) >= 0);
	NEED(cr_register_callback(by_signal, region, CR_SIGNAL_CONTEXT) >= 0);
	NEED(!kcr_name_region("region", region, sizeof(region)) && !kcr_set_value("step", "1", 1));
	check_fill(region, sizeof(region), 3);
	check_ready();
	while (!check_gone() || !restarts) {
		CHECK(cr_enter_cs(id) == 0);
		CHECK(cr_leave_cs(id) == 0);
		usleep(20000);
	}
	CHECK(restarts == 1 && in_thread == 1 && in_signal == 1);
	CHECK(kcr_restarted(NULL, source, sizeof(source)) == 1);
	CHECK(kcr_get_value("step", value, sizeof(value)) == 1 && *value == '1');
	CHECK(check_filled(region, sizeof(region), 3));
	CHECK(cr_status() == CR_STATE_IDLE);
	return check_end();
}
