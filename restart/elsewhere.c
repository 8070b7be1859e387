// SPDX-License-Identifier: GPL-2.0
/*
 * See elsewhere.h.  Several threads may wait for pages; that one of them which finds nobody else
 * reading the socket reads whatever comes next, for whomever it is.  Nothing is asked for before
 * it is wanted: so what a program waits for has only what the others have asked for before it.
 */
#include "restart/elsewhere.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>

#include "image/codec.h"
#include "report/report.h"
#include "restart/link.h"

#define PAGES_MAX	(CONTEXT_FETCH_PAGES * CONTEXT_PAGE)

/* Somebody who waits. */
struct request {
	struct request *next;
	struct link_want want;
	void *buffer;
	size_t length;
	bool done;
};

struct connection {
	struct elsewhere elsewhere;
	struct link link;
	struct codec *codec;		/* … and stored[]: of the one who reads */
	char stored[PAGES_MAX];
	pthread_mutex_t lock;		/* protects what follows, and sending */
	pthread_cond_t changed;
	struct request *requests;
	bool reading;
	int error;			/* the first one */
};

static struct connection *connection(struct elsewhere *e)
{
	return (struct connection *)e;
}

/* Whose pages are these?  He is no longer among those who wait; NULL: nobody's. */
static struct request *take_request(struct connection *c, const struct link_want *want)
{
	struct request **at = &c->requests, *found;

	pthread_mutex_lock(&c->lock);
	while (*at && memcmp(&(*at)->want, want, sizeof(*want)))
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&c->lock);
	return found;
}

/* Reads `length` bytes for him and verifies them. */
static int read_pages(struct connection *c, const struct request *r, const struct link_pages *pages,
		      size_t length)
{
	bool raw = pages->compression == CONTEXT_RAW;
	char *to = raw ? r->buffer : c->stored;
	int err;

	if (pages->compression > CONTEXT_ZSTD || (raw ? length != r->length : length >= r->length))
		return -EPROTO;
	err = link_read(&c->link, to, length);
	if (err)
		return err;
	if (XXH64(to, length, 0) != pages->sum)
		return -EBADMSG;
	return raw ? 0 : codec_decompress(c->codec, pages->compression, to, length, r->buffer, r->length);
}

/* The next message.  Without the lock, by one thread at a time. */
static int read_message(struct connection *c)
{
	struct link_pages pages;
	struct link_head head;
	struct request *r;
	int err = link_receive(&c->link, &head);

	if (!err && (head.type != LINK_PAGES || head.length < sizeof(pages) ||
		     head.length > sizeof(pages) + PAGES_MAX))
		err = -EPROTO;
	if (!err)
		err = link_read(&c->link, &pages, sizeof(pages));
	if (err)
		return err;
	r = take_request(c, &pages.of);
	if (!r)
		return -EPROTO;
	err = read_pages(c, r, &pages, head.length - sizeof(pages));
	pthread_mutex_lock(&c->lock);
	r->done = !err;
	pthread_mutex_unlock(&c->lock);
	return err;
}

/*
 * Waits until the pages are there, and reads if nobody else does; who does may be about to store
 * them.  With the lock.
 */
static int await(struct connection *c, const struct request *r)
{
	while (!r->done && (c->reading || !c->error)) {
		int err;

		if (c->reading) {
			pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		c->reading = true;
		pthread_mutex_unlock(&c->lock);
		err = read_message(c);
		pthread_mutex_lock(&c->lock);
		c->reading = false;
		c->error = c->error ?: err;
		pthread_cond_broadcast(&c->changed);
	}
	return r->done ? 0 : c->error;
}

static int explain(int err)
{
	switch (err) {
	case -ECONNRESET:
	case -EPIPE:
		return report_fail(-ECONNRESET, "the connection to the machine that the processes came from "
				   "is lost, before all of their memory was here: they do not run here");
	case -EPROTO:
	case -EBADMSG:
	case -EINVAL:
		return report_fail(-EPROTO, "the machine that the processes came from sends wrong memory: they do "
				   "not run here");
	default:
		return report_errno(err, "memory from the machine that the processes came from");
	}
}

static int fetch(struct elsewhere *e, uint64_t number, uint32_t first, uint32_t nr_pages,
		 void *buffer)
{
	struct connection *c = connection(e);
	struct request r = {
		.want = { number, first, nr_pages }, .buffer = buffer,
		.length = (size_t)nr_pages * CONTEXT_PAGE,
	};
	int err;

	pthread_mutex_lock(&c->lock);
	err = c->error ?: link_send(&c->link, LINK_WANT, &r.want, sizeof(r.want));
	if (!err) {
		r.next = c->requests;
		c->requests = &r;
		err = await(c, &r);
	}
	c->error = c->error ?: err;
	pthread_mutex_unlock(&c->lock);
	return err ? explain(err) : 0;
}

static void end(struct elsewhere *e, bool loaded)
{
	struct connection *c = connection(e);

	if (loaded) {
		pthread_mutex_lock(&c->lock);
		/* If it has gone, it need not know. */
		link_send(&c->link, LINK_LOADED, NULL, 0);
		pthread_mutex_unlock(&c->lock);
	}
	shutdown(c->link.in, SHUT_RDWR);
}

int elsewhere_new(struct elsewhere **out, int fd)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (c)
		c->codec = codec_new();
	if (!c || !c->codec) {
		free(c);
		return report_errno(-ENOMEM, "--lazy");
	}
	c->elsewhere = (struct elsewhere){ .fetch = fetch, .end = end };
	c->link = (struct link){ .in = fd, .out = fd };
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	*out = &c->elsewhere;
	return 0;
}

void elsewhere_free(struct elsewhere *e)
{
	struct connection *c = connection(e);

	if (!e)
		return;
	close(c->link.in);
	codec_free(c->codec);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
