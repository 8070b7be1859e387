// SPDX-License-Identifier: GPL-2.0
/*
 * A context file as text: its size, where it comes from, the files that a restart needs,
 * the tree of its processes and, if asked for, their threads with registers, areas and file
 * descriptors.  Its strings are not trusted: what could control a terminal is printed as `?`.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "arch/registers.h"
#include "proc/container.h"
#include "report/plain.h"
#include "view.h"

/* ---- files ------------------------------------------------------------------------ */

const char *view_file_kind(const Kcr__File *file)
{
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field(&kcr__file__descriptor, file->kind_case);

	return field ? field->name : "unknown";
}

const char *view_file_name(const Kcr__File *file)
{
	switch (file->kind_case) {
	case KCR__FILE__KIND_REGULAR:
		return file->regular->path;
	case KCR__FILE__KIND_DIRECTORY:
		return file->directory->path;
	case KCR__FILE__KIND_DEVICE:
		return file->device->path;
	case KCR__FILE__KIND_TERMINAL:
		return file->terminal->path;
	case KCR__FILE__KIND_MEMFD:
		return file->memfd->name;
	case KCR__FILE__KIND_MESSAGE_QUEUE:
		return file->message_queue->name;
	case KCR__FILE__KIND_PIPE:
		return file->pipe->fifo_path ?: "";
	case KCR__FILE__KIND_PACKET_SOCKET:
		return file->packet_socket->interface ?: "";
	case KCR__FILE__KIND_CLOSED:
		return file->closed;
	default:
		return "";
	}
}

/* ---- text ------------------------------------------------------------------------- */

void text_put(FILE *out, const char *text)
{
	while (text && *text) {
		bool harmless;
		size_t length = plain_next(text, &harmless);

		fwrite(harmless ? text : "?", harmless ? length : 1, 1, out);
		text += length;
	}
}

static void line(FILE *out, const char *label, const char *text)
{
	fprintf(out, "%-14s ", label);
	text_put(out, text);
	putc('\n', out);
}

static const char *state_name(const Kcr__Process *p)
{
	switch (p->state) {
	case KCR__PROCESS__STATE__STOPPED:
		return "stopped";
	case KCR__PROCESS__STATE__ZOMBIE:
		return "zombie";
	default:
		return "running";
	}
}

static const char *command(const Kcr__Process *p)
{
	return p->command && *p->command ? p->command : p->name ? p->name : "";
}

static const Kcr__Mm *process_mm(const struct context *c, const Kcr__Process *p)
{
	size_t i;

	if (p->mm || !p->has_mm_id)
		return p->mm;
	for (i = 0; i < c->nr_processes; i++)
		if (c->process[i]->mm && c->process[i]->mm->id == p->mm_id)
			return c->process[i]->mm;
	return NULL;
}

static uint64_t address_space_bytes(const Kcr__Mm *mm)
{
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; mm && i < mm->n_vma; i++)
		bytes += mm->vma[i]->end - mm->vma[i]->start;
	return bytes;
}

static size_t descriptor_count(const struct context *c, const Kcr__Process *p)
{
	size_t i;

	for (i = 0; i < c->nr_processes && !p->n_descriptor && p->has_files_id; i++)
		if (c->process[i]->n_descriptor && c->process[i]->has_files_id &&
		    c->process[i]->files_id == p->files_id)
			return c->process[i]->n_descriptor;
	return p->n_descriptor;
}

static void write_origin(FILE *out, const struct context *c, const struct summary *summary,
			 uint64_t bytes)
{
	static const char *const scopes[] = { "process", "process group", "session", "tree" };
	const Kcr__Preamble *p = c->preamble;
	time_t seconds = p->time_sec;
	char when[64] = "?", kinds[96];
	struct tm tm;
	size_t threads = 0, i;

	for (i = 0; i < c->nr_processes; i++)
		threads += c->process[i]->n_thread;
	if (localtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S %z", &tm);
	fputs("Format:        KCR context file, version 1, by KCR ", out);
	text_put(out, p->kcr_version);
	putc('\n', out);
	if (bytes)
		fprintf(out, "Size:          %" PRIu64 " KiB\n", (bytes + 1023) / 1024);
	fputs("Kernel:        ", out);
	text_put(out, p->kernel_release);
	putc(' ', out);
	text_put(out, p->kernel_version);
	putc('\n', out);
	line(out, "Architecture:", p->machine);
	line(out, "Host:", p->host);
	line(out, "Time:", when);
	line(out, "Command:", command(c->process[0]));
	fprintf(out, "PID:           %" PRId32 "\n", c->process[0]->pid);
	fprintf(out, "Scope:         %s %" PRId32 ", asked for by process %" PRId32 "\n",
		p->scope < 4 ? scopes[p->scope] : "scope", p->target, p->requester);
	fprintf(out, "Processes:     %zu, with %zu threads and %zu files\n", c->nr_processes,
		threads, c->nr_files);
	if (p->namespaces)
		line(out, "Container:", container_names(p->namespaces, kinds, sizeof(kinds)));
	for (i = 0; i < p->n_ancestor; i++) {
		fprintf(out, "%-15s%s %016" PRIx64 " ", i ? "" : "Increment of:",
			i ? "increment " : "full image", p->ancestor[i]->id);
		text_put(out, p->ancestor[i]->name);
		putc('\n', out);
	}
	if (summary)
		fprintf(out, "Memory:        %" PRIu64 " pages (%" PRIu64 " KiB); complete and undamaged\n",
			summary->pages, summary->pages * 4);
	if (summary && summary->shared)
		fprintf(out, "Shared:        %" PRIu64 " KiB more: pages that other processes have, too\n",
			summary->shared * 4);
	if (summary && summary->duplicates)
		fprintf(out, "Duplicates:    %" PRIu64 " KiB more: pages that are equal to others\n",
			summary->duplicates * 4);
}

static void write_row(FILE *out, const struct context *c, const struct summary *summary,
		      size_t index, int depth)
{
	const Kcr__Process *p = c->process[index];
	const Kcr__Mm *mm = process_mm(c, p);

	fprintf(out, "%8" PRId32 " %8" PRId32 "  %-8s %7zu %12" PRIu64, p->pid, p->ppid,
		state_name(p), p->n_thread, address_space_bytes(mm) / 1024);
	if (summary)
		fprintf(out, " %12" PRIu64, 4 * (summary->memory[index].pages + summary->memory[index].shared +
						 summary->memory[index].duplicates));
	fprintf(out, " %5zu  %*s", descriptor_count(c, p), 2 * (depth < 20 ? depth : 20), "");
	text_put(out, command(p));
	putc('\n', out);
}

/* The children of `parent` with their descendants; 0: those whose parent is outside. */
static void write_tree(FILE *out, const struct context *c, const struct summary *summary,
		       int32_t parent, int depth)
{
	size_t i;

	for (i = 0; i < c->nr_processes; i++) {
		const Kcr__Process *p = c->process[i];

		if (parent ? p->ppid != parent : context_process(c, p->ppid) != NULL)
			continue;
		write_row(out, c, summary, i, depth);
		/* Deeper levels are only in the JSON. */
		if (depth < 1000)
			write_tree(out, c, summary, p->pid, depth + 1);
	}
}

static void write_registers(FILE *out, const Kcr__Thread *t)
{
	size_t i;

	for (i = 0; i < ARCH_NR_SHOWN; i++)
		fprintf(out, "%s%8s %016" PRIx64 "%s", i % 4 ? " " : "  ", arch_shown[i].name,
			t->reg[arch_shown[i].place], i % 4 == 3 ? "\n" : "");
}

static void write_thread(FILE *out, const Kcr__Thread *t)
{
	fprintf(out, "  thread %" PRId32 " ", t->tid);
	text_put(out, t->name);
	fprintf(out, "  signal mask %016" PRIx64 "\n", t->sigmask);
	write_registers(out, t);
}

static void write_areas(FILE *out, const Kcr__Mm *mm)
{
	size_t i;

	for (i = 0; i < mm->n_vma; i++) {
		const Kcr__Vma *v = mm->vma[i];

		fprintf(out, "  %012" PRIx64 "-%012" PRIx64 " %c%c%c%c ", v->start, v->end,
			v->flags & KCR_VMA_READ ? 'r' : '-', v->flags & KCR_VMA_WRITE ? 'w' : '-',
			v->flags & KCR_VMA_EXEC ? 'x' : '-', v->flags & KCR_VMA_SHARED ? 's' : 'p');
		text_put(out, v->name);
		putc('\n', out);
	}
}

static void write_descriptors(FILE *out, const struct context *c, const Kcr__Process *p)
{
	size_t i;

	for (i = 0; i < p->n_descriptor; i++) {
		const Kcr__File *file = context_file(c, p->descriptor[i]->file_id);

		fprintf(out, "  fd %-5" PRId32 " file %-5" PRIu32 " %s ", p->descriptor[i]->fd,
			file->id, view_file_kind(file));
		text_put(out, view_file_name(file));
		putc('\n', out);
	}
}

/* Is there more to say than the line in the tree does? */
static void write_sysv(FILE *out, const Kcr__Process *p)
{
	size_t i;

	for (i = 0; i < p->n_semaphore_set; i++)
		fprintf(out, "  semaphore set %" PRId32 " key %#" PRIx32 ": %zu semaphores\n",
			p->semaphore_set[i]->identity->id, (uint32_t)p->semaphore_set[i]->identity->key,
			p->semaphore_set[i]->n_value);
	for (i = 0; i < p->n_semaphore_undo; i++)
		fprintf(out, "  semaphore %" PRIu32 " of set %" PRId32 ": %+" PRId32 " at its end (SEM_UNDO)\n",
			p->semaphore_undo[i]->number, p->semaphore_undo[i]->set,
			p->semaphore_undo[i]->adjustment);
	for (i = 0; i < p->n_sysv_queue; i++)
		fprintf(out, "  message queue %" PRId32 " key %#" PRIx32 ": %zu messages\n",
			p->sysv_queue[i]->identity->id, (uint32_t)p->sysv_queue[i]->identity->key,
			p->sysv_queue[i]->n_message);
}

static bool says_more(const Kcr__Process *p)
{
	return p->state == KCR__PROCESS__STATE__ZOMBIE || p->has_leader_exit_code ||
	       (p->mm && p->mm->n_record);
}

static void write_process(FILE *out, const struct context *c, const Kcr__Process *p, bool all)
{
	size_t i;

	if (!all && !says_more(p))
		return;
	fprintf(out, "\nProcess %" PRId32 ": ", p->pid);
	text_put(out, command(p));
	putc('\n', out);
	if (p->state == KCR__PROCESS__STATE__ZOMBIE)
		fprintf(out, "  zombie with status %#" PRIx32 "\n", p->exit_code);
	if (p->has_leader_exit_code)
		fprintf(out, "  first thread ended with status %#" PRIx32 "\n", p->leader_exit_code);
	for (i = 0; all && i < p->n_thread; i++)
		write_thread(out, p->thread[i]);
	for (i = 0; p->mm && i < p->mm->n_record; i++)
		text_record(out, p->mm->record[i], all);
	if (!all)
		return;
	if (p->mm)
		write_areas(out, p->mm);
	write_descriptors(out, c, p);
	write_sysv(out, p);
}

void text_write(FILE *out, const struct context *c, const struct summary *summary, uint64_t bytes,
		bool all)
{
	size_t i;

	write_origin(out, c, summary, bytes);
	text_needs(out, c);
	fprintf(out, "\n%8s %8s  %-8s %7s %12s%s %5s  %s\n", "PID", "PPID", "STATE", "THREADS",
		"VIRTUAL KiB", summary ? "    SAVED KiB" : "", "FILES", "COMMAND");
	write_tree(out, c, summary, 0, 0);
	for (i = 0; i < c->nr_processes; i++)
		write_process(out, c, c->process[i], all);
}
