// SPDX-License-Identifier: GPL-2.0
/* Early write-back of a file; see writeback.h.  The lock protects `begun`, `written` and `end`. */
#include "image/writeback.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/thread.h"

#define WINDOW_BYTES	(8 << 20)	/* at a time: an end waits for no more */

struct writeback {
	int fd;
	off_t begun;			/* what is before this was handed to the disk */
	off_t written;
	bool end;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
};

/* Waits until there is a window; false: it is not worth while any more. */
static bool await(struct writeback *w)
{
	bool more;

	pthread_mutex_lock(&w->lock);
	while (!w->end && w->written - w->begun < WINDOW_BYTES)
		pthread_cond_wait(&w->changed, &w->lock);
	more = !w->end;
	pthread_mutex_unlock(&w->lock);
	return more;
}

static void *work(void *arg)
{
	struct writeback *w = arg;

	while (await(w)) {
		sync_file_range(w->fd, w->begun, WINDOW_BYTES, SYNC_FILE_RANGE_WRITE);
		pthread_mutex_lock(&w->lock);
		w->begun += WINDOW_BYTES;
		pthread_mutex_unlock(&w->lock);
	}
	return NULL;
}

static void release(struct writeback *w)
{
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

struct writeback *writeback_begin(int fd)
{
	off_t position = lseek(fd, 0, SEEK_CUR);
	struct writeback *w;
	struct stat st;

	if (position < 0 || fstat(fd, &st) || (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)))
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->fd = fd;
	w->begun = w->written = position;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	if (!thread_start(&w->thread, work, w))
		return w;
	release(w);
	return NULL;
}

void writeback_note(struct writeback *w)
{
	off_t position = w ? lseek(w->fd, 0, SEEK_CUR) : -1;

	if (position < 0)
		return;
	pthread_mutex_lock(&w->lock);
	w->written = position;
	if (w->written - w->begun >= WINDOW_BYTES)
		pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

void writeback_end(struct writeback *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->end = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	release(w);
}
