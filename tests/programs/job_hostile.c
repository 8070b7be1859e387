// SPDX-License-Identifier: GPL-2.0
/*
 * What an ordinary user may try with /dev/kcr, and does not get:
 * `twice` a request changed by another thread while it is looked at; `held` what needs stopped
 * programs when they are so no more; `dying` harm by killing one; `undumpable` a program that has
 * stopped being his to look at since it was added; `hidden` files that no path leads him to;
 * `segment` other sizes of memory that others share; `mapped` more than memory of an io_uring, or
 * that where it must not be; `filtered` processes in spite of a seccomp filter; `low` and
 * `forbidden` process numbers kept for the system, or any; `off` a job when they are switched off.
 */
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "job.h"

#define CALLS	60000
#define TIMERS	1500

static int job;

/* ---- twice ----------------------------------------------------------------------- */

static struct kcr_mapped_file shared_request;
static volatile bool done;

static void *change(void *argument)
{
	pid_t member = *(pid_t *)argument;

	while (!done) {
		__atomic_store_n(&shared_request.pid, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&shared_request.pid, member, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* The job's descriptor is inherited: its holder may ask for files of its own only. */
static int ask_in_vain(pid_t member)
{
	pthread_t thread;
	int got = 0, ret;

	shared_request = (struct kcr_mapped_file) {
		.size = sizeof(shared_request), .address = (uintptr_t)job_idle,
	};
	NEED(!pthread_create(&thread, NULL, change, &member));
	for (int i = 0; i < CALLS && !got; i++) {
		ret = job_call(job, KCR_IOC_MAPPED_FILE, &shared_request);
		/* Of its own, a file of a program is none that it may have. */
		got = ret != -EPERM && ret != -EACCES;
	}
	done = true;
	pthread_join(thread, NULL);
	CHECK(!got);
	return check_failures;
}

static void twice(void)
{
	pid_t member = job_idle_child(), stranger;
	int status;

	NEED(!job_add(job, member) && !job_park(job, 0, NULL));
	CHECK(job_mapped_file(job, member, job_idle) > 0);
	stranger = fork();
	if (!stranger)
		_exit(ask_in_vain(member));
	CHECK(waitpid(stranger, &status, 0) == stranger && !status);
	job_kill(member);
}

/* ---- held ------------------------------------------------------------------------ */

static void held(void)
{
	pid_t member = job_idle_child();
	struct kcr_timer timer[4];
	struct kcr_timers timers = {
		.size = sizeof(timers), .pid = member, .count = 4, .timers = (uintptr_t)timer,
	};
	struct kcr_snapshot snapshot = { .size = sizeof(snapshot) };
	struct kcr_mm mm = { .size = sizeof(mm), .pid = member };

	CHECK(job_release(job, KCR_RELEASE_HOLD) == -EINVAL);
	NEED(!job_add(job, member) && !job_park(job, 0, NULL));
	CHECK(!job_call(job, KCR_IOC_TIMERS, &timers) && !timers.count);
	CHECK(job_release(job, KCR_RELEASE_HOLD | KCR_RELEASE_TEST) == -EINVAL);
	CHECK(!job_release(job, KCR_RELEASE_TEST));
	CHECK(!job_release(job, KCR_RELEASE_HOLD));
	CHECK(job_release(job, KCR_RELEASE_TEST) == -EINVAL);
	timers.count = 4;
	CHECK(job_call(job, KCR_IOC_TIMERS, &timers) == -EINVAL);
	CHECK(job_call(job, KCR_IOC_SNAPSHOT, &snapshot) == -EINVAL);
	CHECK(job_call(job, KCR_IOC_MM, &mm) == -EINVAL);
	CHECK(job_list(job) == -EINVAL);
	CHECK(job_mapped_file(job, member, job_idle) == -EINVAL);
	CHECK(job_park(job, 0, NULL) == -EINVAL);
	CHECK(job_release(job, KCR_RELEASE_HOLD) == -EINVAL);
	CHECK(!job_release(job, 0));
	CHECK(job_release(job, 0) == -EINVAL);
	CHECK(!job_park(job, 0, NULL) && !job_release(job, 0));
	job_kill(member);
}

/* ---- dying ----------------------------------------------------------------------- */

/* A stopped member with many timers, killed while they are looked at. */
static void dying(void)
{
	static struct kcr_timer timer[TIMERS];
	struct kcr_timers timers = { .size = sizeof(timers), .timers = (uintptr_t)timer };
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	pid_t member = fork();
	timer_t id;
	int ret;

	if (!member) {
		for (int i = 0; i < TIMERS; i++)
			NEED(!timer_create(i % 2 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC,
					   &event, &id));
		raise(SIGSTOP);
		job_idle();
	}
	NEED(waitpid(member, NULL, WUNTRACED) == member);
	NEED(!job_add(job, member) && !job_park(job, 0, NULL));
	timers.pid = member;
	timers.count = TIMERS;
	CHECK(!job_call(job, KCR_IOC_TIMERS, &timers) && timers.count == TIMERS);
	kill(member, SIGKILL);
	do {
		timers.count = TIMERS;
		ret = job_call(job, KCR_IOC_TIMERS, &timers);
	} while (!ret);
	CHECK(ret == -ESRCH);
	waitpid(member, NULL, 0);
}

/* ---- undumpable ------------------------------------------------------------------ */

static void undumpable(void)
{
	int go[2], back[2];
	pid_t member, failed;
	char byte;

	NEED(!pipe(go) && !pipe(back));
	member = fork();
	if (!member) {
		NEED(read(go[0], &byte, 1) == 1 && !prctl(PR_SET_DUMPABLE, 0));
		NEED(write(back[1], "", 1) == 1);
		job_idle();
	}
	NEED(!job_add(job, member) && !job_park(job, 0, NULL) && !job_release(job, 0));
	CHECK(job_descriptor(job, member, 0) > 0);
	NEED(write(go[1], "", 1) == 1 && read(back[0], &byte, 1) == 1);
	CHECK(job_descriptor(job, member, 0) == -EACCES);
	CHECK(job_park(job, 0, &failed) == -EACCES && failed == member);
	CHECK(job_list(job) == -EINVAL);
	job_kill(member);
}

/* ---- hidden ---------------------------------------------------------------------- */

/* As root: a file of this mode and owner, where user 1000 can't get or can; mapped. */
static char *map_new(const char *name, mode_t mode, uid_t owner)
{
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char *page;

	NEED(fd >= 0 && !ftruncate(fd, 8192) && !fchown(fd, owner, owner) && !fchmod(fd, mode));
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	NEED(page != MAP_FAILED && *page == 0);
	close(fd);
	return page;
}

static void ask_for(pid_t member, const char *page, int expected, const char *what)
{
	int ret = job_mapped_file(job, member, page);

	if (expected ? ret != -expected : ret < 0)
		check_failed(what, ret, "the file it gives");
	if (ret >= 0)
		close(ret);
}

static void hidden(void)
{
	char *readable, *writable, *setuid, *own, *secret, *open_to_all, *deleted;
	pid_t member;

	NEED(!mkdir("hidden", 0700) && !chmod(".", 0755));
	readable = map_new("hidden/readable", 0644, 0);
	writable = map_new("hidden/writable", 0666, 0);
	setuid = map_new("hidden/setuid", 04755, 0);
	secret = map_new("hidden/secret", 0600, 0);
	own = map_new("hidden/own", 0600, 1000);
	open_to_all = map_new("open_to_all", 0666, 0);
	deleted = map_new("deleted", 0644, 0);
	NEED(!unlink("deleted"));
	member = job_idle_child();
	NEED(!job_add(job, member) && !job_park(job, 0, NULL));
	ask_for(member, writable, 0, "writable");		/* root, as /proc/PID/map_files */
	NEED(!job_release(job, 0));
	job_kill(member);
	close(job);

	job_be_user();
	job = job_open();
	member = job_idle_child();
	NEED(job >= 0 && !job_add(job, member) && !job_park(job, 0, NULL));
	ask_for(member, readable, 0, "readable");
	ask_for(member, writable, EACCES, "writable");
	ask_for(member, setuid, EACCES, "setuid");
	ask_for(member, secret, EACCES, "secret");
	ask_for(member, own, 0, "own");
	ask_for(member, open_to_all, 0, "open_to_all");
	ask_for(member, deleted, 0, "deleted");
	ask_for(member, (const char *)job_idle, 0, "job_idle");
	job_kill(member);
}

/* ---- segment --------------------------------------------------------------------- */

static void check_size_kept(int fd, const char *what, void *memory)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || st.st_size < 8192)
		check_failed(what, fd, "a descriptor of it");
	CHECK(ftruncate(fd, 0) == -1 && errno == EPERM);
	CHECK(ftruncate(fd, 1 << 24) == -1 && errno == EPERM);
	memset(memory, 1, 8192);		/* all of it is still there */
	close(fd);
}

/* Of memory that is mapped to be read; its mode lets everybody open it. */
static void check_reopened(int fd)
{
	char path[32];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && again >= 0);
	CHECK(ftruncate(again, 0) == -1 && errno == EPERM);
	CHECK(ftruncate(again, 1 << 24) == -1 && errno == EPERM);
	close(again);
	close(fd);
}

static void segment(void)
{
	int to_read = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
	char *read_only = shmat(to_read, NULL, SHM_RDONLY);
	int id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600);
	char *segment = shmat(id, NULL, 0);
	char *anonymous = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int memfd = memfd_create("own", MFD_CLOEXEC), fd;
	char *own = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	pid_t member;

	NEED(id >= 0 && segment != (void *)-1 && !shmctl(id, IPC_RMID, NULL));
	NEED(to_read >= 0 && read_only != (void *)-1 && !shmctl(to_read, IPC_RMID, NULL));
	CHECK(job_mapped_file(job, 0, read_only) == -EACCES);
	NEED(anonymous != MAP_FAILED && memfd >= 0 && own != MAP_FAILED);
	NEED(!ftruncate(memfd, 8192));
	check_size_kept(job_mapped_file(job, 0, segment), "segment of the caller", segment);
	check_size_kept(job_mapped_file(job, 0, anonymous), "memory of the caller", anonymous);
	member = job_idle_child();
	NEED(!job_add(job, member) && !job_park(job, 0, NULL));
	check_size_kept(job_mapped_file(job, member, segment), "segment of a member", segment);
	check_size_kept(job_mapped_file(job, member, anonymous), "memory of a member", anonymous);
	check_reopened(job_mapped_file(job, member, read_only));
	fd = job_mapped_file(job, member, own);
	CHECK(fd >= 0 && !ftruncate(fd, 4096) && !ftruncate(memfd, 8192));
	job_kill(member);
}

/* ---- mapped ----------------------------------------------------------------------- */

static int map_at(int fd, const void *address, uint64_t length)
{
	struct kcr_map map = {
		.size = sizeof(map), .fd = fd, .prot = PROT_READ | PROT_WRITE,
		.address = (uintptr_t)address, .length = length,
	};

	return job_call(job, KCR_IOC_MAP, &map);
}

static void mapped(void)
{
	struct io_uring_params made = { 0 };
	int ring = syscall(SYS_io_uring_setup, 4, &made), other = open("/proc/self/exe", O_RDONLY);
	struct kcr_uring uring = { .size = sizeof(uring), .fd = other, .like = -1 };
	char *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	NEED(ring >= 0 && other >= 0 && place != MAP_FAILED);
	*place = 77;
	CHECK(map_at(ring, place, 4096) == -EEXIST && *place == 77);
	CHECK(map_at(other, place, 4096) == -EBADF);
	CHECK(map_at(ring, place + 1, 4096) == -EINVAL);
	CHECK(map_at(ring, place, 0) == -EINVAL);
	CHECK(map_at(ring, place, -4096ull) == -EINVAL);
	CHECK(map_at(ring, (void *)(1ull << 63), 4096) == -EINVAL);
	err = map_at(ring, NULL, 4096);
	CHECK(err == -EPERM || err == -ENOMEM || err == -EEXIST);
	CHECK(!munmap(place, 4096) && !map_at(ring, place, 4096));
	CHECK(*(uint32_t *)(place + made.sq_off.ring_entries) == 4);
	/* Others are where they always are. */
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) > (void *)(1ull << 32));
	err = job_call(job, KCR_IOC_URING, &uring);
	CHECK(err == -EBADF || err == -EOPNOTSUPP);
}

/* ---- filtered, low, forbidden, off ------------------------------------------------- */

/* A number that is free, below 300 or not. */
static pid_t free_number(pid_t from)
{
	while (!kill(from, 0) || errno == EPERM)
		from++;
	return from;
}

static void filtered(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow };

	CHECK(job_clone(job, 0) > 0);
	NEED(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	NEED(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	CHECK(job_clone(job, 0) == -EPERM);
}

static void low(void)
{
	CHECK(job_clone(job, free_number(200)) > 0);	/* root may */
	close(job);
	job_be_user();
	job = job_open();
	NEED(job >= 0);
	CHECK(job_clone(job, free_number(200)) == -EPERM);
	CHECK(job_clone(job, free_number(20000)) > 0);
}

static void forbidden(void)
{
	CHECK(job_clone(job, free_number(20000)) > 0);
	close(job);
	job_be_user();
	job = job_open();
	NEED(job >= 0);
	CHECK(job_clone(job, free_number(20000)) == -EPERM);
	CHECK(job_clone(job, 0) > 0);
}

static void off(void)
{
	CHECK(job_open() >= 0);
	job_be_user();
	CHECK(job_open() == -EPERM);
	CHECK(job_list(job) == -EINVAL);	/* an open one goes on */
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
		bool user;		/* all of it as one */
	} table[] = {
		{ "twice", twice, true }, { "held", held, true },
		{ "dying", dying, true },
		{ "undumpable", undumpable, true }, { "hidden", hidden, false },
		{ "segment", segment, true }, { "mapped", mapped, true },
		{ "filtered", filtered, true }, { "low", low, false },
		{ "forbidden", forbidden, false }, { "off", off, false },
	};

	NEED(argc == 2);
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		if (strcmp(argv[1], table[i].name))
			continue;
		if (table[i].user)
			job_be_user();
		job = job_open();
		NEED(job >= 0);
		table[i].run();
		return !!check_failures;
	}
	return 2;
}
