// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_ioctl [--seed N] [--seconds N] [--slow N] [--workers N] [--coverage FILE]
 * [--round SEED]: see fuzz.h.  As root.  The seed of every round goes to the kernel log,
 * where it is found after a crash; --round repeats that one (not exactly, as several
 * threads run).  Status 1: a failure, and the last calls of every actor are printed; 3:
 * too little of the module was reached for a verdict.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define GAP_NS		(10000000000 * setting->slow)	/* no machine is that slow */
#define ROUND_NS	(100000000000 * setting->slow)	/* a round, with all its timeouts */

struct fuzz *fuzz;
static struct setting made;
const struct setting *setting = &made;

static uint64_t only_round;
static unsigned int nr_rounds, nr_broken;
static struct {
	pid_t pid;
	uint64_t began;
} workers[WORKERS];

/* ---- helpers ----------------------------------------------------------------------- */

uint64_t random_next(struct random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

uint32_t below(struct random *random, uint32_t limit)
{
	return (random_next(random) >> 32) * limit >> 32;
}

bool chance(struct random *random, uint32_t percent)
{
	return below(random, 100) < percent;
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

void nap_us(unsigned int us)
{
	struct timespec pause = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&pause, NULL);
}

void signals_default(void)
{
	sigset_t none;
	int i;

	for (i = 1; i <= SIGRTMAX; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void fuzz_failed(const char *format, ...)
{
	va_list list;

	if (atomic_exchange(&fuzz->failed, FAILED) == FAILED)
		return;
	va_start(list, format);
	vsnprintf(fuzz->failure, sizeof(fuzz->failure), format, list);
	va_end(list);
}

bool fuzz_has_failed(void)
{
	return fuzz->failed == FAILED;
}

/* ---- setting up -------------------------------------------------------------------- */

static void die(const char *what)
{
	fprintf(stderr, "fuzz_ioctl: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void map_fuzz(bool create)
{
	int fd = create ? memfd_create("fuzz", MFD_ALLOW_SEALING) : FUZZ_FD;

	if (create && (fd < 0 || ftruncate(fd, sizeof(*fuzz)) || dup2(fd, FUZZ_FD) < 0))
		die("memory");
	if (create)
		close(fd);
	fuzz = mmap(NULL, sizeof(*fuzz), PROT_READ | PROT_WRITE, MAP_SHARED, FUZZ_FD, 0);
	if (fuzz == MAP_FAILED)
		die("memory");
	/* By write(2), which a call of the module may do, nothing of it can be changed. */
	if (create && (fcntl(FUZZ_FD, F_SETFL, O_RDWR | O_APPEND) ||
		       fcntl(FUZZ_FD, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)))
		die("seals");
}

static void map_setting(void)
{
	setting = mmap(NULL, sizeof(*setting), PROT_READ, MAP_PRIVATE, FUZZ_FD + 1, 0);
	if (setting == MAP_FAILED)
		die("memory");
}

static void fix_setting(void)
{
	int fd = memfd_create("setting", MFD_ALLOW_SEALING);

	if (fd < 0 || write(fd, &made, sizeof(made)) != sizeof(made) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) ||
	    dup2(fd, FUZZ_FD + 1) < 0)
		die("setting");
	close(fd);
	map_setting();
}

/* In the current directory, which must allow set-user-ID programs. */
static void copy_program(void)
{
	char buffer[65536], folder[200];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to;
	ssize_t n;

	if (!getcwd(folder, sizeof(folder)))
		die("current folder");
	snprintf(made.program, sizeof(made.program), "%s/privileged", folder);
	to = open(setting->program, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, n) != n)
			die(setting->program);
	if (n || fchmod(to, 04755) || close(to))
		die(setting->program);
	close(from);
}

/* ---- rounds ------------------------------------------------------------------------ */

static void start_round(int worker, int log, struct random *random)
{
	uint64_t seed = only_round ? only_round : random_next(random);

	dprintf(log, "fuzz_ioctl: worker %d, round %u: --round %llu\n", worker, nr_rounds,
		(unsigned long long)seed);
	nr_rounds++;
	workers[worker].began = now_ns();
	workers[worker].pid = fork();
	if (!workers[worker].pid)
		round_main(worker, seed);
	if (workers[worker].pid < 0)
		die("fork");
}

/* Processes of a round that outlived their worker were reparented to us. */
static void kill_orphans(void)
{
	char path[64], line[4096], *next;
	FILE *file;
	pid_t pid;
	int i;
	bool known;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	file = fopen(path, "r");
	if (!file || !fgets(line, sizeof(line), file))
		line[0] = 0;
	if (file)
		fclose(file);
	for (next = line; (pid = strtol(next, &next, 10)) > 0;) {
		for (i = 0, known = false; i < WORKERS || i < CANARIES; i++)
			known |= (i < WORKERS && workers[i].pid == pid) ||
				 (i < CANARIES && setting->canaries[i] == pid);
		if (!known)
			kill(pid, SIGKILL);
	}
}

static void take_ended(void)
{
	siginfo_t info;
	int i, status;

	for (i = 0; i < WORKERS; i++) {
		if (!workers[i].pid)
			continue;
		if (waitpid(workers[i].pid, &status, WNOHANG) != workers[i].pid) {
			if (now_ns() - workers[i].began > ROUND_NS)
				fuzz_failed("a round does not end: worker %d", i);
			continue;
		}
		workers[i].pid = 0;
		nr_broken += status != 0;	/* it overwrote its own memory */
	}
	if (!fuzz_has_failed())
		kill_orphans();
	/* All except canaries and workers, which are waited for separately. */
	while (info.si_pid = 0,
	       !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid) {
		for (i = 0; i < WORKERS; i++)
			if (workers[i].pid == info.si_pid)
				return;
		for (i = 0; i < CANARIES; i++)
			if (setting->canaries[i] == info.si_pid)
				return;
		waitpid(info.si_pid, NULL, WNOHANG);
	}
}

/* Up to three times as long, if a busy machine has not reached everything by then. */
static void run(unsigned int seconds, int nr_workers, int log)
{
	uint64_t end = now_ns() + seconds * 1000000000ull, last = end + seconds * 2000000000ull;
	struct random random = { setting->seed };
	bool busy = true, more;
	int i;

	while (busy && !fuzz_has_failed()) {
		take_ended();
		canary_check();
		more = now_ns() < end || (now_ns() < last && record_missing());
		for (i = 0, busy = more; i < nr_workers; i++) {
			if (!workers[i].pid && more)
				start_round(i, log, &random);
			busy |= workers[i].pid;
		}
		nap_us(20000);
	}
}

/* ---- the verdict ------------------------------------------------------------------- */

static void print_stack(const char *process)
{
	char path[300], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/stat", process);
	file = fopen(path, "r");
	if (file && fgets(line, sizeof(line), file))
		printf("process %.60s\n", line);
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "/proc/%s/stack", process);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		printf("    %s", line);
	if (file)
		fclose(file);
}

/* The numbers that a line of /proc lists. */
static void print_listed(const char *path)
{
	char line[8192] = "", number[24], *next = line;
	FILE *file = fopen(path, "r");
	long pid;

	if (file && !fgets(line, sizeof(line), file))
		line[0] = 0;
	if (file)
		fclose(file);
	while ((pid = strtol(next, &next, 10)) > 0) {
		snprintf(number, sizeof(number), "%ld", pid);
		print_stack(number);
	}
}

static void print_threads(long pid)
{
	char path[64];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%ld/task", pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (*entry->d_name != '.')
			print_stack(entry->d_name);
	if (tasks)
		closedir(tasks);
}

/* Where everybody sleeps: children, and then the threads of the rounds. */
static void print_stacks(void)
{
	char path[64];
	int i;

	for (i = -1; i < WORKERS; i++) {
		long pid = i < 0 ? getpid() : workers[i].pid;

		snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", pid, pid);
		if (pid)
			print_listed(path);
	}
	for (i = 0; i < WORKERS; i++)
		if (workers[i].pid)
			print_threads(workers[i].pid);
}

static void check_gaps(void)
{
	int i;

	for (i = 0; i < CANARIES; i++) {
		printf("canary %d: %llu beats, at most %llu ms without one\n", i,
		       (unsigned long long)canaries[i].beats,
		       (unsigned long long)canaries[i].longest_ns / 1000000);
		if (canaries[i].longest_ns > GAP_NS || !canaries[i].beats)
			fuzz_failed("a process of another user did not run for a while");
	}
}

static int verdict(const char *coverage)
{
	const char *missing = record_missing();

	record_print();
	cover_print(coverage);
	canary_check();
	check_gaps();
	printf("%u rounds, %u ended early\n", nr_rounds, nr_broken);
	if (fuzz_has_failed()) {
		record_print_log();
		print_stacks();
		printf("fuzz_ioctl: %s; seed %llu\n", fuzz->failure,
		       (unsigned long long)setting->seed);
		return 1;
	}
	if (nr_broken * 3 > nr_rounds) {
		printf("fuzz_ioctl: too many rounds ended early\n");
		return 3;
	}
	if (missing)
		printf("fuzz_ioctl: %s succeeded too seldom\n", missing);
	return missing ? 3 : 0;
}

static void end_all(void)
{
	int i;

	for (i = 0; i < WORKERS; i++)
		if (workers[i].pid)
			kill(workers[i].pid, SIGKILL);
	canaries_end();
	for (i = 0; i < 200; i++) {
		workers[i % WORKERS].pid = 0;
		kill_orphans();
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
		nap_us(5000);
		if (waitpid(-1, NULL, WNOHANG | __WALL) < 0)
			return;
	}
}

/*
 * While nobody sends signals: the kernel patches its own code for the first.  An emulator of
 * several processors (QEMU 7.2) may run what it had translated of it halfway, for ever: a
 * kprobe event on do_send_sig_info that is switched on and off under signals ends the machine
 * in seconds, without our module too; not so with one thread for all processors.
 */
static void hold_once(void)
{
	struct kcr_hold hold = { .size = sizeof(hold), .signals = KCR_HOLD_SIGNALS, .limit_ms = 1 };
	int job = open(KCR_DEVICE, O_RDWR | O_CLOEXEC);

	ioctl(job, KCR_IOC_HOLD, &hold);
	close(job);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "seconds", required_argument, NULL, 't' },
		{ "workers", required_argument, NULL, 'w' },
		{ "round", required_argument, NULL, 'r' },
		{ "coverage", required_argument, NULL, 'c' },
		{ "slow", required_argument, NULL, 'l' }, { 0 },
	};
	unsigned int seconds = 20, nr_workers = 2, slow = 1;
	const char *coverage = NULL;
	uint64_t seed = 1;
	int option, log, status;

	if (argc > 1 && argv[1][0] != '-') {
		map_fuzz(false);
		map_setting();
		return target_exec(argv);
	}
	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (option) {
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 't': seconds = atoi(optarg); break;
		case 'w': nr_workers = atoi(optarg); break;
		case 'r': only_round = strtoull(optarg, NULL, 0); break;
		case 'l': slow = atoi(optarg); break;
		case 'c': coverage = optarg; break;
		default: return 2;
		}
	}
	if (nr_workers < 1 || nr_workers > WORKERS || !slow)
		return 2;
	setlinebuf(stdout);
	map_fuzz(true);
	made.slow = slow;
	made.seed = seed ? seed : now_ns() ^ getpid();
	printf("fuzz_ioctl: --seed %llu, %u s\n", (unsigned long long)made.seed, seconds);
	copy_program();
	cover_init(&made);
	log = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sockets_make();
	hold_once();
	canaries_start(&made);
	fix_setting();
	run(seconds, nr_workers, log);
	if (fuzz_has_failed())
		dprintf(log, "fuzz_ioctl: %s\n", fuzz->failure);
	status = verdict(coverage);
	end_all();
	return status;
}
