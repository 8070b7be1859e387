// SPDX-License-Identifier: GPL-2.0
/*
 * Uninvolved processes, of root and of another user.  Nobody may stop them, signal
 * them or read their memory and files.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

struct canary *canaries;
static struct canary *self;

static void noticed(int number)
{
	(void)number;
	self->signals++;
}

/* A file and a page that nobody else has, filled with a marker. */
static void make_secret(void)
{
	int fd = memfd_create("secret", MFD_CLOEXEC);
	struct stat status;
	uint64_t *page;
	size_t i;

	if (fd < 0 || ftruncate(fd, SECRET_BYTES) || fstat(fd, &status))
		_exit(2);
	self->secret = (struct identity){ status.st_dev, status.st_ino };
	if (dup2(fd, SECRET_FD) != SECRET_FD ||
	    mmap(TOKEN, SECRET_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != TOKEN)
		_exit(2);
	page = mmap(SECRET_PLACE, SECRET_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (page != SECRET_PLACE)
		_exit(2);
	for (i = 0; i < SECRET_BYTES / sizeof(*page); i++)
		page[i] = setting->seed * 0x9e3779b97f4a7c15;
}

static void run(struct canary *canary, uid_t uid)
{
	uint64_t last, now;
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	self = canary;
	make_secret();
	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		_exit(2);
	prctl(PR_SET_DUMPABLE, 1);	/* as any program of that user */
	for (i = 1; i <= SIGRTMAX; i++)
		signal(i, noticed);
	self->ready = true;
	for (last = now_ns();; last = now) {
		nap_us(1000);
		now = now_ns();
		if (now - last > canary->longest_ns)
			canary->longest_ns = now - last;
		canary->beats++;
	}
}

static bool start(int number, uid_t uid, struct setting *made)
{
	struct canary *canary = &canaries[number];
	pid_t pid = fork();

	if (!pid)
		run(canary, uid);
	for (int i = 0; pid > 0 && !canary->ready && i < 10000; i++)
		nap_us(10000);
	made->canaries[number] = pid;
	made->secret[number] = canary->secret;
	return canary->ready;
}

void canaries_start(struct setting *made)
{
	canaries = mmap(NULL, CANARIES * sizeof(*canaries), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (canaries == MAP_FAILED || !start(0, 0, made) || !start(1, FUZZ_STRANGER, made)) {
		fprintf(stderr, "fuzz_ioctl: processes of other users cannot be made\n");
		exit(2);
	}
}

void canaries_end(void)
{
	for (int i = 0; i < CANARIES; i++)
		kill(setting->canaries[i], SIGKILL);
}

/* Called by its parent. */
bool canary_check(void)
{
	struct canary *canary;
	int i, status;

	for (i = 0; i < CANARIES; i++) {
		canary = &canaries[i];
		if (waitpid(setting->canaries[i], &status, WNOHANG | WUNTRACED | WCONTINUED) > 0)
			fuzz_failed("a process of another user was ended or stopped: %#x", status);
		if (canary->signals)
			fuzz_failed("a process of another user got %u signals", canary->signals);
	}
	return !fuzz_has_failed();
}
