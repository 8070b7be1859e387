// SPDX-License-Identifier: GPL-2.0
/*
 * The notes of an ELF core, as in core(5) and the kernel's own cores: process
 * and threads with their registers, auxiliary vector, mapped files.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>

#include "arch/elf.h"
#include "arch/xstate.h"
#include "report/report.h"
#include "view.h"

#define SIGINFO_SIZE	128

struct notes {
	char *data;
	size_t length, capacity;
	bool failed;
};

static void append(struct notes *n, const void *data, size_t length)
{
	size_t padded = (length + 3) & ~(size_t)3;

	if (n->length + padded > n->capacity) {
		size_t capacity = 2 * (n->length + padded);
		char *bigger = realloc(n->data, capacity);

		if (!bigger) {
			n->failed = true;
			return;
		}
		n->data = bigger;
		n->capacity = capacity;
	}
	memset(n->data + n->length, 0, padded);
	if (length)
		memcpy(n->data + n->length, data, length);
	n->length += padded;
}

static void note(struct notes *n, const char *owner, uint32_t type, const void *data,
		 size_t length)
{
	Elf64_Nhdr head = {
		.n_namesz = strlen(owner) + 1,
		.n_descsz = length,
		.n_type = type,
	};

	append(n, &head, sizeof(head));
	append(n, owner, head.n_namesz);
	append(n, data, length);
}

static void note_prstatus(struct notes *n, const Kcr__Process *p, const Kcr__Thread *t)
{
	struct elf_prstatus status = {
		.pr_pid = t->tid,
		.pr_ppid = p->ppid,
		.pr_pgrp = p->pgid,
		.pr_sid = p->sid,
		.pr_fpvalid = 1,
		.pr_sighold = t->sigmask,
	};

	static_assert(sizeof(status.pr_reg) == KCR_NR_REGS * sizeof(uint64_t), "register set");
	if (p->state == KCR__PROCESS__STATE__STOPPED) {
		status.pr_cursig = p->stop_signal;
		status.pr_info.si_signo = p->stop_signal;
	}
	memcpy(&status.pr_reg, t->reg, sizeof(status.pr_reg));
	note(n, "CORE", NT_PRSTATUS, &status, sizeof(status));
}

static void note_prpsinfo(struct notes *n, const Kcr__Process *p)
{
	bool stopped = p->state == KCR__PROCESS__STATE__STOPPED;
	struct elf_prpsinfo info = {
		.pr_sname = stopped ? 'T' : 'S',
		.pr_state = stopped ? 3 : 1,
		.pr_pid = p->pid,
		.pr_ppid = p->ppid,
		.pr_pgrp = p->pgid,
		.pr_sid = p->sid,
	};

	if (p->credentials) {
		info.pr_uid = p->credentials->uid;
		info.pr_gid = p->credentials->gid;
	}
	if (p->name)
		strncpy(info.pr_fname, p->name, sizeof(info.pr_fname) - 1);
	if (p->command)
		strncpy(info.pr_psargs, p->command, sizeof(info.pr_psargs) - 1);
	note(n, "CORE", NT_PRPSINFO, &info, sizeof(info));
}

static void note_siginfo(struct notes *n, const Kcr__Process *p)
{
	uint32_t info[SIGINFO_SIZE / 4] = { 0 };

	if (p->state == KCR__PROCESS__STATE__STOPPED)
		info[0] = p->stop_signal;
	note(n, "CORE", NT_SIGINFO, info, sizeof(info));
}

/* Floating point and vectors. */
static void note_xstate(struct notes *n, const struct context *c, const Kcr__Thread *t)
{
	uint64_t features = c->preamble->has_xfeatures ? c->preamble->xfeatures : 0;

	note(n, "CORE", NT_FPREGSET, t->xstate.data, ARCH_XSTATE_FPREGS);
	note(n, "LINUX", ARCH_ELF_XSTATE, t->xstate.data, t->xstate.len);
	if (!n->failed)
		arch_xstate_note(n->data + n->length - t->xstate.len, t->xstate.len, features);
}

/* The path of a mapping for NT_FILE: of regular files only. */
static const char *mapped_path(const struct context *c, const Kcr__Vma *vma)
{
	const Kcr__File *file = vma->has_file_id ? context_file(c, vma->file_id) : NULL;

	return file && file->kind_case == KCR__FILE__KIND_REGULAR ? file->regular->path : NULL;
}

static void note_files(struct notes *n, const struct context *c, const Kcr__Mm *mm)
{
	struct notes table = { 0 }, names = { 0 };
	uint64_t head[2] = { 0, CONTEXT_PAGE };
	char *data;
	size_t i;

	for (i = 0; i < mm->n_vma; i++) {
		const Kcr__Vma *vma = mm->vma[i];
		uint64_t entry[3] = { vma->start, vma->end, vma->offset / CONTEXT_PAGE };
		const char *path = mapped_path(c, vma);

		if (!path)
			continue;
		head[0]++;
		append(&table, entry, sizeof(entry));
		append(&names, path, strlen(path) + 1);
		/* Names follow each other without padding. */
		if (!names.failed)
			names.length -= -(strlen(path) + 1) & 3;
	}
	data = malloc(sizeof(head) + table.length + names.length);
	if (table.failed || names.failed || !data) {
		n->failed = true;
	} else if (head[0]) {
		memcpy(data, head, sizeof(head));
		memcpy(data + sizeof(head), table.data, table.length);
		memcpy(data + sizeof(head) + table.length, names.data, names.length);
		note(n, "CORE", NT_FILE, data, sizeof(head) + table.length + names.length);
	}
	free(data);
	free(table.data);
	free(names.data);
}

int core_notes(const struct context *c, const Kcr__Process *p, const Kcr__Mm *mm, void **out,
	       size_t *length)
{
	struct notes n = { 0 };
	size_t i;

	note_prstatus(&n, p, p->thread[0]);
	note_prpsinfo(&n, p);
	note_siginfo(&n, p);
	if (mm->has_auxv)
		note(&n, "CORE", NT_AUXV, mm->auxv.data, mm->auxv.len);
	note_files(&n, c, mm);
	note_xstate(&n, c, p->thread[0]);
	for (i = 1; i < p->n_thread; i++) {
		note_prstatus(&n, p, p->thread[i]);
		note_xstate(&n, c, p->thread[i]);
	}
	if (n.failed) {
		free(n.data);
		return report_errno(-ENOMEM, "cannot write the core");
	}
	*out = n.data;
	*length = n.length;
	return 0;
}
