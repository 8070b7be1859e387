// SPDX-License-Identifier: GPL-2.0
/*
 * image_edit [CHANGE…] < IMAGE > NEW: what a forger could do to a context file, with
 * all checksums right.  Changes are made to every process, or every file:
 *	uid=N gid=N	all user or group ids		group=N	 one more group
 *	caps=HEX	permitted and effective		securebits=N
 *	credentials=	no record of them		soft=N	 limit of open files, hard as well
 *	fsuid=N		the file system user id		policy=N scheduling policy of all threads
 *	own=N		user ids of the first thread, which get a record of its own
 *	netlink_group=N	number of a generic netlink group, and of its family
 *	netlink_family=TEXT	name of that family
 *	path:OLD=NEW	the path of a regular file	tid=N	 number of the second thread
 *	seals=N		of a memfd
 *	vdso=PID	of another kernel, with all threads of this process (none: of all) within
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/registers.h"
#include "image/context.h"
#include "report/report.h"
#include "tests/memory_section.h"

#define NOFILE	7

static char **changes;

/* The value of a change, or NULL. */
static const char *change(const char *name)
{
	size_t length = strlen(name);

	for (char **each = changes; *each; each++)
		if (!strncmp(*each, name, length) && (*each)[length] == '=')
			return *each + length + 1;
	return NULL;
}

static void set(uint32_t *id, const char *value)
{
	if (value)
		*id = strtoul(value, NULL, 0);
}

static void edit_credentials(Kcr__Credentials *c)
{
	const char *uid = change("uid"), *gid = change("gid"), *caps = change("caps");
	uint32_t *uids[] = { &c->uid, &c->euid, &c->suid, &c->fsuid };
	uint32_t *gids[] = { &c->gid, &c->egid, &c->sgid, &c->fsgid };

	for (int i = 0; i < 4; i++) {
		set(uids[i], uid);
		set(gids[i], gid);
	}
	set(&c->fsuid, change("fsuid"));
	if (caps)
		c->cap_permitted = c->cap_effective = strtoull(caps, NULL, 16);
	if (change("group")) {
		c->group = realloc(c->group, (c->n_group + 1) * sizeof(*c->group));
		set(&c->group[c->n_group++], change("group"));
	}
}

/* The first thread gets the process's credentials as its own, with another user. */
static void edit_first_thread(Kcr__Process *p, const char *user)
{
	size_t length = kcr__credentials__get_packed_size(p->credentials);
	uint8_t *packed = malloc(length);
	Kcr__Credentials *c;

	kcr__credentials__pack(p->credentials, packed);
	c = kcr__credentials__unpack(NULL, length, packed);
	free(packed);
	set(&c->uid, user);
	set(&c->euid, user);
	set(&c->suid, user);
	set(&c->fsuid, user);
	p->thread[0]->credentials = c;
}

/* A process that shares another's memory comes behind that. */
static void edit_vdso(Kcr__Process *p, const char *within)
{
	static uint64_t vdso;

	if (p->mm && p->mm->has_vdso_text) {
		p->mm->vdso_text.data[p->mm->vdso_text.len - 1] ^= 1;
		vdso = p->mm->vdso;
	}
	for (size_t i = 0; i < p->n_thread && (!*within || atoi(within) == p->pid); i++)
		p->thread[i]->reg[ARCH_IP] = vdso + 0x800;
}

static void edit_process(Kcr__Process *p)
{
	const char *securebits = change("securebits"), *soft = change("soft");

	if (p->credentials)
		edit_credentials(p->credentials);
	if (p->credentials && p->n_thread && change("own"))
		edit_first_thread(p, change("own"));
	if (p->credentials && change("credentials")) {
		kcr__credentials__free_unpacked(p->credentials, NULL);
		p->credentials = NULL;
	}
	for (size_t i = 0; i < p->n_thread && securebits; i++) {
		p->thread[i]->has_securebits = true;
		set(&p->thread[i]->securebits, securebits);
	}
	for (size_t i = 0; i < p->n_thread; i++)
		set(&p->thread[i]->sched->policy, change("policy"));
	if (change("vdso"))
		edit_vdso(p, change("vdso"));
	if (p->n_thread > 1 && change("tid"))
		p->thread[1]->tid = atoi(change("tid"));
	for (size_t i = 0; i < p->n_limit && soft; i++)
		if (p->limit[i]->resource == NOFILE)
			p->limit[i]->soft = p->limit[i]->hard = strtoull(soft, NULL, 0);
}

static void edit_generic_group(Kcr__NetlinkSocket *s)
{
	const char *number = change("netlink_group"), *family = change("netlink_family");
	Kcr__NetlinkGroup *group = s->generic_group[0];

	set(&s->group[0], number);
	set(&group->number, number);
	set(&group->family_id, number);
	if (family) {
		free(group->family);
		group->family = strdup(family);
	}
}

static void edit_file(Kcr__File *file)
{
	if (file->kind_case == KCR__FILE__KIND_NETLINK_SOCKET &&
	    file->netlink_socket->n_generic_group)
		edit_generic_group(file->netlink_socket);
	if (file->kind_case == KCR__FILE__KIND_MEMFD)
		set(&file->memfd->seals, change("seals"));
	for (char **each = changes; *each; each++) {
		char *path = strncmp(*each, "path:", 5) ? NULL : *each + 5;
		char *new = path ? strchr(path, '=') : NULL;

		if (!new || file->kind_case != KCR__FILE__KIND_REGULAR ||
		    strncmp(file->regular->path, path, new - path) ||
		    file->regular->path[new - path])
			continue;
		free(file->regular->path);
		file->regular->path = strdup(new + 1);
	}
}

static int copy_memory(struct context_reader *r, struct context_writer *w,
		       const struct context_item *item)
{
	void *pages = malloc(item->nr_pages * CONTEXT_PAGE);
	struct kcr_run *runs = calloc(item->nr_runs, sizeof(*runs));
	int err = pages && runs ? 0 : -ENOMEM;

	if (!err) {
		memcpy(runs, item->runs, item->nr_runs * sizeof(*runs));
		err = context_memory_read(r, pages);
	}
	if (!err)
		err = section_write(w, item->pid, runs, item->nr_runs, pages, CONTEXT_RAW);
	free(pages);
	free(runs);
	return err;
}

static int copy(struct context_reader *r, struct context_writer *w, struct context_item *item)
{
	int err;

	switch (item->type) {
	case CONTEXT_CONTENT:
		return context_write_content(w, item->file_id, item->offset, item->data,
					     item->length);
	case CONTEXT_MEMORY:
		return copy_memory(r, w, item);
	case CONTEXT_FILE:
		edit_file((Kcr__File *)item->message);
		break;
	case CONTEXT_PROCESS:
		edit_process((Kcr__Process *)item->message);
		break;
	default:
		break;
	}
	err = context_write_message(w, item->type, item->message);
	protobuf_c_message_free_unpacked(item->message, NULL);
	return err;
}

int main(int argc, char **argv)
{
	struct context_reader *r = NULL;
	struct context_writer *w = NULL;
	struct context_item item = { 0 };
	int err = context_reader_new(&r, STDIN_FILENO, "standard input");

	(void)argc;
	changes = argv + 1;
	if (!err)
		err = context_writer_new(&w, STDOUT_FILENO, 0);
	while (!err && (err = context_read(r, &item)) > 0)
		err = copy(r, w, &item);
	if (!err)
		err = context_writer_finish(w);
	if (err)
		report_print(err);
	return err ? 1 : 0;
}
