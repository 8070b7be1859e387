/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The context file: a sequence of checksummed sections, written and read in
 * one pass, so that files, pipes, sockets and /dev/null all work.
 * The format is described in kcr-context(5); the messages in image/proto.
 *
 *	PREAMBLE  FILE*  PROCESS*  CONTENT*  (SHARED+ MEMORY)*  (TABLE | MEMORY | ELSEWHERE)*
 *	DUPLICATES*  TRAILER
 *
 * Pages that processes share since a fork, none having written to them, are stored once:
 * SHARED sections say whose pages those of the MEMORY section after them are, too.  Of other pages
 * that are equal one is stored; DUPLICATES sections say which one the others are equal to.
 *
 * An increment holds only the pages that differ from those of older files, its
 * ancestors; its tables say which file has which page.
 *
 * A partial one, of a migration, lacks the pages that its ELSEWHERE sections name: somebody gives
 * some of them when they are asked for by the section's number, among those of its kind, and theirs
 * in it.
 *
 * Functions return 0 or -errno with a message recorded by report_fail().
 */
#ifndef KCR_IMAGE_CONTEXT_H
#define KCR_IMAGE_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/kcr.h>

#include "file.pb-c.h"
#include "memory.pb-c.h"
#include "process.pb-c.h"
#include "sysv.pb-c.h"

#define CONTEXT_PAGE		4096u
#define CONTEXT_CHUNK_PAGES	1024u	/* most pages in one MEMORY section */
#define CONTEXT_CHUNK_RUNS	1024u	/* most runs in one MEMORY section */
#define CONTEXT_CHUNK_BYTES	((size_t)CONTEXT_CHUNK_PAGES * CONTEXT_PAGE)
#define CONTEXT_FETCH_PAGES	64u	/* most pages of an ELSEWHERE section that are asked for at a time */
#define CONTEXT_CONTENT_MAX	(4u << 20)	/* most bytes in one CONTENT section */
#define CONTEXT_EXIT_STATUS	0xff00u	/* leader_exit_code of a thread that called exit(2) */
#define CONTEXT_AIO_HEAD	32u	/* bytes of a ring of io_setup(2) before its events … */
#define CONTEXT_AIO_EVENT	32u	/* … and of each of these */
#define CONTEXT_URING_OFFSETS	7u	/* of each queue of an io_uring: sq_offset, cq_offset */
#define CONTEXT_MEMBERSHIPS_MAX	4096	/* of one kind, of a packet socket */
#define CONTEXT_RINGS_MAX	(128u << 20)	/* bytes to be saved of the rings of one */

enum context_section {
	CONTEXT_PREAMBLE = 1,
	CONTEXT_FILE = 2,
	CONTEXT_PROCESS = 3,
	CONTEXT_CONTENT = 4,
	CONTEXT_MEMORY = 5,
	CONTEXT_TRAILER = 6,
	CONTEXT_TABLE = 7,
	CONTEXT_SHARED = 8,
	CONTEXT_ELSEWHERE = 9,
	CONTEXT_DUPLICATES = 10,
};

/* Features that a reader must know, in the file head. */
#define CONTEXT_HAS_TABLES	(1ull << 0)	/* TABLE sections */
#define CONTEXT_HAS_ANCESTORS	(1ull << 1)	/* it is an increment */
#define CONTEXT_HAS_ROOT	(1ull << 2)	/* processes in another root folder */
#define CONTEXT_HAS_OWN_THREADS	(1ull << 3)	/* threads with credentials or a folder of their own */
#define CONTEXT_HAS_SECCOMP	(1ull << 4)	/* threads with seccomp filters, or strict mode */
#define CONTEXT_HAS_KEYS	(1ull << 5)	/* protection keys of memory */
#define CONTEXT_HAS_SETTINGS	(1ull << 6)	/* of prctl(2): MDWE, or of threads */
#define CONTEXT_HAS_PACKETS	(1ull << 7)	/* packet sockets */
#define CONTEXT_HAS_SHARED	(1ull << 8)	/* SHARED sections */
#define CONTEXT_HAS_ASYNC	(1ull << 9)	/* contexts of io_setup(2), io_urings */
#define CONTEXT_HAS_USERFAULT	(1ull << 10)	/* userfaultfds */
#define CONTEXT_HAS_RAW		(1ull << 11)	/* ping and raw sockets */
#define CONTEXT_HAS_ELSEWHERE	(1ull << 12)	/* ELSEWHERE sections: it is partial */
#define CONTEXT_HAS_RINGS	(1ull << 13)	/* packet sockets with rings in memory */
#define CONTEXT_HAS_POLICIES	(1ull << 14)	/* NUMA memory policies */
#define CONTEXT_HAS_DUPLICATES	(1ull << 15)	/* DUPLICATES sections */
#define CONTEXT_HAS_MORE_SETTINGS (1ull << 16)	/* more of prctl(2), and of arch_prctl(2) */
#define CONTEXT_HAS_SYSV	(1ull << 17)	/* System V semaphores and message queues */

#define CONTEXT_MAX_ANCESTORS	256u	/* of one file: all are open during a restart */

enum context_compression { CONTEXT_RAW = 0, CONTEXT_LZ4 = 1, CONTEXT_ZSTD = 2 };

/* XXH3, 128 bits, of a page. */
struct context_hash {
	uint64_t low, high;
};

/* What a TABLE section says of the pages of one process, saved here or not. */
struct context_table {
	int32_t pid;
	const struct kcr_run *runs;	/* as in a chunk */
	size_t nr_runs;
	uint64_t nr_pages;
	const struct context_hash *hash;	/* of each page */
	const uint16_t *owner;		/* … the ancestor that has it, by number from 0;
					 * the number of ancestors: this file */
};

/* The page, in a MEMORY section before, that a page of a DUPLICATES section is equal to. */
struct context_original {
	uint64_t address;
	int32_t pid;
	uint32_t reserved;		/* 0 */
};

/* A process to which pages of a MEMORY section belong as well, at the same addresses. */
struct context_sharer {
	int32_t pid;
	const struct kcr_run *runs;	/* as in a chunk; only pages of that section */
	size_t nr_runs;
};

/* Pages of one process: what a MEMORY section holds. */
struct context_chunk {
	int32_t pid;
	const struct kcr_run *runs;	/* sorted, not overlapping */
	size_t nr_runs;
	uint64_t nr_pages;
	enum context_compression compression;	/* of the data */
	const void *data;
	size_t length;			/* bytes of data */
	uint64_t sum;			/* XXH64, seed 0, of data */
	uint64_t position;		/* of the section in its file */
	uint64_t sequence;		/* from a file: sections before it */
	const struct kcr_run *needed;	/* from a file: the pages that it has to give */
	size_t nr_needed_runs;
	const struct context_table *table;	/* of these pages and others; or NULL */
	const struct context_sharer *sharer;	/* valid until all chunks have been moved */
	size_t nr_sharers;
	unsigned int member;		/* from a chain: the file's number in it */
	bool unwritten;			/* the parent's pages: there are no data */
	bool elsewhere;			/* the pages are not in the file … */
	uint64_t number;		/* … but in the ELSEWHERE section of this number */
	bool picked;			/* single pages of a section: not `sum`, but their hashes count */
	uint64_t nr_needed;		/* from a file: of the pages, those that it has to give */
	uint64_t nr_superseded;		/* of the pages: a later chunk replaces them */
};

/*
 * The runs of `nr_pages` pages (fewer if there are no more) of these runs, without the first ones;
 * `out` has room for as many as are cut.  Their number.
 */
size_t context_cut_runs(const struct kcr_run *runs, size_t nr_runs, uint64_t first,
			uint64_t nr_pages, struct kcr_run *out);

/* ---- writing ---------------------------------------------------------------- */

struct context_writer;

/*
 * Starts a context file on `fd` (never closed here), at its current offset;
 * `features`: CONTEXT_HAS_*.  Nothing is written yet.
 * After a failed write (-EPIPE, -ENOSPC …) every later call fails alike; a program
 * that writes to pipes or sockets must ignore SIGPIPE.
 */
int context_writer_new(struct context_writer **out, int fd, uint64_t features);
void context_writer_free(struct context_writer *w);

/* From now on no more than so many bytes per second are written; 0: no limit. */
void context_writer_limit(struct context_writer *w, uint64_t rate);

/* Adds features; before the first section. */
void context_writer_require(struct context_writer *w, uint64_t features);
/* The features that a reader of these processes must know. */
uint64_t context_needs(Kcr__Process *const *process, size_t count);
/* Likewise, of this open file. */
uint64_t context_file_needs(const Kcr__File *file);

/* One metadata section: message is a Kcr__Preamble, Kcr__File or Kcr__Process. */
int context_write_message(struct context_writer *w, enum context_section type,
			  const ProtobufCMessage *message);

/* Part of a file's contents: `length` (≤ CONTEXT_CONTENT_MAX) bytes at `offset`. */
int context_write_content(struct context_writer *w, uint32_t file_id, uint64_t offset,
			  const void *data, size_t length);

/*
 * Memory in three steps, so that the module can write the pages itself:
 * begin writes the section's head and run table, up to a page boundary; then
 * the caller has exactly nr_pages × 4096 bytes written to context_writer_fd();
 * end adds their XXH64 (seed 0).
 */
int context_memory_begin(struct context_writer *w, int32_t pid,
			 const struct kcr_run *runs, size_t nr_runs);
int context_writer_fd(const struct context_writer *w);
int context_memory_end(struct context_writer *w, uint64_t sum);

/*
 * Before the MEMORY section of another process (context_memory_begin() or
 * context_write_chunk()): its pages are also this one's.  By ascending PID, in a file that
 * CONTEXT_HAS_SHARED; sections without sharers come after all those that have some.
 */
int context_write_sharer(struct context_writer *w, const struct context_sharer *sharer);

/* Memory that is in a buffer, compressed or not, with its checksum. */
int context_write_chunk(struct context_writer *w, const struct context_chunk *chunk);

/* Pages that are left out, in a file that CONTEXT_HAS_ELSEWHERE. */
int context_write_elsewhere(struct context_writer *w, int32_t pid, const struct kcr_run *runs,
			    size_t nr_runs);

/* What pages there are, in a file that CONTEXT_HAS_TABLES. */
int context_write_table(struct context_writer *w, const struct context_table *table);

/*
 * Pages that are equal to others, in a file that CONTEXT_HAS_DUPLICATES; original: of each page.
 * After the last MEMORY section.
 */
int context_write_duplicates(struct context_writer *w, int32_t pid, const struct kcr_run *runs,
			     size_t nr_runs, const struct context_original *original);

/* Writes the trailer. Nothing may follow. */
int context_writer_finish(struct context_writer *w);
uint64_t context_writer_bytes(const struct context_writer *w);
/* Of these, what context_write_content() was given. */
uint64_t context_writer_content(const struct context_writer *w);
/* The file's random id. */
uint64_t context_writer_id(const struct context_writer *w);

/* ---- reading ---------------------------------------------------------------- */

struct context_reader;

struct context_item {
	enum context_section type;
	ProtobufCMessage *message;	/* PREAMBLE, FILE, PROCESS: owned by the caller,
					 * free with protobuf_c_message_free_unpacked() */
	/* CONTENT */
	uint32_t file_id;
	uint64_t offset;
	const void *data;		/* valid until the next call */
	size_t length;			/* MEMORY: of the data as stored */
	/* MEMORY: sorted, non-overlapping, valid until the next call */
	int32_t pid;
	const struct kcr_run *runs;
	size_t nr_runs;
	uint64_t nr_pages;
	enum context_compression compression;
	uint64_t position;		/* of the section, in bytes */
	uint64_t sequence;		/* sections before it */
	const struct context_sharer *sharer;	/* valid likewise, by ascending PID */
	size_t nr_sharers;
	/* ELSEWHERE: pid, runs and pages as in MEMORY.  TABLE: the same, and per page: */
	const struct context_hash *hash;
	const uint16_t *owner;
	/* DUPLICATES: pid, runs and pages as in MEMORY, and per page: */
	const struct context_original *original;
};

/*
 * Checks magic, version and required feature bits.  `name` is for messages.  A partial file is
 * refused.
 */
int context_reader_new(struct context_reader **out, int fd, const char *name);
/* The same, for those who know where the other pages of a partial file are. */
int context_reader_new_partial(struct context_reader **out, int fd, const char *name);
/*
 * The same, of a regular file that begins at offset `base`: several readers may have one
 * descriptor.  For chunks of a file that another reader has accepted.
 */
int context_reader_new_at(struct context_reader **out, int fd, uint64_t base, const char *name);
/*
 * Another reader of the same file, from its beginning; it shares the descriptor, but not its offset.
 * -ESPIPE, silently: it is no regular file.
 */
int context_reader_again(struct context_reader **out, const struct context_reader *r);
void context_reader_free(struct context_reader *r);

/*
 * The next section: 1, or 0 after a valid trailer, or -errno (EINVAL: not a
 * context file or damaged; the message says which and where).  Metadata and
 * contents are verified before they are returned.  A MEMORY section's pages
 * follow in the file: the caller reads them with one of the calls below
 * (or none: the next call skips them, verifying the checksum).
 */
int context_read(struct context_reader *r, struct context_item *item);
/* The next context_read() returns the last section again; at most once in a row. */
void context_unread(struct context_reader *r);

enum context_skim {
	CONTEXT_SKIM_NOT,
	CONTEXT_SKIM_TABLES,		/* MEMORY and TABLE sections */
	CONTEXT_SKIM_PAGES,		/* MEMORY sections */
};
/*
 * From now on only sections of these kinds are returned; tables that are not, and data that the
 * caller does not take, are not read, so not verified either.
 */
void context_reader_skim(struct context_reader *r, enum context_skim what);

/*
 * Of a reader made by context_reader_new_at(): the next context_read() returns the MEMORY section
 * at `position`, before which there are `sequence` sections.  0, or the error of an earlier call.
 */
int context_reader_return(struct context_reader *r, uint64_t position, uint64_t sequence);

/* CONTEXT_HAS_* of the file. */
uint64_t context_reader_features(const struct context_reader *r);
/* Of the file, after the trailer was read. */
uint64_t context_reader_bytes(const struct context_reader *r);
/* How a child names this file, all but `name`; after the trailer was read. */
void context_reader_identity(const struct context_reader *r, Kcr__Ancestor *out);

/*
 * Reads all of the file at `fd`, from the present position on, and checks every checksum.
 * *id: the file's random id.
 */
int context_verify(int fd, const char *name, uint64_t *id);

/* Raw pages, read from context_reader_fd() by the module: then verifies their XXH64. */
int context_reader_fd(const struct context_reader *r);
/* The offset there at which the file begins. */
uint64_t context_reader_base(const struct context_reader *r);
int context_memory_taken(struct context_reader *r, uint64_t sum);
/* … or reports that the file ended too early: -EINVAL, with a message. */
int context_memory_missing(struct context_reader *r);
/*
 * A part of them, `length` bytes from byte `offset` of the raw pages, out of a regular
 * file: not verified, and the section's pages are still to be taken or skipped.
 */
int context_memory_part(struct context_reader *r, size_t offset, void *buffer, size_t length);
/* Pages into `buffer` (nr_pages × 4096 bytes), decompressed and verified. */
int context_memory_read(struct context_reader *r, void *buffer);
/*
 * The data as stored: the item's `length` bytes (≤ CONTEXT_CHUNK_BYTES), not verified
 * yet; *sum is the XXH64 that they must have.
 */
int context_memory_stored(struct context_reader *r, void *buffer, uint64_t *sum);
/* Reports that the section at `position` is damaged: -EINVAL, with a message. */
int context_memory_damaged(struct context_reader *r, uint64_t position, const char *what);

/* Everything before the first CONTENT or MEMORY section, validated. */
struct context {
	Kcr__Preamble *preamble;
	Kcr__File **file;		/* file[id - 1] */
	size_t nr_files;
	Kcr__Process **process;
	size_t nr_processes;
	const Kcr__Process **by_pid;	/* the same, sorted; for context_process() */
};

/*
 * Reads the metadata; the item after it (CONTENT, MEMORY or TRAILER) is returned
 * by the next context_read().  Checks that all references are valid (file IDs,
 * PIDs, mm IDs, VMAs sorted and in user space, register counts …), so that later
 * code can rely on them.  From then on context_read() also checks that contents
 * belong to a file and pages to an area of their process, so the context must
 * live as long as the reader.
 */
int context_load(struct context_reader *r, struct context **out);
void context_free(struct context *c);

const Kcr__Process *context_process(const struct context *c, int32_t pid);
/* Index of the mapping that contains the address; SIZE_MAX: none. */
size_t context_area(const Kcr__Mm *mm, uint64_t address);
/*
 * May pages of such a mapping (KCR_VMA_*, bytes; without a file) be those of another process, too,
 * which has one of the same kind (CONTEXT_SHARING_KIND) at that address?
 */
bool context_may_share(uint64_t vma_flags, uint64_t length);
#define CONTEXT_SHARING_KIND	KCR_VMA_NORESERVE	/* cannot be changed later */
const Kcr__File *context_file(const struct context *c, uint32_t id);

#endif /* KCR_IMAGE_CONTEXT_H */
