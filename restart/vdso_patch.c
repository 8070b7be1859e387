// SPDX-License-Identifier: GPL-2.0
/*
 * A thread that was interrupted in a function of the old vdso returns into it, so none of its
 * instructions but the first may change.  That has one byte, often; and one is enough: the
 * opcode of a jump, for which the next bytes, whatever they are, tell how far it leads.  There
 * the code is put that leads to the live vdso.  Only if something else is there it is put into
 * the function itself.  See vdso_patch.h.
 */
#include "restart/vdso_patch.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "arch/vdso.h"
#include "rebuild/blob.h"
#include "report/report.h"
#include "restart/vdso_symbols.h"

#define PAGE		4096ull
#define STACK_ROOM	(1ull << 30)	/* for stacks to grow */

struct code {
	uint8_t byte[ARCH_JUMP_LENGTH];
	uint32_t length;		/* 0: nothing can be done */
};

/* What leads to the live function, or stands for it. */
static struct code make_code(const struct vdso_symbols *now, uint64_t live,
			     const struct vdso_symbol *symbol)
{
	const struct vdso_symbol *target = vdso_symbol(now, symbol->name);
	long nr = arch_vdso_call(symbol->name);
	struct code code = { .length = 0 };

	if (target) {
		arch_put_jump(code.byte, live + target->value);
		code.length = ARCH_JUMP_LENGTH;
	} else if (nr >= 0) {
		arch_put_stub(code.byte, (uint32_t)nr);
		code.length = ARCH_STUB_LENGTH;
	}
	return code;
}

static bool overlap(const struct range *r, uint64_t start, uint64_t end)
{
	return r->start < end && start < r->end;
}

static bool is_free(const struct vdso *v, const Kcr__Mm *mm, const struct ranges *kept,
		    uint64_t start, uint64_t end)
{
	const struct range hole = { .start = v->hole, .end = v->hole + vdso_length(v) };

	if (start < HOLE_LOWEST || start >= end || end > HOLE_HIGHEST || overlap(&hole, start, end))
		return false;
	for (size_t i = 0; i < kept->count; i++)
		if (overlap(&kept->at[i], start, end))
			return false;
	for (size_t i = 0; i < mm->n_vma; i++) {
		const Kcr__Vma *vma = mm->vma[i];
		uint64_t room = vma->flags & KCR_VMA_GROWSDOWN ? STACK_ROOM : 0;

		if (overlap(&(struct range){ .start = vma->start - room, .end = vma->end }, start, end))
			return false;
	}
	return true;
}

static bool is_in(const struct ranges *pages, uint64_t page)
{
	for (size_t i = 0; i < pages->count; i++)
		if (pages->at[i].start == page)
			return true;
	return false;
}

/* Puts the code there, in pages of which some may be mapped already. */
static int put_far(const struct code *code, uint64_t at, struct ranges *pages, struct script *s)
{
	for (uint64_t page = at & ~(PAGE - 1); page < at + code->length; page += PAGE) {
		if (is_in(pages, page))
			continue;
		if (ranges_add(pages, (struct range){ .start = page, .end = page + PAGE }))
			return -ENOMEM;
		script_call_expect(s, "a way out of the old vdso", page, SYS_mmap, page, PAGE,
				   PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0);
	}
	script_copy(s, "a way out of the old vdso", at, script_data(s, code->byte, code->length),
		    code->length);
	return 0;
}

/* A function may have several names. */
static bool was_patched(const struct vdso_symbols *saved, size_t symbol)
{
	for (size_t i = 0; i < symbol; i++)
		if (saved->at[i].value == saved->at[symbol].value)
			return true;
	return false;
}

static int patch_one(const struct vdso *v, const Kcr__Mm *mm, const struct ranges *kept,
		     const struct vdso_symbol *symbol, const struct code *code, uint8_t *entry,
		     struct ranges *pages, struct script *s)
{
	uint64_t at = arch_far_target(entry, vdso_text(&v->saved)->start + symbol->value);
	uint64_t start = at & ~(PAGE - 1), end = (at + code->length + PAGE - 1) & ~(PAGE - 1);

	if (symbol->size >= ARCH_FAR_LENGTH && is_free(v, mm, kept, start, end)) {
		*entry = ARCH_FAR_OPCODE;
		return put_far(code, at, pages, s);
	}
	if (symbol->size >= code->length)
		memcpy(entry, code->byte, code->length);
	return 0;
}

int vdso_patch(const struct vdso *v, const Kcr__Mm *mm, const struct ranges *kept, uint8_t *text,
	       uint64_t live, struct script *s)
{
	const struct range *now_text = vdso_text(&v->live);
	struct ranges pages = { 0 };
	struct vdso_symbols saved, now;
	int err = vdso_symbols(&saved, text, mm->vdso_text.len);

	if (!err)
		err = vdso_symbols(&now, (const void *)(uintptr_t)now_text->start,
				   now_text->end - now_text->start);
	if (err)
		return report_fail(-EINVAL, "the vdso saved in the context file is not readable");
	for (size_t i = 0; i < saved.count && !err; i++) {
		const struct vdso_symbol *symbol = &saved.at[i];
		struct code code = make_code(&now, live, symbol);

		if (!code.length)
			report_verbose("the vdso of this kernel has no %s", symbol->name);
		else if (!was_patched(&saved, i))
			err = patch_one(v, mm, kept, symbol, &code, text + symbol->value, &pages, s);
	}
	for (size_t i = 0; i < pages.count && !err; i++)
		script_call(s, "a way out of the old vdso", SYS_mprotect, pages.at[i].start, PAGE,
			    PROT_READ | PROT_EXEC, 0, 0, 0);
	ranges_free(&pages);
	return err;
}
