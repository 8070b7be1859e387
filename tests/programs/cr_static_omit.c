// SPDX-License-Identifier: GPL-2.0
/*
 * A static program that leaves itself out of checkpoints by being linked with
 * libcr_omit.a alone.  kcr-build: -static -u cr_omit_link_me -lcr_omit -lcr
 */
#include "tests/programs/check.h"

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	check_ready();
	check_wait();
	return check_end();
}
