// SPDX-License-Identifier: GPL-2.0
/*
 * Pipes and named pipes.  Contents are copied with tee(2), which does not
 * consume them.  A pipe with both ends in the tree is created again and filled;
 * one whose other end is outside becomes standard input, output or error of
 * cr_restart if it was that of the program (or is the only such pipe), else a
 * pipe that reports hang-up once it is empty.  Its old contents come first.
 */
#include "resource/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"
#include "resource/identity.h"

/* Of <linux/watch_queue.h>, which does not go with <fcntl.h>. */
#define IOC_WATCH_QUEUE_SET_SIZE	_IO('W', 0x60)

static bool match(const struct file_probe *probe)
{
	return S_ISFIFO(probe->st.st_mode) && !(probe->flags & O_PATH);
}

static bool reads(int flags)
{
	return (flags & O_ACCMODE) != O_WRONLY;
}

static bool writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY;
}

/* ---- save ------------------------------------------------------------------- */

static int add_packet(Kcr__Pipe *pipe, const void *data, size_t length)
{
	ProtobufCBinaryData *more;

	more = realloc(pipe->packet_contents, (pipe->n_packet_contents + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	pipe->packet_contents = more;
	memset(&more[pipe->n_packet_contents], 0, sizeof(*more));
	return file_bytes(&more[pipe->n_packet_contents++], data, length);
}

/*
 * Reads what tee() has copied to our own pipe.  One read() is one packet, if there are any: who sent
 * them may be gone, and then only a read() that ends early tells.
 */
static int take_copy(int fd, size_t length, Kcr__Pipe *pipe)
{
	char *buffer = malloc(length);
	size_t got = 0;
	int err = buffer ? 0 : -ENOMEM;

	while (!err && got < length) {
		ssize_t n = read(fd, buffer + got, length - got);

		if (n <= 0)
			break;
		if ((size_t)n < length - got)
			pipe->has_packet = pipe->packet = true;
		if (pipe->packet)
			err = add_packet(pipe, buffer + got, n);
		got += n;
	}
	if (!err && !pipe->packet && got) {
		pipe->has_contents = true;
		err = file_bytes(&pipe->contents, buffer, got);
	}
	free(buffer);
	return err;
}

static int save_contents(const struct file_probe *probe, Kcr__Pipe *pipe)
{
	int copy[2], length = 0, err = 0;
	ssize_t got;

	if (ioctl(probe->fd, FIONREAD, &length) || length <= 0)
		return 0;
	if (pipe2(copy, O_CLOEXEC | O_NONBLOCK))
		return file_save_error(probe, -errno, "cannot make a pipe");
	if (fcntl(copy[1], F_SETPIPE_SZ, pipe->capacity) < 0)
		err = file_save_error(probe, -errno, "cannot make a pipe of %u bytes",
				      pipe->capacity);
	if (!err) {
		got = tee(probe->fd, copy[1], pipe->capacity, SPLICE_F_NONBLOCK);
		if (got < 0 && errno != EAGAIN)
			err = file_save_error(probe, -errno, "cannot copy what is in it");
		else if (got > 0)
			err = take_copy(copy[0], got, pipe);
	}
	close(copy[0]);
	close(copy[1]);
	return err;
}

/* The lowest ids of the files of a pipe: any, for reading, for writing; 0: none. */
struct ends {
	uint32_t first, reader, writer;
};

static struct ends find_ends(const struct file_table *t, const struct file_probe *probe)
{
	struct ends ends = {};

	for (uint32_t id = 1; id <= file_table_count(t); id++) {
		const struct file_probe *p = file_table_probe(t, id);

		if (p->st.st_ino != probe->st.st_ino || p->st.st_dev != probe->st.st_dev ||
		    !match(p))
			continue;
		if (!ends.first)
			ends.first = id;
		if (!ends.reader && reads(p->flags))
			ends.reader = id;
		if (!ends.writer && writes(p->flags))
			ends.writer = id;
	}
	return ends;
}

/* Is the other end open anywhere?  (Not if the pipe has hung up.) */
static bool is_connected(const struct file_probe *probe)
{
	struct pollfd p = { .fd = probe->fd, .events = POLLIN | POLLOUT };

	return poll(&p, 1, 0) >= 0 && !(p.revents & (POLLHUP | POLLERR));
}

/*
 * Has nobody had it open for writing since this description was opened for reading?  It does not
 * report hang-up, and the kernel would not wait for a writer, as it would if there were one.
 */
static bool awaits_writer(const struct file_probe *probe)
{
	int copy[2];
	bool awaits;

	if (writes(probe->flags) || !is_connected(probe) || pipe2(copy, O_CLOEXEC | O_NONBLOCK))
		return false;
	awaits = !tee(probe->fd, copy[1], 1, SPLICE_F_NONBLOCK);
	close(copy[0]);
	close(copy[1]);
	return awaits;
}

/* Made with O_NOTIFICATION_PIPE?  Only such a pipe is asked how many notes are impossible. */
static bool is_for_notes(int fd)
{
	return ioctl(fd, IOC_WATCH_QUEUE_SET_SIZE, 0) < 0 && (errno == EINVAL || errno == EBUSY);
}

static int save(struct file_table *t, const struct file_probe *probe, Kcr__File *file)
{
	struct ends ends = find_ends(t, probe);
	bool inside = ends.reader && ends.writer;
	Kcr__Pipe *pipe = file_new_kind(file, KCR__FILE__KIND_PIPE, sizeof(*pipe));
	int capacity;

	if (!pipe)
		return -ENOMEM;
	if (is_for_notes(probe->fd))
		return file_unsupported(t, "a pipe for notes of the kernel (O_NOTIFICATION_PIPE)");
	capacity = fcntl(probe->fd, F_GETPIPE_SZ);
	if (capacity < 0)
		return file_save_error(probe, -errno, "cannot query its size");
	pipe->pipe_id = ends.first;
	pipe->capacity = capacity;
	pipe->has_packet = pipe->packet = probe->flags & O_DIRECT;
	if (probe->link[0] == '/' && !probe_is_deleted(probe)) {
		pipe->fifo_path = file_string(probe->link);
		pipe->has_mode = pipe->has_uid = pipe->has_gid = true;
		pipe->mode = probe->st.st_mode & 07777;
		pipe->uid = probe->st.st_uid;
		pipe->gid = probe->st.st_gid;
		if (!pipe->fifo_path)
			return -ENOMEM;
		pipe->has_awaits_writer = pipe->awaits_writer = awaits_writer(probe);
	}
	pipe->has_other_end_outside = true;
	pipe->other_end_outside = !inside && !pipe->awaits_writer && is_connected(probe);
	/* A reader outside goes on reading the contents. */
	if (file->id != ends.reader || file_table_is_dry(t))
		return 0;
	for (uint32_t id = 1; id <= file_table_count(t); id++) {
		const struct file_probe *p = file_table_probe(t, id);

		if (p->st.st_ino == probe->st.st_ino && p->st.st_dev == probe->st.st_dev &&
		    p->flags & O_DIRECT)
			pipe->has_packet = pipe->packet = true;
	}
	return save_contents(probe, pipe);
}

/* ---- rebuild ------------------------------------------------------------------ */

static bool same_pipe(const Kcr__File *a, const Kcr__File *b)
{
	return a->kind_case == KCR__FILE__KIND_PIPE && b->kind_case == KCR__FILE__KIND_PIPE &&
	       a->pipe->pipe_id == b->pipe->pipe_id;
}

/* The next file from *i on that is an end of this pipe and has a name; NULL: none. */
static const Kcr__File *next_named(const struct rebuild *r, const Kcr__File *file, size_t *i)
{
	while (*i < r->context->nr_files) {
		const Kcr__File *f = r->context->file[(*i)++];

		if (same_pipe(file, f) && f->pipe->fifo_path)
			return f;
	}
	return NULL;
}

static bool has_name(const struct rebuild *r, const Kcr__File *file)
{
	size_t i = 0;

	return next_named(r, file, &i);
}

/* How many pipes lead outside in the direction of this one? */
static int count_outside(const struct rebuild *r, const Kcr__File *file)
{
	const struct context *c = r->context;
	int count = 0;

	for (size_t i = 0; i < c->nr_files; i++) {
		const Kcr__File *f = c->file[i];

		if (f->kind_case == KCR__FILE__KIND_PIPE && f->pipe->other_end_outside &&
		    reads(f->flags) == reads(file->flags) && f->id == f->pipe->pipe_id)
			count++;
	}
	return count;
}

static bool has_contents(const Kcr__File *file)
{
	return file->pipe->has_contents || file->pipe->n_packet_contents;
}

/* Which of cr_restart's standard descriptors stands for the other end; -1: none. */
static int choose_stdio(const struct rebuild *r, const Kcr__File *file)
{
	const Kcr__Pipe *pipe = file->pipe;

	if (!pipe->other_end_outside || has_name(r, file))
		return -1;
	for (int number = 0; number < 3; number++) {
		if (reads(file->flags) != (number == 0))
			continue;
		for (size_t i = 0; i < r->context->nr_files; i++)
			if (same_pipe(file, r->context->file[i]) &&
			    rebuild_has_number(r, i + 1, number))
				return number;
	}
	if (count_outside(r, file) == 1)
		return reads(file->flags) ? 0 : 1;
	return -1;
}

static int fill(const Kcr__File *file, bool named, const int ends[2])
{
	const Kcr__Pipe *pipe = file->pipe;
	int flags = O_NONBLOCK | (pipe->packet ? O_DIRECT : 0), fd = ends[1], inside = 0;

	/* A named pipe that others have kept open still has its contents. */
	if (named && !ioctl(ends[0] < 0 ? fd : ends[0], FIONREAD, &inside) && inside)
		return 0;
	if (fd < 0)
		return rebuild_error(file, fd, "what was in it cannot be written to it again");
	if (fcntl(fd, F_SETFL, flags))
		return rebuild_error(file, -errno, "cannot set its flags");
	if (pipe->has_contents &&
	    write(fd, pipe->contents.data, pipe->contents.len) != (ssize_t)pipe->contents.len)
		return rebuild_error(file, -EIO, "cannot fill it");
	for (size_t i = 0; i < pipe->n_packet_contents; i++)
		if (write(fd, pipe->packet_contents[i].data, pipe->packet_contents[i].len) !=
		    (ssize_t)pipe->packet_contents[i].len)
			return rebuild_error(file, -EIO, "cannot fill it");
	return 0;
}

/* The end that feeds a pipe from standard input; -1: none. */
static int pump_end = -1;

/* Gives a new named pipe its old owner and mode, as far as its maker may. */
static int dress_fifo(const struct rebuild *r, int fd, const struct stat *st,
		      const Kcr__Pipe *pipe)
{
	/* Users who may write to its folder could have replaced it by now. */
	if (st->st_uid != identity_user()) {
		report_verbose("%s is not ours: it keeps owner and mode", pipe->fifo_path);
		return 0;
	}
	if (pipe->has_mode && fchmod(fd, pipe->mode & 07777))	/* umask(2) or not */
		report_verbose("cannot set the mode of %s", pipe->fifo_path);
	if (pipe->has_uid && pipe->has_gid && (st->st_uid != pipe->uid || st->st_gid != pipe->gid))
		return rebuild_own(r, fd, pipe->uid, pipe->gid, pipe->fifo_path);
	return 0;
}

/* Creates a named pipe that does not exist any more, as it was. */
static int make_fifo(struct rebuild *r, const Kcr__File *file)
{
	const Kcr__Pipe *pipe = file->pipe;
	char name[NAME_MAX + 1];
	int folder = rebuild_open_folder(r, pipe->fifo_path, name), fd = -ENOENT, err;
	struct stat st;

	if (folder < 0)
		return folder;
	if (!mkfifoat(folder, name, 0600))
		fd = rebuild_open_node(r, pipe->fifo_path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, &st,
				       S_IFIFO);
	err = fd < 0 ? fd : dress_fifo(r, fd, &st, pipe);
	if (err && fd >= 0) {
		unlinkat(folder, name, 0);
		close(fd);
	}
	close(folder);
	return err ?: fd;
}

/* Makes `other` another name of the open pipe, if that is free. */
static int add_name(struct rebuild *r, int fd, const Kcr__File *other)
{
	char name[NAME_MAX + 1], path[PROC_PATH];
	int folder = rebuild_open_folder(r, other->pipe->fifo_path, name), err = 0;

	if (folder < 0)
		return rebuild_error(other, folder, "its folder cannot be opened");
	if (linkat(AT_FDCWD, proc_fd_path(path, fd), folder, name, AT_SYMLINK_FOLLOW) &&
	    errno != EEXIST)
		err = rebuild_error(other, -errno, "it cannot be made another name of the pipe");
	close(folder);
	return err;
}

/* Opens an end of a named pipe; hard links of it that are missing are made again. */
static int open_fifo(struct rebuild *r, const Kcr__File *file, int mode)
{
	const Kcr__File *named = NULL, *f;
	int fd = -ENOENT, err = 0;
	struct stat st;
	size_t i = 0;

	while (fd == -ENOENT && (f = next_named(r, file, &i))) {
		named = f;
		fd = rebuild_open_node(r, f->pipe->fifo_path, mode | O_NONBLOCK, &st, S_IFIFO);
	}
	if (fd == -ENOENT)
		fd = make_fifo(r, named);
	for (i = 0; fd >= 0 && !err && (f = next_named(r, file, &i));)
		if (strcmp(f->pipe->fifo_path, named->pipe->fifo_path))
			err = add_name(r, fd, f);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

/* Is there an end of this pipe that reads (writes)? */
static bool has_end(const struct rebuild *r, const Kcr__File *file, bool (*is_such)(int flags))
{
	for (size_t i = 0; i < r->context->nr_files; i++)
		if (same_pipe(file, r->context->file[i]) && is_such(r->context->file[i]->flags))
			return true;
	return false;
}

/* Do all its files wait for their first writer? */
static bool all_await(const struct rebuild *r, const Kcr__File *file)
{
	for (size_t i = 0; i < r->context->nr_files; i++)
		if (same_pipe(file, r->context->file[i]) &&
		    !r->context->file[i]->pipe->awaits_writer)
			return false;
	return true;
}

/*
 * The ends of a named pipe, each for its own direction: the program may have no right to the
 * other.  Negative: there is no need for it.
 */
static int open_fifo_ends(struct rebuild *r, const Kcr__File *file, int ends[2])
{
	ends[1] = -1;
	ends[0] = open_fifo(r, file, O_RDONLY);
	if (ends[0] == -EACCES && !has_end(r, file, reads)) {
		ends[1] = open_fifo(r, file, O_WRONLY);
		if (ends[1] < 0)
			return rebuild_error(file, ends[1], ends[1] == -ENXIO ? "nobody reads it: start "
					     "its reader first" : "it cannot be opened");
		return 0;
	}
	if (ends[0] < 0)
		return rebuild_error(file, ends[0], "it cannot be opened");
	if (all_await(r, file))
		return 0;
	ends[1] = proc_fd_reopen(ends[0], O_WRONLY | O_NONBLOCK);
	if (ends[1] >= 0 || (ends[1] == -EACCES && !has_end(r, file, writes)))
		return 0;
	close(ends[0]);
	return rebuild_error(file, ends[1], "it cannot be opened for writing");
}

/* Opens both ends without either blocking on the other. */
static int make_pipe(struct rebuild *r, const Kcr__File *file, int ends[2])
{
	if (has_name(r, file))
		return open_fifo_ends(r, file, ends);
	return pipe2(ends, O_CLOEXEC) ? rebuild_error(file, -errno, "cannot make a pipe") : 0;
}

/* Gives the descriptions of the new pipe to the files that are its ends, `awaiting` or others. */
static int share_out(struct rebuild *r, const Kcr__File *file, const int ends[2], bool awaiting)
{
	bool used[2] = {}, named = has_name(r, file);
	int err = 0;

	for (size_t i = 0; i < r->context->nr_files && !err; i++) {
		const Kcr__File *f = r->context->file[i];
		int flags = f->flags & (O_ACCMODE | O_NONBLOCK);	/* O_DIRECT is not for open(2) */
		int end = (flags & O_ACCMODE) == O_WRONLY, fd;

		if (!same_pipe(file, f) || r->file_fd[i] >= 0 || !f->pipe->awaits_writer == awaiting)
			continue;
		if (has_contents(f))
			err = fill(f, named, ends);
		if (err)
			break;
		if (!named && !used[end] && (flags & O_ACCMODE) != O_RDWR) {
			used[end] = true;
			fd = fcntl(ends[end], F_DUPFD_CLOEXEC, r->high_fd);
			if (fd < 0)
				fd = -errno;
		} else {
			fd = proc_fd_reopen(ends[end], flags | (named ? O_NONBLOCK : 0));
		}
		err = fd < 0 ? rebuild_error(f, fd, "it cannot be opened") :
			       rebuild_put(r, f->id, fd);
	}
	return err;
}

/* Is there a reader with contents that must be read before cr_restart's input? */
static bool needs_pump(const struct rebuild *r, const Kcr__File *file)
{
	for (size_t i = 0; i < r->context->nr_files; i++)
		if (same_pipe(file, r->context->file[i]) && has_contents(r->context->file[i]))
			return true;
	return false;
}

static int open_pipe(struct rebuild *r, const Kcr__File *file)
{
	int number = choose_stdio(r, file), ends[2], err;
	bool pump = number == 0 && needs_pump(r, file);

	if (number >= 0 && !pump && !rebuild_put_stdio(r, file->id, number, file->flags))
		return 0;
	err = make_pipe(r, file, ends);
	if (err)
		return err;
	if (file->pipe->capacity && fcntl(ends[ends[0] < 0], F_SETPIPE_SZ, file->pipe->capacity) < 0 &&
	    !has_name(r, file))
		err = rebuild_error(file, -errno, "cannot give it %u bytes", file->pipe->capacity);
	if (!err)
		err = share_out(r, file, ends, false);
	if (!err && pump && pump_end < 0) {
		fcntl(ends[1], F_SETFL, O_NONBLOCK);	/* what comes has no bounds, whatever is in it */
		pump_end = fcntl(ends[1], F_DUPFD_CLOEXEC, r->high_fd);
	}
	if (ends[1] >= 0)
		close(ends[1]);
	ends[1] = -1;
	if (!err)	/* without a writer, or they would report that it hung up */
		err = share_out(r, file, ends, true);
	if (ends[0] >= 0)
		close(ends[0]);
	return err;
}

/*
 * Copies standard input into the pipe, as long as it has a reader: later input is
 * for whatever process reads it next, so do not block in read(2).
 */
static void pump_input(int input)
{
	struct pollfd room = { .fd = pump_end, .events = POLLOUT };
	struct pollfd either[] = { { .fd = input, .events = POLLIN }, { .fd = pump_end } };
	char buffer[4096];
	ssize_t got, sent;

	signal(SIGPIPE, SIG_DFL);
	while (poll(&room, 1, -1) == 1 && poll(either, 2, -1) > 0 &&
	       !(either[1].revents & POLLERR)) {
		got = read(input, buffer, sizeof(buffer));
		if (got <= 0)
			break;
		for (ssize_t at = 0; at < got; at += sent) {
			sent = write(pump_end, buffer + at, got - at);
			if (sent < 0)
				_exit(0);
		}
	}
	_exit(0);
}

/* Does reading it only give the end of the file?  So it is in requests of libcr. */
static bool is_null_device(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

/*
 * What was in a pipe from outside must be read before cr_restart's input: a helper
 * passes the latter on.  It has no exit signal, nobody waits for it, and it ends
 * with the last reader.
 */
static void finish(struct rebuild *r, const Kcr__File *file)
{
	struct clone_args clone = {};
	int input = r->stdio[0], end = pump_end;

	if (end < 0 || !has_contents(file) || choose_stdio(r, file) != 0)
		return;
	if (input >= 0 && !is_null_device(input) && !syscall(SYS_clone3, &clone, sizeof(clone))) {
		dup2(input, 0);
		dup2(end, 1);
		close_range(2, ~0u, 0);
		pump_end = 1;
		pump_input(0);
	}
	close(end);
	pump_end = -1;
}

const struct file_kind file_kind_pipe = {
	.kind = KCR__FILE__KIND_PIPE,
	.name = "pipe",
	.match = match,
	.save = save,
	.open = open_pipe,
	.finish = finish,
};
