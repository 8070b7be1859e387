// SPDX-License-Identifier: GPL-2.0
/*
 * Working folder and file mode mask, used with relative names.
 */
#include <limits.h>

#include "check.h"

int main(int argc, char **argv)
{
	char folder[] = "/tmp/kcr-cwd.XXXXXX", now[PATH_MAX];
	struct stat st;
	int fd;

	check_begin(argc, argv);
	NEED(mkdtemp(folder) && !chdir(folder));
	umask(0127);
	check_ready();
	check_wait();
	CHECK(getcwd(now, sizeof(now)) && !strcmp(now, folder));
	fd = open("a file", O_CREAT | O_WRONLY, 0777);
	CHECK(fd >= 0 && !fstat(fd, &st) && (st.st_mode & 0777) == 0650);
	CHECK(!unlink("a file") && !chdir("/") && !rmdir(folder));
	return check_end();
}
