// SPDX-License-Identifier: GPL-2.0
/*
 * What cr_info shows: text, JSON, whose grammar is checked, and ELF cores, whose
 * bytes are compared with the memory that went in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/view.h"
#include "report/report.h"
#include "sample.h"

static struct sample s;
static uid_t owner;		/* of the file; 0: the caller */

struct open_sample {
	int fd;
	struct context_reader *r;
	struct context *c;
};

static void open_sample(struct open_sample *o)
{
	o->fd = memfd_create("context", MFD_CLOEXEC);
	assert_int_equal(sample_write(&s, o->fd), 0);
	assert_int_equal(owner ? fchown(o->fd, owner, -1) : 0, 0);
	lseek(o->fd, 0, SEEK_SET);
	assert_int_equal(context_reader_new(&o->r, o->fd, "sample"), 0);
	assert_int_equal(context_load(o->r, &o->c), 0);
}

static void close_sample(struct open_sample *o)
{
	context_reader_free(o->r);
	context_free(o->c);
	close(o->fd);
}

/* ---- text and JSON ----------------------------------------------------------- */

static char *show(bool json, bool all)
{
	struct open_sample o;
	struct summary summary;
	size_t length;
	char *text;
	FILE *out = open_memstream(&text, &length);

	open_sample(&o);
	assert_int_equal(summary_read(o.r, o.c, &summary), 0);
	assert_int_equal(summary.pages, 8);
	assert_int_equal(summary.content[3], 12);
	if (json)
		json_write(out, o.c, &summary);
	else
		text_write(out, o.c, &summary, 5000, all);
	fclose(out);
	summary_free(&summary);
	close_sample(&o);
	return text;
}

static void text(void **state)
{
	static const char *const words[] = {
		"6.1.0-test", "x86_64", "host", "tree 100", "sample --of", "stopped", "zombie",
		"0000000000001111", "[heap]", "thread 101", "fd 3", "pipe", "complete",
		"restarted before: 2 times, the last time 2023-11-1", " from /old?context\n",
		"77 bytes matrix?\n", "value step = 18\n", "value blob = 0x1b5b324a\n",
		"excluded ",
	};
	char *shown = show(false, true);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strstr(shown, words[i]))
			fail_msg("no %s in:\n%s", words[i], shown);
	free(shown);
}

static bool shows(const char *text, const char *words)
{
	return strstr(text, words);
}

/* Without `all`: size and what a restart needs, before the processes, and no registers. */
static void text_is_short(void **state)
{
	char *shown = show(false, false);
	const char *needs = strstr(shown, "that a restart needs"), *table = strstr(shown, "PPID");

	(void)state;
	assert_true(shows(shown, "Size:          5 KiB\n"));
	assert_true(needs && table && needs < table);
	assert_false(shows(shown, "0000000000001111"));
	assert_false(shows(shown, "thread 101"));
	assert_true(shows(shown, "value step = 18"));
	free(shown);
}

static void text_cannot_steer_a_terminal(void **state)
{
	char *saved = s.process[0].command, *shown;

	(void)state;
	s.process[0].command = "\033[2J\ntwo lines\xc2\x9b" "2J\x9b" "2J \xc3\x9b";
	shown = show(false, true);
	assert_null(strchr(shown, '\033'));
	assert_non_null(strstr(shown, "?[2J?two lines?2J?2J \xc3\x9b"));
	free(shown);
	shown = show(true, true);
	s.process[0].command = saved;
	assert_null(strstr(shown, "\xc2\x9b"));
	assert_non_null(strstr(shown, "two lines\\u009b2J"));
	free(shown);
}

/* One JSON value; returns what follows it. */
static const char *value(const char *at);

static const char *string(const char *at)
{
	assert_int_equal(*at, '"');
	for (at++; *at != '"'; at++) {
		assert_true((unsigned char)*at >= 0x20);
		if (*at == '\\')
			at++;
	}
	return at + 1;
}

static const char *members(const char *at, char close, bool named)
{
	while (*at != close) {
		if (named) {
			at = string(at);
			assert_int_equal(*at++, ':');
		}
		at = value(at);
		while (*at == '\n')
			at++;
		if (*at != ',')
			break;
		while (*++at == '\n')
			;
		assert_int_not_equal(*at, close);
	}
	assert_int_equal(*at, close);
	return at + 1;
}

static const char *value(const char *at)
{
	while (*at == '\n')
		at++;
	switch (*at) {
	case '{':
		return members(at + 1, '}', true);
	case '[':
		return members(at + 1, ']', false);
	case '"':
		return string(at);
	case 't':
		assert_int_equal(strncmp(at, "true", 4), 0);
		return at + 4;
	case 'f':
		assert_int_equal(strncmp(at, "false", 5), 0);
		return at + 5;
	default:
		assert_non_null(strchr("-0123456789", *at));
		return at + strspn(at, "-0123456789.e+");
	}
}

static void json(void **state)
{
	static const char *const words[] = {
		"\"nr_processes\":3", "\"pid\":200", "\"state\":\"ZOMBIE\"", "\"exit_code\":1792",
		"\"contents\":\"696e20666c69676874\"", "\"command\":\"sample --of \\\"everything\\\"\"",
		"\"content_bytes\":12", "\"memory\":{\"sections\":3,\"runs\":4,\"pages\":8,\"pages_older\":0,",
		"\"none\":{\"chunks\":1,\"bytes\":8192,\"stored\":8192},"
		"\"lz4\":{\"chunks\":1,\"bytes\":12288,",
		"\"zstd\":{\"chunks\":1,\"bytes\":12288,",
		/* Of the heap, and of a run over the border between two areas. */
		"\"pages\":6,\"pages_none\":0,\"pages_lz4\":3,\"pages_zstd\":3,\"pages_older\":0,\"pages_shared\":0,\"pages_duplicate\":0,"
		"\"pages_absent\":10}",
		"\"pages\":1,\"pages_none\":1,\"pages_lz4\":0,\"pages_zstd\":0,\"pages_older\":0,\"pages_shared\":0,\"pages_duplicate\":0,"
		"\"pages_absent\":31}",
		"\"pages\":1,\"pages_none\":1,\"pages_lz4\":0,\"pages_zstd\":0,\"pages_older\":0,\"pages_shared\":0,\"pages_duplicate\":0,"
		"\"pages_absent\":0}",
		"\"content_bytes\":12,\"pages\":8,", "\"older\":[],\"pages_older\":0",
		"\"complete\":true", "\"path\":\"/nowhere/sample\"",
	};
	char *shown = show(true, true);
	size_t i;

	(void)state;
	assert_string_equal(value(shown), "\n");
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strstr(shown, words[i]))
			fail_msg("no %s in:\n%s", words[i], shown);
	free(shown);
}

static void json_strings(void **state)
{
	char *saved = s.process[0].command, *shown;

	(void)state;
	s.process[0].command = "tab\t \xc3\xa9 \xff \xed\xa0\x80 \xf0\x9f\x98\x80 \xc3";
	shown = show(true, true);
	s.process[0].command = saved;
	assert_string_equal(value(shown), "\n");
	assert_non_null(strstr(shown, "tab\\u0009 \xc3\xa9 \\udcff \\udced\\udca0\\udc80 "
				      "\xf0\x9f\x98\x80 \\udcc3\""));
	free(shown);
}

/* ---- cores -------------------------------------------------------------------- */

struct core {
	char path[32];
	uint8_t *data;
	size_t size;
};

static int make_core(struct core *core, int32_t pid)
{
	struct open_sample o;
	struct stat st;
	int fd, err;

	strcpy(core->path, "/tmp/test_view.XXXXXX");
	fd = mkstemp(core->path);
	assert_true(fd >= 0);
	close(fd);
	open_sample(&o);
	report_clear();
	err = core_write(o.r, o.c, pid, core->path);
	close_sample(&o);
	fd = open(core->path, O_RDONLY);
	if (!err) {
		assert_int_equal(fstat(fd, &st), 0);
		core->size = st.st_size;
		core->data = mmap(NULL, core->size, PROT_READ, MAP_PRIVATE, fd, 0);
		assert_true(core->data != MAP_FAILED);
	}
	close(fd);
	return err;
}

static void drop_core(struct core *core)
{
	munmap(core->data, core->size);
	unlink(core->path);
}

static const Elf64_Phdr *segment(const struct core *core, uint64_t address)
{
	const Elf64_Ehdr *head = (const void *)core->data;
	const Elf64_Phdr *ph = (const void *)(core->data + head->e_phoff);
	size_t i;

	for (i = 0; i < head->e_phnum; i++)
		if (ph[i].p_type == (address ? PT_LOAD : PT_NOTE) &&
		    (!address || (address >= ph[i].p_vaddr &&
				  address < ph[i].p_vaddr + ph[i].p_memsz)))
			return &ph[i];
	return NULL;
}

static const uint8_t *at(const struct core *core, uint64_t address)
{
	const Elf64_Phdr *ph = segment(core, address);

	assert_non_null(ph);
	assert_true(address - ph->p_vaddr < ph->p_filesz);
	assert_true(ph->p_offset + ph->p_filesz <= core->size);
	return core->data + ph->p_offset + (address - ph->p_vaddr);
}

static void expect_page(const struct core *core, uint64_t address)
{
	const uint8_t *page = at(core, address);
	size_t i;

	for (i = 0; i < CONTEXT_PAGE; i++)
		assert_int_equal(page[i], sample_byte(address, i));
}

static void core_memory(void **state)
{
	struct core core;
	size_t i;

	(void)state;
	assert_int_equal(make_core(&core, SAMPLE_PID), 0);
	expect_page(&core, SAMPLE_HEAP);
	expect_page(&core, SAMPLE_HEAP + 3 * CONTEXT_PAGE);
	expect_page(&core, SAMPLE_HEAP + 4 * CONTEXT_PAGE);
	expect_page(&core, SAMPLE_HEAP + 10 * CONTEXT_PAGE);
	expect_page(&core, SAMPLE_STACK + 31 * CONTEXT_PAGE);
	expect_page(&core, SAMPLE_STACK + 32 * CONTEXT_PAGE);
	for (i = 0; i < CONTEXT_PAGE; i++)
		assert_int_equal(at(&core, SAMPLE_HEAP + CONTEXT_PAGE)[i], 0);
	assert_memory_equal(at(&core, SAMPLE_SHARED + CONTEXT_PAGE), "shared words", 12);
	/* The mapped file does not exist: nothing is known of this page. */
	assert_int_equal(segment(&core, SAMPLE_TEXT)->p_filesz, 0);
	assert_int_equal(segment(&core, SAMPLE_TEXT)->p_flags, PF_R | PF_X);
	drop_core(&core);
}

/* Notes of one type; *first gets the first one's contents. */
static size_t notes(const struct core *core, uint32_t type, const void **first)
{
	const Elf64_Phdr *ph = segment(core, 0);
	const uint8_t *from = core->data + ph->p_offset, *end = from + ph->p_filesz;
	size_t found = 0;

	while (from < end) {
		const Elf64_Nhdr *note = (const void *)from;

		from += sizeof(*note) + ((note->n_namesz + 3) & ~3u);
		if (note->n_type == type && !found++)
			*first = from;
		from += (note->n_descsz + 3) & ~3u;
	}
	assert_ptr_equal(from, end);
	return found;
}

static void core_threads(void **state)
{
	struct elf_prstatus status;
	struct elf_prpsinfo info;
	struct core core;
	const void *data;
	uint64_t xcr0, files[5];

	(void)state;
	assert_int_equal(make_core(&core, SAMPLE_PID), 0);
	assert_int_equal(notes(&core, NT_PRSTATUS, &data), 2);
	memcpy(&status, data, sizeof(status));
	assert_int_equal(status.pr_pid, SAMPLE_PID);
	assert_int_equal(status.pr_reg[16], SAMPLE_TEXT);
	assert_int_equal(notes(&core, NT_PRPSINFO, &data), 1);
	memcpy(&info, data, sizeof(info));
	assert_string_equal(info.pr_fname, "sample");
	assert_int_equal(notes(&core, NT_FPREGSET, &data), 2);
	assert_int_equal(notes(&core, 0x202, &data), 2);
	memcpy(&xcr0, (const char *)data + 464, sizeof(xcr0));
	assert_int_equal(xcr0, 7);
	assert_int_equal(notes(&core, NT_AUXV, &data), 1);
	assert_int_equal(notes(&core, NT_FILE, &data), 1);
	memcpy(files, data, sizeof(files));
	assert_int_equal(files[0], 1);
	assert_int_equal(files[2], SAMPLE_TEXT);
	assert_string_equal((const char *)data + sizeof(files), "/nowhere/sample");
	drop_core(&core);
}

/* Its memory is described, and saved, with another process. */
static void core_of_a_process_that_shares(void **state)
{
	struct core core;

	(void)state;
	assert_int_equal(make_core(&core, SAMPLE_SHARING_PID), 0);
	expect_page(&core, SAMPLE_HEAP);
	drop_core(&core);
}

static void core_of_nothing(void **state)
{
	struct core core;

	(void)state;
	assert_int_equal(make_core(&core, SAMPLE_ZOMBIE_PID), -ESRCH);
	unlink(core.path);
	assert_int_equal(make_core(&core, 4242), -ESRCH);
	unlink(core.path);
}

/* Pages that the context file does not hold come from the mapped file. */
static void core_with_mapped_file(void **state)
{
	Kcr__RegularFile *file = s.file[0].regular, saved = *file;
	char path[] = "/tmp/test_view.XXXXXX", text[CONTEXT_PAGE];
	struct core core;
	struct stat st;
	int fd = mkstemp(path);

	(void)state;
	memset(text, 't', sizeof(text));
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	assert_int_equal(fstat(fd, &st), 0);
	file->path = path;
	file->mtime_sec = st.st_mtim.tv_sec;
	file->mtime_nsec = st.st_mtim.tv_nsec;
	assert_int_equal(make_core(&core, SAMPLE_PID), 0);
	assert_memory_equal(at(&core, SAMPLE_TEXT), text, sizeof(text));
	drop_core(&core);

	/* Whoever has made the context file may not read what it names. */
	if (!geteuid()) {
		owner = 65534;
		assert_int_equal(make_core(&core, SAMPLE_PID), 0);
		assert_int_equal(segment(&core, SAMPLE_TEXT)->p_filesz, 0);
		drop_core(&core);
		owner = 0;
	}

	/* It is another one now. */
	file->mtime_sec--;
	assert_int_equal(make_core(&core, SAMPLE_PID), 0);
	assert_int_equal(segment(&core, SAMPLE_TEXT)->p_filesz, 0);
	drop_core(&core);
	*file = saved;
	close(fd);
	unlink(path);
}

/* A file of another user's, which he may have open, or a link of his: not for root. */
static void core_of_roots_is_roots_alone(void **state)
{
	char folder[] = "/tmp/test_view.XXXXXX", text[8] = "";
	struct open_sample o;
	int fd;

	(void)state;
	if (geteuid())
		skip();
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	fd = open("theirs", O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, "old", 3), 3);
	assert_int_equal(symlink("theirs", "link"), 0);
	assert_int_equal(lchown("link", 12345, 12345), 0);
	open_sample(&o);
	report_clear();
	assert_int_equal(core_write(o.r, o.c, SAMPLE_PID, "link"), -ELOOP);
	assert_int_equal(fchown(fd, 12345, 12345), 0);
	report_clear();
	assert_int_equal(core_write(o.r, o.c, SAMPLE_PID, "theirs"), -EEXIST);
	close_sample(&o);
	assert_int_equal(pread(fd, text, sizeof(text), 0), 3);
	assert_string_equal(text, "old");
	close(fd);
	unlink("link");
	unlink("theirs");
	assert_int_equal(chdir("/"), 0);
	rmdir(folder);
}

static void core_cannot_be_written(void **state)
{
	struct open_sample o;

	(void)state;
	open_sample(&o);
	assert_int_equal(core_write(o.r, o.c, SAMPLE_PID, "/dev/full"), -ENOSPC);
	close_sample(&o);
	assert_int_equal(access("/dev/full", F_OK), 0);
	open_sample(&o);
	assert_int_equal(core_write(o.r, o.c, SAMPLE_PID, "/nowhere/core"), -ENOENT);
	close_sample(&o);
}

static int setup(void **state)
{
	(void)state;
	sample_make(&s);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sample_free(&s);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text),
		cmocka_unit_test(text_is_short),
		cmocka_unit_test(text_cannot_steer_a_terminal),
		cmocka_unit_test(json),
		cmocka_unit_test(json_strings),
		cmocka_unit_test(core_memory),
		cmocka_unit_test(core_threads),
		cmocka_unit_test(core_of_a_process_that_shares),
		cmocka_unit_test(core_of_nothing),
		cmocka_unit_test(core_with_mapped_file),
		cmocka_unit_test(core_of_roots_is_roots_alone),
		cmocka_unit_test(core_cannot_be_written),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
