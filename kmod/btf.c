// SPDX-License-Identifier: GPL-2.0
/*
 * See btf.h.  The kernel has read and checked its BTF before we see it, and keeps it for ever: no
 * locks for that.  What is found of it is written once, under `search_lock`, before anyone reads it.
 */
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <uapi/linux/btf.h>

#include "btf.h"
#include "lookup.h"

#define TYPE_TAG	18		/* BTF_KIND_TYPE_TAG, 5.17 */
#define MAX_DEPTH	8		/* of nameless structures in one another */
#define BITFIELD_SHIFT	24		/* of the size, if members may be bit-fields */
#define OFFSET_MASK	0xffffffu

static DEFINE_MUTEX(search_lock);

/* The type behind names for it, const and the like; NULL: none. */
static const struct btf_type *resolve(const struct btf *btf, u32 id)
{
	const struct btf_type *type = kcr_btf_type_by_id(btf, id);

	while (type) {
		switch (BTF_INFO_KIND(type->info)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_RESTRICT:
		case TYPE_TAG:
			type = kcr_btf_type_by_id(btf, type->type);
			break;
		default:
			return type;
		}
	}
	return NULL;
}

static const struct btf_array *array_of(const struct btf_type *type)
{
	return (const struct btf_array *)(type + 1);
}

static const struct btf_member *members_of(const struct btf_type *type)
{
	return (const struct btf_member *)(type + 1);
}

/* In bytes; 0: it has none. */
static size_t size_of(const struct btf *btf, const struct btf_type *type)
{
	size_t count = 1;

	while (type && BTF_INFO_KIND(type->info) == BTF_KIND_ARRAY) {
		count *= array_of(type)->nelems;
		type = resolve(btf, array_of(type)->type);
	}
	if (!type)
		return 0;
	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_PTR:
		return count * sizeof(void *);
	case BTF_KIND_INT:
	case BTF_KIND_ENUM:
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return count * type->size;
	}
	return 0;
}

static bool is_nameless_struct(const struct btf_type *type, const struct btf_member *member)
{
	u32 kind = BTF_INFO_KIND(type->info);

	return !member->name_off && (kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION);
}

/* Where a member begins, in bits; a bit-field: -1. */
static s64 bits_before(const struct btf_type *owner, const struct btf_member *member)
{
	if (!BTF_INFO_KFLAG(owner->info))
		return member->offset;
	return member->offset >> BITFIELD_SHIFT ? -1 : member->offset & OFFSET_MASK;
}

/* Is it this structure or integer, a pointer to it or an array of either? */
static bool is_of(const struct btf *btf, const struct btf_type *type, const char *name)
{
	while (type && BTF_INFO_KIND(type->info) == BTF_KIND_ARRAY)
		type = resolve(btf, array_of(type)->type);
	if (type && BTF_INFO_KIND(type->info) == BTF_KIND_PTR)
		type = resolve(btf, type->type);
	return type && (BTF_INFO_KIND(type->info) == BTF_KIND_STRUCT ||
			BTF_INFO_KIND(type->info) == BTF_KIND_INT) &&
	       !strcmp(kcr_btf_name(btf, type->name_off) ?: "", name);
}

static bool is_as_wanted(const struct btf *btf, const struct btf_type *type,
			 const struct kcr_btf_member *wanted)
{
	u32 kind = BTF_INFO_KIND(type->info);

	if (wanted->size != KCR_BTF_ANY_SIZE && size_of(btf, type) != wanted->size)
		return false;
	return wanted->type ? is_of(btf, type, wanted->type) :
			      kind == BTF_KIND_INT || kind == BTF_KIND_ENUM;
}

static bool find(const struct btf *btf, const struct btf_type *owner, u32 base, int depth,
		 struct kcr_btf_member *wanted)
{
	const struct btf_member *member = members_of(owner);
	u32 i, count = BTF_INFO_VLEN(owner->info);

	for (i = 0; i < count; i++, member++) {
		const struct btf_type *type = resolve(btf, member->type);
		s64 bits = bits_before(owner, member);

		if (!type || bits < 0)
			continue;
		if (is_nameless_struct(type, member)) {
			if (depth && find(btf, type, base + bits / 8, depth - 1, wanted))
				return true;
		} else if (!strcmp(kcr_btf_name(btf, member->name_off) ?: "", wanted->name)) {
			wanted->offset = base + bits / 8;
			return is_as_wanted(btf, type, wanted);
		}
	}
	return false;
}

/* Is there none of this name behind that one?  Types are numbered without gaps. */
static bool is_last(const struct btf *btf, const char *name, u32 id)
{
	const struct btf_type *type;

	while ((type = kcr_btf_type_by_id(btf, ++id))) {
		if (BTF_INFO_KIND(type->info) == BTF_KIND_STRUCT &&
		    !strcmp(kcr_btf_name(btf, type->name_off) ?: "", name))
			return false;
		cond_resched();
	}
	return true;
}

/* The structure of this name; NULL: none, or several. */
static const struct btf_type *find_struct(const struct btf *btf, const char *name)
{
	s32 id = kcr_btf_find(btf, name, BTF_KIND_STRUCT);

	return id > 0 && is_last(btf, name, id) ? kcr_btf_type_by_id(btf, id) : NULL;
}

static int place(const struct btf *btf, struct kcr_btf_wanted *wanted)
{
	const struct btf_type *owner = btf ? find_struct(btf, wanted->owner) : NULL;
	size_t i;

	for (i = 0; owner && i < wanted->count; i++)
		if (!find(btf, owner, 0, MAX_DEPTH, &wanted->members[i]))
			owner = NULL;
	wanted->type = owner;
	return owner || wanted->optional ? 0 : -EOPNOTSUPP;
}

int kcr_btf_search(struct kcr_btf_search *search)
{
	size_t i;
	int err;

	mutex_lock(&search_lock);
	for (i = 0; !search->done && !search->result && i < search->count; i++)
		search->result = place(kcr_btf(), &search->wanted[i]);
	search->done = true;
	err = search->result;
	mutex_unlock(&search_lock);
	return err;
}

/* ---- two of a kind ----------------------------------------------------------------- */

struct comparison {
	const struct btf *btf;
	const struct kcr_btf_known *known;
	size_t count;
	bool in_use;
	const void *a, *b;		/* the outermost structures … */
	size_t size;			/* … and their size */
	bool owns_target;		/* the member that is being compared is an OBJECT */
};

#define NOWHERE		(-1)
#define ELSEWHERE	(-2)

/* Where a pointer leads: an offset in its own structure, as that of an empty list, or … */
static ssize_t target(const void *pointer, const void *structure, size_t size)
{
	if (!pointer)
		return NOWHERE;
	return pointer >= structure && pointer < structure + size ? pointer - structure : ELSEWHERE;
}

static bool pointers_differ(const struct comparison *with, const void *const *a,
			    const void *const *b)
{
	ssize_t to = target(READ_ONCE(*a), with->a, with->size);

	return to != target(READ_ONCE(*b), with->b, with->size) ||
	       (to == ELSEWHERE && !with->owns_target);
}

/* Their contents depend on what threads have done, not on what the object is. */
static bool is_passing(const char *type)
{
	static const char *const types[] = {
		"callback_head", "completion", "delayed_work", "io_alloc_cache", "mutex",
		"percpu_ref", "raw_spinlock", "spinlock", "wait_queue_head", "work_struct",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

/* Begins with a member of the outermost structure: false if it does not count. */
static bool counts(struct comparison *with, const char *name)
{
	size_t i;

	with->owns_target = false;
	for (i = 0; i < with->count; i++) {
		if (strcmp(name, with->known[i].name))
			continue;
		with->owns_target = with->known[i].how == KCR_BTF_OBJECT;
		return with->owns_target || (with->known[i].how == KCR_BTF_IN_USE && !with->in_use);
	}
	return true;
}

static u64 bits_of(const void *object, u32 offset, u32 size)
{
	u64 word = 0;

	/* As below. */
	data_race(memcpy(&word, object + offset / 8, DIV_ROUND_UP(offset % 8 + size, 8)));
	return word >> (offset % 8) & GENMASK_ULL(size - 1, 0);
}

static const char *structs_differ(struct comparison *with, const struct btf_type *type,
				  const void *a, const void *b, int depth, const char *outer);

static bool values_differ(struct comparison *with, const struct btf_type *type,
			  const void *a, const void *b, int depth)
{
	const struct btf_type *element;
	size_t i, size = size_of(with->btf, type);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_PTR:
		return pointers_differ(with, a, b);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return !depth || structs_differ(with, type, a, b, depth - 1, "");
	case BTF_KIND_ARRAY:
		element = resolve(with->btf, array_of(type)->type);
		size /= array_of(type)->nelems ?: 1;
		for (i = 0; element && i < array_of(type)->nelems; i++)
			if (!depth || values_differ(with, element, a + i * size, b + i * size, depth - 1))
				return true;
		return !element;
	}
	/* One in use may change meanwhile: what is said of it then holds for no moment. */
	return !size || data_race(memcmp(a, b, size));
}

static bool members_differ(struct comparison *with, const struct btf_type *owner,
			   const struct btf_member *member, const void *a, const void *b, int depth)
{
	u32 size = BTF_INFO_KFLAG(owner->info) ? member->offset >> BITFIELD_SHIFT : 0;
	u32 offset = size ? member->offset & OFFSET_MASK : member->offset;
	const struct btf_type *type = resolve(with->btf, member->type);

	if (size)
		return bits_of(a, offset, size) != bits_of(b, offset, size);
	return !type || values_differ(with, type, a + offset / 8, b + offset / 8, depth);
}

/* Of a named structure, the name of the member that it is in the outermost one. */
static const char *structs_differ(struct comparison *with, const struct btf_type *type,
				  const void *a, const void *b, int depth, const char *outer)
{
	const char *own = kcr_btf_name(with->btf, type->name_off) ?: "", *found = NULL;
	const struct btf_member *member = members_of(type);
	u32 i, count = BTF_INFO_VLEN(type->info);

	if (is_passing(own))
		return NULL;
	/* 7.2: its second member, the place of its end if it is empty, may lead anywhere. */
	if (!strcmp(own, "mpscq"))
		return pointers_differ(with, a, b) ? outer : NULL;
	for (i = 0; i < count && !found; i++, member++) {
		const char *name = kcr_btf_name(with->btf, member->name_off) ?: "";
		const struct btf_type *inner = resolve(with->btf, member->type);

		if (!outer && inner && is_nameless_struct(inner, member))
			found = structs_differ(with, inner, a + member->offset / 8,
					       b + member->offset / 8, depth - 1, NULL);
		else if ((outer || counts(with, name)) &&
			 members_differ(with, type, member, a, b, depth))
			found = outer ?: name;
	}
	return found;
}

const char *kcr_btf_differs(const struct btf_type *type, const void *a, const void *b,
			    const struct kcr_btf_known *known, size_t count, bool in_use)
{
	struct comparison with = {
		.btf = kcr_btf(), .known = known, .count = count, .in_use = in_use,
		.a = a, .b = b, .size = type->size,
	};

	return structs_differ(&with, type, a, b, MAX_DEPTH, NULL);
}
