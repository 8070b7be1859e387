// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tools run for the program.  A request is a process that runs the tool;
 * its handle is our end of a socket on which the tool writes messages and, in
 * lines that begin with a byte 1, its status (util/status.h).
 *
 * The process that takes a checkpoint is not a child of the program and never
 * part of that checkpoint; cr_restart is a grandchild, so that the processes it
 * restores become the program's children when it ends.
 *
 * A restarted program finds the other end of the socket closed, and that it is not
 * the socket it created: this is how it knows that it was restarted.
 *
 * cri.lock guards the list; a job is used by one thread at a time.
 */
#include "libcr/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "libcr/record.h"

#define STATUS_BYTE	'\001'
#define PENDING_US	10000	/* between looks whether the checkpoint is pending */
#define CALLBACKS_S	30	/* callbacks may need a lock of the thread that waits */

struct cri_job {
	struct cri_job *next;
	int fd;
	pid_t tool;
	pid_t between;			/* restart: its parent, our child */
	ino_t inode;			/* of the socket */
	bool restart;
	bool self;			/* this process was to be saved */
	bool accepted;
	bool over;
	bool settled;			/* it is over, and so are our callbacks */
	int error;			/* once it is over */
	pid_t leader;			/* restart: of what was restored */
	char *text;			/* messages, and an incomplete line */
	size_t length;			/* of all */
	size_t parsed;			/* of complete lines */
};

static struct cri_job *jobs;

/* While there are restarts we are a subreaper: what their tools leave behind becomes ours. */
static struct {
	unsigned int generation;	/* a forked child is not a subreaper */
	unsigned int count;
	int was;			/* the program's own setting */
} reaper;

void cri_requests_forget(void)
{
	while (jobs) {
		struct cri_job *job = jobs;

		jobs = job->next;
		close(job->fd);
		free(job);		/* not its text: another thread may have been moving it */
	}
}

static struct cri_job *find(unsigned long handle, bool restart)
{
	struct cri_job *job;

	cri_lock();
	for (job = jobs; job; job = job->next)
		if ((unsigned long)job->fd == handle && job->restart == restart)
			break;
	cri_unlock();
	if (!job)
		errno = EINVAL;
	return job;
}

static void forget(struct cri_job *job)
{
	cri_lock();
	for (struct cri_job **at = &jobs; *at; at = &(*at)->next)
		if (*at == job) {
			*at = job->next;
			break;
		}
	cri_unlock();
	close(job->fd);
	free(job->text);
	free(job);
}

static void begin_reaping(void)
{
	cri_watch_forks();
	cri_lock();
	if (reaper.generation != cri.generation)
		reaper.count = 0;
	reaper.generation = cri.generation;
	if (!reaper.count++) {
		reaper.was = 0;
		prctl(PR_GET_CHILD_SUBREAPER, &reaper.was);
		if (!reaper.was)
			prctl(PR_SET_CHILD_SUBREAPER, 1);
	}
	cri_unlock();
}

static void end_reaping(void)
{
	cri_lock();
	if (reaper.generation == cri.generation && reaper.count && !--reaper.count && !reaper.was)
		prctl(PR_SET_CHILD_SUBREAPER, 0);
	cri_unlock();
}

/* ---- starting ------------------------------------------------------------------------ */

/* The tool's end gets a name that tells what it is; see record.h. */
static void name_tool(int fd)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	uint64_t random;
	int length;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		return;			/* unix_diag will do */
	length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, CRI_TOOL_NAME "%016llx",
			  (unsigned long long)random);
	bind(fd, (struct sockaddr *)&name, offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

/* Is our end of the socket not the one that we created? */
static bool is_restarted(const struct cri_job *job)
{
	struct ucred peer = {};
	socklen_t length = sizeof(peer);
	struct stat st;

	if (!getsockopt(job->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) && peer.pid != getpid())
		return true;
	return !fstat(job->fd, &st) && st.st_ino != job->inode;
}

/* Lets the tool begin.  0 or an errno. */
static int greet(struct cri_job *job)
{
	ssize_t got;

	do
		got = recv(job->fd, &job->tool, sizeof(job->tool), MSG_WAITALL);
	while (got < 0 && errno == EINTR);
	if (got != sizeof(job->tool))	/* the second fork failed, or this is a restart */
		return is_restarted(job) ? CR_ERESTARTED : EAGAIN;
	/* Yama lets only ancestors trace a process, and the one that it names. */
	if (job->self)
		prctl(PR_SET_PTRACER, job->tool);
	if (send(job->fd, "", 1, MSG_NOSIGNAL) == 1)
		return 0;
	return is_restarted(job) ? CR_ERESTARTED : EIO;
}

int cri_job_start(const char *tool, const char *const *arguments, int fd, bool restart,
		  bool self)
{
	struct cri_job *job = calloc(1, sizeof(*job));
	struct stat st;
	int pair[2], err;

	if (!job) {
		errno = ENOMEM;
		return -1;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		free(job);
		return -1;
	}
	name_tool(pair[1]);
	if (restart)
		begin_reaping();
	job->restart = restart;
	job->self = self;
	job->fd = pair[0];
	job->inode = fstat(job->fd, &st) ? 0 : st.st_ino;
	err = cri_spawn(tool, arguments, fd, pair[1], restart ? &job->between : NULL);
	close(pair[1]);
	if (!err)
		err = greet(job);
	if (err) {
		close(pair[0]);
		if (job->between)
			cri_spawn_end(job->between);
		if (restart)
			end_reaping();
		free(job);
		errno = err;
		return -1;
	}
	cri_lock();
	job->next = jobs;
	jobs = job;
	cri_unlock();
	return job->fd;
}

/* ---- reading ------------------------------------------------------------------------- */

/* The tool has ended; `said`: it reported its result. */
static void complete(struct cri_job *job, bool said)
{
	job->over = true;
	if (!said)
		job->error = is_restarted(job) ? CR_ERESTARTED : EIO;
	if (!job->restart)
		return;
	cri_spawn_end(job->between);
	end_reaping();
}

static void take_status(struct cri_job *job, const char *line)
{
	int error, pid;

	if (!strcmp(line, "begun"))
		job->accepted = true;
	if (sscanf(line, "done %d %d", &error, &pid) != 2)
		return;
	/* The BLCR interface has its own error for this; the tool reports the plain errno. */
	job->error = error == EOPNOTSUPP && !job->restart ? CR_ENOSUPPORT : error;
	job->leader = pid;
	complete(job, true);
}

/* Removes the status lines from what was read; messages stay. */
static void parse(struct cri_job *job)
{
	char *line = job->text + job->parsed, *end;

	while ((end = memchr(line, '\n', job->text + job->length - line))) {
		if (*line == STATUS_BYTE) {
			*end = '\0';
			if (!job->over)
				take_status(job, line + 1);
			memmove(line, end + 1, job->text + job->length - (end + 1));
			job->length -= end + 1 - line;
		} else {
			line = end + 1;
		}
	}
	job->parsed = line - job->text;
}

/*
 * After a restart, and after a checkpoint of this process, the tool or the module may
 * let this thread go on before libcr's thread has opened the critical sections again:
 * on a busy machine, and when callbacks take longer than other threads are held.
 */
static void settle(struct cri_job *job)
{
	if (!job->settled && (job->self || job->error == CR_ERESTARTED))
		cri_sections_await_open(CALLBACKS_S);
	job->settled = true;
}

/* Reads what is available, without waiting.  -1 with errno. */
static int read_available(struct cri_job *job)
{
	char buffer[4096], *larger;
	ssize_t got;

	while (!job->over) {
		got = recv(job->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return 0;
		if (got <= 0) {
			complete(job, false);
			return 0;
		}
		larger = realloc(job->text, job->length + got);
		if (!larger) {
			errno = ENOMEM;
			return -1;
		}
		job->text = larger;
		memcpy(job->text + job->length, buffer, got);
		job->length += got;
		parse(job);
	}
	return 0;
}

/* Likewise; of a job that is over, waits for our callbacks. */
static int advance(struct cri_job *job)
{
	int ret = read_available(job);

	if (!ret && job->over)
		settle(job);
	return ret;
}

/* Waits until it is over, or (with `accepted`) accepted; end NULL: for ever. */
static int wait_until(struct cri_job *job, bool accepted, const struct timespec *end)
{
	struct pollfd poll_fd = { .fd = job->fd, .events = POLLIN };
	struct timespec left;

	for (;;) {
		int ret;

		if (advance(job))
			return -1;
		if (job->over || (accepted && job->accepted))
			return 1;
		if (end)
			left = cri_time_left(end);
		ret = ppoll(&poll_fd, 1, end ? &left : NULL, NULL);
		if (ret <= 0)
			return ret;
	}
}

/* Likewise; stores what is left of the time, as select(2) does. */
static int wait_for(struct cri_job *job, bool accepted, struct timeval *timeout)
{
	struct timespec end = cri_now(), left;
	int ret;

	if (!timeout)
		return wait_until(job, accepted, NULL);
	end.tv_sec += timeout->tv_sec + (end.tv_nsec / 1000 + timeout->tv_usec) / 1000000;
	end.tv_nsec = (end.tv_nsec / 1000 + timeout->tv_usec) % 1000000 * 1000;
	ret = wait_until(job, accepted, &end);
	left = cri_time_left(&end);
	timeout->tv_sec = left.tv_sec;
	timeout->tv_usec = left.tv_nsec / 1000;
	return ret;
}

/* ---- for the public calls -------------------------------------------------------------- */

int cri_job_accepted(unsigned long handle)
{
	struct cri_job *job = find(handle, false) ?: find(handle, true);
	int error;

	while (wait_for(job, true, NULL) < 0 && errno == EINTR)
		;
	/* How one that was accepted has ended is found out by who reaps it, however soon that was. */
	error = job->over && !job->accepted ? job->error : 0;
	if (error == CR_ERESTARTED)
		error = 0;		/* for the caller to reap */
	if (error)
		forget(job);
	return error;
}

void cri_job_pending(unsigned long handle)
{
	int ret = 0;

	while (!cri_sections_are_closed() && (!ret || (ret < 0 && errno == EINTR))) {
		struct timeval pause = { .tv_usec = PENDING_US };

		ret = cri_job_wait(handle, &pause, false);
	}
}

int cri_job_wait(unsigned long handle, struct timeval *timeout, bool restart)
{
	struct cri_job *job = find(handle, restart);

	return job ? wait_for(job, false, timeout) : -1;
}

/* A job that is over; NULL with errno. */
static struct cri_job *find_over(unsigned long handle, bool restart)
{
	struct cri_job *job = find(handle, restart);

	if (!job || advance(job))
		return NULL;
	if (job->over)
		return job;
	errno = EAGAIN;
	return NULL;
}

int cri_job_log(unsigned long handle, unsigned int length, char *buffer, bool restart)
{
	struct cri_job *job = find_over(handle, restart);
	size_t copied;

	if (!job)
		return -1;
	if (length && !buffer) {
		errno = EINVAL;
		return -1;
	}
	if (length) {
		copied = job->length < length ? job->length : length - 1;
		if (copied)
			memcpy(buffer, job->text, copied);
		buffer[copied] = '\0';
	}
	return job->length ? job->length + 1 : 0;
}

int cri_job_reap(unsigned long handle, bool restart)
{
	struct cri_job *job = find_over(handle, restart);
	int error, leader;

	if (!job)
		return -1;
	error = job->error;
	leader = job->leader;
	forget(job);
	if (!error)
		return leader;
	errno = error;
	return -1;
}

int cri_job_poll(unsigned long handle, struct timeval *timeout, char **message, bool restart)
{
	int ret = cri_job_wait(handle, timeout, restart), length, err = 0;

	if (message)
		*message = NULL;
	if (ret <= 0)
		return ret < 0 ? CR_POLL_CHKPT_ERR_PRE : 0;
	if (message) {
		length = cri_job_log(handle, 0, NULL, restart);
		if (length > 0) {
			*message = malloc(length);
			if (*message)
				cri_job_log(handle, length, *message, restart);
			else
				err = ENOMEM;
		}
	}
	ret = cri_job_reap(handle, restart);
	if (ret < 0)
		return CR_POLL_CHKPT_ERR_POST;
	if (err) {
		errno = err;
		return CR_POLL_CHKPT_ERR_LOG;
	}
	return restart ? ret : 1;
}
