// SPDX-License-Identifier: GPL-2.0
/*
 * See aio_rings.h.  When a ring is moved the kernel gives its context the new address as its
 * number.
 */
#include "restart/aio_rings.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "rebuild/script.h"
#include "report/report.h"
#include "resource/aio_context.h"

#define LABEL	"moving a ring of io_setup"

int aio_rings_make(struct rebuild *r, const Kcr__Process *p)
{
	int err = 0;

	if (!p->mm->n_aio)
		return 0;
	r->aio_ring = calloc(p->mm->n_aio, sizeof(*r->aio_ring));
	if (!r->aio_ring)
		return report_errno(-ENOMEM, "process %d: contexts of io_setup", p->pid);
	for (size_t i = 0; i < p->mm->n_aio && !err; i++)
		err = aio_context_make(p->pid, p->mm->aio[i], &r->aio_ring[i]);
	return err;
}

static int park(uint64_t *ring, uint64_t length, struct ranges *busy)
{
	uint64_t hole;
	int err = hole_find(busy, length, &hole);

	if (err)
		return err;
	if (mremap((void *)(uintptr_t)*ring, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
		   (void *)(uintptr_t)hole) == MAP_FAILED)
		return report_errno(-errno, LABEL);
	*ring = hole;
	return ranges_add(busy, (struct range){ .start = hole, .end = hole + length });
}

int aio_rings_park(struct rebuild *r, const Kcr__Mm *mm, struct ranges *busy)
{
	int err = 0;

	for (size_t i = 0; i < mm->n_aio && !err; i++)
		err = park(&r->aio_ring[i], aio_context_length(mm->aio[i]), busy);
	return err;
}

int aio_rings_ranges(const struct rebuild *r, const Kcr__Mm *mm, struct ranges *kept)
{
	int err = 0;

	for (size_t i = 0; i < mm->n_aio && !err; i++)
		err = ranges_add(kept, (struct range) {
			.start = r->aio_ring[i],
			.end = r->aio_ring[i] + aio_context_length(mm->aio[i]),
		});
	return err;
}

bool aio_rings_script(const struct rebuild *r, const Kcr__Mm *mm, const Kcr__Vma *vma,
		      struct script *s)
{
	uint64_t length = vma->end - vma->start;

	for (size_t i = 0; i < mm->n_aio; i++) {
		if (mm->aio[i]->id != vma->start)
			continue;
		script_call_expect(s, LABEL, vma->start, SYS_mremap, r->aio_ring[i], length, length,
				   MREMAP_MAYMOVE | MREMAP_FIXED, vma->start, 0);
		return true;
	}
	return false;
}
