// SPDX-License-Identifier: GPL-2.0
/*
 * eventfd: counter, semaphore mode, flags.
 */
#include <sys/eventfd.h>

#include "check.h"

int main(int argc, char **argv)
{
	int plain, semaphore;
	uint64_t value;

	check_begin(argc, argv);
	plain = eventfd(41, EFD_CLOEXEC);
	semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
	value = 1;
	NEED(plain >= 0 && semaphore >= 0 && write(plain, &value, 8) == 8);
	check_ready();
	check_wait();
	CHECK(fcntl(plain, F_GETFD) == FD_CLOEXEC && fcntl(semaphore, F_GETFL) & O_NONBLOCK);
	CHECK(read(plain, &value, 8) == 8 && value == 42);
	CHECK(read(semaphore, &value, 8) == 8 && value == 1);
	CHECK(read(semaphore, &value, 8) == 8 && value == 1);
	CHECK(read(semaphore, &value, 8) < 0 && errno == EAGAIN);
	value = 7;
	CHECK(write(plain, &value, 8) == 8 && read(plain, &value, 8) == 8 && value == 7);
	return check_end();
}
