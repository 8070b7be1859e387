// SPDX-License-Identifier: GPL-2.0
/*
 * Memory under protection keys (pkeys(7)): whether it may be read and written by each of two
 * threads, keys without memory, memory whose key was freed, and memory that can only be
 * executed, under the kernel's key or one of the program's.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "check.h"

#define PAGE		4096
#ifndef SEGV_PKUERR
#define SEGV_PKUERR	4
#endif

enum { READ_ONLY, LOCKED, FREED, OWN_CODE, CODE, NR };

static unsigned char *memory[NR];
static int key[NR], unused, shown[NR];
static sigjmp_buf back;
static _Thread_local volatile int fault;	/* the key that did not allow it */

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	fault = info->si_code == SEGV_PKUERR ? (int)info->si_pkey : -2;
	siglongjmp(back, 1);
}

/* The caller's rights: a signal handler has others, which siglongjmp(3) leaves to us. */
static unsigned int rights(void)
{
	unsigned int now, high;

	__asm__ volatile("rdpkru" : "=a"(now), "=d"(high) : "c"(0));
	return now;
}

static void set_rights(unsigned int to)
{
	__asm__ volatile("wrpkru" : : "a"(to), "c"(0), "d"(0) : "memory");
}

/* The key that keeps the caller from it, -1: none does. */
static int keeps_from(unsigned char *at, bool write)
{
	const volatile unsigned int own = rights();

	fault = -1;
	if (!sigsetjmp(back, 1)) {
		if (write)
			*(volatile unsigned char *)at = 7;
		else
			(void)*(volatile unsigned char *)at;
	}
	set_rights(own);
	return fault;
}

/* As /proc/self/smaps has it; -1: not there. */
static int key_of(const unsigned char *at)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	char line[512];
	unsigned long start;
	bool here = false;
	int found = -1;

	NEED(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%*x ", &start) == 1 && strchr(line, '-') && line[0] >= '0' &&
		    (line[0] <= '9' || (line[0] >= 'a' && line[0] <= 'f')))
			here = start == (unsigned long)at;
		else if (here)
			sscanf(line, "ProtectionKey: %d", &found);
	}
	fclose(smaps);
	return found;
}

static unsigned char *pages(void)
{
	static const unsigned char code[] = { 0xb8, 42, 0, 0, 0, 0xc3 };	/* return 42; */
	unsigned char *at = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEED(at != MAP_FAILED && !mprotect(at, PAGE, PROT_NONE));
	NEED(!mprotect(at + 2 * PAGE, PAGE, PROT_NONE));	/* a mapping of its own */
	memcpy(at + PAGE, code, sizeof(code));
	return at + PAGE;
}

static void set_up(void)
{
	for (int i = 0; i < NR; i++)
		memory[i] = pages();
	/* The kernel's is not the first: it has the lowest that was free. */
	key[READ_ONLY] = pkey_alloc(0, PKEY_DISABLE_WRITE);
	if (key[READ_ONLY] < 0)
		check_skip("this machine has no protection keys");
	NEED(!mprotect(memory[CODE], PAGE, PROT_EXEC));
	for (int i = LOCKED; i < CODE; i++)
		NEED((key[i] = pkey_alloc(0, PKEY_DISABLE_ACCESS)) > 0);
	unused = pkey_alloc(0, 0);
	NEED(unused > 0);
	for (int i = 0; i < CODE; i++)
		NEED(!pkey_mprotect(memory[i], PAGE, i == OWN_CODE ? PROT_EXEC : PROT_READ | PROT_WRITE,
				    key[i]));
	NEED(!pkey_free(key[FREED]));
	for (int i = 0; i < NR; i++)
		shown[i] = key_of(memory[i]);
	key[CODE] = shown[CODE];
	NEED(key[CODE] > key[READ_ONLY] && key[CODE] < key[LOCKED]);
}

static int run(const unsigned char *code)
{
	int (*function)(void);

	memcpy(&function, &code, sizeof(function));
	return function();
}

static void look(void)
{
	CHECK(keeps_from(memory[READ_ONLY], false) == -1);
	CHECK(keeps_from(memory[READ_ONLY], true) == key[READ_ONLY]);
	for (int i = LOCKED; i < NR; i++)
		CHECK(keeps_from(memory[i], false) == key[i]);
	CHECK(run(memory[CODE]) == 42 && run(memory[OWN_CODE]) == 42);
	for (int i = 0; i < NR; i++)
		CHECK(key_of(memory[i]) == shown[i]);
}

/* This thread may do more. */
static void *privileged(void *arg)
{
	NEED(!pkey_set(key[LOCKED], 0));
	memory[LOCKED][10] = 99;
	*(volatile bool *)arg = true;
	check_wait();
	CHECK(memory[LOCKED][10] == 99);
	CHECK(keeps_from(memory[LOCKED], true) == -1);
	CHECK(pkey_get(key[LOCKED]) == 0);
	return arg;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	volatile bool is_set = false;
	pthread_t thread;

	check_begin(argc, argv);
	NEED(!sigaction(SIGSEGV, &action, NULL));
	set_up();
	NEED(!pthread_create(&thread, NULL, privileged, (void *)&is_set));
	while (!is_set)
		usleep(1000);
	look();
	NEED(!check_failures);
	check_ready();
	check_wait();
	CHECK(!pthread_join(thread, NULL));
	look();
	/* The freed one is free, and no other below the unused one. */
	CHECK(pkey_alloc(0, 0) == key[FREED]);
	CHECK(pkey_alloc(0, 0) == unused + 1);
	CHECK(!pkey_free(unused) && pkey_free(unused + 2) == -1);
	return check_end();
}
