// SPDX-License-Identifier: GPL-2.0
/* See pages.h. */
#include "migrate/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "checkpoint/postponed.h"
#include "image/codec.h"
#include "proc/thread.h"
#include "report/report.h"

#define PAGES_MAX	(CONTEXT_FETCH_PAGES * CONTEXT_PAGE)

/* ---- the thread --------------------------------------------------------------------------- */

struct answer {
	struct link_pages head;
	char data[PAGES_MAX];
};

struct server {
	struct pages *pages;
	struct codec *codec;
	char raw[PAGES_MAX];
	struct answer answer;
};

/* Its length, or -errno. */
static ssize_t prepare(struct server *s, const struct link_want *want)
{
	size_t length = (size_t)want->nr_pages * CONTEXT_PAGE;
	const struct compression *how = &s->pages->compression;
	int err = postponed_read(s->pages->postponed, want->number, want->first, want->nr_pages, s->raw);
	ssize_t stored = 0;

	if (err)
		return err;
	if (how->kind != CONTEXT_RAW)
		stored = codec_compress(s->codec, how, s->raw, length, s->answer.data);
	if (stored < 0)
		return stored;
	if (!stored)
		memcpy(s->answer.data, s->raw, length);
	s->answer.head = (struct link_pages) {
		.of = *want, .compression = stored ? how->kind : CONTEXT_RAW,
		.sum = XXH64(s->answer.data, stored ? (size_t)stored : length, 0),
	};
	return stored ?: (ssize_t)length;
}

/* 1: all is loaded, 0, or -errno. */
static int answer(struct server *s)
{
	const struct link *w = &s->pages->remote.link;
	struct link_want want;
	struct link_head head;
	ssize_t length;
	int err = link_receive(w, &head);

	if (!err && head.type == LINK_LOADED && !head.length)
		return 1;
	if (!err && (head.type != LINK_WANT || head.length != sizeof(want)))
		err = -EPROTO;
	if (!err)
		err = link_read(w, &want, sizeof(want));
	if (err)
		return err;
	length = prepare(s, &want);
	if (length < 0)
		return (int)length;
	return link_send(w, LINK_PAGES, &s->answer, sizeof(s->answer.head) + length);
}

static void *serve(void *arg)
{
	struct pages *p = arg;
	struct server *s = calloc(1, sizeof(*s));
	int result = -ENOMEM;

	if (s)
		s->codec = codec_new();
	if (s && s->codec) {
		s->pages = p;
		do
			result = answer(s);
		while (!result);
	}
	p->result = result < 0 ? result : 0;
	/* They would wait there for pages that do not come. */
	if (p->result && p->remote.link.out >= 0) {
		close(p->remote.link.out);
		p->remote.link.out = -1;
	}
	p->ended = true;
	if (s)
		codec_free(s->codec);
	free(s);
	return NULL;
}

/* ---- for the source ------------------------------------------------------------------------ */

/* It says that it is connected there. */
static int await_joined(const struct pages *p)
{
	struct link_head head;
	int err = link_receive(&p->remote.link, &head);

	if (!err && head.type == LINK_JOINED && !head.length)
		return 0;
	return report_fail(err ?: -EPROTO, "the second connection to %s, for --lazy, could not be made",
			   p->host);
}

int pages_connect(struct pages *p, const char *rsh, const char *host, const char *spool)
{
	char *command = NULL;
	int err;

	p->host = host;
	p->postponed = postponed_new();
	if (!p->postponed)
		return report_errno(-ENOMEM, "--lazy");
	err = remote_quote(&command, "cr_migrate");
	if (!err)
		err = remote_quote(&command, "--receive-pages");
	if (!err)
		err = remote_quote(&command, spool);
	if (!err)
		err = remote_start(&p->remote, rsh, host, command);
	free(command);
	return err ? err : await_joined(p);
}

int pages_serve(struct pages *p)
{
	int err = thread_start(&p->thread, serve, p);

	p->started = !err;
	return err ? report_errno(err, "--lazy") : 0;
}

int pages_check(const struct pages *p)
{
	if (!p->ended)
		return 0;
	report_clear();
	return report_fail(-ECONNRESET, "the second connection to %s, for --lazy, is lost", p->host);
}

void pages_drop(struct pages *p)
{
	if (p->started)
		pthread_join(p->thread, NULL);
	p->started = false;
	remote_end(&p->remote);
	postponed_free(p->postponed);
	p->postponed = NULL;
}

int pages_finish(struct pages *p)
{
	pages_drop(p);
	if (!p->result)
		return 0;
	report_clear();
	return report_fail(-ECONNRESET, "the connection to %s was lost before all memory was there: what was "
			   "moved has been ended there", p->host);
}
