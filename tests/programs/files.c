// SPDX-License-Identifier: GPL-2.0
/*
 * Open files and folders, and what is known of them by others.
 */
#include <dirent.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "check.h"

/* ---- regular ---- */

/*
 * Regular files: offset, flags, append mode, close-on-exec, numbers with gaps, a
 * duplicate that shares its offset and one opened twice that does not.
 */
static void fd_regular(void)
{
	char path[] = "/tmp/kcr-regular.XXXXXX", text[16] = "";
	int plain, append, twin, again, far, readonly;

	plain = mkstemp(path);
	NEED(plain >= 0 && write(plain, "0123456789", 10) == 10 && lseek(plain, 4, SEEK_SET) == 4);
	append = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	twin = dup(plain);
	again = open(path, O_RDWR);
	far = fcntl(plain, F_DUPFD_CLOEXEC, 700);
	readonly = open(path, O_RDONLY | O_NOATIME | O_SYNC);
	NEED(append >= 0 && twin >= 0 && again >= 0 && far >= 700 && readonly >= 0);
	checkpoint_here();
	CHECK(lseek(plain, 0, SEEK_CUR) == 4 && lseek(again, 0, SEEK_CUR) == 0);
	CHECK(read(twin, text, 2) == 2 && !memcmp(text, "45", 2));
	CHECK(lseek(plain, 0, SEEK_CUR) == 6 && lseek(far, 0, SEEK_CUR) == 6);
	CHECK(write(append, "ab", 2) == 2 && lseek(append, 0, SEEK_CUR) == 12);
	CHECK(fcntl(append, F_GETFD) == FD_CLOEXEC && fcntl(plain, F_GETFD) == 0);
	CHECK(fcntl(far, F_GETFD) == FD_CLOEXEC);
	CHECK((fcntl(append, F_GETFL) & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND));
	CHECK((fcntl(readonly, F_GETFL) & (O_ACCMODE | O_NOATIME | O_SYNC)) ==
	      (O_RDONLY | O_NOATIME | O_SYNC));
	CHECK(pread(readonly, text, 12, 0) == 12 && !memcmp(text, "0123456789ab", 12));
	CHECK(write(readonly, "x", 1) < 0 && errno == EBADF);
	CHECK(dup(0) == readonly + 1);
	unlink(path);
}

/* ---- deleted ---- */

/*
 * Deleted files, open for reading and writing: contents with a hole, offset, and two
 * descriptors of one file that were opened separately.  In the folder of the argument.
 */
static void fd_deleted(void)
{
	struct stat before, st, other;
	char path[256], buffer[8192];
	int fd, second;

	snprintf(path, sizeof(path), "%s/kcr-deleted.XXXXXX", check_argument ?: "/tmp");
	fd = mkstemp(path);
	second = open(path, O_RDONLY);
	NEED(fd >= 0 && second >= 0 && !unlink(path));
	check_fill(buffer, sizeof(buffer), 5);
	NEED(write(fd, buffer, sizeof(buffer)) == sizeof(buffer));
	NEED(pwrite(fd, "end", 3, 1 << 20) == 3 && lseek(fd, 1000, SEEK_SET) == 1000);
	NEED(!fstat(fd, &before));
	checkpoint_here();
	memset(buffer, 0, sizeof(buffer));
	CHECK(lseek(fd, 0, SEEK_CUR) == 1000 && lseek(second, 0, SEEK_CUR) == 0);
	CHECK(read(second, buffer, sizeof(buffer)) == sizeof(buffer));
	CHECK(check_filled(buffer, sizeof(buffer), 5));
	CHECK(!fstat(fd, &st) && st.st_size == (1 << 20) + 3 && st.st_dev == before.st_dev);
	CHECK(!st.st_nlink || check_argument);	/* the server still has one */
	CHECK(!fstat(second, &other) && st.st_ino == other.st_ino && st.st_dev == other.st_dev);
	CHECK(pread(fd, buffer, 10, 500000) == 10 && !buffer[0]);
	CHECK(pwrite(fd, "new", 3, 7) == 3 && pread(second, buffer, 3, 7) == 3 &&
	      !memcmp(buffer, "new", 3));
	CHECK(access(path, F_OK) < 0);
}

/* ---- unnamed ---- */

/* A file without a name (O_TMPFILE) that gets one later. */
static void fd_unnamed(void)
{
	int fd = open("/dev/shm", O_RDWR | O_TMPFILE, 0640), again;
	char from[32], name[64], text[8];
	struct stat st, there;

	NEED(fd >= 0 && write(fd, "text", 4) == 4);
	checkpoint_here();
	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	snprintf(name, sizeof(name), "/dev/shm/kcr-unnamed.%d", getpid());
	CHECK(!fstat(fd, &st) && st.st_nlink == 0 && (st.st_mode & 07777) == 0640);
	CHECK(!linkat(AT_FDCWD, from, AT_FDCWD, name, AT_SYMLINK_FOLLOW));
	CHECK(!stat(name, &there) && there.st_ino == st.st_ino && there.st_nlink == 1);
	again = open(name, O_RDONLY);
	CHECK(again >= 0 && read(again, text, 8) == 4 && !memcmp(text, "text", 4));
	unlink(name);
}

/* ---- directory ---- */

/* The number at the beginning of `stat` in the program's own folder of /proc. */
static int number_in(int own)
{
	char text[16] = "";
	int fd = openat(own, "stat", O_RDONLY);

	NEED(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && !close(fd));
	return atoi(text);
}

/*
 * An open folder, half read, and used as the base of names; and the program's
 * own of /proc.
 */
static void fd_directory(void)
{
	char folder[] = "/tmp/kcr-folder.XXXXXX", name[64];
	struct dirent *entry;
	int seen = 0, fd, own, descriptors;
	DIR *dir;

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
	checkpoint_here();
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
}

/* ---- devices ---- */

/* Descriptors of the harmless devices: null, zero, full, random, urandom. */
static void fd_devices(void)
{
	int null, zero, full, random, urandom;
	char bytes[64];

	null = open("/dev/null", O_RDWR);
	zero = open("/dev/zero", O_RDONLY);
	full = open("/dev/full", O_RDWR);
	random = open("/dev/random", O_RDONLY | O_NONBLOCK);
	urandom = open("/dev/urandom", O_RDONLY);
	NEED(null >= 0 && zero >= 0 && full >= 0 && random >= 0 && urandom >= 0);
	checkpoint_here();
	CHECK(write(null, bytes, 64) == 64 && read(null, bytes, 64) == 0);
	memset(bytes, 1, 64);
	CHECK(read(zero, bytes, 64) == 64 && !bytes[0] && !bytes[63]);
	CHECK(write(full, bytes, 64) < 0 && errno == ENOSPC);
	CHECK(read(random, bytes, 8) == 8 && read(urandom, bytes, 64) == 64);
	CHECK(fcntl(random, F_GETFL) & O_NONBLOCK);
}

/* ---- device_nodes ---- */

/* Nodes of such a device with other names than the usual one; one is deleted. */
static void fd_device_nodes(void)
{
	int fd[2];
	struct stat st, now;

	for (int i = 0; i < 2; i++) {
		NEED(!mknod(i ? "gone" : "node", S_IFCHR | 0600, makedev(1, 5)));
		NEED(!chmod(i ? "gone" : "node", 0646) && !chown(i ? "gone" : "node", 1000, 1001));
		fd[i] = open(i ? "gone" : "node", O_RDWR);
		NEED(fd[i] >= 0);
	}
	NEED(!unlink("gone"));
	checkpoint_here();
	CHECK(!stat("node", &st) && !fstat(fd[0], &now) && st.st_ino == now.st_ino);
	CHECK(!fstat(fd[1], &now) && now.st_rdev == makedev(1, 5) && !now.st_nlink);
	CHECK((now.st_mode & 07777) == 0646 && now.st_uid == 1000 && now.st_gid == 1001);
	CHECK(access("gone", F_OK) && !unlink("node"));
}

/* ---- shared ---- */

/* An offset that a parent and its child share since fork(2), moved by both. */
static void fd_shared(void)
{
	char path[] = "/tmp/kcr-shared.XXXXXX", text[4];
	int fd, status;
	pid_t child;

	fd = mkstemp(path);
	NEED(fd >= 0 && write(fd, "0123456789", 10) == 10);
	child = fork();
	NEED(child >= 0);
	if (!child) {
		check_wait();
		CHECK(lseek(fd, 0, SEEK_CUR) == 10 && lseek(fd, 3, SEEK_SET) == 3);
		_exit(check_end());
	}
	checkpoint_here();
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(lseek(fd, 0, SEEK_CUR) == 3 && read(fd, text, 2) == 2 && !memcmp(text, "34", 2));
	unlink(path);
}

/* ---- lease ---- */

static volatile sig_atomic_t broken;

static void on_break(int signal)
{
	broken = signal;
}

/* Another process that wants to open the file waits until the lease is given up. */
static bool breaks_lease(const char *name, int fd)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(open(name, O_WRONLY | O_NONBLOCK) < 0 && errno == EWOULDBLOCK ? 0 : 1);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		return false;
	for (int i = 0; i < 100 && !broken; i++)
		check_sleep_ms(10);
	return broken && !fcntl(fd, F_SETLEASE, F_UNLCK);
}

/* Leases, of a reader and of a writer, with the usual signal and with another. */
static void fd_lease(void)
{
	static const char *const names[] = { "lease.read", "lease.write" };
	int fd[2];

	signal(SIGIO, on_break);
	signal(SIGUSR1, on_break);
	for (int i = 0; i < 2; i++) {
		close(open(names[i], O_CREAT | O_WRONLY, 0600));
		fd[i] = open(names[i], i ? O_RDWR : O_RDONLY);
		NEED(fd[i] >= 0 && (!i || !fcntl(fd[i], F_SETSIG, SIGUSR1)));
		NEED(!fcntl(fd[i], F_SETLEASE, i ? F_WRLCK : F_RDLCK));
	}
	checkpoint_here();
	CHECK(fcntl(fd[0], F_GETLEASE) == F_RDLCK && fcntl(fd[1], F_GETLEASE) == F_WRLCK);
	CHECK(!broken);
	CHECK(breaks_lease(names[0], fd[0]) && broken == SIGIO);
	broken = 0;
	CHECK(breaks_lease(names[1], fd[1]) && broken == SIGUSR1);
}

/* ---- linked ---- */

/* A deleted file with another name is still that file; one whose name is elsewhere, a copy. */
static void fd_linked(void)
{
	int fd = open("first", O_RDWR | O_CREAT, 0644), far;
	struct stat st, named;
	char text[4];

	NEED(fd >= 0 && write(fd, "abc", 3) == 3 && !link("first", "second"));
	NEED(!unlink("first") && !mkdir("folder", 0700));
	far = open("far", O_RDWR | O_CREAT, 0644);
	NEED(far >= 0 && write(far, "def", 3) == 3 && !link("far", "folder/far") && !unlink("far"));
	checkpoint_here();
	CHECK(!fstat(fd, &st) && !stat("second", &named) && st.st_ino == named.st_ino);
	CHECK(lseek(fd, 0, SEEK_CUR) == 3 && pread(fd, text, 4, 0) == 3 && !memcmp(text, "abc", 3));
	CHECK(pread(far, text, 4, 0) == 3 && !memcmp(text, "def", 3));
	CHECK(!unlink("second") && !unlink("folder/far") && !rmdir("folder") && access("first", F_OK));
}

/* ---- locks ---- */

static struct flock lock_range(int type, off_t start, off_t length)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = start,
			       .l_len = length };
}

/* In another process: may the lock be had? */
static bool other_may(const char *path, int command, int type, off_t start, off_t length)
{
	pid_t child = fork();
	int status;

	if (!child) {
		struct flock lock = lock_range(type, start, length);
		int fd = open(path, O_RDWR);

		if (command == LOCK_EX)
			_exit(flock(fd, LOCK_EX | LOCK_NB) ? 1 : 0);
		_exit(fcntl(fd, command, &lock) ? 1 : 0);
	}
	return waitpid(child, &status, 0) == child && status == 0;
}

/* POSIX, OFD and flock locks: other processes still meet them, the owners do not. */
static void fd_locks(void)
{
	char posix[] = "/tmp/kcr-posix.XXXXXX", ofd[] = "/tmp/kcr-ofd.XXXXXX",
	     whole[] = "/tmp/kcr-flock.XXXXXX";
	struct flock write_lock = lock_range(F_WRLCK, 10, 20);
	struct flock read_lock = lock_range(F_RDLCK, 100, 0);
	int p, o, f;

	p = mkstemp(posix);
	o = mkstemp(ofd);
	f = mkstemp(whole);
	NEED(p >= 0 && o >= 0 && f >= 0);
	NEED(!fcntl(p, F_SETLK, &write_lock) && !fcntl(p, F_SETLK, &read_lock));
	NEED(!fcntl(o, F_OFD_SETLK, &write_lock) && !fcntl(o, F_OFD_SETLK, &read_lock));
	NEED(!flock(f, LOCK_EX));
	checkpoint_here();
	CHECK(!other_may(posix, F_SETLK, F_RDLCK, 15, 1));
	CHECK(other_may(posix, F_SETLK, F_WRLCK, 30, 5));
	CHECK(!other_may(posix, F_SETLK, F_WRLCK, 5000, 1));
	CHECK(other_may(posix, F_SETLK, F_RDLCK, 5000, 1));
	CHECK(!other_may(ofd, F_OFD_SETLK, F_RDLCK, 29, 1));
	CHECK(other_may(ofd, F_OFD_SETLK, F_WRLCK, 0, 10));
	CHECK(!other_may(ofd, F_OFD_SETLK, F_WRLCK, 100, 1));
	CHECK(!other_may(whole, LOCK_EX, 0, 0, 0));
	write_lock.l_type = F_UNLCK;
	CHECK(!fcntl(p, F_SETLK, &write_lock) && !fcntl(o, F_OFD_SETLK, &write_lock));
	CHECK(!flock(f, LOCK_UN));
	CHECK(other_may(posix, F_SETLK, F_WRLCK, 10, 20));
	CHECK(other_may(ofd, F_OFD_SETLK, F_WRLCK, 10, 20));
	CHECK(other_may(whole, LOCK_EX, 0, 0, 0));
	unlink(posix);
	unlink(ofd);
	unlink(whole);
}

/* ---- many ---- */

/*
 * As many open files as the argument says, more than a program may have
 * that was started as usual; each is one of its own, at an offset of its own.
 */
static void fd_many(void)
{
	int count = check_argument ? atoi(check_argument) : 6000;
	struct rlimit limit = { count + 16, count + 16 };
	char path[] = "/tmp/kcr-many.XXXXXX";
	int first;

	NEED(!setrlimit(RLIMIT_NOFILE, &limit));
	first = mkstemp(path);
	NEED(first >= 0 && !ftruncate(first, count));
	for (int i = 1; i < count; i++) {
		int fd = open(path, O_RDONLY);

		NEED(fd == first + i && lseek(fd, i, SEEK_SET) == i);
	}
	checkpoint_here();
	for (int i = 1; i < count; i++)
		CHECK(lseek(first + i, 0, SEEK_CUR) == i);
	CHECK(!unlink(path));
}

/* ---- nodes ---- */

static struct stat socket_before, fifo_before, queue_before;

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_uid == b->st_uid && a->st_gid == b->st_gid && a->st_mode == b->st_mode;
}

/*
 * A listening Unix socket, a named pipe and a message queue: their names are there for
 * others, who need owner, group and mode to be as they were.
 */
static void fd_nodes(void)
{
	struct mq_attr limits = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "socket" };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	int client = socket(AF_UNIX, SOCK_STREAM, 0), fifo;
	struct stat now;
	mqd_t queue;

	umask(0);
	NEED(!bind(listener, (struct sockaddr *)&name, sizeof(name)) && !listen(listener, 1));
	NEED(!chmod("socket", 0751) && !stat("socket", &socket_before));
	NEED(!mkfifo("fifo", 0666) && (fifo = open("fifo", O_RDONLY | O_NONBLOCK)) >= 0);
	NEED(!stat("fifo", &fifo_before) && (fifo_before.st_mode & 07777) == 0666);
	queue = mq_open("/kcr-nodes", O_CREAT | O_EXCL | O_RDWR, 0662, &limits);
	NEED(queue >= 0 && !fstat(queue, &queue_before));
	checkpoint_here();
	CHECK(!stat("socket", &now) && same(&now, &socket_before));
	CHECK(!connect(client, (struct sockaddr *)&name, sizeof(name)));
	CHECK(!stat("fifo", &now) && same(&now, &fifo_before));
	CHECK(open("fifo", O_WRONLY | O_NONBLOCK) >= 0);
	CHECK(!fstat(queue, &now) && same(&now, &queue_before));
	CHECK(mq_open("/kcr-nodes", O_RDWR) >= 0);
	CHECK(!unlink("socket") && !unlink("fifo") && !mq_unlink("/kcr-nodes"));
}

/* ---- lock_owners ---- */

static bool is_owner(const char *class, pid_t pid)
{
	char text[16384], kind[16];
	const char *line = check_slurp("/proc/locks", text, sizeof(text));
	int owner;

	for (; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%*[^:]: %15s %*s %*s %d", kind, &owner) == 2 &&
		    !strcmp(kind, class) && owner == pid)
			return true;
	}
	return false;
}

/* Locks and a lease of shared files that a child has taken: /proc/locks names it. */
static void fd_lock_owners(void)
{
	int locked = open("locked", O_RDWR | O_CREAT, 0600), leased, up[2], status;
	pid_t child;
	char byte;

	close(open("leased", O_CREAT | O_WRONLY, 0600));
	leased = open("leased", O_RDONLY);
	NEED(locked >= 0 && leased >= 0 && !pipe(up));
	child = fork();
	if (!child) {
		NEED(!flock(locked, LOCK_EX) && !fcntl(leased, F_SETLEASE, F_RDLCK));
		NEED(write(up[1], "", 1) == 1);
		check_wait();
		_exit(0);
	}
	NEED(read(up[0], &byte, 1) == 1 && is_owner("FLOCK", child) && is_owner("LEASE", child));
	checkpoint_here();
	CHECK(is_owner("FLOCK", child) && is_owner("LEASE", child));
	CHECK(!other_may("locked", LOCK_EX, 0, 0, 0));
	CHECK(fcntl(leased, F_GETLEASE) == F_RDLCK);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(!unlink("locked") && !unlink("leased"));
}

static const struct check checks[] = {
	{ "regular", fd_regular },
	{ "deleted", fd_deleted },
	{ "unnamed", fd_unnamed },
	{ "directory", fd_directory },
	{ "devices", fd_devices },
	{ "device_nodes", fd_device_nodes },
	{ "shared", fd_shared },
	{ "linked", fd_linked },
	{ "locks", fd_locks },
	{ "lock_owners", fd_lock_owners },
	{ "lease", fd_lease },
	{ "many", fd_many },
	{ "nodes", fd_nodes },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
