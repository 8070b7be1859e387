// SPDX-License-Identifier: GPL-2.0
/*
 * The folder of a global snapshot whose ranks need older files: what the manifest says of
 * them, and whether they are all there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/local.h"
#include "job/manifest.h"
#include "job/snapshot.h"
#include "report/report.h"

static char folder[] = "/tmp/kcr-snapshot.XXXXXX";

static struct snapshot_file older[] = { { 3000, 0x1 }, { 20, 0xfedcba9876543210 } };
static struct snapshot_rank rank[] = {
	{ .node = (char *)"n0", .file = { 7, 0xabc } },
	{ .node = (char *)"n1", .file = { 8, 0xdef }, .older = older, .nr_older = 2 },
};
static const struct snapshot job = {
	.id = 0xfedcba9876543211, .interval = 3, .openmpi = (char *)"4.1.4", .kcr = (char *)"0", .cwd = (char *)"/",
	.nr_ranks = 2, .rank = rank,
};

static int set_up(void **state)
{
	(void)state;
	report_clear();
	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	return mkdtemp(folder) && !chdir(folder) && !mkdir("saved.kcr", 0700) &&
		!manifest_write("saved.kcr/" SNAPSHOT_MANIFEST, &job) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void put(const char *name, off_t bytes)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	close(fd);
}

static void put_text(const char *name, const char *text)
{
	FILE *out = fopen(name, "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void says(const char *text)
{
	assert_non_null(report_message());
	assert_non_null(strstr(report_message(), text));
	report_clear();
}

static void written_and_read(void **state)
{
	struct snapshot *s = NULL;
	uint64_t more;

	(void)state;
	assert_int_equal(snapshot_load_one("saved.kcr", &s), 0);
	assert_int_equal(s->format, 3);
	assert_int_equal(s->id, job.id);
	assert_int_equal(s->nr_ranks, 2);
	assert_int_equal(s->rank[0].nr_older, 0);
	assert_int_equal(s->rank[1].nr_older, 2);
	assert_int_equal(s->rank[1].file.id, 0xdef);
	assert_memory_equal(s->rank[1].older, older, sizeof(older));
	assert_int_equal(snapshot_bytes(s, &more), 15);
	assert_int_equal(more, 3020);
	snapshot_free(s);
}

/* Those who know no increments can read it as long as there are none. */
static void whole(void **state)
{
	struct snapshot full = job, *s = NULL;
	struct snapshot_rank first[] = { rank[0], rank[0] };

	(void)state;
	full.rank = first;
	full.id = 0;
	assert_int_equal(manifest_write("whole", &full), 0);
	assert_int_equal(manifest_read("whole", &s), 0);
	assert_int_equal(s->format, 2);
	assert_int_equal(s->id, 0);
	snapshot_free(s);
}

static void refused(const char *version, const char *list, int expected)
{
	struct snapshot *s;
	char text[1024];

	snprintf(text, sizeof(text), "{\"format\":\"kcr-mpi-snapshot\",\"version\":%s,\"interval\":1,"
		 "\"openmpi\":\"4\",\"kcr\":\"0\",\"cwd\":\"/\",\"options\":[],\"program\":[],"
		 "\"environment\":[],\"ranks\":[{\"node\":\"n\",\"bytes\":1,\"id\":\"1\",\"older\":%s}]}",
		 version, list);
	put_text("odd", text);
	assert_int_equal(manifest_read("odd", &s), expected);
	if (!expected)
		snapshot_free(s);
	else
		says("odd is ");
}

static void odd(void **state)
{
	(void)state;
	refused("3", "[{\"bytes\":1,\"id\":\"1\"}]", 0);
	refused("2", "[{\"bytes\":1,\"id\":\"1\"}]", -EINVAL);
	refused("4", "[{\"bytes\":1,\"id\":\"1\"}]", -EPROTO);
	refused("3", "[]", -EINVAL);
	refused("3", "7", -EINVAL);
	refused("3", "[{\"bytes\":1}]", -EINVAL);
	refused("3", "[{\"bytes\":1,\"id\":\"1\"},2]", -EINVAL);
}

static unsigned int nr_verified;

static int verify(const char *path, const struct snapshot *s, const struct snapshot_file *file)
{
	static const char *const names[] = { "rank.0.ctx", "rank.1.ctx", "rank.1.ctx.1", "rank.1.ctx.2" };
	const struct snapshot_file *files[] = {
		&s->rank[0].file, &s->rank[1].file, &s->rank[1].older[0], &s->rank[1].older[1],
	};

	assert_true(nr_verified < 4);
	assert_string_equal(strrchr(path, '/') + 1, names[nr_verified]);
	assert_ptr_equal(file, files[nr_verified]);
	nr_verified++;
	return 0;
}

static void all_there(void **state)
{
	struct snapshot *s = NULL;
	uint32_t elsewhere;

	(void)state;
	assert_int_equal(snapshot_load_one("saved.kcr", &s), 0);
	put("saved.kcr/rank.0.ctx", 7);
	put("saved.kcr/rank.1.ctx", 8);
	put("saved.kcr/rank.1.ctx.1", 3000);
	assert_int_equal(snapshot_check("saved.kcr", s, NULL, &elsewhere), -ENOENT);
	says("the snapshot is not complete: saved.kcr/rank.1.ctx.2");
	put("saved.kcr/rank.1.ctx.2", 21);
	assert_int_equal(snapshot_check("saved.kcr", s, NULL, &elsewhere), -EINVAL);
	says("saved.kcr/rank.1.ctx.2 is damaged");
	put("saved.kcr/rank.1.ctx.2", 20);
	assert_int_equal(snapshot_check("saved.kcr", s, verify, &elsewhere), 0);
	assert_int_equal(nr_verified, 4);
	snapshot_free(s);
}

/* Of a rank whose file is on another node nothing is missing here; of one here, all must be. */
static void local(void **state)
{
	struct snapshot *s = NULL;
	uint32_t elsewhere;

	(void)state;
	assert_int_equal(mkdir("disk", 0700), 0);
	assert_int_equal(local_link("saved.kcr", "../disk"), 0);
	assert_int_equal(snapshot_load_one("saved.kcr", &s), 0);
	put("disk/rank.0.ctx", 7);
	assert_int_equal(snapshot_check("saved.kcr", s, NULL, &elsewhere), 0);
	assert_int_equal(elsewhere, 1);
	put("disk/rank.1.ctx", 8);
	assert_int_equal(snapshot_check("saved.kcr", s, NULL, &elsewhere), -ENOENT);
	says("saved.kcr/local/rank.1.ctx.1");
	snapshot_free(s);
}

static void is_in(const char *expected)
{
	char *found = snapshot_files_folder("saved.kcr");

	if (expected)
		assert_string_equal(found, expected);
	else
		assert_null(found);
	free(found);
}

static void where(void **state)
{
	(void)state;
	is_in("saved.kcr");
	assert_int_equal(local_link("saved.kcr", "/disk/saved.kcr.0123456789abcdef"), 0);
	is_in("/disk/saved.kcr.0123456789abcdef");
	assert_int_equal(unlink("saved.kcr/local"), 0);
	assert_int_equal(mkdir("saved.kcr/local", 0700), 0);	/* gathered */
	is_in("saved.kcr/local");
	assert_int_equal(unlink("saved.kcr/" SNAPSHOT_MANIFEST), 0);
	is_in(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(written_and_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(odd, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(local, set_up, tear_down),
		cmocka_unit_test_setup_teardown(where, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
