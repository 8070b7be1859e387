// SPDX-License-Identifier: GPL-2.0
/*
 * An open folder, half read, and used as the base of names.
 */
#include <dirent.h>

#include "check.h"

int main(int argc, char **argv)
{
	char folder[] = "/tmp/kcr-folder.XXXXXX", name[64];
	struct dirent *entry;
	int seen = 0, fd;
	DIR *dir;

	check_begin(argc, argv);
	NEED(mkdtemp(folder));
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "%s/%d", folder, i);
		close(open(name, O_CREAT | O_WRONLY, 0600));
	}
	dir = opendir(folder);
	fd = open(folder, O_RDONLY | O_DIRECTORY);
	NEED(dir && fd >= 0);
	for (int i = 0; i < 5 && (entry = readdir(dir)); i++)
		seen += entry->d_name[0] != '.';
	check_ready();
	check_wait();
	while ((entry = readdir(dir)))
		seen += entry->d_name[0] != '.';
	CHECK(seen == 20);
	CHECK(openat(fd, "7", O_RDONLY) >= 0);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "%d", i);
		CHECK(!unlinkat(fd, name, 0));
	}
	CHECK(!rmdir(folder));
	return check_end();
}
