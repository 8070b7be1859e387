// SPDX-License-Identifier: GPL-2.0
/*
 * A file that the test names, or standard output ("-"), open for reading and writing:
 * "mine" is written to its beginning once the program may go on.  It then says what
 * ids, capabilities and limit of open files it has, and whether the key "kcr-test" is
 * in its session keyring.
 */
#include <linux/keyctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "check.h"

static void say_status(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[1024];

	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "Uid:", 4) || !strncmp(line, "Gid:", 4) ||
		    !strncmp(line, "Groups:", 7) || !strncmp(line, "CapPrm:", 7))
			fputs(line, stderr);
	if (status)
		fclose(status);
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	int fd;

	check_begin(argc, argv);
	fd = !strcmp(argv[3], "-") ? 1 : open(argv[3], O_RDWR);
	NEED(fd >= 0);
	check_ready();
	check_wait();
	CHECK(pwrite(fd, "mine\n", 5, 0) == 5);
	say_status();
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	fprintf(stderr, "limit %llu securebits %d\n", (unsigned long long)limit.rlim_max,
		prctl(PR_GET_SECUREBITS, 0, 0, 0, 0));
	if (syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", "kcr-test", 0) >= 0)
		fprintf(stderr, "has the key\n");
	return check_end();
}
