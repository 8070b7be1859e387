// SPDX-License-Identifier: GPL-2.0
/*
 * Descriptors of the harmless devices: null, zero, full, random, urandom.
 */
#include "check.h"

int main(int argc, char **argv)
{
	int null, zero, full, random, urandom;
	char bytes[64];

	check_begin(argc, argv);
	null = open("/dev/null", O_RDWR);
	zero = open("/dev/zero", O_RDONLY);
	full = open("/dev/full", O_RDWR);
	random = open("/dev/random", O_RDONLY | O_NONBLOCK);
	urandom = open("/dev/urandom", O_RDONLY);
	NEED(null >= 0 && zero >= 0 && full >= 0 && random >= 0 && urandom >= 0);
	check_ready();
	check_wait();
	CHECK(write(null, bytes, 64) == 64 && read(null, bytes, 64) == 0);
	memset(bytes, 1, 64);
	CHECK(read(zero, bytes, 64) == 64 && !bytes[0] && !bytes[63]);
	CHECK(write(full, bytes, 64) < 0 && errno == ENOSPC);
	CHECK(read(random, bytes, 8) == 8 && read(urandom, bytes, 64) == 64);
	CHECK(fcntl(random, F_GETFL) & O_NONBLOCK);
	return check_end();
}
