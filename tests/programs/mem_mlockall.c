// SPDX-License-Identifier: GPL-2.0
/*
 * mlockall(2): everything there is and everything to come is locked.
 */
#include <sys/mman.h>
#include <sys/resource.h>

#include "check.h"

int main(int argc, char **argv)
{
	long long before;
	char *map;

	check_begin(argc, argv);
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		check_skip("may not lock memory");
	before = check_status("VmLck", 10);
	check_ready();
	check_wait();
	CHECK(check_status("VmLck", 10) == before);
	map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(map != MAP_FAILED && check_status("VmLck", 10) >= before + 1024);
	CHECK(!munlockall() && check_status("VmLck", 10) == 0);
	return check_end();
}
