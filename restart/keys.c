// SPDX-License-Identifier: GPL-2.0
/*
 * pkey_alloc(2) gives the lowest free key, mmap(2) takes one by itself for memory that may
 * only be executed, and memory may be under a key that was freed.  So all keys are allocated,
 * the mappings get theirs, and what the program had not is freed in the end.  What threads may
 * do with each key is in their registers.
 */
#include "restart/keys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "arch/address.h"
#include "report/report.h"

static bool is_execute_only(const Kcr__Vma *vma)
{
	return (vma->flags & (KCR_VMA_READ | KCR_VMA_WRITE | KCR_VMA_EXEC)) == KCR_VMA_EXEC;
}

/* Does the kernel set its key, the same as before?  Where there are no keys, it does. */
static bool is_automatic(const Kcr__Mm *mm, const Kcr__Vma *vma)
{
	if (!mm->has_keys)
		return true;
	return is_execute_only(vma) ? vma->pkey && vma->pkey == mm->execute_key : !vma->pkey;
}

/* A key of the program's own, allocated or of a mapping. */
static bool has_own(const Kcr__Mm *mm)
{
	bool own = mm->keys;

	for (size_t i = 0; i < mm->n_vma; i++)
		own |= mm->vma[i]->pkey && !is_automatic(mm, mm->vma[i]);
	return own;
}

static bool is_needed(const Kcr__Mm *mm)
{
	bool needed = has_own(mm);

	for (size_t i = 0; i < mm->n_vma; i++)
		needed |= !is_automatic(mm, mm->vma[i]);
	return needed;
}

/* The one for execute-only memory that is needed; 0: none. */
static unsigned int execute_key(const Kcr__Mm *mm)
{
	for (size_t i = 0; i < mm->n_vma; i++)
		if (is_execute_only(mm->vma[i]) && is_automatic(mm, mm->vma[i]))
			return mm->execute_key;
	return 0;
}

int keys_check(const Kcr__Process *p, const Kcr__Mm *mm)
{
	int key;

	if (!has_own(mm))
		return 0;
	key = pkey_alloc(0, 0);
	if (key < 0)
		return report_fail(-EOPNOTSUPP, "process %d uses protection keys of memory "
				   "(pkey_alloc), which this machine does not have", p->pid);
	pkey_free(key);
	return 0;
}

/* Without own keys none may be available here, which is as good. */
void keys_script_first(const Kcr__Mm *mm, struct script *s)
{
	unsigned int execute = execute_key(mm);

	if (!is_needed(mm))
		return;
	for (unsigned int key = 1; key < ARCH_MEMORY_KEYS; key++) {
		if (has_own(mm))
			script_call_expect(s, "pkey_alloc", key, SYS_pkey_alloc, 0, 0, 0, 0, 0, 0);
		else
			script_call_try(s, "pkey_alloc", SYS_pkey_alloc, 0, 0, 0, 0, 0, 0);
	}
	if (execute)
		script_call_try(s, "pkey_free", SYS_pkey_free, execute, 0, 0, 0, 0, 0);
}

void keys_script_mapping(const Kcr__Mm *mm, const Kcr__Vma *vma, struct script *s)
{
	uint64_t length = vma->end - vma->start;
	int protection = (vma->flags & KCR_VMA_READ ? PROT_READ : 0) |
			 (vma->flags & KCR_VMA_WRITE ? PROT_WRITE : 0) |
			 (vma->flags & KCR_VMA_EXEC ? PROT_EXEC : 0);

	if (is_automatic(mm, vma))
		return;
	if (vma->pkey)
		script_call(s, "pkey_mprotect", SYS_pkey_mprotect, vma->start, length, protection,
			    vma->pkey, 0, 0);
	else
		script_call_try(s, "pkey_mprotect", SYS_pkey_mprotect, vma->start, length,
				protection, 0, 0, 0);
}

void keys_script_last(const Kcr__Mm *mm, struct script *s)
{
	for (unsigned int key = 1; is_needed(mm) && key < ARCH_MEMORY_KEYS; key++)
		if (!(mm->keys & 1u << key) && key != execute_key(mm))
			script_call_try(s, "pkey_free", SYS_pkey_free, key, 0, 0, 0, 0, 0);
}
