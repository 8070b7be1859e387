// SPDX-License-Identifier: GPL-2.0
/* Regular files, directories, devices, locks, pipes, shared memory: see files.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files.h"
#include "report/report.h"

/* ---- helpers ------------------------------------------------------------------------- */

static void put(const char *name, const char *text)
{
	int fd = open(files_path(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	must(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static bool holds(int fd, const char *text)
{
	char buffer[256];
	ssize_t got = read(fd, buffer, sizeof(buffer));

	return got == (ssize_t)strlen(text) && !memcmp(buffer, text, got);
}

static bool link_is(int number, const char *expected)
{
	char path[64], link[512];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", number);
	length = readlink(path, link, sizeof(link) - 1);
	must(length > 0);
	link[length] = '\0';
	return !strcmp(link, expected);
}

/* ---- regular files ------------------------------------------------------------------ */

static void make_regular(void)
{
	put("a", "0123456789");
	files_at(open(files_path("a"), O_RDWR), 10);
	lseek(10, 4, SEEK_SET);
	dup2(10, 11);
	files_at(open(files_path("a"), O_RDONLY | O_NONBLOCK), 12);
	files_at(open(files_path("a"), O_WRONLY | O_APPEND), 13);
	files_at(open(files_path("a"), O_PATH), 14);
	files_at(open(files_folder, O_RDONLY | O_DIRECTORY), 15);
	files_at(open("/dev/null", O_WRONLY), 16);
	files_at(open("/dev/zero", O_RDONLY), 17);
	files_at(open("/dev/urandom", O_RDONLY), 18);
	files_at(open("/dev/full", O_RDWR), 19);
	files_at(open("/proc/self/status", O_RDONLY), 20);
}

static void use_regular(void)
{
	char c, line[64] = "";
	int pid;

	must(lseek(10, 0, SEEK_CUR) == 4);
	must(read(11, &c, 1) == 1 && c == '4');
	must(lseek(10, 0, SEEK_CUR) == 5);
	must(lseek(12, 0, SEEK_CUR) == 0);
	must((fcntl(12, F_GETFL) & (O_ACCMODE | O_NONBLOCK)) == (O_RDONLY | O_NONBLOCK));
	must((fcntl(13, F_GETFL) & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND));
	must(fcntl(14, F_GETFL) & O_PATH);
	must(link_is(14, files_path("a")) && link_is(15, files_folder));
	must(fcntl(15, F_GETFL) & O_DIRECTORY);
	must(write(13, "x", 1) == 1 && lseek(10, 0, SEEK_END) == 11);
	must(write(16, "x", 1) == 1 && read(17, &c, 1) == 1 && !c && read(18, &c, 1) == 1);
	must(write(19, "x", 1) == -1 && errno == ENOSPC);
	must(fcntl(21, F_GETFD) == -1);
	must(pread(20, line, sizeof(line) - 1, 0) > 0);
	snprintf(line, sizeof(line), "/proc/%d/status", getpid());
	must(link_is(20, line));
	(void)pid;
}

static void share_offset(void)
{
	char c;

	must(read(10, &c, 1) == 1);
}

static void see_offset(void)
{
	for (int i = 0; i < 30000 && lseek(10, 0, SEEK_CUR) != 6; i++)
		usleep(1000);
	must(lseek(10, 0, SEEK_CUR) == 6);
}

static void move_offset(void)
{
	must(lseek(10, 0, SEEK_CUR) == 5);
	must(lseek(10, 6, SEEK_SET) == 6);
}

static void test_regular(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_regular, .use = use_regular });
	files_cycle(&(struct files_test){ .make = make_regular, .make_child = share_offset,
					  .use = see_offset, .use_child = move_offset });
}

static void make_deleted(void)
{
	char block[4096];

	memset(block, 'x', sizeof(block));
	put("gone", "");
	files_at(open(files_path("gone"), O_RDWR), 10);
	must(pwrite(10, "head", 4, 0) == 4);
	must(pwrite(10, block, sizeof(block), 3 << 20) == sizeof(block));
	must(!ftruncate(10, 5 << 20));
	must(!fchmod(10, 0640));
	files_at(open(files_path("gone"), O_RDONLY), 11);
	lseek(10, 2, SEEK_SET);
	must(!unlink(files_path("gone")));
	files_at(open(files_folder, O_TMPFILE | O_RDWR, 0600), 12);
	must(write(12, "nameless", 8) == 8);
	mkdir(files_path("d"), 0700);
	put("d/replaced", "old");
	files_at(open(files_path("d/replaced"), O_RDONLY), 13);
	put("d/new", "new");
	must(!rename(files_path("d/new"), files_path("d/replaced")));
}

static void use_deleted(void)
{
	char buffer[4096], name[300];
	struct stat st, other;

	must(!fstat(10, &st) && st.st_size == 5 << 20 && (st.st_mode & 07777) == 0640);
	must(!st.st_nlink && st.st_blocks < 4096);
	must(lseek(10, 0, SEEK_CUR) == 2 && read(10, buffer, 2) == 2 && !memcmp(buffer, "ad", 2));
	must(pread(11, buffer, 4096, 3 << 20) == 4096 && buffer[0] == 'x' && buffer[4095] == 'x');
	must(pread(11, buffer, 1, 4 << 20) == 1 && !buffer[0]);
	must(!fstat(11, &other) && other.st_ino == st.st_ino);
	must(pwrite(11, "x", 1, 0) == -1);
	snprintf(name, sizeof(name), "%s (deleted)", files_path("gone"));
	must(link_is(10, name) && access(files_path("gone"), F_OK));
	must(pread(12, buffer, 20, 0) == 8 && !memcmp(buffer, "nameless", 8));
	must(holds(13, "old"));
}

static void test_deleted(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_deleted, .use = use_deleted });
}

static void make_deleted_folder(void)
{
	mkdir(files_path("f"), 0700);
	files_at(open(files_path("f"), O_RDONLY), 10);
	rmdir(files_path("f"));
}

static void use_deleted_folder(void)
{
	struct stat st;

	must(!fstat(10, &st) && S_ISDIR(st.st_mode) && !st.st_nlink && (st.st_mode & 07777) == 0700);
	must(openat(10, "new", O_CREAT | O_WRONLY, 0600) == -1 && access(files_path("f"), F_OK));
}

static void test_deleted_folder(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_deleted_folder,
					  .use = use_deleted_folder });
}

static void make_namespace(void)
{
	files_at(open("/proc/self/ns/uts", O_RDONLY), 10);
}

static void use_nothing(void)
{
}

static void use_closed(void)
{
	must(fcntl(10, F_GETFD) == -1 && fcntl(0, F_GETFD) != -1);
}

static void test_refused(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_namespace, .use = use_nothing,
					  .expect_save = -EOPNOTSUPP });
	files_cycle(&(struct files_test){ .make = make_namespace, .use = use_closed,
					  .skip_unsupported = true });
}

static void remove_file(void)
{
	unlink(files_path("a"));
}

static void test_missing(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_regular, .use = use_nothing,
					  .before_restart = remove_file,
					  .expect_restart = -ENOENT });
}

static void make_mappable(void)
{
	put("m", "mapped");
}

static void add_mapped(struct file_table *t, pid_t pid)
{
	uint32_t id, again;

	assert_int_equal(file_table_add(t, open(files_path("m"), O_RDONLY | O_CLOEXEC), pid,
					pid, -1, FILE_MAPPED, &id), 0);
	assert_int_equal(file_table_add(t, open(files_path("m"), O_RDONLY | O_CLOEXEC), pid,
					pid, -1, FILE_MAPPED, &again), 0);
	assert_int_equal(id, again);
	assert_int_equal(file_table_add(t, open("/bin/true", O_RDONLY | O_CLOEXEC), pid,
					pid, -1, FILE_MAPPED, &again), 0);
	assert_int_not_equal(id, again);
}

static void change_mapped(void)
{
	const struct timespec times[] = { { 0, UTIME_OMIT }, { 1, 0 } };

	put("m", "napped");
	must(!utimensat(AT_FDCWD, files_path("m"), times, 0));	/* clocks can be coarse */
}

static void test_mapped(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_mappable, .use = use_nothing,
					  .before_save = add_mapped });
	files_cycle(&(struct files_test){ .make = make_mappable, .use = use_nothing,
					  .before_save = add_mapped,
					  .before_restart = change_mapped,
					  .expect_restart = -ESTALE });
}

/* ---- locks --------------------------------------------------------------------------- */

static void make_locks(void)
{
	struct flock range = { .l_type = F_WRLCK, .l_start = 2, .l_len = 3 };

	put("l1", "0123456789");
	put("l2", "0123456789");
	put("l3", "0123456789");
	files_at(open(files_path("l1"), O_RDWR), 10);
	files_at(open(files_path("l2"), O_RDWR), 11);
	files_at(open(files_path("l3"), O_RDWR), 12);
	must(!flock(10, LOCK_EX));
	must(!fcntl(11, F_OFD_SETLK, &range));
	must(!fcntl(12, F_SETLK, &range));
	must(!fcntl(10, F_SETOWN, getpid()) && !fcntl(10, F_SETSIG, SIGRTMIN));
}

static void use_locks(void)
{
	struct flock range = { .l_type = F_WRLCK, .l_len = 10 };
	int fd = open(files_path("l1"), O_RDWR), status;
	pid_t child;

	must(flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK);
	must(fcntl(10, F_GETOWN) == getpid() && fcntl(10, F_GETSIG) == SIGRTMIN);
	fd = open(files_path("l2"), O_RDWR);
	must(!fcntl(fd, F_OFD_GETLK, &range) && range.l_type == F_WRLCK && range.l_start == 2 &&
	     range.l_len == 3 && range.l_pid == -1);
	child = fork();
	if (!child) {
		range = (struct flock){ .l_type = F_WRLCK, .l_len = 10 };
		must(!fcntl(12, F_GETLK, &range) && range.l_type == F_WRLCK &&
		     range.l_start == 2 && range.l_len == 3 && range.l_pid == getppid());
		_exit(0);
	}
	must(waitpid(child, &status, 0) == child && !status);
}

static void test_locks(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_locks, .use = use_locks });
}

/* ---- pipes --------------------------------------------------------------------------- */

static void make_pipes(void)
{
	int p[2];

	must(!pipe(p));
	files_at(p[0], 10);
	files_at(p[1], 11);
	must(fcntl(10, F_SETPIPE_SZ, 1 << 18) == 1 << 18);
	must(write(11, "inside", 6) == 6);
	must(!fcntl(10, F_SETFL, O_NONBLOCK));
	files_at(open("/proc/self/fd/11", O_WRONLY), 12);
	must(!pipe2(p, O_DIRECT));
	files_at(p[0], 20);
	files_at(p[1], 21);
	must(write(21, "one", 3) == 3 && write(21, "three", 5) == 5);
	must(!pipe(p));
	files_at(p[0], 30);
	must(write(p[1], "last", 4) == 4);
	close(p[1]);
	must(!pipe(p));
	files_at(p[1], 31);
	close(p[0]);
	must(!mkfifo(files_path("fifo"), 0600));
	files_at(open(files_path("fifo"), O_RDONLY | O_NONBLOCK), 40);
	files_at(open(files_path("fifo"), O_WRONLY), 41);
	must(write(41, "named", 5) == 5);
}

static void use_pipes(void)
{
	struct pollfd p = { .fd = 30, .events = POLLIN };

	must(fcntl(10, F_GETPIPE_SZ) == 1 << 18 && fcntl(10, F_GETFL) & O_NONBLOCK);
	must(!(fcntl(11, F_GETFL) & O_NONBLOCK));
	must(write(12, "+", 1) == 1 && holds(10, "inside+"));
	must(read(10, &p, 1) == -1 && errno == EAGAIN);
	must(write(11, "more", 4) == 4 && holds(10, "more"));
	must(holds(20, "one") && holds(20, "three") && fcntl(21, F_GETFL) & O_DIRECT);
	must(holds(30, "last") && holds(30, ""));
	signal(SIGPIPE, SIG_IGN);
	must(write(31, "x", 1) == -1 && errno == EPIPE);
	must(holds(40, "named") && write(41, "x", 1) == 1 && holds(40, "x"));
	close(11);
	close(12);
	must(holds(10, ""));
	must(poll(&p, 1, 0) == 1 && p.revents & POLLHUP);
	unlink(files_path("fifo"));
}

static int outside[2];

/* The other end of descriptor 1 stays with the test. */
static void make_outside(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getppid(), outside[1]);
	files_at(open(path, O_WRONLY), 1);
	dup2(1, 10);
}

static void give_stdout(void)
{
	files_at(open(files_path("stdout"), O_WRONLY | O_CREAT, 0600), 1);
	must(write(1, "first;", 6) == 6);
}

static void use_outside(void)
{
	must(write(10, "second;", 7) == 7 && write(1, "third", 5) == 5);
	must(holds(open(files_path("stdout"), O_RDONLY), "first;second;third"));
}

static int feed[2];

static void make_fed(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getppid(), outside[0]);
	files_at(open(path, O_RDONLY), 0);
	must(holds(0, "read"));
}

static void give_stdin(void)
{
	must(!pipe2(feed, O_CLOEXEC));
	must(write(feed[1], "after", 5) == 5);
	files_at(fcntl(feed[0], F_DUPFD, 0), 0);
	close(feed[1]);
}

static void add_unread(struct file_table *t, pid_t pid)
{
	(void)t;
	(void)pid;
	assert_int_equal(write(outside[1], "before ", 7), 7);
}

static void use_fed(void)
{
	char buffer[16];
	size_t got = 0;
	ssize_t n;

	while ((n = read(0, buffer + got, sizeof(buffer) - got)) > 0)
		got += n;
	must(n == 0 && got == 12 && !memcmp(buffer, "before after", 12));
}

/* Standard input has no end yet; the program ends before that. */
static void give_open_stdin(void)
{
	must(write(feed[1], "after", 5) == 5);
	files_at(fcntl(feed[0], F_DUPFD, 0), 0);
	close(feed[0]);
	close(feed[1]);
}

static void use_some(void)
{
	char buffer[16];
	ssize_t n;

	for (size_t got = 0; got < 12; got += n)
		must((n = read(0, buffer, sizeof(buffer))) > 0);
}

/* What comes then is for others: nothing waits for it. */
static void test_rest_of_input(void)
{
	struct pollfd p;

	assert_true(holds(outside[0], "before "));	/* what was saved is there still */
	assert_int_equal(write(outside[1], "read", 4), 4);
	assert_int_equal(pipe2(feed, O_CLOEXEC), 0);
	files_cycle(&(struct files_test){ .make = make_fed, .use = use_some,
					  .before_save = add_unread,
					  .before_restart = give_open_stdin });
	close(feed[0]);
	p = (struct pollfd){ .fd = feed[1] };
	assert_int_equal(poll(&p, 1, 30000), 1);	/* no reader is left */
	close(feed[1]);
}

static void test_pipes(void **state)
{
	(void)state;
	files_cycle(&(struct files_test){ .make = make_pipes, .use = use_pipes });
	assert_int_equal(pipe2(outside, 0), 0);
	files_cycle(&(struct files_test){ .make = make_outside, .use = use_outside,
					  .before_restart = give_stdout });
	assert_int_equal(write(outside[1], "read", 4), 4);
	files_cycle(&(struct files_test){ .make = make_fed, .use = use_fed,
					  .before_save = add_unread,
					  .before_restart = give_stdin });
	test_rest_of_input();
	close(outside[0]);
	close(outside[1]);
}

/* ---- memory --------------------------------------------------------------------------- */

static key_t shm_key;			/* of this run alone */
static char shm_name[40];

static void make_memory(void)
{
	void *anonymous;
	int id;

	files_at(syscall(SYS_memfd_create, "mine", MFD_ALLOW_SEALING), 10);
	must(!ftruncate(10, 100000) && pwrite(10, "abc", 3, 50000) == 3);
	must(!fcntl(10, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE));
	files_at(open("/proc/self/fd/10", O_RDONLY), 11);
	files_at(syscall(SYS_memfd_create, "late", MFD_ALLOW_SEALING), 12);
	must(!fcntl(12, F_ADD_SEALS, 0x10 | F_SEAL_SEAL));
	unlink(shm_name);
	files_at(open(shm_name, O_RDWR | O_CREAT | O_EXCL, 0600), 13);
	must(!ftruncate(13, 8192) && pwrite(13, "posix", 5, 4096) == 5);

	anonymous = mmap((void *)0x300000000000, 3 << 20, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	must(anonymous == (void *)0x300000000000);
	strcpy((char *)anonymous + (1 << 20), "anonymous");
	id = shmget(shm_key, 10000, IPC_CREAT | IPC_EXCL | 0600);
	must(id >= 0);
	anonymous = shmat(id, (void *)0x310000000000, 0);
	must(anonymous == (void *)0x310000000000);
	strcpy((char *)anonymous + 5000, "segment");
}

static uint32_t ids[2];

static void add_memory(struct file_table *t, pid_t pid)
{
	static const char *ranges[] = { "300000000000-300000300000", "310000000000-310000003000" };

	for (int i = 0; i < 2; i++) {
		char path[80];
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/map_files/%s", pid, ranges[i]);
		fd = open(path, O_RDWR | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(file_table_add(t, fd, pid, pid, -1, FILE_MAPPED_SHARED, &ids[i]), 0);
	}
}

static void spoil_memory(void)
{
	int fd = open(shm_name, O_RDWR), id = shmget(shm_key, 0, 0);
	char *segment = shmat(id, NULL, 0);

	must(pwrite(fd, "XXXXX", 5, 4096) == 5);
	close(fd);
	strcpy(segment, "changed since");
	shmdt(segment);
}

static void see_memory(struct rebuild *r)
{
	char *p = mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, r->file_fd[ids[0] - 1], 0);

	must(p != MAP_FAILED && !p[0] && !strcmp(p + (1 << 20), "anonymous"));
	p = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_SHARED, r->file_fd[ids[1] - 1], 0);
	must(p != MAP_FAILED && !p[0] && !strcmp(p + 5000, "segment"));
}

static void use_memory(void)
{
	char buffer[8];
	struct stat st;
	int id;

	must(link_is(10, "/memfd:mine (deleted)") && !fstat(10, &st) && st.st_size == 100000);
	must(pread(11, buffer, 3, 50000) == 3 && !memcmp(buffer, "abc", 3));
	must(fcntl(10, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_WRITE));
	must(pwrite(10, "x", 1, 0) == -1 && errno == EPERM);
	must(fcntl(12, F_GET_SEALS) == (0x10 | F_SEAL_SEAL));
	must(pread(13, buffer, 5, 4096) == 5 && !memcmp(buffer, "posix", 5));
	id = shmget(shm_key, 10000, 0600);
	must(id >= 0 && !shmctl(id, IPC_RMID, NULL));
	unlink(shm_name);
}

static void lose_memory(void)
{
	unlink(shm_name);
	shmctl(shmget(shm_key, 0, 0), IPC_RMID, NULL);
}

static void test_memory(void **state)
{
	struct files_test test = {
		.make = make_memory, .use = use_memory, .before_save = add_memory,
		.before_restart = spoil_memory, .opened = see_memory,
	};

	(void)state;
	shm_key = 0x4b000000 + getpid();
	snprintf(shm_name, sizeof(shm_name), "/dev/shm/kcr-test-files-%d", getpid());
	files_cycle(&test);
	test.before_restart = lose_memory;
	files_cycle(&test);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_regular), cmocka_unit_test(test_deleted),
		cmocka_unit_test(test_deleted_folder),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_missing),
		cmocka_unit_test(test_mapped), cmocka_unit_test(test_locks),
		cmocka_unit_test(test_pipes), cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, files_set_up, files_tear_down);
}
