// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cr_request() and its like: the program asks for a checkpoint of itself and gets no handle.
 * Within a critical section the request is not over when the call returns; the next
 * call reaps it.  cri.lock guards which one that is.
 */
#include "libcr/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct request {
	unsigned int generation;	/* of cri: a forked child does not have it */
	cr_checkpoint_handle_t handle;
	struct stat file;		/* its destination */
	char name[PATH_MAX];		/* ours to remove, absolute; "": none is */
};

static struct request *unreaped;

static struct request *exchange(struct request *with)
{
	struct request *old;

	cri_lock();
	old = unreaped;
	unreaped = with;
	cri_unlock();
	return old;
}

static bool is_in_section(void)
{
	return cri_self.generation == cri.generation && cri_self.depth;
}

/* If the request fails, what is in the file will be no image. */
static void note_file(struct request *request, int fd)
{
	char link[32];
	ssize_t length;

	if (fstat(fd, &request->file) || !S_ISREG(request->file.st_mode))
		return;
	sprintf(link, "/proc/self/fd/%d", fd);
	length = readlink(link, request->name, sizeof(request->name) - 1);
	request->name[length > 0 ? length : 0] = '\0';
}

static void remove_file(const struct request *request)
{
	struct stat st;

	if (!request->name[0] || lstat(request->name, &st) ||
	    st.st_dev != request->file.st_dev || st.st_ino != request->file.st_ino)
		return;
	if (unlink(request->name) && truncate(request->name, 0))
		return;			/* as damaged as it is: cr_restart tells */
}

static void reap(struct request *request)
{
	int ret = 0;

	if (!request)
		return;
	if (request->generation == cri.generation)
		do
			ret = cr_poll_checkpoint(&request->handle, NULL);
		while (ret == CR_POLL_CHKPT_ERR_PRE && errno == EINTR);
	if (ret == CR_POLL_CHKPT_ERR_POST && errno != CR_ERESTARTED)
		remove_file(request);
	free(request);
}

static void reap_previous(void)
{
	struct timeval now = {};
	struct request *previous;

	/* In a callback it may be the one that the callback is for; the new one would be refused. */
	if (cri_is_busy())
		abort();
	previous = exchange(NULL);
	/* Nor does one end that waits for the section that we are in. */
	if (previous && is_in_section()) {
		cri_job_pending(previous->handle);
		if (cri_job_wait(previous->handle, &now, false) == 0)
			abort();
	}
	reap(previous);
}

static void request_self(int fd, bool remove)
{
	cr_checkpoint_args_t args;
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		abort();
	if (remove)
		note_file(request, fd);
	cr_initialize_checkpoint_args_t(&args);
	args.cr_scope = CR_SCOPE_PROC;
	args.cr_fd = fd;
	if (cr_request_checkpoint(&args, &request->handle))
		abort();
	request->generation = cri.generation;
	/* Another thread may have left one meanwhile; it is over, as ours was accepted. */
	if (is_in_section())
		request = exchange(request);
	reap(request);
}

void cr_request_fd(int fd)
{
	reap_previous();
	request_self(fd, false);
}

void cr_request_file(const char *filename)
{
	int fd;

	reap_previous();		/* it may have had the same file */
	fd = open(filename, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		abort();
	request_self(fd, true);
	close(fd);
}

void cr_request(void)
{
	reap_previous();
	request_self(CR_DEST_CWD, false);
}
