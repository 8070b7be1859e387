// SPDX-License-Identifier: GPL-2.0
/*
 * Files that two processes, or one, have open more than once, in ways of which not all lead to its
 * contents: a named semaphore, by who made it and by another one; a file, also mapped; one whose
 * name in one folder has been removed, but not that in another; and one that was first opened
 * with O_PATH.
 */
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

#define SEMAPHORE	"/kcr-same"
#define OBJECT		"/dev/shm/kcr-same-object"

static int opened(const char *path, int flags)
{
	int fd = open(path, flags, 0600);

	NEED(fd >= 0);
	return fd;
}

static ino_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

/* The second process posts once the first one has said so. */
static pid_t start_poster(const int step[2])
{
	pid_t pid = fork();
	char byte;

	if (!pid) {
		sem_t *s = sem_open(SEMAPHORE, 0);

		_exit(s == SEM_FAILED || write(step[1], "r", 1) != 1 ||
		      read(step[0], &byte, 1) != 1 || sem_post(s));
	}
	NEED(pid > 0);
	return pid;
}

int main(int argc, char **argv)
{
	int there[2], back[2], fd, first, path_only, object, one, other, status, value;
	char byte, *map;
	pid_t pid;
	sem_t *s;

	check_begin(argc, argv);
	NEED(!pipe(there) && !pipe(back));
	s = sem_open(SEMAPHORE, O_CREAT | O_EXCL, 0600, 3);
	NEED(s != SEM_FAILED);
	pid = start_poster((int[]){ there[0], back[1] });
	NEED(read(back[0], &byte, 1) == 1);

	fd = opened("mapped", O_RDWR | O_CREAT);
	NEED(!ftruncate(fd, 4096));
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(map != MAP_FAILED);
	strcpy(map, "before");

	first = opened("a/f", O_RDWR | O_CREAT);
	one = dup2(first, 50);
	NEED(!link("a/f", "b/f"));
	close(first);		/* so that the other one comes before it */
	other = opened("b/f", O_RDONLY);
	NEED(!unlink("a/f") && other < one);

	close(opened(OBJECT, O_RDWR | O_CREAT | O_EXCL));
	path_only = opened(OBJECT, O_PATH);
	object = opened(OBJECT, O_RDWR);
	NEED(write(object, "object", 6) == 6);

	check_ready();
	check_wait();
	CHECK(!sem_getvalue(s, &value) && value == 3);
	CHECK(write(there[1], "x", 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(!sem_getvalue(s, &value) && value == 4);
	CHECK(!strcmp(map, "before") && pwrite(fd, "after", 6, 0) == 6 && !strcmp(map, "after"));
	CHECK(inode_of(one) == inode_of(other) && write(one, "x", 1) == 1 && read(other, &byte, 1) == 1);
	CHECK(inode_of(object) == inode_of(path_only) && lseek(object, 0, SEEK_CUR) == 6);
	sem_unlink(SEMAPHORE);
	unlink(OBJECT);
	return check_end();
}
