// SPDX-License-Identifier: GPL-2.0
/*
 * Reads a context file sequentially, from any readable file descriptor.  Never
 * reads ahead into a memory section's pages or past the trailer, so that the
 * module can read the pages and other data may follow the file.
 *
 * Nothing in the file is trusted: checksums are verified before the data are used,
 * lengths are bounded, and buffers grow only as data actually arrive.  The
 * messages are validated by load.c and check.c.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/kinds.h"
#include "reader.h"
#include "report/report.h"

#define MESSAGE_GROWTH	64		/* see take_message() */
#define MESSAGE_EXTRA	65536
#define FILE_EXTRA	((size_t)1 << 30)	/* not every file system counts blocks */

#define GROW_STEP	(64u << 10)	/* most bytes allocated ahead of data */
#define SKIP_BUFFER	(256u << 10)

int reader_damaged(struct context_reader *r, const char *what)
{
	const char *name = r->head_valid ? kind_name(r->head.type) : "section";

	r->error = report_fail(-EINVAL, "%s: damaged context file: %s (%s at byte %llu)",
			       r->name, what, name, (unsigned long long)r->start);
	return r->error;
}

int reader_no_memory(struct context_reader *r)
{
	r->error = report_errno(-ENOMEM, "%s: cannot read the context file", r->name);
	return r->error;
}

int reader_truncated(struct context_reader *r, const char *where)
{
	r->error = report_fail(-EINVAL, "%s: truncated context file: it ends %s byte %llu", r->name,
			       where, (unsigned long long)r->position);
	return r->error;
}

/* Waits for data of a nonblocking file descriptor. */
static int wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, -1) < 0 && errno != EINTR ? -errno : 0;
}

static ssize_t read_some(const struct context_reader *r, void *data, size_t length)
{
	if (r->positioned)
		return pread(r->fd, data, length, (off_t)(r->base + r->position));
	return read(r->fd, data, length);
}

int reader_exactly(struct context_reader *r, void *data, size_t length)
{
	char *to = data;

	while (length) {
		ssize_t n = read_some(r, to, length);
		int err = 0;

		if (!n)
			return reader_truncated(r, "at");
		if (n < 0 && errno == EAGAIN)
			err = wait_readable(r->fd);
		else if (n < 0 && errno != EINTR)
			err = -errno;
		if (err) {
			r->error = report_errno(err, "%s: cannot read", r->name);
			return err;
		}
		if (n > 0) {
			r->position += n;
			to += n;
			length -= n;
		}
	}
	return 0;
}

int reader_growing(struct context_reader *r, struct reader_buffer *b, size_t length)
{
	size_t have = 0;

	while (have < length) {
		size_t step = length - have;
		int err;

		if (b->capacity - have < step && b->capacity < have + GROW_STEP) {
			size_t capacity = 2 * b->capacity;
			void *bigger;

			if (capacity < have + GROW_STEP)
				capacity = have + GROW_STEP;
			bigger = realloc(b->data, capacity);
			if (!bigger)
				return reader_no_memory(r);
			b->data = bigger;
			b->capacity = capacity;
		}
		if (step > b->capacity - have)
			step = b->capacity - have;
		err = reader_exactly(r, b->data + have, step);
		if (err)
			return err;
		have += step;
	}
	return 0;
}

/* length > 0 */
static bool all_zero(const uint8_t *data, size_t length)
{
	return !data[0] && !memcmp(data, data + 1, length - 1);
}

static int read_file_head(struct context_reader *r)
{
	struct context_head head;
	int err;

	err = reader_exactly(r, &head, sizeof(head.magic));
	if (!err && memcmp(head.magic, CONTEXT_MAGIC, sizeof(head.magic)))
		err = report_fail(-EINVAL, "%s: not a context file", r->name);
	if (!err)
		err = reader_exactly(r, (char *)&head + sizeof(head.magic),
				     sizeof(head) - sizeof(head.magic));
	if (err)
		return err;
	if (head.sum != context_head_sum(&head))
		return reader_damaged(r, "wrong checksum of the file head");
	if (head.version != CONTEXT_VERSION)
		return report_fail(-EINVAL, "%s: context file of format version %u; this program reads version %u",
				   r->name, head.version, CONTEXT_VERSION);
	if (head.required & ~CONTEXT_REQUIRED_KNOWN)
		return report_fail(-EINVAL, "%s: context file with features (%#llx) that this version "
				   "of KCR does not know: use the one that wrote it, or a later one",
				   r->name, (unsigned long long)(head.required & ~CONTEXT_REQUIRED_KNOWN));
	if (head.page != CONTEXT_PAGE)
		return report_fail(-EINVAL, "%s: context file with pages of %u bytes", r->name,
				   head.page);
	if (head.reserved[0] || head.reserved[1])
		return reader_damaged(r, "reserved bytes in use");
	if ((head.required & CONTEXT_HAS_ANCESTORS) && !(head.required & CONTEXT_HAS_TABLES))
		return reader_damaged(r, "an increment without tables");
	if ((head.required & CONTEXT_HAS_ELSEWHERE) && (head.required & CONTEXT_HAS_TABLES))
		return reader_damaged(r, "pages of tables that are elsewhere");
	if ((head.required & CONTEXT_HAS_DUPLICATES) &&
	    (head.required & (CONTEXT_HAS_ELSEWHERE | CONTEXT_HAS_TABLES)))
		return reader_damaged(r, "duplicates of pages of other files");
	if ((head.required & CONTEXT_HAS_ELSEWHERE) && !r->partial)
		return report_fail(-EINVAL, "%s: context file of a migration (cr_migrate --lazy), without "
				   "the memory that was sent later: it is of no use", r->name);
	r->id = head.id;
	r->features = head.required;
	return 0;
}

/*
 * A message that is kept takes memory in proportion to its length (take_message()), but a hole in a
 * file costs nothing: all together take no more than what is on the disk can be worth.
 */
static size_t message_room(int fd)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_blocks > (SIZE_MAX - FILE_EXTRA) / 512 / MESSAGE_GROWTH)
		return SIZE_MAX;
	return (size_t)st.st_blocks * 512 * MESSAGE_GROWTH + FILE_EXTRA;
}

static int new_reader(struct context_reader **out, int fd, uint64_t base, bool positioned,
		      bool partial, const char *name)
{
	struct context_reader *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r)
		return report_errno(err, "%s: cannot read the context file", name);
	r->fd = fd;
	r->base = base;
	r->positioned = positioned;
	r->partial = partial;
	r->room = message_room(fd);
	r->name = strdup(name);
	r->codec = codec_new();
	if (!r->name || !r->codec)
		report_errno(err, "%s: cannot read the context file", name);
	else
		err = read_file_head(r);
	if (err) {
		context_reader_free(r);
		return err;
	}
	*out = r;
	return 0;
}

static uint64_t place_of(int fd)
{
	off_t base = lseek(fd, 0, SEEK_CUR);

	return base < 0 ? 0 : (uint64_t)base;
}

int context_reader_new(struct context_reader **out, int fd, const char *name)
{
	return new_reader(out, fd, place_of(fd), false, false, name);
}

int context_reader_new_partial(struct context_reader **out, int fd, const char *name)
{
	return new_reader(out, fd, place_of(fd), false, true, name);
}

int context_reader_new_at(struct context_reader **out, int fd, uint64_t base, const char *name)
{
	return new_reader(out, fd, base, true, true, name);
}

int context_reader_again(struct context_reader **out, const struct context_reader *r)
{
	if (lseek(r->fd, 0, SEEK_CUR) < 0)
		return -ESPIPE;
	return new_reader(out, r->fd, r->base, true, r->partial, r->name);
}

void context_reader_free(struct context_reader *r)
{
	if (!r)
		return;
	codec_free(r->codec);
	reader_drop_sharers(r);
	free(r->sharer);
	free(r->meta.data);
	free(r->data.data);
	free(r->name);
	free(r);
}

/* ---- heads ----------------------------------------------------------------- */

static bool in_order(const struct context_reader *r, uint32_t type)
{
	if (!r->sections || !r->last_type)
		return type == CONTEXT_PREAMBLE && !r->sections;
	return type != CONTEXT_PREAMBLE && kind_rank(type, r->features) >= kind_rank(r->last_type, r->features);
}

/* Checks r->head, which starts at r->start. */
static int check_head(struct context_reader *r)
{
	const struct section_head *h = &r->head;

	r->head_valid = false;
	if (h->magic != CONTEXT_SECTION_MAGIC || h->sum != section_head_sum(h, r->id))
		return reader_damaged(r, "wrong checksum of a section's head");
	if (h->sequence != r->sections || h->position != r->start || !in_order(r, h->type))
		return reader_damaged(r, "section in a wrong place");
	r->head_valid = true;
	if (h->reserved || (h->compression && h->type != CONTEXT_MEMORY) ||
	    h->compression > CONTEXT_ZSTD)
		return reader_damaged(r, "unknown kind of compression");
	r->sections++;
	r->last_type = h->type;
	return kind_fits(h) ? 0 : reader_damaged(r, "impossible length");
}

static int read_head(struct context_reader *r)
{
	int err;

	r->start = r->position;
	if (r->next_read) {
		r->start -= sizeof(r->head);
		r->head = r->next_head;
		r->next_read = false;
	} else {
		err = reader_exactly(r, &r->head, sizeof(r->head));
		if (err)
			return err;
	}
	return check_head(r);
}

static int read_meta(struct context_reader *r)
{
	size_t length = r->head.meta_length, padding = 0;
	int err;

	if (section_has_data(r->head.type))
		padding = section_padding(r->position + length);
	err = reader_growing(r, &r->meta, length + padding);
	if (err)
		return err;
	if (XXH64(r->meta.data, length + padding, 0) != r->head.meta_sum)
		return reader_damaged(r, "wrong checksum");
	if (padding && !all_zero(r->meta.data + length, padding))
		return reader_damaged(r, "padding is not zero");
	return 0;
}

int reader_tail(struct context_reader *r, uint64_t *sum)
{
	struct {
		struct section_tail tail;
		struct section_head head;
	} next;
	int err;

	r->data_follow = false;
	err = reader_exactly(r, &next, sizeof(next));
	if (err)
		return err;
	if (next.tail.sum != section_tail_sum(&next.tail, r->id, r->head.position))
		return reader_damaged(r, "wrong checksum of the data");
	*sum = next.tail.data_sum;
	r->next_head = next.head;
	r->next_read = true;
	return 0;
}

int reader_check_tail(struct context_reader *r, uint64_t sum)
{
	uint64_t expected;
	int err = reader_tail(r, &expected);

	if (err || sum == expected)
		return err;
	return reader_damaged(r, "wrong checksum of the data");
}

/* ---- sections ---------------------------------------------------------------- */

/*
 * Memory for one message.  A hostile message can take much more memory than it
 * has bytes (a repeated message of two bytes becomes a structure of a hundred):
 * its memory is limited in proportion to its length.
 */
static void *message_alloc(void *data, size_t size)
{
	size_t *left = data;

	if (size > *left)
		return NULL;
	*left -= size;
	return malloc(size);
}

static void message_free(void *data, void *pointer)
{
	(void)data;
	free(pointer);
}

static const ProtobufCMessageDescriptor *descriptor(uint32_t type)
{
	switch (type) {
	case CONTEXT_PREAMBLE:
		return &kcr__preamble__descriptor;
	case CONTEXT_FILE:
		return &kcr__file__descriptor;
	case CONTEXT_PROCESS:
		return &kcr__process__descriptor;
	default:
		return &kcr__trailer__descriptor;
	}
}

static int take_message(struct context_reader *r, struct context_item *item)
{
	size_t most = r->head.meta_length * MESSAGE_GROWTH + MESSAGE_EXTRA;
	bool short_of_room = most > r->room;
	size_t left = short_of_room ? r->room : most, all = left;
	ProtobufCAllocator allocator = {
		.alloc = message_alloc,
		.free = message_free,
		.allocator_data = &left,
	};

	item->message = protobuf_c_message_unpack(descriptor(item->type), &allocator,
						  r->head.meta_length, r->meta.data);
	r->room -= r->room == SIZE_MAX ? 0 : all - left;
	if (!item->message && short_of_room)
		return reader_damaged(r, "more messages than the file has data for");
	return item->message ? 0 : reader_damaged(r, "malformed message");
}

static int take_content(struct context_reader *r, struct context_item *item)
{
	const struct content_meta *meta = (const void *)r->meta.data;
	const char *wrong;
	int err;

	item->file_id = meta->file_id;
	item->offset = meta->offset;
	item->length = r->head.data_length;
	if (meta->reserved || meta->offset > INT64_MAX - item->length)
		return reader_damaged(r, "malformed contents");
	wrong = r->context ? check_content(r->context, item) : NULL;
	if (wrong)
		return reader_damaged(r, wrong);
	err = reader_growing(r, &r->data, item->length);
	if (err)
		return err;
	item->data = r->data.data;
	return reader_check_tail(r, XXH64(item->data, item->length, 0));
}

static int take_trailer(struct context_reader *r, struct context_item *item)
{
	const Kcr__Trailer *trailer;
	int err = take_message(r, item);

	if (err)
		return err;
	trailer = (const Kcr__Trailer *)item->message;
	if (trailer->nr_sections != r->sections - 1 || trailer->nr_pages != r->pages ||
	    trailer->bytes != r->start)
		err = reader_damaged(r, "sections are missing");
	protobuf_c_message_free_unpacked(item->message, NULL);
	item->message = NULL;
	return err;
}

/* Skips data that were not read, but verifies them. */
static int verify_data(struct context_reader *r)
{
	XXH64_state_t *state = XXH64_createState();
	size_t left = r->head.data_length;
	int err = 0;

	if (!state)
		return reader_no_memory(r);
	XXH64_reset(state, 0);
	while (left && !err) {
		size_t step = left < SKIP_BUFFER ? left : SKIP_BUFFER;

		err = reader_growing(r, &r->data, step);
		if (!err)
			XXH64_update(state, r->data.data, step);
		left -= step;
	}
	if (!err)
		err = reader_check_tail(r, XXH64_digest(state));
	XXH64_freeState(state);
	return err;
}

static int skip_data(struct context_reader *r)
{
	uint64_t sum;

	if (!r->skim || lseek(r->fd, r->head.data_length, SEEK_CUR) < 0)
		return verify_data(r);
	r->position += r->head.data_length;
	return reader_tail(r, &sum);
}

/* Jumps over the tables that nobody wants; they have no data. */
static bool skip_table(struct context_reader *r)
{
	if (r->skim != CONTEXT_SKIM_PAGES || r->head.type != CONTEXT_TABLE)
		return false;
	if (!r->positioned && lseek(r->fd, r->head.meta_length, SEEK_CUR) < 0)
		return false;
	r->position += r->head.meta_length;
	return true;
}

/* Head and meta of the next section. */
static int read_section(struct context_reader *r)
{
	int err = r->data_follow ? skip_data(r) : 0;

	do {
		if (!err)
			err = read_head(r);
	} while (!err && skip_table(r));
	return err ? err : read_meta(r);
}

/* Is the section nothing to return: one before a memory section, or in a file that is skimmed? */
static bool pass_over(struct context_reader *r, int *err)
{
	r->data_follow = r->skim && r->head.type == CONTEXT_CONTENT;
	if (r->head.type != CONTEXT_SHARED)
		return r->skim && r->head.type <= CONTEXT_CONTENT;
	*err = reader_take_sharer(r);
	return true;
}

int reader_next(struct context_reader *r)
{
	int err = r->error;

	r->item = (struct context_item){ 0 };
	reader_drop_sharers(r);
	if (!err && r->last_type == CONTEXT_TRAILER)
		return 0;
	do {
		if (!err)
			err = read_section(r);
		if (err)
			return err;
	} while (pass_over(r, &err));
	r->item.type = r->head.type;
	if (r->item.type != CONTEXT_MEMORY && r->nr_sharers)
		return reader_damaged(r, "shared pages without their memory");
	switch (r->item.type) {
	case CONTEXT_CONTENT:
		return take_content(r, &r->item) ?: 1;
	case CONTEXT_MEMORY:
		return reader_take_memory(r, &r->item) ?: reader_settle_sharers(r, &r->item) ?: 1;
	case CONTEXT_TABLE:
		return reader_take_table(r, &r->item) ?: 1;
	case CONTEXT_ELSEWHERE:
		return reader_take_runs(r, &r->item, 0) ?: 1;
	case CONTEXT_DUPLICATES:
		return reader_take_duplicates(r, &r->item) ?: 1;
	case CONTEXT_TRAILER:
		return take_trailer(r, &r->item);
	default:
		return take_message(r, &r->item) ?: 1;
	}
}

int context_read(struct context_reader *r, struct context_item *item)
{
	if (!r->held)
		r->last_result = reader_next(r);
	r->held = false;
	*item = r->item;
	r->item.message = NULL;
	return r->last_result;
}

void context_unread(struct context_reader *r)
{
	r->held = true;
}

int context_reader_fd(const struct context_reader *r)
{
	return r->fd;
}

uint64_t context_reader_base(const struct context_reader *r)
{
	return r->base;
}

uint64_t context_reader_features(const struct context_reader *r)
{
	return r->features;
}

uint64_t context_reader_bytes(const struct context_reader *r)
{
	return r->position;
}

void context_reader_identity(const struct context_reader *r, Kcr__Ancestor *out)
{
	out->id = r->id;
	out->trailer_position = r->start;
	out->trailer_sum = r->head.sum;
}

int context_verify(int fd, const char *name, uint64_t *id)
{
	struct context_reader *r;
	struct context_item item;
	int err = context_reader_new(&r, fd, name);

	if (err)
		return err;
	while ((err = context_read(r, &item)) > 0)
		if (item.message)
			protobuf_c_message_free_unpacked(item.message, NULL);
	*id = r->id;
	context_reader_free(r);
	return err;
}
