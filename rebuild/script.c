// SPDX-License-Identifier: GPL-2.0
/*
 * Scripts: operations are collected here and copied into the blob when a
 * script is finished; their data and labels are copied there at once.
 */
#include "rebuild/blob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct script {
	struct blob *blob;
	struct restorer_op *op;
	size_t count;
	size_t capacity;
	const char *last_label;		/* the same literal again … */
	uint64_t last_label_at;		/* … is already here */
};

struct script *script_new(struct blob *blob)
{
	struct script *s = calloc(1, sizeof(*s));

	if (s)
		s->blob = blob;
	return s;
}

void script_free(struct script *s)
{
	if (!s)
		return;
	free(s->op);
	free(s);
}

static uint64_t add_label(struct script *s, const char *label)
{
	/* Compare with the copy in the blob: callers may reuse a buffer. */
	if (s->last_label_at && !strcmp(label, s->last_label))
		return s->last_label_at;
	s->last_label_at = script_data_aligned(s, label, strlen(label) + 1, 1);
	s->last_label = (const char *)(uintptr_t)s->last_label_at;
	return s->last_label_at;
}

/* Adds an operation, filled in except for the arguments; NULL: no memory (remembered). */
static struct restorer_op *add(struct script *s, const char *label, enum restorer_kind kind,
			       enum restorer_check check)
{
	struct restorer_op *op;

	if (s->count == s->capacity) {
		size_t capacity = s->capacity ? 2 * s->capacity : 64;
		struct restorer_op *larger = realloc(s->op, capacity * sizeof(*larger));

		if (!larger) {
			s->blob->error = -ENOMEM;
			return NULL;
		}
		s->op = larger;
		s->capacity = capacity;
	}
	op = &s->op[s->count++];
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->check = check;
	op->label = add_label(s, label);
	return op;
}

static void add_call(struct script *s, const char *label, enum restorer_check check,
		     uint64_t expected, long nr, const uint64_t *arg)
{
	struct restorer_op *op = add(s, label, RESTORER_CALL, check);

	if (!op)
		return;
	op->nr = nr;
	op->expected = (int64_t)expected;
	memcpy(op->arg, arg, sizeof(op->arg));
}

void script_call(struct script *s, const char *label, long nr, uint64_t a0, uint64_t a1,
		 uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	add_call(s, label, RESTORER_SUCCEEDS, 0, nr, (uint64_t[]){ a0, a1, a2, a3, a4, a5 });
}

void script_call_expect(struct script *s, const char *label, uint64_t expected, long nr,
			uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
			uint64_t a5)
{
	add_call(s, label, RESTORER_EQUALS, expected, nr,
		 (uint64_t[]){ a0, a1, a2, a3, a4, a5 });
}

void script_call_try(struct script *s, const char *label, long nr, uint64_t a0, uint64_t a1,
		     uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	add_call(s, label, RESTORER_IGNORED, 0, nr, (uint64_t[]){ a0, a1, a2, a3, a4, a5 });
}

void script_call_or_next(struct script *s, const char *label, long nr, uint64_t a0, uint64_t a1,
			 uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	add_call(s, label, RESTORER_OR_NEXT, 0, nr, (uint64_t[]){ a0, a1, a2, a3, a4, a5 });
}

void script_call_or_noted(struct script *s, const char *label, int32_t pid, long nr, uint64_t a0,
			  uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	add_call(s, label, RESTORER_OR_NOTED, (uint64_t)pid, nr,
		 (uint64_t[]){ a0, a1, a2, a3, a4, a5 });
}

void script_timer_create(struct script *s, const char *label, int32_t clock, uint64_t event,
			 int32_t id)
{
	struct restorer_op *op = add(s, label, RESTORER_TIMER, RESTORER_EQUALS);

	if (!op)
		return;
	op->expected = id;
	op->arg[0] = (uint64_t)(int64_t)clock;
	op->arg[1] = event;
	op->arg[2] = (uint64_t)(int64_t)id;
}

void script_copy(struct script *s, const char *label, uint64_t to, uint64_t from, uint64_t length)
{
	struct restorer_op *op = add(s, label, RESTORER_COPY, RESTORER_IGNORED);

	if (!op)
		return;
	op->arg[0] = to;
	op->arg[1] = from;
	op->arg[2] = length;
}

void script_clone(struct script *s, int32_t saved_tid, bool exact, long nr,
		  uint64_t a0, uint64_t a1, uint64_t a2)
{
	struct restorer_op *op = add(s, "a thread", RESTORER_CLONE,
				     exact ? RESTORER_EQUALS : RESTORER_SUCCEEDS);

	if (!op)
		return;
	op->nr = nr;
	op->expected = saved_tid;
	op->arg[0] = a0;
	op->arg[1] = a1;
	op->arg[2] = a2;
}

void script_enter(struct script *s, const char *label, int job, uint64_t request, uint64_t xsave)
{
	struct restorer_op *op = add(s, label, RESTORER_ENTER, RESTORER_SUCCEEDS);

	if (!op)
		return;
	op->arg[0] = (uint64_t)job;
	op->arg[1] = request;
	op->arg[2] = xsave;
}

uint64_t script_data_aligned(struct script *s, const void *data, size_t length, size_t align)
{
	uint64_t at = blob_reserve(s->blob, length, align);

	if (at && length)
		memcpy((void *)(uintptr_t)at, data, length);
	return at;
}

uint64_t script_data(struct script *s, const void *data, size_t length)
{
	return script_data_aligned(s, data, length, 16);
}

uint64_t script_finish(struct script *s)
{
	struct restorer_script head = {
		.status = s->blob->status,
		.op = script_data(s, s->op, s->count * sizeof(*s->op)),
		.count = s->count,
	};

	return head.op ? script_data(s, &head, sizeof(head)) : 0;
}
