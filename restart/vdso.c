// SPDX-License-Identifier: GPL-2.0
/*
 * If the vdso is the same, it is moved to its old address.  If it is another
 * kernel's, the saved one is mapped as ordinary code, and each of its functions
 * is patched (vdso_patch.c) to jump to the function of the same name in the live one (or to
 * make the system call, if that has none).  See vdso.h.
 *
 * A thread that a signal has interrupted in such a function, and that is saved in the handler,
 * returns into the old code.  See vdso_data.c for the data that it finds.
 */
#include "restart/vdso.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "arch/registers.h"
#include "rebuild/blob.h"
#include "report/report.h"
#include "restart/process.h"
#include "restart/vdso_data.h"
#include "restart/vdso_patch.h"

static void span(const struct ranges *r, uint64_t *start, uint64_t *end)
{
	*start = *end = 0;
	for (size_t i = 0; i < r->count; i++) {
		if (!i || r->at[i].start < *start)
			*start = r->at[i].start;
		if (r->at[i].end > *end)
			*end = r->at[i].end;
	}
}

static int collect(struct vdso *v, const struct ranges *self, const Kcr__Mm *mm)
{
	int err = 0;

	for (size_t i = 0; i < self->count && !err; i++)
		if (self->at[i].vdso)
			err = ranges_add(&v->live, self->at[i]);
	for (size_t i = 0; i < mm->n_vma && !err; i++) {
		const Kcr__Vma *vma = mm->vma[i];

		if (vma->flags & (KCR_VMA_VDSO | KCR_VMA_VVAR))
			err = ranges_add(&v->saved, (struct range){
				.start = vma->start, .end = vma->end, .vdso = true,
				.text = vma->flags & KCR_VMA_VDSO });
	}
	span(&v->live, &v->live_start, &v->live_end);
	span(&v->saved, &v->saved_start, &v->saved_end);
	return err;
}

const struct range *vdso_text(const struct ranges *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->at[i].text)
			return &r->at[i];
	return NULL;
}

/* The same mappings at the same distances with the same code? */
static bool is_same(const struct vdso *v, const Kcr__Mm *mm)
{
	const struct range *text = vdso_text(&v->live);

	if (v->live.count != v->saved.count || !text ||
	    mm->vdso_text.len != text->end - text->start)
		return false;
	for (size_t i = 0; i < v->live.count; i++) {
		const struct range *live = &v->live.at[i], *saved = &v->saved.at[i];

		if (live->start - v->live_start != saved->start - v->saved_start ||
		    live->end - live->start != saved->end - saved->start ||
		    live->text != saved->text)
			return false;
	}
	return !memcmp((const void *)(uintptr_t)text->start, mm->vdso_text.data,
		       mm->vdso_text.len);
}

static int refuse_inside(const struct range *text, const Kcr__Process *p)
{
	for (size_t i = 0; i < p->n_thread; i++) {
		uint64_t ip = p->thread[i]->n_reg > ARCH_IP ? p->thread[i]->reg[ARCH_IP] : 0;

		if (ip >= text->start && ip < text->end)
			return report_fail(-EOPNOTSUPP, "thread %d was stopped inside the vdso of "
					   "another kernel: restart on the kernel of the "
					   "checkpoint, or checkpoint again", p->thread[i]->tid);
	}
	return 0;
}

/* Nor may a thread of any other process in the memory of p. */
static int refuse_all_inside(const struct range *text, const struct context *c, const Kcr__Process *p)
{
	int err = refuse_inside(text, p);

	for (size_t i = 0; i < c->nr_processes && !err; i++)
		if (process_in_memory(p, c->process[i]))
			err = refuse_inside(text, c->process[i]);
	return err;
}

int vdso_plan(struct vdso *v, const struct ranges *self, const struct context *c,
	      const Kcr__Process *p)
{
	const Kcr__Mm *mm = p->mm;
	const struct range *text;
	int err;

	memset(v, 0, sizeof(*v));
	err = collect(v, self, mm);
	if (err)
		return err;
	text = vdso_text(&v->saved);
	v->foreign = text && !is_same(v, mm);
	if (!v->foreign)
		return 0;
	if (!vdso_text(&v->live))
		return report_fail(-EOPNOTSUPP, "this kernel runs without a vdso (vdso=0), which "
				   "process %d used", p->pid);
	if (mm->vdso_text.len != text->end - text->start)
		return report_fail(-EINVAL, "process %d: the context file lacks its vdso", p->pid);
	return refuse_all_inside(text, c, p);
}

int vdso_check(const struct context *c, const Kcr__Process *p)
{
	struct ranges self = { 0 };
	struct vdso v = { 0 };
	int err = ranges_self(&self);

	if (!err)
		err = vdso_plan(&v, &self, c, p);
	ranges_free(&v.live);
	ranges_free(&v.saved);
	ranges_free(&self);
	return err;
}

uint64_t vdso_length(const struct vdso *v)
{
	return v->live_end - v->live_start;
}

static void move(const struct vdso *v, uint64_t from, uint64_t to, struct script *s)
{
	for (size_t i = 0; i < v->live.count; i++) {
		uint64_t offset = v->live.at[i].start - v->live_start;
		uint64_t length = v->live.at[i].end - v->live.at[i].start;

		script_call_expect(s, "moving the vdso", to + offset, SYS_mremap, from + offset,
				   length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to + offset, 0);
	}
}

static bool overlap(uint64_t a_start, uint64_t a_end, uint64_t b_start, uint64_t b_end)
{
	return a_start < b_end && b_start < a_end;
}

static int move_home(const struct vdso *v, struct script *s)
{
	uint64_t from = v->live_start;

	if (from == v->saved_start)
		return 0;
	if (overlap(v->live_start, v->live_end, v->saved_start, v->saved_end)) {
		move(v, from, v->hole, s);
		from = v->hole;
	}
	move(v, from, v->saved_start, s);
	return 0;
}

/* ---- the vdso of another kernel ---------------------------------------------- */

static int plant(const struct vdso *v, const Kcr__Mm *mm, const struct ranges *kept, struct script *s)
{
	const struct range *text = vdso_text(&v->saved), *live_text = vdso_text(&v->live);
	uint64_t live = v->live_start, length = text->end - text->start, bytes;
	int err;

	for (size_t i = 0; i < mm->n_vma; i++)
		if (overlap(v->live_start, v->live_end, mm->vma[i]->start, mm->vma[i]->end))
			live = v->hole;
	if (live != v->live_start)
		move(v, v->live_start, live, s);
	bytes = script_data(s, mm->vdso_text.data, length);
	if (!bytes)
		return -ENOSPC;
	err = vdso_patch(v, mm, kept, (uint8_t *)(uintptr_t)bytes,
			 live + (live_text->start - v->live_start), s);
	if (err)
		return err;
	vdso_data_script(v, mm, s);
	script_call_expect(s, "the old vdso", text->start, SYS_mmap, text->start, length,
			   PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0);
	script_copy(s, "the old vdso", text->start, bytes, length);
	script_call(s, "the old vdso", SYS_mprotect, text->start, length, PROT_READ | PROT_EXEC,
		    0, 0, 0);
	return 0;
}

int vdso_script(const struct vdso *v, const Kcr__Mm *mm, const struct ranges *kept, struct script *s)
{
	if (!v->live.count)
		return 0;
	if (!v->saved.count) {
		script_call(s, "dropping the vdso", SYS_munmap, v->live_start,
			    v->live_end - v->live_start, 0, 0, 0, 0);
		return 0;
	}
	return v->foreign ? plant(v, mm, kept, s) : move_home(v, s);
}
