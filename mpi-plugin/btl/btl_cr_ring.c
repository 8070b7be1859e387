// SPDX-License-Identifier: GPL-2.0
/*
 * Shared memory channels.  A rank owns one memory object, its inbox: a directory
 * and a ring for each peer that writes to it, claimed and allocated at
 * the peer's first message.  Peers open it as /proc/PID/fd/N, so it needs no
 * name and leaves nothing behind.
 *
 * A ring is mapped twice in a row: no frame is ever split.  A frame begins with a
 * stamp, written last, that marks it as complete: a random key of the ring plus the
 * frame's position since the ring was created.  Earlier contents cannot look like
 * it, so nothing needs to be cleared; a short message costs the transfer of one
 * cache line, and a waiting reader polls one word.  While the reader keeps up, only the
 * first bytes of the ring are used, which stay in the processors' caches: a PAD frame leads
 * over the rest.
 *
 * Rings with traffic are polled in every round, the others in turn.
 */
#include "btl_cr_tcp.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define INBOX_MAGIC 0x786f626e4952434bULL
#define SLOTS 1024
#define SHARED_SIZE 4096
#define ALIGN 32			/* of frames */
#define RAW_PIECE 16384
#define CACHE_LINE 64
#define WINDOW 4096			/* bytes of a ring after which it begins again, if all has been read */
#define HOT_MAX 8
#define HOT_PATIENCE 20000		/* empty polls until a ring is not hot any more */
#define BURST 16			/* frames taken from a ring in a row */

struct inbox {
	uint64_t magic;
	uint8_t key[CR_ADDRESS_KEY];
	uint32_t ring_size;
	uint32_t life;			/* how often it was laid out */
	_Atomic uint32_t taken;		/* slots */
	_Atomic uint32_t writer[SLOTS];	/* rank + 1; 0: not set yet */
};

/* At the beginning of a ring. */
struct cr_ring_shared {
	_Atomic uint64_t read;		/* the reader's position */
	char apart[56];
	uint64_t key;
};

struct ring_frame {
	_Atomic uint64_t stamp;
	struct cr_frame frame;
};
_Static_assert(sizeof(struct ring_frame) == 16, "wire format");

struct reader {
	const struct ring_frame *next;
	uint64_t stamp;			/* that the next frame will have */
	cr_endpoint *ep;
	uint32_t idle;
};

static struct inbox *inbox;
static uint32_t known;			/* slots of the inbox that have a reader */

static struct reader readers[SLOTS];	/* the hot ones first */
static unsigned int hot, turn;
unsigned int cr_ring_count;

static size_t directory_size(void)
{
	return (sizeof(struct inbox) + 4095) & ~4095UL;
}

static off_t ring_offset(uint32_t slot, size_t size)
{
	return directory_size() + slot * (off_t)(SHARED_SIZE + size);
}

static inline struct ring_frame *place(const struct cr_ring_end *end)
{
	return (struct ring_frame *)(end->data + (end->at & (cr_param.ring_size - 1)));
}

static inline bool is_there(const struct reader *reader)
{
	return atomic_load_explicit(&reader->next->stamp, memory_order_acquire) == reader->stamp;
}

/* ---- mapping ---------------------------------------------------------------- */

static int map_ring(struct cr_ring_end *end, int fd, uint32_t slot, size_t size)
{
	off_t offset = ring_offset(slot, size);
	char *at = mmap(NULL, SHARED_SIZE + 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (at == MAP_FAILED)
		return -errno;
	if (mmap(at, SHARED_SIZE + size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 fd, offset) == MAP_FAILED ||
	    mmap(at + SHARED_SIZE + size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 fd, offset + SHARED_SIZE) == MAP_FAILED) {
		rc = -errno;
		munmap(at, SHARED_SIZE + 2 * size);
		return rc;
	}
	end->shared = (struct cr_ring_shared *)at;
	end->data = (unsigned char *)at + SHARED_SIZE;
	end->at = end->seen = 0;
	end->turn = WINDOW;
	return 0;
}

static void unmap_ring(struct cr_ring_end *end)
{
	if (end->data)
		munmap(end->shared, SHARED_SIZE + 2 * cr_param.ring_size);
	memset(end, 0, sizeof(*end));
}

/* Makes the memfd, which has no content, an empty inbox. */
static int lay_out(int fd)
{
	static uint32_t life;
	void *at;
	int rc;

	if (ftruncate(fd, directory_size()))
		return -errno;
	at = mmap(NULL, directory_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		rc = -errno;
		return ftruncate(fd, 0) ? -errno : rc;
	}
	inbox = at;
	memcpy(inbox->key, cr_address_own.key, sizeof(inbox->key));
	inbox->ring_size = cr_param.ring_size;
	inbox->life = ++life;
	__atomic_store_n(&inbox->magic, INBOX_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

int cr_ring_open(void)
{
	int fd = memfd_create("kcr-btl", MFD_CLOEXEC);
	int rc = fd < 0 ? -errno : lay_out(fd);

	if (!rc)
		cr_address_own.inbox = fd;
	else if (fd >= 0)
		close(fd);
	return rc;
}

static void unmap_all(void)
{
	for (unsigned int i = 0; i < cr_endpoints_count; i++)
		cr_ring_drop(cr_endpoints[i]);
	if (inbox)
		munmap(inbox, directory_size());
	inbox = NULL;
	known = cr_ring_count = hot = turn = 0;
}

void cr_ring_close(void)
{
	unmap_all();
	if (cr_address_own.inbox >= 0)
		close(cr_address_own.inbox);
	cr_address_own.inbox = -1;
}

void cr_ring_drop(cr_endpoint *ep)
{
	unmap_ring(&ep->out);
	unmap_ring(&ep->in);
	if (ep->channel == CR_CHANNEL_RING)
		ep->channel = CR_CHANNEL_NONE;
}

/* The other inboxes, which their owners may have emptied already. */
static int leave_all(int rc)
{
	for (unsigned int i = 0; i < cr_endpoints_count; i++) {
		unmap_ring(&cr_endpoints[i]->out);
		if (cr_endpoints[i]->channel == CR_CHANNEL_RING)
			cr_endpoints[i]->channel = CR_CHANNEL_NONE;
	}
	return rc;
}

/*
 * The memfd stays, without content: the address remains valid, and no new descriptor
 * is needed, which a program at its limit would not get.
 */
int cr_ring_suspend(void)
{
	int rc = cr_ring_accept();	/* slots taken but never used count as well */
	uint32_t taken;

	if (!inbox || rc < 0)
		return inbox ? rc : 0;
	taken = atomic_load(&inbox->taken);
	if (known != (taken < SLOTS ? taken : SLOTS))
		return leave_all(-EBUSY);
	for (unsigned int i = 0; i < cr_ring_count; i++)
		if (is_there(&readers[i]))
			return leave_all(-EBUSY);
	unmap_all();
	return ftruncate(cr_address_own.inbox, 0) ? -errno : 0;
}

int cr_ring_resume(void)
{
	return inbox || cr_address_own.inbox < 0 ? 0 : lay_out(cr_address_own.inbox);
}

/* ---- writing ---------------------------------------------------------------- */

/* Takes a slot in the open inbox fd of ep. */
static int take_slot(cr_endpoint *ep, int fd, bool anew)
{
	struct inbox *there = mmap(NULL, directory_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	size_t size = cr_param.ring_size;
	struct stat stat;
	uint32_t slot;
	int rc = -EAGAIN;

	if (there == MAP_FAILED)
		return -EAGAIN;		/* currently not an inbox */
	if (fstat(fd, &stat) || (size_t)stat.st_size < directory_size() ||
	    __atomic_load_n(&there->magic, __ATOMIC_ACQUIRE) != INBOX_MAGIC ||
	    !seal_same(there->key, ep->address.key, sizeof(there->key)))
		goto out;
	if (anew && there->life == ep->inbox_life)	/* its owner may be about to empty it */
		goto out;
	if (there->ring_size != size) {
		rc = -EINVAL;
		goto out;
	}
	rc = -ENOSPC;
	if (atomic_load(&there->taken) >= SLOTS)
		goto out;
	slot = atomic_fetch_add(&there->taken, 1);
	if (slot >= SLOTS)
		goto out;
	rc = 0;
	if (fallocate(fd, 0, ring_offset(slot, size), SHARED_SIZE + size))
		rc = -errno;
	if (!rc)
		rc = map_ring(&ep->out, fd, slot, size);
	if (!rc && getrandom(&ep->out.key, sizeof(ep->out.key), 0) < 0) {
		rc = -errno;
		unmap_ring(&ep->out);
	}
	if (!rc)
		ep->out.shared->key = ep->out.key;
	ep->inbox_life = there->life;
	atomic_store(&there->writer[slot], rc ? UINT32_MAX : opal_proc_local_get()->proc_name.vpid + 1);
out:
	munmap(there, directory_size());
	return rc;
}

int cr_ring_attach(cr_endpoint *ep, bool anew)
{
	char path[64];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", ep->address.pid, ep->address.inbox);
	do
		fd = open(path, O_RDWR | O_CLOEXEC);
	while (fd < 0 && errno == EMFILE && cr_guest_drop_oldest());
	if (fd < 0)
		return errno == ENOENT || errno == EROFS ? -EAGAIN : -errno;
	rc = take_slot(ep, fd, anew);
	close(fd);
	return rc;
}

static inline size_t frame_size(size_t length)
{
	return (sizeof(struct ring_frame) + length + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static inline void publish(struct cr_ring_end *end, const struct cr_frame *frame, size_t size)
{
	struct ring_frame *at = place(end);

	at->frame = *frame;
	atomic_store_explicit(&at->stamp, end->key + end->at, memory_order_release);
	end->at += size;
}

/* Goes back to the ring's beginning if all has been read. */
static void turn_back(struct cr_ring_end *end, size_t size)
{
	size_t used = end->at & (cr_param.ring_size - 1), rest = cr_param.ring_size - used;
	const struct cr_frame pad = { .type = CR_FRAME_PAD, .length = rest - sizeof(struct ring_frame) };

	end->seen = atomic_load_explicit(&end->shared->read, memory_order_acquire);
	if (used >= WINDOW && end->at == end->seen && size <= used)
		publish(end, &pad, rest);
	end->turn = end->at + WINDOW;
}

static inline bool has_room(struct cr_ring_end *end, size_t size)
{
	if (OPAL_UNLIKELY(end->at >= end->turn))
		turn_back(end, size);
	if (OPAL_LIKELY(end->at + size - end->seen <= cr_param.ring_size))
		return true;
	end->seen = atomic_load_explicit(&end->shared->read, memory_order_acquire);
	return end->at + size - end->seen <= cr_param.ring_size;
}

/*
 * The content of the next frame.  What is in the cache line of its stamp comes last: the reader polls
 * that line, which would have to be fetched back from it once more.
 */
static inline void fill(const struct cr_ring_end *end, const void *first, size_t first_length,
			const void *second, size_t second_length)
{
	unsigned char *at = (unsigned char *)(place(end) + 1);
	size_t near = CACHE_LINE - ((uintptr_t)at & (CACHE_LINE - 1));

	if (first_length + second_length > near && first_length <= near) {
		near -= first_length;
		memcpy(at + first_length + near, (const char *)second + near, second_length - near);
		second_length = near;
	}
	memcpy(at, first, first_length);
	if (second_length)
		memcpy(at + first_length, second, second_length);
}

bool cr_ring_put(cr_endpoint *ep, const struct cr_frame *frame, const void *first,
		 size_t first_length, const void *second, size_t second_length)
{
	size_t size = frame_size(first_length + second_length);

	if (!has_room(&ep->out, size))
		return false;
	fill(&ep->out, first, first_length, second, second_length);
	publish(&ep->out, frame, size);
	ep->sent += sizeof(*frame) + first_length + second_length;
	return true;
}

/* The next bytes of frag as a piece of the stream. */
static bool put_piece(cr_endpoint *ep, struct cr_frag *frag)
{
	struct iovec *iov = &frag->iov[frag->iov_next];
	struct cr_frame raw = { .type = CR_FRAME_RAW };

	raw.length = iov->iov_len < RAW_PIECE ? iov->iov_len : RAW_PIECE;
	if (!has_room(&ep->out, frame_size(raw.length)))
		return false;
	memcpy(place(&ep->out) + 1, iov->iov_base, raw.length);
	publish(&ep->out, &raw, frame_size(raw.length));
	ep->sent += raw.length;
	cr_frag_advance(frag, raw.length);
	return true;
}

int cr_ring_write(cr_endpoint *ep, struct cr_frag *frag)
{
	const struct cr_frame *frame = &frag->head.frame;
	unsigned char *at;
	size_t size;

	if (OPAL_UNLIKELY(frag->sealed) && !frag->begun)
		cr_seal_strip(frag);
	size = frame_size(frame->length);
	if (frag->begun || size > cr_param.ring_size / 4 * 3) {
		while (frag->iov_next < frag->iov_count)
			if (!put_piece(ep, frag))
				return 0;
		return 1;
	}
	if (!has_room(&ep->out, size))
		return 0;
	at = (unsigned char *)(place(&ep->out) + 1);
	memcpy(at, (char *)frag->iov[0].iov_base + sizeof(*frame),
	       frag->iov[0].iov_len - sizeof(*frame));
	at += frag->iov[0].iov_len - sizeof(*frame);
	for (unsigned int i = 1; i < frag->iov_count; i++) {
		memcpy(at, frag->iov[i].iov_base, frag->iov[i].iov_len);
		at += frag->iov[i].iov_len;
	}
	publish(&ep->out, frame, size);
	ep->sent += sizeof(*frame) + frame->length;
	return 1;
}

/* ---- reading ---------------------------------------------------------------- */

static inline void expect_next(struct reader *reader)
{
	reader->next = place(&reader->ep->in);
	reader->stamp = reader->ep->in.key + reader->ep->in.at;
}

static void step(struct reader *reader, const struct cr_frame *frame)
{
	cr_endpoint *ep = reader->ep;

	ep->in.at += frame_size(frame->length);
	if (frame->type != CR_FRAME_PAD)
		ep->received += frame->length + (frame->type == CR_FRAME_RAW ? 0 : sizeof(*frame));
	expect_next(reader);
	atomic_store_explicit(&ep->in.shared->read, ep->in.at, memory_order_release);
}

static int append(cr_endpoint *ep, const void *data, size_t length)
{
	int rc = cr_stream_append(&ep->stream, data, length);

	return rc || !cr_param.seal ? rc : cr_seal_arrived(ep, length, false);
}

/* All of a frame, or nothing: it is tried again, if this was a drain. */
static int keep(cr_endpoint *ep, const struct cr_frame *frame, const unsigned char *payload)
{
	size_t head = frame->type == CR_FRAME_RAW ? 0 : sizeof(*frame);
	int rc = cr_stream_reserve(&ep->stream, head + frame->length);

	if (!rc && head)
		rc = append(ep, frame, head);
	return rc ? rc : append(ep, payload, frame->length);
}

/* PUT and REPLY keep state across a checkpoint: they go through the stream. */
static int handle(cr_endpoint *ep, const struct cr_frame *frame, unsigned char *payload)
{
	int rc;

	if (OPAL_LIKELY(frame->type == CR_FRAME_SEND || frame->type == CR_FRAME_GET)) {
		cr_endpoint_receive(ep, frame, payload);
		return 1;
	}
	if (frame->type == CR_FRAME_PAD)
		return 0;
	rc = keep(ep, frame, payload);
	if (rc == -ENOMEM)
		cr_fatal(ep, "received bytes cannot be kept", rc);
	return cr_stream_deliver(ep) + 1;
}

static int read_ring(struct reader *reader)
{
	cr_endpoint *ep = reader->ep;
	struct cr_frame frame;
	int count = 0;

	while (count < BURST && is_there(reader)) {
		frame = reader->next->frame;
		count += handle(ep, &frame, (unsigned char *)(reader->next + 1));
		step(reader, &frame);
	}
	return count;
}

int cr_ring_pull(cr_endpoint *ep)
{
	struct cr_frame frame;
	struct reader *reader = NULL;
	int rc;

	for (unsigned int i = 0; i < cr_ring_count; i++)
		if (readers[i].ep == ep)
			reader = &readers[i];
	while (reader && is_there(reader)) {
		frame = reader->next->frame;
		rc = frame.type == CR_FRAME_PAD ? 0 :
		     keep(ep, &frame, (const unsigned char *)(reader->next + 1));
		if (rc)
			return rc;
		step(reader, &frame);
	}
	return 0;
}

static int add_reader(uint32_t slot, uint32_t rank)
{
	cr_endpoint *ep = cr_endpoint_get(rank);
	int rc;

	if (!ep)
		return -ENOMEM;
	rc = map_ring(&ep->in, cr_address_own.inbox, slot, cr_param.ring_size);
	if (rc)
		return rc;
	readers[cr_ring_count].ep = ep;
	readers[cr_ring_count].idle = 0;
	ep->in.key = ep->in.shared->key;
	expect_next(&readers[cr_ring_count]);
	cr_ring_count++;
	return 0;
}

/* Begins to read the rings that peers have taken; returns how many. */
int cr_ring_accept(void)
{
	uint32_t taken, writer;
	int count = 0, rc;

	if (!inbox)
		return 0;
	taken = atomic_load_explicit(&inbox->taken, memory_order_acquire);
	while (known < taken && known < SLOTS) {
		writer = atomic_load_explicit(&inbox->writer[known], memory_order_acquire);
		if (!writer)
			break;
		if (writer != UINT32_MAX) {
			rc = add_reader(known, writer - 1);
			if (rc)
				return rc;
		}
		known++;
		count++;
	}
	return count;
}

static void swap(unsigned int a, unsigned int b)
{
	struct reader keep = readers[a];

	readers[a] = readers[b];
	readers[b] = keep;
}

static int look_in_turn(void)
{
	int count;

	if (turn < hot || turn >= cr_ring_count)
		turn = hot;
	count = read_ring(&readers[turn]);
	if (count) {
		readers[turn].idle = 0;
		if (hot < HOT_MAX)
			swap(turn, hot++);
		else
			swap(turn, turn % HOT_MAX);
	}
	turn++;
	return count;
}

int cr_ring_progress(void)
{
	int count = 0, some;

	if (!inbox)
		return 0;
	if (OPAL_UNLIKELY(known != atomic_load_explicit(&inbox->taken, memory_order_relaxed))) {
		some = cr_ring_accept();
		if (some < 0) {
			cr_fatal(NULL, "a ring cannot be mapped", some);
			return 0;
		}
	}
	for (unsigned int i = 0; i < hot; i++) {
		some = read_ring(&readers[i]);
		if (some) {
			readers[i].idle = 0;
			count += some;
		} else if (++readers[i].idle > HOT_PATIENCE) {
			swap(i, --hot);
		}
	}
	if (hot < cr_ring_count)
		count += look_in_turn();
	return count;
}
