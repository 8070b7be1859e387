// SPDX-License-Identifier: GPL-2.0
/*
 * fuzz_images [--seed N] [--seconds N] [--only SEED] IMAGE…: as root, in a root directory
 * of its own (made by tests/cases/fuzz/images) with cr_restart in it.  --only makes one
 * file again, by the seed that an earlier run printed, and leaves it in /tmp/mutated.
 * Status 1: a failure, which was printed; 3: too little was reached.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "images.h"

#define MUTATED		"/tmp/mutated"
#define GROUP		"/sys/fs/cgroup/kcr-images"
#define USER		1000
#define LIMIT_S		60	/* for cr_restart to refuse or restart */
#define LIFE_MS		300	/* of restarted processes */
#define REPORTED	40
#define TEXT		4096

struct outcome {
	int status;		/* as from wait(2) */
	bool late;		/* it had to be killed */
	bool restarted;		/* it reported success */
	char said[TEXT];	/* its standard error */
};

static char *what;		/* shared with the process that makes a file */
static uint64_t canary;		/* the sum of the files that must not change */
static unsigned int nr_bad, nr_made, nr_restarted, nr_refused[256];
static uint64_t longest_ms, longest_seed;

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

static void nap_ms(unsigned int ms)
{
	struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

static void die(const char *name)
{
	fprintf(stderr, "fuzz_images: %s: %s\n", name, strerror(errno));
	exit(2);
}

/* ---- the processes of a restart ---------------------------------------------------- */

static void join_group(void)
{
	int fd = open(GROUP "/cgroup.procs", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "0", 1) != 1)
		_exit(2);
	close(fd);
}

/* Number of processes left; they get the signal (0: none). */
static int signal_group(int number)
{
	FILE *file = fopen(GROUP "/cgroup.procs", "re");
	int pid, count = 0;

	if (!file)
		die(GROUP);
	while (fscanf(file, "%d", &pid) == 1) {
		count++;
		if (number)
			kill(pid, number);
	}
	fclose(file);
	return count;
}

static bool is_empty(unsigned int ms, int number)
{
	uint64_t end = now_ms() + ms;

	while (signal_group(number)) {
		if (now_ms() > end)
			return false;
		nap_ms(5);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	return true;
}

static unsigned int nr_segments(void)
{
	FILE *file = fopen("/proc/sysvipc/shm", "re");
	unsigned int count = 0;
	int c;

	while (file && (c = getc(file)) != EOF)
		count += c == '\n';
	if (file)
		fclose(file);
	return count;
}

/* ---- one run ----------------------------------------------------------------------- */

static pid_t start(int out, int err)
{
	pid_t pid = fork();
	int null;

	if (pid)
		return pid;
	join_group();
	null = open("/dev/null", O_RDWR);
	dup2(null, 0);
	dup2(out, 1);
	dup2(err, 2);
	setsid();
	execl("/cr_restart", "cr_restart", "--json", "--file", MUTATED, NULL);
	_exit(126);
}

static bool has_text(int fd)
{
	struct stat status;

	return !fstat(fd, &status) && status.st_size > 0;
}

static void run(struct outcome *outcome)
{
	int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
	uint64_t end = now_ms() + LIMIT_S * 1000;
	pid_t pid = start(out, err);
	ssize_t n;

	memset(outcome, 0, sizeof(*outcome));
	while (!waitpid(pid, &outcome->status, WNOHANG)) {
		if (!outcome->restarted && has_text(out)) {
			outcome->restarted = true;
			end = now_ms() + LIFE_MS;
		}
		if (now_ms() > end) {
			outcome->late = !outcome->restarted;
			kill(pid, SIGKILL);
			waitpid(pid, &outcome->status, 0);
			break;
		}
		nap_ms(2);
	}
	outcome->restarted |= has_text(out);
	n = pread(err, outcome->said, TEXT - 1, 0);
	outcome->said[n > 0 ? n : 0] = 0;
	close(out);
	close(err);
}

static void blame(uint64_t seed, const struct outcome *outcome, const char *why)
{
	if (nr_bad++ < REPORTED)
		printf("--only %llu: %s; changed:%s; status %#x: %s\n", (unsigned long long)seed,
		       why, what, outcome->status, outcome->said);
}

/* The message of the failure, without the warnings before it. */
static const char *without_warnings(const char *said)
{
	static const char warning[] = "cr_restart: warning: ";
	const char *end;

	while (!strncmp(said, warning, sizeof(warning) - 1) && (end = strchr(said, '\n')))
		said = end + 1;
	return said;
}

/* NULL, or what is wrong: it must restart, or refuse with one line and a nonzero status. */
static const char *fault_of(const struct outcome *outcome)
{
	const char *said = without_warnings(outcome->said), *end = strchr(said, '\n');
	int status = outcome->status;

	if (outcome->late)
		return "did not end";
	if (outcome->restarted)
		return NULL;
	if (!WIFEXITED(status))
		return "ended by a signal";
	if (!WEXITSTATUS(status))
		return "neither refused nor restarted";
	if (strncmp(said, "cr_restart: ", 12) || !end || end[1])
		return "did not say one line";
	return NULL;
}

static int make(const char *image, uint64_t seed)
{
	struct random random = { seed };
	int fd, status;
	pid_t pid = fork();

	if (!pid) {
		unlink(MUTATED);
		fd = open(MUTATED, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0 || fchown(fd, USER, USER))
			_exit(1);
		_exit(mutate(image, fd, &random, what, TEXT) ? 1 : 0);
	}
	return waitpid(pid, &status, 0) == pid && !status ? 0 : -1;
}

static void try_one(const char *image, uint64_t seed)
{
	struct outcome outcome;
	unsigned int segments = nr_segments();
	uint64_t began = now_ms();
	const char *fault;

	if (make(image, seed))
		return;
	nr_made++;
	run(&outcome);
	if (now_ms() - began > longest_ms) {
		longest_ms = now_ms() - began;
		longest_seed = seed;
	}
	fault = fault_of(&outcome);
	if (fault)
		blame(seed, &outcome, fault);
	if (!outcome.restarted && !is_empty(5000, 0))
		blame(seed, &outcome, "left processes");
	if (!is_empty(10000, SIGKILL))
		blame(seed, &outcome, "left a process that does not die");
	if (canary_sum("/canary") != canary)
		blame(seed, &outcome, "changed what is not the user's");
	canary = canary_sum("/canary");
	if (!outcome.restarted && nr_segments() > segments)
		blame(seed, &outcome, "left shared memory");
	nr_restarted += outcome.restarted;
	if (WIFEXITED(outcome.status) && !outcome.restarted)
		nr_refused[WEXITSTATUS(outcome.status)]++;
}

/* ---- all runs ---------------------------------------------------------------------- */

static int verdict(unsigned int nr_tried)
{
	unsigned int i, refused = 0;

	printf("%u files of %u tries, %u restarted, refused:", nr_made, nr_tried, nr_restarted);
	for (i = 0; i < 256; i++) {
		if (!nr_refused[i])
			continue;
		refused += nr_refused[i];
		printf(" %u with %u", nr_refused[i], i);
	}
	printf("\nthe longest run took %llu ms: --only %llu\n", (unsigned long long)longest_ms,
	       (unsigned long long)longest_seed);
	if (nr_bad) {
		printf("fuzz_images: %u faults\n", nr_bad);
		return 1;
	}
	if (nr_restarted < 3 || refused < 3 || nr_made * 2 < nr_tried) {
		printf("fuzz_images: too little was reached\n");
		return 3;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "seconds", required_argument, NULL, 't' },
		{ "only", required_argument, NULL, 'o' }, { 0 },
	};
	unsigned int seconds = 20, nr_tried = 0;
	uint64_t seed = 1, only = 0, end, each;
	struct random random;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (option) {
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 't': seconds = atoi(optarg); break;
		case 'o': only = strtoull(optarg, NULL, 0); break;
		default: return 2;
		}
	}
	if (optind == argc)
		return 2;
	setlinebuf(stdout);
	random.state = seed ? seed : (uint64_t)time(NULL) << 20 ^ getpid();
	printf("fuzz_images: --seed %llu, %u s\n", (unsigned long long)random.state, seconds);
	what = mmap(NULL, TEXT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (what == MAP_FAILED || (mkdir(GROUP, 0755) && errno != EEXIST))
		die(GROUP);
	canary = canary_sum("/canary");
	end = now_ms() + seconds * 1000;
	do {
		each = only ? only : random_next(&random);
		try_one(argv[optind + each % (argc - optind)], each);
		nr_tried++;
	} while (now_ms() < end && !only);
	rmdir(GROUP);
	return only ? !!nr_bad : verdict(nr_tried);
}
