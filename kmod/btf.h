/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structures that the kernel declares in files of its own, such as fs/aio.c: where their
 * members are, according to the kernel's own description of its types (BTF).  So nothing here
 * depends on a kernel's version or configuration, and what is not found is not used.
 */
#ifndef KCR_BTF_H
#define KCR_BTF_H

#include <linux/types.h>

struct btf_type;

#define KCR_BTF_ANY_SIZE	SIZE_MAX	/* of a structure, which depends on the kernel */

/* A member that is wanted, of the structure itself or of a nameless one in it. */
struct kcr_btf_member {
	const char *name;
	const char *type;	/* what it is, points to or has an array of; NULL: any integer */
	size_t size;		/* that it must have, or ANY_SIZE; 0: an array without bounds */
	u32 offset;		/* result: bytes from the structure's beginning */
};

/* Members of one structure. */
struct kcr_btf_wanted {
	const char *owner;
	struct kcr_btf_member *members;
	size_t count;
	bool optional;		/* other kernels do without */
	const struct btf_type *type;	/* result: the owner; NULL: not all of them are there */
};

/* All that a file wants; static, and looked for once. */
struct kcr_btf_search {
	struct kcr_btf_wanted *wanted;
	size_t count;
	bool done;		/* below: for btf.c */
	int result;
};

/*
 * Finds all members, if that was not done before.  0; -EOPNOTSUPP: this kernel has no BTF, or
 * none or several structures of a name, or a member that is not optional is missing or another.
 * Sleeps, and takes some milliseconds the first time.
 */
int kcr_btf_search(struct kcr_btf_search *search);

static inline const void *kcr_btf_at(const void *object, const struct kcr_btf_member *member)
{
	return object + member->offset;
}

enum kcr_btf_exception {
	KCR_BTF_ANY,		/* whatever is in it does not count */
	KCR_BTF_IN_USE,		/* … while the objects may be in use */
	KCR_BTF_OBJECT,		/* what it leads to is the object's own, and has nothing that counts */
};

/* A member that kcr_btf_differs() does not take as it is. */
struct kcr_btf_known {
	const char *name;
	enum kcr_btf_exception how;
};

/*
 * The name of the first member in which two structures of this type differ; NULL: none.  Numbers
 * differ by their value; pointers unless they are NULL, or lead to the same place of the structure
 * itself, as those of empty lists do, or are known (OBJECT); locks, queues of waiters and the like
 * never.  So a member that nobody knows, as another kernel may have, counts.  Both objects must
 * stay.
 */
const char *kcr_btf_differs(const struct btf_type *type, const void *a, const void *b,
			    const struct kcr_btf_known *known, size_t count, bool in_use);

#endif /* KCR_BTF_H */
