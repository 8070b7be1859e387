// SPDX-License-Identifier: GPL-2.0
/*
 * Named regions, values, and what a process knows of its restarts; bounds and
 * errors of these calls.  Until GO there is a file `state.N` for the N-th
 * restart: its context file and the seconds since the epoch.  Nothing here
 * calls cr_init().
 */
#include <kcr.h>

#include <limits.h>
#include <sys/wait.h>

#include "tests/programs/check.h"

static char big[KCR_MAX_VALUES];

static void ranges(void)
{
	char *memory = (char *)0x10000000;

	CHECK(kcr_exclude((void *)-4096, 8192) == -1 && errno == EINVAL);
	CHECK(kcr_include((void *)-4096, 8192) == -1 && errno == EINVAL);
	CHECK(!kcr_exclude(memory, 4095));
	CHECK(!kcr_include(memory, 0));
	for (long i = 0; i < KCR_MAX_RANGES; i++)
		NEED(!kcr_exclude(memory + i * 8192, 4096));
	CHECK(kcr_exclude(memory - 8192, 4096) == -1 && errno == ENOSPC);
	/* Joined, they are one, and leave room for others. */
	CHECK(!kcr_exclude(memory, KCR_MAX_RANGES * 8192l));
	CHECK(!kcr_exclude(memory - 8192, 4096));
	CHECK(!kcr_include(NULL, 0x70000000));
}

static void names(void)
{
	char name[KCR_MAX_NAME + 2];

	memset(name, 'n', sizeof(name));
	name[KCR_MAX_NAME + 1] = '\0';
	CHECK(kcr_name_region(name, big, 1) == -1 && errno == EINVAL);
	CHECK(kcr_name_region("", big, 1) == -1 && errno == EINVAL);
	CHECK(kcr_name_region("x", (void *)-1, 2) == -1 && errno == EINVAL);
	CHECK(kcr_name_region("x", big, 0) == -1 && errno == ENOENT);
	for (int i = 0; i < KCR_MAX_REGIONS; i++) {
		snprintf(name, sizeof(name), "region %d", i);
		NEED(!kcr_name_region(name, big + i, 1));
	}
	CHECK(kcr_name_region("x", big, 1) == -1 && errno == ENOSPC);
	CHECK(!kcr_name_region(name, big, 2));
	for (int i = 0; i < KCR_MAX_REGIONS; i++) {
		snprintf(name, sizeof(name), "region %d", i);
		CHECK(!kcr_name_region(name, big, 0));
	}
}

static void values(void)
{
	char name[KCR_MAX_NAME + 2], read[16] = "";

	memset(name, 'n', sizeof(name));
	name[KCR_MAX_NAME + 1] = '\0';
	CHECK(kcr_set_value(name, "v", 1) == -1 && errno == EINVAL);
	CHECK(kcr_get_value(name, read, 1) == -1 && errno == EINVAL);
	name[KCR_MAX_NAME] = '\0';
	CHECK(!kcr_set_value(name, "v", 1));
	CHECK(kcr_get_value(name, NULL, 0) == 1);
	CHECK(!kcr_set_value(name, NULL, 0));
	CHECK(kcr_set_value(name, NULL, 0) == -1 && errno == ENOENT);
	CHECK(kcr_get_value(name, NULL, 0) == -1 && errno == ENOENT);
	CHECK(kcr_set_value("k", big, KCR_MAX_VALUES) == -1 && errno == ENOSPC);
	CHECK(kcr_set_value("k", big, SIZE_MAX) == -1 && errno == ENOSPC);
	CHECK(!kcr_set_value("k", big, KCR_MAX_VALUES - 68));
	CHECK(kcr_set_value("l", "", 0) == -1 && errno == ENOSPC);
	CHECK(!kcr_set_value("k", "abc", 3));
	CHECK(!kcr_set_value("l", "", 0));
	CHECK(kcr_get_value("l", read, sizeof(read)) == 0);
	CHECK(kcr_get_value("k", read, 2) == 3 && !strcmp(read, "ab"));
	CHECK(!kcr_set_value("k", NULL, 0) && !kcr_set_value("l", NULL, 0));
}

static void set_up(void)
{
	NEED(!kcr_name_region("matrix", big, sizeof(big)));
	NEED(!kcr_name_region("gone", big, 1));
	NEED(!kcr_name_region("gone", big, 0));
	NEED(!kcr_set_value("step", "17", 2));
	NEED(!kcr_set_value("step", "18", 2));
	NEED(!kcr_set_value("blob", "\0\1\2", 3));
	NEED(!kcr_exclude((void *)0x10000000, 8192));
}

/* Says once what it knows of a restart. */
static void tell(int count)
{
	char name[32], source[PATH_MAX];
	struct timespec when;
	FILE *file;

	CHECK(kcr_restarted(&when, source, sizeof(source)) == count);
	CHECK(!*source || (kcr_restarted(NULL, name, 1) == -1 && errno == ERANGE));
	snprintf(name, sizeof(name), "state.%d.tmp", count);
	file = fopen(name, "w");
	fprintf(file, "%s %lld\n", source, (long long)when.tv_sec);
	fclose(file);
	*strrchr(strcpy(source, name), '.') = '\0';
	CHECK(!rename(name, source));
}

static void check_child(int count)
{
	pid_t pid = fork();
	char read[8] = "";
	int status;

	if (!pid) {
		CHECK(kcr_restarted(NULL, NULL, 0) == count);
		CHECK(kcr_get_value("step", read, sizeof(read)) == 2 && !strcmp(read, "18"));
		CHECK(!kcr_set_value("step", "19", 2));
		_exit(check_end());
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	CHECK(kcr_get_value("step", read, sizeof(read)) == 2 && !strcmp(read, "18"));
}

int main(int argc, char **argv)
{
	int count = 0;

	check_begin(argc, argv);
	ranges();
	names();
	values();
	set_up();
	CHECK(kcr_restarted(NULL, NULL, 0) == 0);
	check_ready();
	while (!check_gone()) {
		check_sleep_ms(20);
		if (kcr_restarted(NULL, NULL, 0) == count)
			continue;
		count++;
		check_child(count);
		tell(count);		/* last: then it is saved, alone */
	}
	return check_end();
}
