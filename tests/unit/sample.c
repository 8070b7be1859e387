// SPDX-License-Identifier: GPL-2.0
/* See sample.h. */
#include "sample.h"
#include "tests/memory_section.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define XSTATE_SIZE	832
#define XCR0		7

struct storage {
	Kcr__RegularFile regular;
	Kcr__Pipe pipe[2];
	Kcr__SharedMemory shared;
	Kcr__Vma vma[5], *vmas[5];
	Kcr__Mm mm;
	Kcr__Record record, *records[1];
	Kcr__Range range, *ranges[1];
	Kcr__Region region, *regions[1];
	Kcr__Value value[2], *values[2];
	Kcr__Thread thread[3], *threads[2], *other_threads[1];
	uint64_t regs[3][KCR_NR_REGS];
	uint8_t xstate[XSTATE_SIZE];
	uint64_t auxv[4];
	Kcr__SigAction action[64], *actions[64];
	Kcr__Descriptor descriptor[2], *descriptors[2];
	Kcr__Credentials credentials;
	int32_t root[1];
};

static void make_vma(Kcr__Vma *vma, uint64_t start, uint64_t pages, uint64_t flags,
		     uint32_t file_id)
{
	kcr__vma__init(vma);
	vma->start = start;
	vma->end = start + pages * CONTEXT_PAGE;
	vma->flags = flags;
	vma->has_file_id = file_id != 0;
	vma->file_id = file_id;
}

static void make_value(struct storage *st, size_t i, char *key, char *value, size_t length)
{
	kcr__value__init(&st->value[i]);
	st->value[i].key = key;
	st->value[i].value.data = (uint8_t *)value;
	st->value[i].value.len = length;
	st->values[i] = &st->value[i];
}

static void make_record(struct storage *st)
{
	Kcr__Record *r = &st->record;

	kcr__record__init(r);
	r->address = SAMPLE_HEAP;
	r->has_restarts = r->has_restart_sec = r->has_restart_nsec = 1;
	r->restarts = 2;
	r->restart_sec = 1700000000;
	r->restart_source = "/old\ncontext";
	kcr__range__init(&st->range);
	st->range.start = SAMPLE_HEAP + 8 * CONTEXT_PAGE;
	st->range.end = st->range.start + CONTEXT_PAGE;
	st->ranges[0] = &st->range;
	r->n_excluded = 1;
	r->excluded = st->ranges;
	kcr__region__init(&st->region);
	st->region.name = "matrix\033";
	st->region.start = SAMPLE_HEAP + 5;
	st->region.length = 77;
	st->regions[0] = &st->region;
	r->n_region = 1;
	r->region = st->regions;
	make_value(st, 0, "step", "18", 2);
	make_value(st, 1, "blob", "\033[2J", 4);
	r->n_value = 2;
	r->value = st->values;
	st->records[0] = r;
	st->mm.n_record = 1;
	st->mm.record = st->records;
}

static void make_mm(struct storage *st)
{
	const uint64_t rw = KCR_VMA_READ | KCR_VMA_WRITE;
	size_t i;

	make_vma(&st->vma[0], SAMPLE_TEXT, 1, KCR_VMA_READ | KCR_VMA_EXEC, 1);
	make_vma(&st->vma[1], SAMPLE_HEAP, 16, rw, 0);
	make_vma(&st->vma[2], SAMPLE_SHARED, 2, rw | KCR_VMA_SHARED | KCR_VMA_SHMEM, 4);
	make_vma(&st->vma[3], SAMPLE_STACK, 32, rw | KCR_VMA_GROWSDOWN, 0);
	make_vma(&st->vma[4], SAMPLE_STACK + 32 * CONTEXT_PAGE, 1, KCR_VMA_READ, 0);
	st->vma[1].name = "[heap]";
	kcr__mm__init(&st->mm);
	st->mm.id = 1;
	st->mm.pid = SAMPLE_PID;
	for (i = 0; i < 5; i++)
		st->vmas[i] = &st->vma[i];
	st->mm.n_vma = 5;
	st->mm.vma = st->vmas;
	st->auxv[0] = 6;	/* AT_PAGESZ */
	st->auxv[1] = CONTEXT_PAGE;
	st->mm.has_auxv = 1;
	st->mm.auxv.data = (uint8_t *)st->auxv;
	st->mm.auxv.len = sizeof(st->auxv);
	st->mm.has_exe_file_id = 1;
	st->mm.exe_file_id = 1;
	make_record(st);
}

static void make_thread(struct storage *st, size_t i, int32_t tid)
{
	Kcr__Thread *t = &st->thread[i];

	kcr__thread__init(t);
	t->tid = tid;
	t->n_reg = KCR_NR_REGS;
	t->reg = st->regs[i];
	t->reg[16] = SAMPLE_TEXT + 16 * i;			/* rip */
	t->reg[19] = SAMPLE_STACK + 0x1000 * (i + 1);		/* rsp */
	t->reg[10] = 0x1111 * (i + 1);				/* rax */
	t->xstate.data = st->xstate;
	t->xstate.len = XSTATE_SIZE;
	t->name = "worker";
}

static void make_process(Kcr__Process *p, int32_t pid, int32_t ppid)
{
	kcr__process__init(p);
	p->pid = pid;
	p->ppid = ppid;
	p->pgid = p->sid = SAMPLE_PID;
	p->has_mm_id = p->has_files_id = p->has_fs_id = p->has_sighand_id = 1;
	p->mm_id = p->files_id = p->fs_id = p->sighand_id = 1;
	p->name = "sample";
	p->command = "sample --of \"everything\"";
}

static void make_processes(struct sample *s, struct storage *st)
{
	Kcr__Process *p = s->process;
	size_t i;

	make_process(&p[0], SAMPLE_PID, 1);
	make_process(&p[1], SAMPLE_SHARING_PID, SAMPLE_PID);
	make_process(&p[2], SAMPLE_ZOMBIE_PID, SAMPLE_PID);
	make_mm(st);
	p[0].mm = &st->mm;
	make_thread(st, 0, SAMPLE_PID);
	make_thread(st, 1, SAMPLE_TID);
	make_thread(st, 2, SAMPLE_SHARING_PID);
	st->threads[0] = &st->thread[0];
	st->threads[1] = &st->thread[1];
	st->other_threads[0] = &st->thread[2];
	p[0].n_thread = 2;
	p[0].thread = st->threads;
	p[1].n_thread = 1;
	p[1].thread = st->other_threads;
	for (i = 0; i < 64; i++) {
		kcr__sig_action__init(&st->action[i]);
		st->actions[i] = &st->action[i];
	}
	p[0].n_action = 64;
	p[0].action = st->actions;
	for (i = 0; i < 2; i++) {
		kcr__descriptor__init(&st->descriptor[i]);
		st->descriptor[i].fd = 3 + i;
		st->descriptor[i].file_id = 2 + i;
		st->descriptors[i] = &st->descriptor[i];
	}
	p[0].n_descriptor = 2;
	p[0].descriptor = st->descriptors;
	kcr__credentials__init(&st->credentials);
	p[0].credentials = &st->credentials;
	p[1].state = KCR__PROCESS__STATE__STOPPED;
	p[1].has_stop_signal = 1;
	p[1].stop_signal = SIGSTOP;
	p[2].state = KCR__PROCESS__STATE__ZOMBIE;
	p[2].has_exit_code = 1;
	p[2].exit_code = 0x700;
}

static void make_files(struct sample *s, struct storage *st)
{
	size_t i;

	for (i = 0; i < SAMPLE_FILES; i++) {
		kcr__file__init(&s->file[i]);
		s->file[i].id = i + 1;
	}
	kcr__regular_file__init(&st->regular);
	st->regular.path = "/nowhere/sample";
	st->regular.size = CONTEXT_PAGE;
	s->file[0].kind_case = KCR__FILE__KIND_REGULAR;
	s->file[0].regular = &st->regular;
	for (i = 0; i < 2; i++) {
		kcr__pipe__init(&st->pipe[i]);
		st->pipe[i].pipe_id = 1;
		st->pipe[i].capacity = 65536;
		s->file[1 + i].kind_case = KCR__FILE__KIND_PIPE;
		s->file[1 + i].pipe = &st->pipe[i];
	}
	st->pipe[0].has_contents = 1;
	st->pipe[0].contents.data = (uint8_t *)"in flight";
	st->pipe[0].contents.len = 9;
	kcr__shared_memory__init(&st->shared);
	st->shared.size = 2 * CONTEXT_PAGE;
	st->shared.has_same_as = 1;
	st->shared.same_as = 4;
	s->file[3].kind_case = KCR__FILE__KIND_SHARED_MEMORY;
	s->file[3].shared_memory = &st->shared;
}

void sample_make(struct sample *s)
{
	struct storage *st = calloc(1, sizeof(*st));
	Kcr__Preamble *p = &s->preamble;

	assert(st);
	s->storage = st;
	kcr__preamble__init(p);
	p->kcr_version = "test";
	p->machine = "x86_64";
	p->kernel_release = "6.1.0-test";
	p->kernel_version = "#1";
	p->host = "host";
	p->time_sec = 1700000000;
	p->target = SAMPLE_PID;
	p->scope = 3;
	p->requester = 99;
	p->nr_processes = SAMPLE_PROCESSES;
	p->nr_files = SAMPLE_FILES;
	p->has_xfeatures = 1;
	p->xfeatures = XCR0;
	p->has_xstate_size = 1;
	p->xstate_size = XSTATE_SIZE;
	st->xstate[512] = XCR0;
	st->root[0] = SAMPLE_PID;
	p->n_root = 1;
	p->root = st->root;
	make_files(s, st);
	make_processes(s, st);
}

void sample_free(struct sample *s)
{
	free(s->storage);
}

/* ---- writing ---------------------------------------------------------------- */

/* Half of each page is noise, so that it compresses, but not to nothing. */
uint8_t sample_byte(uint64_t address, size_t offset)
{
	uint64_t seed[2] = { address, offset / 8 };

	return offset < CONTEXT_PAGE / 2 ? XXH64(seed, sizeof(seed), 1) >> offset % 8 * 8 : 0x5a;
}

static size_t fill(uint8_t *data, const struct kcr_run *runs, size_t nr_runs)
{
	uint64_t page;
	size_t at = 0, i, k;

	for (i = 0; i < nr_runs; i++)
		for (page = 0; page < runs[i].nr_pages; page++)
			for (k = 0; k < CONTEXT_PAGE; k++)
				data[at++] = sample_byte(runs[i].address + page * CONTEXT_PAGE, k);
	return at;
}

int sample_write_metadata(const struct sample *s, struct context_writer *w)
{
	int err = context_write_message(w, CONTEXT_PREAMBLE, &s->preamble.base);
	size_t i;

	for (i = 0; i < SAMPLE_FILES && !err; i++)
		err = context_write_message(w, CONTEXT_FILE, &s->file[i].base);
	for (i = 0; i < SAMPLE_PROCESSES && !err; i++)
		err = context_write_message(w, CONTEXT_PROCESS, &s->process[i].base);
	return err;
}

/* As the module does it, past the writer. */
static int write_directly(struct context_writer *w, const char *data, size_t length)
{
	size_t done = 0;

	while (done < length) {
		ssize_t n = write(context_writer_fd(w), data + done, length - done);

		if (n <= 0)
			return n ? -errno : -EIO;
		done += n;
	}
	return context_memory_end(w, XXH64(data, length, 0));
}

static int write_memory(struct context_writer *w)
{
	static const struct kcr_run heap[] = {
		{ SAMPLE_HEAP, 1 }, { SAMPLE_HEAP + 3 * CONTEXT_PAGE, 2 },
	};
	static const struct kcr_run more_heap = { SAMPLE_HEAP + 8 * CONTEXT_PAGE, 3 };
	/* Over the border between two areas. */
	static const struct kcr_run stack = { SAMPLE_STACK + 31 * CONTEXT_PAGE, 2 };
	static uint8_t data[3 * CONTEXT_PAGE];
	size_t length = fill(data, &stack, 1);
	int err = context_memory_begin(w, SAMPLE_PID, &stack, 1);

	if (!err)
		err = write_directly(w, (const char *)data, length);
	fill(data, heap, 2);
	if (!err)
		err = section_write(w, SAMPLE_PID, heap, 2, data, CONTEXT_LZ4);
	fill(data, &more_heap, 1);
	if (!err)
		err = section_write(w, SAMPLE_PID, &more_heap, 1, data, CONTEXT_ZSTD);
	return err;
}

int sample_write(const struct sample *s, int fd)
{
	struct context_writer *w;
	int err = context_writer_new(&w, fd, 0);

	if (err)
		return err;
	err = sample_write_metadata(s, w);
	if (!err)
		err = context_write_content(w, 4, CONTEXT_PAGE, "shared words", 12);
	if (!err)
		err = write_memory(w);
	if (!err)
		err = context_writer_finish(w);
	context_writer_free(w);
	return err;
}

/* ---- reading ---------------------------------------------------------------- */

static void digest_bytes(uint64_t *digest, const void *data, size_t length)
{
	*digest = XXH64(data, length, *digest);
}

static void digest_message(uint64_t *digest, const ProtobufCMessage *message)
{
	size_t length = protobuf_c_message_get_packed_size(message);
	uint8_t *packed = malloc(length + 1);

	assert(packed);
	protobuf_c_message_pack(message, packed);
	digest_bytes(digest, packed, length);
	free(packed);
}

static void digest_context(uint64_t *digest, const struct context *c)
{
	size_t i;

	digest_message(digest, &c->preamble->base);
	for (i = 0; i < c->nr_files; i++)
		digest_message(digest, &c->file[i]->base);
	for (i = 0; i < c->nr_processes; i++)
		digest_message(digest, &c->process[i]->base);
}

static int read_pages(struct context_reader *r, const struct context_item *item, bool taken,
		      uint8_t *pages)
{
	size_t length = item->nr_pages * CONTEXT_PAGE, done = 0;

	if (!taken || item->compression != CONTEXT_RAW)
		return context_memory_read(r, pages);
	while (done < length) {
		ssize_t n = read(context_reader_fd(r), pages + done, length - done);

		if (n <= 0)
			return context_memory_missing(r);
		done += n;
	}
	return context_memory_taken(r, XXH64(pages, length, 0));
}

static int read_item(struct context_reader *r, const struct context_item *item, bool taken,
		     uint64_t *digest)
{
	uint8_t *pages;
	int err;

	if (item->type == CONTEXT_CONTENT) {
		digest_bytes(digest, &item->file_id, sizeof(item->file_id));
		digest_bytes(digest, &item->offset, sizeof(item->offset));
		digest_bytes(digest, item->data, item->length);
		return 0;
	}
	digest_bytes(digest, &item->pid, sizeof(item->pid));
	digest_bytes(digest, item->runs, item->nr_runs * sizeof(*item->runs));
	if (item->type == CONTEXT_TABLE) {
		digest_bytes(digest, item->owner, item->nr_pages * sizeof(*item->owner));
		return 0;
	}
	pages = malloc(item->nr_pages * CONTEXT_PAGE);
	assert(pages);
	err = read_pages(r, item, taken, pages);
	if (!err)
		digest_bytes(digest, pages, item->nr_pages * CONTEXT_PAGE);
	free(pages);
	return err;
}

int sample_read(int fd, bool taken, uint64_t *digest)
{
	struct context_reader *r;
	struct context *c = NULL;
	struct context_item item;
	int err = context_reader_new(&r, fd, "sample");

	*digest = 0;
	if (err)
		return err;
	err = context_load(r, &c);
	if (!err)
		digest_context(digest, c);
	while (!err && (err = context_read(r, &item)) > 0)
		err = read_item(r, &item, taken, digest);
	context_reader_free(r);
	context_free(c);
	return err;
}
