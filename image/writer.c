// SPDX-License-Identifier: GPL-2.0
/*
 * Writes a context file sequentially, without seeking or reading back; each
 * section goes out in one writev(2) straight from the caller's data.  A tail is
 * delayed until the next section's head, so that pages written by the module
 * cost one system call of ours; the file head, until what it demands is known.
 *
 * After a failed write the file is useless: every later call fails alike.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "image/limiter.h"
#include "report/report.h"
#include "section.h"

#define MAX_PARTS	8

struct context_writer {
	int fd;
	struct limiter limiter;
	int error;			/* of the first failed write */
	uint64_t id;
	uint64_t position;		/* bytes so far, including a waiting tail */
	uint64_t sections;
	uint64_t pages;
	uint64_t content;		/* bytes of files' contents */
	bool in_memory;			/* between context_memory_begin and _end */
	bool finished;
	struct context_head file_head;	/* written with the first section */
	bool tail_waits;
	struct section_head head;	/* of the current section */
	struct section_tail tail;	/* of the last section, if tail_waits */
	struct section_tail going;	/* being written with the current section */
	uint8_t *message;		/* packed */
	size_t message_capacity;
	XXH64_state_t *sum;
};

/* Parts of a section to be written. */
struct parts {
	struct iovec part[MAX_PARTS];
	int count;
};

static const char zeros[CONTEXT_PAGE];

static void add(struct parts *p, const void *data, size_t length)
{
	if (!length)
		return;
	p->part[p->count].iov_base = (void *)data;
	p->part[p->count].iov_len = length;
	p->count++;
}

static int wait_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, -1) < 0 && errno != EINTR ? -errno : 0;
}

/* Drops `done` bytes from the front. */
static void advance(struct iovec **part, int *count, size_t done)
{
	while (*count && done >= (*part)->iov_len) {
		done -= (*part)->iov_len;
		++*part;
		--*count;
	}
	if (*count) {
		(*part)->iov_base = (char *)(*part)->iov_base + done;
		(*part)->iov_len -= done;
	}
}

static int write_parts(struct context_writer *w, struct parts *p)
{
	struct iovec *part = p->part;
	int count = p->count;
	uint64_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += part[i].iov_len;
	while (count) {
		ssize_t n = writev(w->fd, part, count);

		if (n >= 0)
			advance(&part, &count, n);
		else if (errno == EAGAIN)
			w->error = wait_writable(w->fd);
		else if (errno != EINTR)
			w->error = -errno;
		if (w->error)
			return report_errno(w->error, "cannot write the context file");
	}
	limiter_wait(&w->limiter, bytes);
	return 0;
}

static int begin_check(struct context_writer *w, bool in_memory)
{
	if (w->error)
		return w->error;
	if (w->finished || w->in_memory != in_memory)
		return report_fail(-EINVAL, "context file: sections written out of order");
	return 0;
}

/* Starts the parts of a section; the previous section's tail goes first. */
static void begin_section(struct context_writer *w, struct parts *p,
			  enum context_section type)
{
	p->count = 0;
	if (!w->sections) {
		w->file_head.sum = context_head_sum(&w->file_head);
		add(p, &w->file_head, sizeof(w->file_head));
	}
	w->going = w->tail;
	if (w->tail_waits)
		add(p, &w->going, sizeof(w->going));
	w->tail_waits = false;
	w->head = (struct section_head){
		.magic = CONTEXT_SECTION_MAGIC,
		.type = type,
		.sequence = w->sections++,
		.position = w->position,
	};
	add(p, &w->head, sizeof(w->head));
	w->position += sizeof(w->head);
	XXH64_reset(w->sum, 0);
}

static void add_meta(struct context_writer *w, struct parts *p, const void *data, size_t length)
{
	XXH64_update(w->sum, data, length);
	add(p, data, length);
	w->head.meta_length += length;
	w->position += length;
}

/* Completes the head; `data_length` bytes of data are to follow. */
static void end_meta(struct context_writer *w, struct parts *p, size_t data_length)
{
	if (section_has_data(w->head.type)) {
		size_t padding = section_padding(w->position);

		XXH64_update(w->sum, zeros, padding);
		add(p, zeros, padding);
		w->position += padding;
	}
	w->head.data_length = data_length;
	w->head.meta_sum = XXH64_digest(w->sum);
	w->head.sum = section_head_sum(&w->head, w->id);
}

/* Accounts for the data and prepares the tail. */
static void end_data(struct context_writer *w, uint64_t sum)
{
	w->tail.data_sum = sum;
	w->tail.sum = section_tail_sum(&w->tail, w->id, w->head.position);
	w->position += w->head.data_length + sizeof(w->tail);
	w->tail_waits = true;
}

static void add_data(struct context_writer *w, struct parts *p, const void *data)
{
	add(p, data, w->head.data_length);
	end_data(w, XXH64(data, w->head.data_length, 0));
}

int context_writer_new(struct context_writer **out, int fd, uint64_t features)
{
	struct context_writer *w = calloc(1, sizeof(*w));
	int err = -ENOMEM;

	if (!w)
		return report_errno(err, "cannot write the context file");
	w->fd = fd;
	w->sum = XXH64_createState();
	if (!w->sum) {
		report_errno(err, "cannot write the context file");
		goto err_free;
	}
	if (getrandom(&w->id, sizeof(w->id), 0) != sizeof(w->id)) {
		err = report_errno(-errno, "cannot choose an id for the context file");
		goto err_free;
	}
	w->file_head = (struct context_head){
		.magic = CONTEXT_MAGIC,
		.version = CONTEXT_VERSION,
		.page = CONTEXT_PAGE,
		.required = features,
		.id = w->id,
	};
	w->position = sizeof(w->file_head);
	*out = w;
	return 0;

err_free:
	context_writer_free(w);
	return err;
}

void context_writer_free(struct context_writer *w)
{
	if (!w)
		return;
	XXH64_freeState(w->sum);
	free(w->message);
	free(w);
}

void context_writer_limit(struct context_writer *w, uint64_t rate)
{
	w->limiter.rate = rate;
}

void context_writer_require(struct context_writer *w, uint64_t features)
{
	w->file_head.required |= features;
}

static int pack(struct context_writer *w, const ProtobufCMessage *message, size_t *length)
{
	size_t need = protobuf_c_message_get_packed_size(message);

	if (need > CONTEXT_MESSAGE_MAX)
		return report_fail(-E2BIG, "context file: a %s of %zu bytes is too long",
				   message->descriptor->short_name, need);
	if (need > w->message_capacity) {
		uint8_t *bigger = realloc(w->message, need);

		if (!bigger)
			return report_errno(-ENOMEM, "cannot write the context file");
		w->message = bigger;
		w->message_capacity = need;
	}
	*length = protobuf_c_message_pack(message, w->message);
	return 0;
}

int context_write_message(struct context_writer *w, enum context_section type,
			  const ProtobufCMessage *message)
{
	struct parts p;
	size_t length = 0;
	int err = begin_check(w, false);

	if (!err)
		err = pack(w, message, &length);
	if (err)
		return err;
	begin_section(w, &p, type);
	add_meta(w, &p, w->message, length);
	end_meta(w, &p, 0);
	return write_parts(w, &p);
}

int context_write_content(struct context_writer *w, uint32_t file_id, uint64_t offset,
			  const void *data, size_t length)
{
	struct content_meta meta = { .file_id = file_id, .offset = offset };
	struct parts p;
	int err = begin_check(w, false);

	if (!err && (length > CONTEXT_CONTENT_MAX || !length))
		err = report_fail(-EINVAL, "context file: contents of %zu bytes", length);
	if (err)
		return err;
	begin_section(w, &p, CONTEXT_CONTENT);
	add_meta(w, &p, &meta, sizeof(meta));
	end_meta(w, &p, length);
	add_data(w, &p, data);
	w->content += length;
	return write_parts(w, &p);
}

static int count_pages(const struct kcr_run *runs, size_t nr_runs, uint64_t *pages)
{
	*pages = 0;
	for (size_t i = 0; i < nr_runs && i < CONTEXT_CHUNK_RUNS; i++)
		*pages += runs[i].nr_pages;
	if (!nr_runs || nr_runs > CONTEXT_CHUNK_RUNS || !*pages || *pages > CONTEXT_CHUNK_PAGES)
		return report_fail(-EINVAL, "context file: %llu pages in %zu runs",
				   (unsigned long long)*pages, nr_runs);
	return 0;
}

/* Head and runs of a section of this type; *meta must live until they are written. */
static int begin_runs(struct context_writer *w, struct parts *p, enum context_section type,
		      struct memory_meta *meta, int32_t pid, const struct kcr_run *runs,
		      size_t nr_runs)
{
	uint64_t pages;
	int err = begin_check(w, false);

	if (!err)
		err = count_pages(runs, nr_runs, &pages);
	if (err)
		return err;
	*meta = (struct memory_meta){ .pid = pid, .nr_runs = nr_runs, .nr_pages = pages };
	begin_section(w, p, type);
	add_meta(w, p, meta, sizeof(*meta));
	add_meta(w, p, runs, nr_runs * sizeof(*runs));
	return 0;
}

/* A section that is nothing else. */
static int write_runs(struct context_writer *w, enum context_section type, int32_t pid,
		      const struct kcr_run *runs, size_t nr_runs)
{
	struct memory_meta meta;
	struct parts p;
	int err = begin_runs(w, &p, type, &meta, pid, runs, nr_runs);

	if (err)
		return err;
	end_meta(w, &p, 0);
	return write_parts(w, &p);
}

int context_write_sharer(struct context_writer *w, const struct context_sharer *sharer)
{
	return write_runs(w, CONTEXT_SHARED, sharer->pid, sharer->runs, sharer->nr_runs);
}

static int begin_memory(struct context_writer *w, struct parts *p, struct memory_meta *meta,
			int32_t pid, const struct kcr_run *runs, size_t nr_runs)
{
	int err = begin_runs(w, p, CONTEXT_MEMORY, meta, pid, runs, nr_runs);

	if (!err)
		w->pages += meta->nr_pages;
	return err;
}

int context_memory_begin(struct context_writer *w, int32_t pid,
			 const struct kcr_run *runs, size_t nr_runs)
{
	struct memory_meta meta;
	struct parts p;
	int err = begin_memory(w, &p, &meta, pid, runs, nr_runs);

	if (err)
		return err;
	end_meta(w, &p, meta.nr_pages * CONTEXT_PAGE);
	w->in_memory = true;
	return write_parts(w, &p);
}

int context_writer_fd(const struct context_writer *w)
{
	return w->fd;
}

int context_memory_end(struct context_writer *w, uint64_t sum)
{
	int err = begin_check(w, true);

	if (err)
		return err;
	w->in_memory = false;
	limiter_wait(&w->limiter, w->head.data_length);
	end_data(w, sum);
	return 0;
}

int context_write_chunk(struct context_writer *w, const struct context_chunk *chunk)
{
	struct memory_meta meta;
	struct parts p;
	int err = begin_memory(w, &p, &meta, chunk->pid, chunk->runs, chunk->nr_runs);

	if (err)
		return err;
	w->head.compression = chunk->compression;
	end_meta(w, &p, chunk->length);
	add(&p, chunk->data, chunk->length);
	end_data(w, chunk->sum);
	return write_parts(w, &p);
}

int context_write_elsewhere(struct context_writer *w, int32_t pid, const struct kcr_run *runs,
			    size_t nr_runs)
{
	return write_runs(w, CONTEXT_ELSEWHERE, pid, runs, nr_runs);
}

int context_write_table(struct context_writer *w, const struct context_table *table)
{
	struct memory_meta meta;
	struct parts p;
	int err = begin_runs(w, &p, CONTEXT_TABLE, &meta, table->pid, table->runs,
			     table->nr_runs);

	if (err)
		return err;
	add_meta(w, &p, table->hash, meta.nr_pages * sizeof(*table->hash));
	add_meta(w, &p, table->owner, meta.nr_pages * sizeof(*table->owner));
	end_meta(w, &p, 0);
	return write_parts(w, &p);
}

int context_write_duplicates(struct context_writer *w, int32_t pid, const struct kcr_run *runs,
			     size_t nr_runs, const struct context_original *original)
{
	struct memory_meta meta;
	struct parts p;
	int err = begin_runs(w, &p, CONTEXT_DUPLICATES, &meta, pid, runs, nr_runs);

	if (err)
		return err;
	add_meta(w, &p, original, meta.nr_pages * sizeof(*original));
	end_meta(w, &p, 0);
	return write_parts(w, &p);
}

int context_writer_finish(struct context_writer *w)
{
	Kcr__Trailer trailer = KCR__TRAILER__INIT;
	int err;

	trailer.nr_sections = w->sections;
	trailer.nr_pages = w->pages;
	trailer.bytes = w->position;
	err = context_write_message(w, CONTEXT_TRAILER, &trailer.base);
	if (!err)
		w->finished = true;
	return err;
}

uint64_t context_writer_bytes(const struct context_writer *w)
{
	return w->position;
}

uint64_t context_writer_content(const struct context_writer *w)
{
	return w->content;
}

uint64_t context_writer_id(const struct context_writer *w)
{
	return w->id;
}
