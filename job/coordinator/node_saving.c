// SPDX-License-Identifier: GPL-2.0
/*
 * What the daemon of a node does for a checkpoint: runs cr_checkpoint for its ranks,
 * syncs their folder, sends the requested signal, removes folders.
 */
#include "job/coordinator/node_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/folder.h"
#include "job/local.h"
#include "job/snapshot.h"
#include "proc/bandwidth.h"
#include "proc/tree.h"

static void tell_failure(struct node *node, uint32_t id, uint32_t rank, int code, const char *text)
{
	size_t length = sizeof(struct wire_failed) + strlen(text) + 1;
	uint8_t *data = malloc(length);

	if (!data)
		return;
	memcpy(data, &(struct wire_failed){ code }, sizeof(struct wire_failed));
	strcpy((char *)data + sizeof(struct wire_failed), text);
	wire_send(&node->root, WIRE_FAILED, rank, id, data, length);
	free(data);
}

static void dump_member(struct node *node, struct member *m)
{
	char *path = snapshot_rank_path(node->order->strings, m->rank);
	int err = path ? dump_start(&m->dump, m->top, path, node->argument, node->copies,
				    node->order->signal) : -ENOMEM;

	m->waits = false;
	m->told = DUMP_CHECKS;
	m->dump_id = node->id;
	if (err)
		tell_failure(node, node->id, m->rank, -err, err == -ENOENT ?
			     "cr_checkpoint is not in the PATH of mpirun" :
			     "cannot start cr_checkpoint");
	free(path);
}

static bool is_at_work(const struct member *m)
{
	return m->dump.fd >= 0 && !dump_is_held(&m->dump);
}

/* Starts its dump, or lets one that is ready copy the rank. */
static void serve_waiting(struct node *node, struct member *m)
{
	if (m->dump.fd < 0)
		dump_member(node, m);
	else if (m->dump.state == DUMP_READY)
		dump_go_on(&m->dump);
	m->waits = false;
}

/* Those that stand still come first. */
size_t saving_more(struct node *node)
{
	size_t running = 0;

	for (size_t i = 0; i < node->nr_members; i++)
		running += is_at_work(node->member[i]);
	for (size_t i = 0; i < node->nr_members && running < node->at_once; i++) {
		struct member *m = node->member[i];

		if (!m->waits)
			continue;
		serve_waiting(node, m);
		running += is_at_work(m);
	}
	for (size_t i = 0; i < node->nr_members && running < node->at_once && node->writes; i++) {
		struct member *m = node->member[i];

		if (m->dump.fd < 0 || m->dump.state != DUMP_RELEASED)
			continue;
		dump_go_on(&m->dump);
		running++;
	}
	return running;
}

bool saving_under_way(const struct node *node)
{
	for (size_t i = 0; i < node->nr_members; i++)
		if (node->member[i]->dump.fd >= 0)
			return true;
	return false;
}

static void remove_useless(struct node *node)
{
	if (saving_under_way(node))
		return;
	for (char **each = node->useless; each && *each; each++)
		local_remove(*each);
	strings_free(node->useless);
	node->useless = NULL;
}

/* Its file is complete. */
static void is_saved(struct node *node, struct member *m, const char *text)
{
	node->saved[node->nr_saved++] = (struct saved){ m->rank, m->dump.file, m->dump.nr_files };
	m->dump.file = NULL;
	job_figures_add(&node->figures, &m->dump.figures);
	wire_queue(&node->root, WIRE_DUMPED, m->rank, m->dump_id, text, text ? strlen(text) : 0);
}

/* All its saved processes; the rank first: its parent may end the job when it ends itself. */
static void signal_member(const struct member *m, int number)
{
	pid_t *saved = NULL;
	ssize_t count = proc_tree(m->top, &saved);

	kill(m->pid, number);
	for (ssize_t i = 0; i < count; i++)
		if (saved[i] != m->pid)
			kill(saved[i], number);
	free(saved);
}

void saving_ended(struct node *node, struct member *m)
{
	bool signalled = m->dump.state == DUMP_ENDS, early = m->dump.state == DUMP_SAVED;
	char *text;
	int err = dump_finish(&m->dump, &text);

	if (signalled && err) {
		signal_member(m, node->signal);
	} else if (err || early) {
		tell_failure(node, m->dump_id, m->rank, err ? -err : EIO, text ? text : "cannot be saved");
	} else if (!signalled && m->dump_id == node->id) {
		is_saved(node, m, text);
	}
	free(m->dump.file);
	m->dump.file = NULL;
	free(text);
	if (!saving_more(node))
		wire_flush(&node->root);
	remove_useless(node);
}

void saving_heard(struct node *node, struct member *m)
{
	struct wire_copied copied = { m->dump.copied };
	char *text;

	if (m->told == m->dump.state || !dump_is_held(&m->dump))
		return;
	m->told = m->dump.state;
	if (m->told == DUMP_SAVED && m->dump_id != node->id) {
		dump_cancel(&m->dump);
	} else if (m->told == DUMP_SAVED) {
		text = dump_warnings(&m->dump);
		is_saved(node, m, text);
		free(text);
	} else if (m->told == DUMP_READY) {
		wire_queue(&node->root, WIRE_READY, m->rank, m->dump_id, NULL, 0);
	} else {
		wire_queue(&node->root, WIRE_COPIED, m->rank, m->dump_id, &copied, sizeof(copied));
	}
	if (!saving_more(node))
		wire_flush(&node->root);
}

void saving_write(struct node *node)
{
	node->writes = true;
	saving_more(node);
}

void saving_lost(struct member *m)
{
	m->wanted = m->waits = false;
	/* A file that is complete is complete; the rest of the rank's tree waits for what becomes of it. */
	if (m->told != DUMP_RELEASED && m->told != DUMP_SAVED)
		dump_cancel(&m->dump);
}

/* The limit is the node's, and as many of its ranks write at a time as there are processors. */
static void share_bandwidth(struct node *node)
{
	static const char name[] = "--bandwidth=";
	unsigned long long rate;
	size_t ranks = 0;

	for (size_t i = 0; i < node->nr_members; i++)
		ranks += node->member[i]->rank != WIRE_ALL && node->member[i]->wire.fd >= 0;
	ranks = ranks < node->at_once ? ranks : node->at_once;
	for (char **each = node->argument; *each && ranks; each++) {
		if (strncmp(*each, name, strlen(name)))
			continue;
		rate = strtoull(*each + strlen(name), NULL, 10) / ranks;
		snprintf(node->bandwidth, sizeof(node->bandwidth), "%s%llu", name,
			 rate > BANDWIDTH_LEAST ? rate : BANDWIDTH_LEAST);
		*each = node->bandwidth;
	}
}

/*
 * Parses struct wire_dump, and creates the folder if it is local to the node.  Ranks that were
 * to be dumped by the order before, which is gone, no longer are.
 */
static int take_order(struct node *node, const uint8_t *data, size_t length)
{
	size_t count = 0;
	char *text, *end;

	for (size_t i = 0; i < node->nr_members; i++)
		node->member[i]->wanted = node->member[i]->waits = false;
	free(node->order);
	while (node->nr_saved)
		free(node->saved[--node->nr_saved].file);
	free(node->saved);
	memset(&node->figures, 0, sizeof(node->figures));
	node->order = length > sizeof(*node->order) ? malloc(length + 1) : NULL;
	node->saved = calloc(node->nr_members + 1, sizeof(*node->saved));
	if (!node->order || !node->saved)
		return -ENOMEM;
	memcpy(node->order, data, length);
	end = (char *)node->order + length;
	*end = '\0';
	for (text = node->order->strings + strlen(node->order->strings) + 1;
	     text < end && count < MAX_ARGUMENTS; text += strlen(text) + 1)
		node->argument[count++] = text;
	node->argument[count] = NULL;
	share_bandwidth(node);
	if (node->order->local)
		return local_make(node->order->strings);
	folder_look_again(node->order->strings);
	return 0;
}

/* All ranks have drained their channels: this one may suspend its own. */
static void begin_member(struct node *node, struct member *m)
{
	m->suspends = m->wanted = true;
	wire_send(&m->wire, WIRE_SUSPEND, m->rank, node->id, NULL, 0);
}

int saving_take_order(struct node *node, const uint8_t *data, size_t length, bool copies)
{
	int err = take_order(node, data, length);
	char text[512];

	node->copies = copies && !err;
	node->writes = false;
	if (err) {
		snprintf(text, sizeof(text), "cannot create %s: %s",
			 node->order ? node->order->strings : "", strerror(-err));
		tell_failure(node, node->id, WIRE_ALL, -err, err == -ENOMEM ? "no memory" : text);
	}
	return err;
}

void saving_check(struct node *node)
{
	for (size_t i = 0; i < node->nr_members; i++)
		node->member[i]->waits = node->member[i]->rank != WIRE_ALL;
	saving_more(node);
}

void saving_begin(struct node *node)
{
	for (size_t i = 0; i < node->nr_members; i++)
		if (node->member[i]->rank != WIRE_ALL && node->member[i]->wire.fd >= 0)
			begin_member(node, node->member[i]);
}

void saving_cancel(struct node *node)
{
	for (size_t i = 0; i < node->nr_members; i++) {
		struct member *m = node->member[i];

		m->wanted = m->waits = false;
		if (m->dump.state != DUMP_ENDS)		/* else it sends the signal */
			dump_cancel(&m->dump);
	}
}

void saving_end(struct node *node)
{
	for (size_t i = 0; i < node->nr_members; i++) {
		struct dump *d = &node->member[i]->dump;
		char *text = NULL;

		if (d->fd >= 0 && !dump_finish(d, &text))
			free(d->file);
		free(text);
	}
	remove_useless(node);
}

/* For all that was saved, even if the rank has ended meanwhile.  The files are synced. */
void saving_sync(struct node *node)
{
	int err;

	if (!node->order)
		return;
	err = node->order->local && node->nr_saved ? local_sync(node->order->strings) : 0;
	wire_queue(&node->root, WIRE_FIGURES, WIRE_ALL, node->id, &node->figures,
		   sizeof(node->figures));
	for (size_t i = 0; i < node->nr_saved; i++) {
		const struct saved *s = &node->saved[i];

		if (err)
			tell_failure(node, node->id, s->rank, -err, "its folder cannot be written");
		else
			wire_queue(&node->root, WIRE_SYNCED, s->rank, node->id, s->file,
				   s->nr_files * sizeof(*s->file));
	}
	wire_flush(&node->root);
}

void saving_forget(struct node *node, const char *folder, size_t length)
{
	if (length && !folder[length - 1])
		strings_add(&node->useless, folder);
	remove_useless(node);
}

void saving_signal(struct node *node, const uint8_t *data, size_t length)
{
	int32_t number;

	if (length < sizeof(number))
		return;
	memcpy(&number, data, sizeof(number));
	node->signal = number;
	for (size_t i = 0; i < node->nr_members; i++) {
		struct member *m = node->member[i];

		if (m->dump.fd >= 0 && m->dump.state == DUMP_SAVED)
			dump_go_on(&m->dump);
		else if (m->rank != WIRE_ALL && m->dump.fd < 0)
			signal_member(m, number);
	}
}
