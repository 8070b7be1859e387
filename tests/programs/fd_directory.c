// SPDX-License-Identifier: GPL-2.0
/*
 * An open folder, half read, and used as the base of names; and the program's
 * own of /proc.
 */
#include <dirent.h>

#include "check.h"

/* The number at the beginning of `stat` in the program's own folder of /proc. */
static int number_in(int own)
{
	char text[16] = "";
	int fd = openat(own, "stat", O_RDONLY);

	NEED(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && !close(fd));
	return atoi(text);
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/kcr-folder.XXXXXX", name[64];
	struct dirent *entry;
	int seen = 0, fd, own, descriptors;
	DIR *dir;

	check_begin(argc, argv);
	NEED(mkdtemp(folder));
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "%s/%d", folder, i);
		close(open(name, O_CREAT | O_WRONLY, 0600));
	}
	dir = opendir(folder);
	fd = open(folder, O_RDONLY | O_DIRECTORY);
	own = open("/proc/self", O_RDONLY | O_DIRECTORY);
	descriptors = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	NEED(dir && fd >= 0 && own >= 0 && descriptors >= 0);
	for (int i = 0; i < 5 && (entry = readdir(dir)); i++)
		seen += entry->d_name[0] != '.';
	check_ready();
	check_wait();
	while ((entry = readdir(dir)))
		seen += entry->d_name[0] != '.';
	CHECK(seen == 20);
	CHECK(openat(fd, "7", O_RDONLY) >= 0);
	CHECK(number_in(own) == getpid());
	snprintf(name, sizeof(name), "%d", fd);
	CHECK(!faccessat(descriptors, name, F_OK, 0) && fcntl(descriptors, F_GETFD) == FD_CLOEXEC);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "%d", i);
		CHECK(!unlinkat(fd, name, 0));
	}
	CHECK(!rmdir(folder));
	return check_end();
}
