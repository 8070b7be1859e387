// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is mapped from files, or shared with others.
 */
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include "check.h"

#define PAGE	4096

/* ---- private_file ---- */

/*
 * A private mapping of a file: pages written to are the program's own, the others
 * are the file's, and the file does not change.
 */
static void mem_private_file(void)
{
	static char contents[16 * PAGE];
	const int length = sizeof(contents);
	char path[] = "/tmp/kcr-private.XXXXXX";
	char *map;
	int fd;

	fd = mkstemp(path);
	check_fill(contents, length, 3);
	NEED(fd >= 0 && write(fd, contents, length) == length);
	map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	NEED(map != MAP_FAILED);
	close(fd);
	for (int page = 0; page < 16; page += 2)
		check_fill(map + page * 4096, 4096, 1000 + page);
	checkpoint_here();
	for (int page = 0; page < 16; page++)
		CHECK(page % 2 ? !memcmp(map + page * 4096, contents + page * 4096, 4096) :
				 check_filled(map + page * 4096, 4096, 1000 + page));
	memset(map, 1, length);
	CHECK(!madvise(map, length, MADV_DONTNEED) && !memcmp(map, contents, length));
	fd = open(path, O_RDONLY);
	memset(contents, 0, length);
	CHECK(read(fd, contents, length) == length && check_filled(contents, length, 3));
	unlink(path);
}

/* ---- shared_file ---- */

/* A shared mapping of a file: what is written to memory is in the file. */
static void mem_shared_file(void)
{
	static char contents[8 * PAGE];
	const int length = sizeof(contents);
	char path[] = "/tmp/kcr-shared.XXXXXX";
	char *map;
	int fd;

	fd = mkstemp(path);
	NEED(fd >= 0 && !ftruncate(fd, 2 * length));
	map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	NEED(map != MAP_FAILED);
	check_fill(map, length, 21);
	checkpoint_here();
	CHECK(check_filled(map, length, 21));
	check_fill(map, length, 22);
	CHECK(pread(fd, contents, length, 4096) == length);
	CHECK(check_filled(contents, length, 22));
	CHECK(pwrite(fd, "changed", 7, 4096 + 100) == 7 && !memcmp(map + 100, "changed", 7));
	unlink(path);
}

/* ---- deleted_file ---- */

/* Mappings of a file that has been deleted: shared and private, two views of one. */
static void mem_deleted_file(void)
{
	const int length = 4 * PAGE;
	char path[] = "/tmp/kcr-deleted.XXXXXX";
	char *shared, *again, *private;
	int fd;

	fd = mkstemp(path);
	NEED(fd >= 0 && !ftruncate(fd, length));
	shared = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	again = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	private = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	NEED(shared != MAP_FAILED && again != MAP_FAILED && private != MAP_FAILED);
	close(fd);
	unlink(path);
	check_fill(shared, length, 100);
	check_fill(private, 4096, 101);
	checkpoint_here();
	CHECK(check_filled(shared, length, 100) && check_filled(again, length, 100));
	CHECK(check_filled(private, 4096, 101));
	CHECK(!memcmp(private + 4096, shared + 4096, length - 4096));
	check_fill(shared, length, 102);
	CHECK(check_filled(again, length, 102));
	CHECK(access(path, F_OK) < 0);
}

/* ---- memfd ---- */

/* Files in memory (memfd): descriptors and mappings, contents, size, seals in effect. */
static void mem_memfd(void)
{
	static char contents[8 * PAGE];
	const int length = sizeof(contents);
	int open_one, sealed, future, path, other, status;
	char *map, *later;
	char link[32];
	pid_t child;

	path = dup(0);
	open_one = memfd_create("open", 0);
	sealed = memfd_create("sealed", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	future = memfd_create("future", MFD_ALLOW_SEALING);
	NEED(open_one >= 0 && sealed >= 0 && future >= 0 && !ftruncate(future, PAGE));
	later = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, future, 0);
	NEED(later != MAP_FAILED && !fcntl(future, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	later[0] = 1;
	NEED(!ftruncate(open_one, length));
	map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, open_one, 0);
	NEED(map != MAP_FAILED);
	check_fill(map, length, 40);
	NEED(lseek(open_one, 123, SEEK_SET) == 123);
	check_fill(contents, length, 41);
	NEED(write(sealed, contents, length) == length);
	NEED(!fcntl(sealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
	snprintf(link, sizeof(link), "/proc/self/fd/%d", sealed);
	other = open(link, O_PATH);	/* which is seen first */
	NEED(other >= 0 && path < sealed && dup2(other, path) == path && !close(other));
	checkpoint_here();
	CHECK(check_filled(map, length, 40));
	CHECK(lseek(open_one, 0, SEEK_CUR) == 123);
	CHECK(pread(open_one, contents, length, 0) == length && check_filled(contents, length, 40));
	child = fork();
	if (!child) {
		check_fill(map, length, 42);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && check_filled(map, length, 42));
	CHECK(fcntl(sealed, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
	CHECK(fcntl(sealed, F_GETFD) == FD_CLOEXEC && fcntl(open_one, F_GETFD) == 0);
	CHECK(pread(sealed, contents, length, 0) == length && check_filled(contents, length, 41));
	CHECK(lseek(sealed, 0, SEEK_CUR) == length);
	CHECK(pwrite(sealed, "x", 1, 0) < 0 && errno == EPERM);
	CHECK(ftruncate(sealed, 1) < 0 && errno == EPERM);
	CHECK(fcntl(future, F_GET_SEALS) == F_SEAL_FUTURE_WRITE && later[0]++ == 1);
	CHECK(pwrite(future, "x", 1, 0) < 0 && errno == EPERM && later[0] == 2);
}

/* ---- memfd_noexec ---- */

#ifndef MFD_EXEC
#define MFD_NOEXEC_SEAL	8u
#define MFD_EXEC	0x10u
#endif

/*
 * Files in memory that may be executed, or not: made so, and what they were given since.  With an
 * argument only one that may not.
 */
static void mem_memfd_noexec(void)
{
	static const struct { unsigned int flags; mode_t mode; int seals; } kinds[] = {
		{ MFD_NOEXEC_SEAL, 0666, 0 }, { MFD_NOEXEC_SEAL, 0600, F_SEAL_GROW },
		{ MFD_EXEC, 0777, F_SEAL_SEAL }, { MFD_EXEC, 0600, F_SEAL_GROW },
		{ MFD_EXEC | MFD_ALLOW_SEALING, 0700, F_SEAL_SHRINK },
	};
	int count = check_argument ? 2 : sizeof(kinds) / sizeof(kinds[0]);
	int fd[sizeof(kinds) / sizeof(kinds[0])], seals[sizeof(kinds) / sizeof(kinds[0])];
	struct stat st;

	for (int i = 0; i < count; i++) {
		fd[i] = memfd_create("noexec", kinds[i].flags);
		if (fd[i] < 0 && errno == EINVAL)
			check_skip("this kernel has no MFD_NOEXEC_SEAL");
		NEED(fd[i] >= 0 && write(fd[i], "memfd", 5) == 5 && !fchmod(fd[i], kinds[i].mode));
		fcntl(fd[i], F_ADD_SEALS, kinds[i].seals);	/* some do not allow it */
		seals[i] = fcntl(fd[i], F_GET_SEALS);
	}
	checkpoint_here();
	for (int i = 0; i < count; i++) {
		CHECK(!fstat(fd[i], &st) && (st.st_mode & 07777) == kinds[i].mode);
		CHECK(fcntl(fd[i], F_GET_SEALS) == seals[i]);
	}
}

/* ---- posix_shm ---- */

static char *make_object(const char *name, int length, int keep)
{
	int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
	char *map;

	NEED(fd >= 0 && !ftruncate(fd, length));
	map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(map != MAP_FAILED);
	close(fd);
	if (!keep)
		shm_unlink(name);
	return map;
}

/* POSIX shared memory, mapped by two processes and gone by name in one case. */
static void mem_posix_shm(void)
{
	const int length = 4 * PAGE;
	char named[64], unnamed[64];
	char *a, *b;
	int status;
	pid_t child;

	snprintf(named, sizeof(named), "/kcr-named-%d", getpid());
	snprintf(unnamed, sizeof(unnamed), "/kcr-unnamed-%d", getpid());
	a = make_object(named, length, 1);
	b = make_object(unnamed, length, 0);
	check_fill(a, length, 50);
	check_fill(b, length, 51);
	child = fork();
	if (!child) {
		check_wait();
		while (!check_filled(a, length, 52) || !check_filled(b, length, 53))
			usleep(1000);
		_exit(0);
	}
	checkpoint_here();
	CHECK(check_filled(a, length, 50) && check_filled(b, length, 51));
	check_fill(a, length, 52);
	check_fill(b, length, 53);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(!shm_unlink(named));
}

/* ---- sysv_shm ---- */

/* Of the mapping that begins there, as in /proc/PID/maps: valid until the next call. */
static const char *permissions(const void *start)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	static char found[8];
	unsigned long at;
	char line[512];

	NEED(maps);
	found[0] = '\0';
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%*x", &at) == 1 && at == (unsigned long)start)
			sscanf(line, "%*s %4s", found);
	fclose(maps);
	return found;
}

/*
 * System V shared memory: attached four times and by two processes, one segment that is
 * kept and one, locked in memory, that is removed when the last lets go.  Attachments whose
 * protection was changed later keep the rights that they had at first.
 */
static void mem_sysv_shm(void)
{
	const int length = 4 * PAGE;
	int kept, removed, status;
	struct shmid_ds ds;
	char *a, *again, *b, *protected, *hidden;
	pid_t child;

	kept = shmget(IPC_PRIVATE, length, IPC_CREAT | 0640);
	removed = shmget(IPC_PRIVATE, length, IPC_CREAT | 0600);
	NEED(kept >= 0 && removed >= 0);
	a = shmat(kept, NULL, 0);
	again = shmat(kept, NULL, SHM_RDONLY);
	b = shmat(removed, NULL, 0);
	protected = shmat(kept, NULL, 0);
	hidden = shmat(kept, NULL, SHM_RDONLY);
	NEED(a != (void *)-1 && again != (void *)-1 && b != (void *)-1);
	NEED(protected != (void *)-1 && hidden != (void *)-1);
	NEED(!mprotect(protected, length, PROT_READ) && !mprotect(hidden, length, PROT_NONE));
	NEED(!shmctl(removed, SHM_LOCK, NULL) && !shmctl(removed, IPC_RMID, NULL));
	check_fill(a, length, 60);
	check_fill(b, length, 61);
	child = fork();
	if (!child) {
		check_wait();
		while (!check_filled(again, length, 62) || !check_filled(b, length, 63))
			usleep(1000);
		_exit(0);
	}
	checkpoint_here();
	CHECK(check_filled(a, length, 60) && check_filled(again, length, 60));
	CHECK(check_filled(b, length, 61));
	CHECK(!shmctl(kept, IPC_STAT, &ds) && ds.shm_segsz == length);
	if (ds.shm_nattch != 8)
		fprintf(stderr, "# attached %lu times\n", (unsigned long)ds.shm_nattch);
	CHECK(ds.shm_nattch == 8);
	CHECK(!strcmp(permissions(protected), "r--s") && !strcmp(permissions(hidden), "---s"));
	CHECK(!strcmp(permissions(a), "rw-s") && !strcmp(permissions(again), "r--s"));
	CHECK(mprotect(hidden, length, PROT_READ | PROT_WRITE) && errno == EACCES);
	CHECK(!mprotect(protected, length, PROT_READ | PROT_WRITE));
	CHECK(!mprotect(hidden, length, PROT_READ) && check_filled(hidden, length, 60));
	check_fill(protected, length, 60);
	CHECK((ds.shm_perm.mode & 0777) == 0640);
	CHECK(!shmctl(removed, IPC_STAT, &ds) && ds.shm_perm.mode & SHM_LOCKED);
	check_fill(a, length, 62);
	check_fill(b, length, 63);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(!shmdt(b) && !shmdt(again) && !shmdt(a) && !shmdt(protected) && !shmdt(hidden));
	CHECK(!shmctl(kept, IPC_RMID, NULL));
}

/* ---- same_number ---- */

/* A segment whose ID is the inode number of anonymous memory: they stay apart. */
static void mem_same_number(void)
{
	char *anonymous = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char path[64], *attached;
	struct stat st;
	FILE *next;
	int id;

	NEED(anonymous != MAP_FAILED);
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)anonymous,
		 (unsigned long)anonymous + 2 * PAGE);
	NEED(!stat(path, &st));
	next = fopen("/proc/sys/kernel/shm_next_id", "w");
	NEED(next && fprintf(next, "%lu", (unsigned long)st.st_ino) > 0 && !fclose(next));
	id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
	NEED(id >= 0 && (unsigned long)id == st.st_ino);
	attached = shmat(id, NULL, 0);
	NEED(attached != (void *)-1);
	check_fill(anonymous, 2 * PAGE, 70);
	check_fill(attached, PAGE, 71);
	checkpoint_here();
	CHECK(check_filled(anonymous, 2 * PAGE, 70) && check_filled(attached, PAGE, 71));
	CHECK(!shmdt(attached) && !shmctl(id, IPC_RMID, NULL));
}

/* ---- shared_anonymous ---- */

/*
 * Shared anonymous memory of a parent and its child, at one address and at another:
 * both go on seeing what the other writes.
 */
static void mem_shared_anonymous(void)
{
	const int length = 32 * PAGE;
	volatile uint64_t *shared;
	int status;
	pid_t child;

	shared = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(shared != MAP_FAILED);
	check_fill((char *)shared + 4096, length - 4096, 30);
	child = fork();
	if (!child) {
		shared = mremap((void *)shared, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
				(char *)shared + (64 << 20));
		NEED(shared != MAP_FAILED);
		shared[0] = 1;
		check_wait();
		CHECK(check_filled((char *)shared + 4096, length - 4096, 30));
		shared[1] = 4711;
		while (shared[2] != 815)
			usleep(1000);
		_exit(check_end());
	}
	while (!shared[0])
		usleep(1000);
	checkpoint_here();
	CHECK(check_filled((char *)shared + 4096, length - 4096, 30));
	while (shared[1] != 4711)
		usleep(1000);
	shared[2] = 815;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static const struct check checks[] = {
	{ "private_file", mem_private_file },
	{ "shared_file", mem_shared_file },
	{ "deleted_file", mem_deleted_file },
	{ "memfd", mem_memfd },
	{ "memfd_noexec", mem_memfd_noexec },
	{ "posix_shm", mem_posix_shm },
	{ "sysv_shm", mem_sysv_shm },
	{ "same_number", mem_same_number },
	{ "shared_anonymous", mem_shared_anonymous },
	{ }
};

int main(int argc, char **argv)
{
	return check_one(argc, argv, checks);
}
