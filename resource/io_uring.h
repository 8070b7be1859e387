/* SPDX-License-Identifier: GPL-2.0 */
/*
 * io_uring(7): making one, its memory and its calls; for io_uring.c, which saves and restores
 * them, and io_uring_advance.c.
 */
#ifndef KCR_RESOURCE_IO_URING_H
#define KCR_RESOURCE_IO_URING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/io_uring.h>

/* Newer than the headers of Debian 12. */
#define URING_NO_MMAP			(1u << 14)	/* IORING_SETUP_*, 6.5 */
#define URING_REGISTERED_FD_ONLY	(1u << 15)
#define URING_NO_SQARRAY		(1u << 16)	/* 6.6 */

/* A ring's descriptor, what the kernel said when it was made, and its memory in our process. */
struct uring {
	int fd;
	struct io_uring_params made;
	uint32_t last_op;		/* the highest opcode that this kernel knows; 0: unknown */
	char *rings;			/* of the submission and the completion queue; NULL: none */
	char *sqes;
	size_t rings_length;
	size_t sqes_length;
};

/*
 * Runs step(u, arg) in a thread of its own, and returns its result.  When an io_uring ends the
 * kernel interrupts those who have made or entered it, as by a signal: so this program does
 * neither in the thread that goes on.  -errno: there is no thread.
 */
int uring_apart(struct uring *u, int (*step)(struct uring *u, const void *arg), const void *arg);

/* A new one with exactly so many entries; memory is not mapped yet.  0 or -errno. */
int uring_make(struct uring *u, uint32_t flags, uint32_t sq_entries, uint32_t cq_entries);
/* Maps the memory of u->fd, which may be that of another ring that was made alike. */
int uring_map(struct uring *u);
void uring_unmap(struct uring *u);
/* Likewise, and closes u->fd. */
void uring_drop(struct uring *u);

int uring_enter(const struct uring *u, unsigned int to_submit, unsigned int flags);
int uring_enable(const struct uring *u);

/* A field of the rings at one of the offsets of u->made. */
static inline uint32_t uring_get(const struct uring *u, uint32_t offset)
{
	return __atomic_load_n((uint32_t *)(u->rings + offset), __ATOMIC_ACQUIRE);
}

static inline void uring_set(const struct uring *u, uint32_t offset, uint32_t value)
{
	__atomic_store_n((uint32_t *)(u->rings + offset), value, __ATOMIC_RELEASE);
}

/* From now on IOSQE_IO_DRAIN is refused, as after IOSQE_CQE_SKIP_SUCCESS: one completion more. */
int uring_disable_drain(const struct uring *u);

/*
 * Brings a new ring to where `head` submissions have been taken and `tail` completions
 * posted, each modulo 2^32, and all completions have been read.  0 or -errno: -EOPNOTSUPP: this
 * kernel cannot.
 */
int uring_advance(const struct uring *u, uint32_t head, uint32_t tail, bool drain_disabled);

#endif /* KCR_RESOURCE_IO_URING_H */
