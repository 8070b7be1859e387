// SPDX-License-Identifier: GPL-2.0
/*
 * Groups of fanotify(7), in a folder of their own in the working folder: `marks` of inodes, a
 * mount and a file system, with ignore masks; `names`: events that tell names (FID).  For
 * refusals: `permission`: one that is asked for it; `removed`: a mark of what has no path;
 * `covered`: one of a mount that another one hides.
 */
#include <sys/fanotify.h>
#include <sys/mount.h>

#include "check.h"

#ifndef FAN_MARK_EVICTABLE
#define FAN_MARK_EVICTABLE	0x200	/* since 5.19 */
#endif

static char folder[64] = "fanotify.XXXXXX", name[128];

static int group(unsigned int flags)
{
	int fd = fanotify_init(flags | FAN_NONBLOCK, O_RDONLY | O_LARGEFILE);

	NEED(fd >= 0 && mkdtemp(folder));
	snprintf(name, sizeof(name), "%s/file", folder);
	NEED(!close(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)));
	return fd;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of fanotify, sorted. */
static void describe(int fd, char text[4096])
{
	char path[64], all[4096], *line[32], *next;
	size_t n = 0;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	NEED(info >= 0);
	all[read(info, all, sizeof(all) - 1)] = '\0';
	close(info);
	for (next = strtok(all, "\n"); next && n < 32; next = strtok(NULL, "\n"))
		if (!strncmp(next, "fanotify ", 9))
			line[n++] = next;
	qsort(line, n, sizeof(*line), compare_lines);
	text[0] = '\0';
	for (size_t i = 0; i < n; i++)
		strcat(strcat(text, line[i]), "\n");
}

static void check_same(int fd, const char *before)
{
	char after[4096];

	describe(fd, after);
	CHECK(!strcmp(before, after));
	if (strcmp(before, after))
		fprintf(stderr, "# before:\n%s# after:\n%s", before, after);
}

static void drain(int fd)
{
	char buffer[4096];
	ssize_t n;

	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		for (struct fanotify_event_metadata *m = (void *)buffer; FAN_EVENT_OK(m, n);
		     m = FAN_EVENT_NEXT(m, n))
			if (m->fd >= 0)
				close(m->fd);
}

/* Is a change of the file told? */
static bool is_told(int fd, uint64_t mask)
{
	struct fanotify_event_metadata *m;
	char buffer[4096], path[64];
	struct stat st, there;
	bool told = false;
	ssize_t n;

	drain(fd);
	NEED(!close(open(name, O_WRONLY | O_CLOEXEC)) && !stat(name, &st));
	n = read(fd, buffer, sizeof(buffer));
	for (m = (void *)buffer; FAN_EVENT_OK(m, n); m = FAN_EVENT_NEXT(m, n)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", m->fd);
		told |= m->mask == mask && !stat(path, &there) && there.st_ino == st.st_ino &&
			m->pid == getpid();
		close(m->fd);
	}
	return told;
}

static void marks(void)
{
	int fd = group(FAN_CLASS_NOTIF), other = fanotify_init(FAN_CLASS_NOTIF, O_RDWR);
	char before[4096], before_other[4096];

	NEED(other >= 0);
	NEED(!fanotify_mark(fd, FAN_MARK_ADD, FAN_CLOSE_WRITE | FAN_EVENT_ON_CHILD, AT_FDCWD, folder));
	NEED(!fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_IGNORED_MASK | FAN_MARK_IGNORED_SURV_MODIFY,
			    FAN_OPEN, AT_FDCWD, name));
	NEED(!fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_CLOSE_WRITE, AT_FDCWD, "/dev"));
	NEED(!fanotify_mark(other, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_CLOSE_WRITE | FAN_ONDIR,
			    AT_FDCWD, "/dev/shm"));
	/* Kernels before 5.19 do not know it. */
	fanotify_mark(other, FAN_MARK_ADD | FAN_MARK_EVICTABLE, FAN_ACCESS, AT_FDCWD, folder);
	NEED(is_told(fd, FAN_CLOSE_WRITE));
	describe(fd, before);
	describe(other, before_other);
	checkpoint_here();
	check_same(fd, before);
	check_same(other, before_other);
	CHECK(is_told(fd, FAN_CLOSE_WRITE));
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK && !(fcntl(other, F_GETFL) & O_NONBLOCK));
	CHECK(!fanotify_mark(fd, FAN_MARK_FLUSH, 0, AT_FDCWD, NULL));
	CHECK(!is_told(fd, FAN_CLOSE_WRITE));
	CHECK(!unlink(name) && !rmdir(folder));
}

static void names(void)
{
	int fd = group(FAN_REPORT_DFID_NAME);
	char before[4096], path[256], buffer[4096];
	struct fanotify_event_metadata *m = (void *)buffer;
	struct fanotify_event_info_fid *info = (void *)(m + 1);
	struct file_handle *handle;

	if (fanotify_mark(fd, FAN_MARK_ADD, FAN_CREATE | FAN_ONDIR, AT_FDCWD, folder)) {
		NEED(!unlink(name) && !rmdir(folder));
		check_skip("this kernel's file system tells no events by names");
	}
	describe(fd, before);
	checkpoint_here();
	check_same(fd, before);
	snprintf(path, sizeof(path), "%s/new", folder);
	CHECK(!mkdir(path, 0700) && read(fd, buffer, sizeof(buffer)) > 0);
	CHECK(m->mask == (FAN_CREATE | FAN_ONDIR) &&
	      info->hdr.info_type == FAN_EVENT_INFO_TYPE_DFID_NAME);
	handle = (struct file_handle *)info->handle;
	CHECK(!strcmp((char *)handle->f_handle + handle->handle_bytes, "new"));
	CHECK(!rmdir(path) && !unlink(name) && !rmdir(folder));
}

static void permission(void)
{
	int fd = group(FAN_CLASS_CONTENT);

	checkpoint_here();
	CHECK(fcntl(fd, F_GETFD) == 0 && !unlink(name) && !rmdir(folder));
}

static void removed(void)
{
	int fd = group(FAN_CLASS_NOTIF), kept = open(name, O_RDONLY | O_CLOEXEC);

	NEED(kept >= 0 && !fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, name));
	NEED(!unlink(name) && !rmdir(folder));
	checkpoint_here();
	CHECK(fcntl(fd, F_GETFD) == 0);
}

static void covered(void)
{
	int fd = group(FAN_CLASS_NOTIF);

	NEED(!mount("none", folder, "tmpfs", 0, NULL));
	NEED(!fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN, AT_FDCWD, folder));
	NEED(!mount("none", folder, "tmpfs", 0, NULL));
	checkpoint_here();
	CHECK(fcntl(fd, F_GETFD) == 0 && !umount(folder) && !umount(folder));
	CHECK(!unlink(name) && !rmdir(folder));
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		{ "marks", marks },
		{ "names", names },
		{ "permission", permission },
		{ "removed", removed },
		{ "covered", covered },
		{ }
	};

	return check_one(argc, argv, checks);
}
