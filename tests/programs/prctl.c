// SPDX-License-Identifier: GPL-2.0
/*
 * What prctl(2) and files of /proc/self set: name, child subreaper, huge pages,
 * timer slack, parent-death signal, dumpable, core dump filter, OOM score; what only the
 * module tells: time stamp counter, memory errors, writing out of memory, MDWE, KSM.
 */
#include <signal.h>
#include <sys/prctl.h>

#include "check.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER	57
#define PR_GET_IO_FLUSHER	58
#endif
#ifndef PR_SET_MDWE
#define PR_SET_MDWE		65
#define PR_GET_MDWE		66
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE	67
#define PR_GET_MEMORY_MERGE	68
#endif
#ifndef PR_THP_DISABLE_EXCEPT_ADVISED
#define PR_THP_DISABLE_EXCEPT_ADVISED	(1 << 1)
#endif
#define MDWE_ALL		3	/* refused, and not for children */

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	NEED(fd >= 0 && write(fd, text, strlen(text)) > 0);
	close(fd);
}

static long get(const char *path, int base)
{
	char text[64];

	return strtol(check_slurp(path, text, sizeof(text)), NULL, base);
}

int main(int argc, char **argv)
{
	char name[16];
	bool has_mdwe, has_merge;
	int value, thp = 1;

	check_begin(argc, argv);
	NEED(!prctl(PR_SET_NAME, "a ) (name\\"));
	NEED(!prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
	if (argc > 3)			/* Linux 6.18 */
		thp = prctl(PR_SET_THP_DISABLE, 1, PR_THP_DISABLE_EXCEPT_ADVISED, 0, 0) ? 0 : 3;
	else
		NEED(!prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	has_merge = !prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0);	/* Linux 6.4 */
	NEED(!prctl(PR_SET_TIMERSLACK, 123456, 0, 0, 0));
	NEED(!prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	NEED(!prctl(PR_SET_PDEATHSIG, SIGUSR2, 0, 0, 0));
	put("/proc/self/coredump_filter", "0x21");
	put("/proc/self/oom_score_adj", "321");
	NEED(!prctl(PR_SET_DUMPABLE, argc > 3 ? atoi(argv[3]) : 1, 0, 0, 0));
	NEED(!prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
	NEED(!prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0));
	NEED(geteuid() || !prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0));
	has_mdwe = !prctl(PR_SET_MDWE, MDWE_ALL, 0, 0, 0);	/* Linux 6.6 */
	check_ready();
	check_wait();
	CHECK(!prctl(PR_GET_TSC, &value) && value == PR_TSC_SIGSEGV);
	CHECK(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0) == PR_MCE_KILL_EARLY);
	CHECK(geteuid() || prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0) == 1);
	CHECK(!has_mdwe || prctl(PR_GET_MDWE, 0, 0, 0, 0) == MDWE_ALL);
	CHECK(!prctl(PR_GET_NAME, name) && !strcmp(name, "a ) (name\\"));
	CHECK(!prctl(PR_GET_CHILD_SUBREAPER, &value) && value == 1);
	CHECK(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == thp);
	CHECK(!has_merge || prctl(PR_GET_MEMORY_MERGE, 0, 0, 0, 0) == 1);
	CHECK(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == 123456);
	CHECK(prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0) == 1);
	CHECK(!prctl(PR_GET_PDEATHSIG, &value) && value == SIGUSR2);
	CHECK(prctl(PR_GET_DUMPABLE) == (argc > 3 ? atoi(argv[3]) : 1));
	CHECK(get("/proc/self/coredump_filter", 16) == 0x21);
	CHECK(get("/proc/self/oom_score_adj", 10) == 321);
	return check_end();
}
