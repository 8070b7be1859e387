// SPDX-License-Identifier: GPL-2.0
/*
 * inotify: its watches and their numbers.  An argument is the folder to work in.
 */
#include <sys/inotify.h>

#include "check.h"

int main(int argc, char **argv)
{
	char folder[64], name[128];
	struct { struct inotify_event event; char name[64]; } got;
	int fd, first, second;

	check_begin(argc, argv);
	snprintf(folder, sizeof(folder), "%s/kcr-inotify.XXXXXX", argc > 3 ? argv[3] : "/tmp");
	NEED(mkdtemp(folder));
	fd = inotify_init1(IN_NONBLOCK);
	first = inotify_add_watch(fd, "/tmp", IN_ATTRIB);
	second = inotify_add_watch(fd, folder, IN_CREATE | IN_DELETE);
	NEED(fd >= 0 && first > 0 && second > 0 && !inotify_rm_watch(fd, first));
	NEED(read(fd, &got, sizeof(got)) > 0);
	check_ready();
	check_wait();
	CHECK(read(fd, &got, sizeof(got)) < 0 && errno == EAGAIN);
	snprintf(name, sizeof(name), "%s/new", folder);
	CHECK(close(open(name, O_CREAT | O_WRONLY, 0600)) == 0);
	CHECK(read(fd, &got, sizeof(got)) > 0 && got.event.wd == second &&
	      got.event.mask == IN_CREATE && !strcmp(got.event.name, "new"));
	CHECK(!inotify_rm_watch(fd, second));
	CHECK(!unlink(name) && !rmdir(folder));
	return check_end();
}
