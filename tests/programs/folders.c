// SPDX-License-Identifier: GPL-2.0
/*
 * Folders that have been removed, as working folder and open; another root folder
 * (chroot(2)).
 */
#include <dirent.h>
#include <grp.h>
#include <limits.h>

#include "check.h"

/* Nothing can be made in it, and it is empty. */
static void check_is_removed(void)
{
	struct stat st;
	char now[PATH_MAX];
	DIR *list = opendir(".");
	int count = 0;

	CHECK(!getcwd(now, sizeof(now)) && errno == ENOENT);
	CHECK(open("new", O_CREAT | O_WRONLY, 0600) < 0 && errno == ENOENT);
	CHECK(mkdir("new", 0700) && errno == ENOENT);
	CHECK(!stat(".", &st) && !st.st_nlink && (st.st_mode & 07777) == 0710);
	CHECK(list);
	while (list && readdir(list))
		count++;
	CHECK(count <= 2);	/* "." and "..", or not even these */
	if (list)
		closedir(list);
}

/* The working folder and the one above it; with an argument it may get another name. */
static void removed(void)
{
	char link[PATH_MAX] = "", before[PATH_MAX] = "";

	NEED(!mkdir("gone", 0700) && !mkdir("gone/too", 0700) && !chmod("gone/too", 0710));
	NEED(!chdir("gone/too") && !rmdir("../../gone/too") && !rmdir("../../gone"));
	NEED(readlink("/proc/self/cwd", before, sizeof(before) - 1) > 0);
	umask(0127);
	checkpoint_here();
	check_is_removed();
	CHECK(readlink("/proc/self/cwd", link, sizeof(link) - 1) > 0);
	CHECK(check_argument || !strcmp(link, before));
	CHECK(umask(0) == 0127);
	CHECK(!chdir("/"));
}

/* One that another folder has the name of by now. */
static void renamed(void)
{
	struct stat st;

	NEED(!mkdir("gone", 0700) && !chmod("gone", 0710) && !chdir("gone"));
	NEED(!rmdir("../gone") && !mkdir(check_argument, 0700));
	checkpoint_here();
	check_is_removed();
	CHECK(!stat(check_argument, &st) && st.st_nlink && (st.st_mode & 07777) == 0700);
	CHECK(!rmdir(check_argument));
}

/* An open one, by an ordinary descriptor and by O_PATH. */
static void opened(void)
{
	int fd, path;

	NEED(!mkdir("gone", 0700) && !chmod("gone", 0710));
	fd = open("gone", O_RDONLY | O_DIRECTORY);
	path = open("gone", O_PATH | O_DIRECTORY | O_CLOEXEC);
	NEED(fd >= 0 && path >= 0 && !rmdir("gone"));
	checkpoint_here();
	CHECK(access("gone", F_OK) && errno == ENOENT);
	CHECK(openat(fd, "new", O_CREAT | O_WRONLY, 0600) < 0 && errno == ENOENT);
	CHECK(fcntl(path, F_GETFD) == FD_CLOEXEC && fcntl(path, F_GETFL) & O_PATH);
	CHECK(!fchdir(path));
	check_is_removed();
	CHECK(!fchdir(fd));
	check_is_removed();
}

/* ---- another root folder ---- */

static void check_inside(void)
{
	char now[PATH_MAX];

	CHECK(getcwd(now, sizeof(now)) && !strcmp(now, "/below"));
	CHECK(!access("../inside", F_OK) && !access("/inside", F_OK));
	CHECK(access("/usr", F_OK) && errno == ENOENT);
}

/* The folder `root`, with a descriptor that leads outside, where GO is. */
static void root(void)
{
	int out = open(".", O_RDONLY | O_DIRECTORY), log;

	NEED(!mkdir("root", 0755) && !mkdir("root/below", 0755));
	NEED(!close(open("root/inside", O_CREAT | O_WRONLY, 0600)));
	check_ready();
	NEED(out >= 0 && !chroot("root") && !chdir("/below"));
	log = open("/log", O_CREAT | O_RDWR, 0600);
	NEED(log >= 0 && write(log, "before ", 7) == 7 && !mkdirat(out, "set", 0700));
	while (faccessat(out, "go", F_OK, 0))
		check_sleep_ms(20);
	check_inside();
	CHECK(write(log, "after", 5) == 5);
	CHECK(!fchdir(out) && !access("root/inside", F_OK));
}

/* A program that has given up root's rights in there, where GO is. */
static void root_user(void)
{
	uid_t user = atoi(check_argument);

	NEED(!mkdir("root", 0755) && !mkdir("root/below", 0755));
	NEED(!close(open("root/inside", O_CREAT | O_WRONLY, 0644)) && !chmod("root/inside", 0644));
	NEED(!chroot("root") && !chdir("/below") && !setgroups(0, NULL));
	NEED(!setresgid(user, user, user) && !setresuid(user, user, user));
	while (access("/go", F_OK))
		check_sleep_ms(20);
	check_inside();
	CHECK(getuid() == user);
}

static const struct check checks[] = {
	{ "root", root },
	{ "root_user", root_user },
	{ "removed", removed },
	{ "renamed", renamed },
	{ "opened", opened },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
