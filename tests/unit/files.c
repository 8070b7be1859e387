// SPDX-License-Identifier: GPL-2.0
/* See files.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rebuild/script.h"
#include "report/report.h"

#define CONTROL		900		/* descriptors of the test itself */

char files_folder[] = "/tmp/kcr-files-XXXXXX";

const char *files_path(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", files_folder, name);
	return path;
}

void files_must(bool condition, const char *text, const char *file, int line)
{
	if (condition)
		return;
	fprintf(stderr, "%s:%d: must(%s): %s\n", file, line, text, strerror(errno));
	_exit(1);
}

void files_at(int fd, int number)
{
	must(fd >= 0);
	if (fd == number)
		return;
	must(dup2(fd, number) == number);
	close(fd);
}

void files_watch(int epoll, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };

	must(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

/* What both sides know of each other; shared memory. */
struct shared {
	pid_t program[2];
	int32_t new_pid[2];
	int ready, go;
	int status;		/* 1 + errno of a failed step, and the message */
	char message[512];
};

static struct shared *shared;

static void wait_for(const int *what, int count)
{
	while (__atomic_load_n(what, __ATOMIC_ACQUIRE) < count) {
		const struct timespec pause = { .tv_nsec = 200000 };

		nanosleep(&pause, NULL);
	}
}

static void arrive(int *what)
{
	__atomic_add_fetch(what, 1, __ATOMIC_ACQ_REL);
}

static void run_program(const struct files_test *test)
{
	int messages = fcntl(2, F_DUPFD, CONTROL + 8);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close_range(0, CONTROL - 1, 0);
	close_range(messages + 1, ~0u, 0);
	files_at(open("/dev/null", O_RDWR), 0);
	dup2(0, 1);
	dup2(messages, 2);
	test->make();
	shared->program[0] = getpid();
	if (test->make_child) {
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			shared->program[1] = getpid();
			test->make_child();
			dup2(0, 2);
			arrive(&shared->ready);
			for (;;)
				pause();
		}
		wait_for(&shared->ready, 1);
	}
	dup2(0, 2);
	arrive(&shared->ready);
	for (;;)
		pause();
}

/* ---- the script's calls, made at once --------------------------------------------- */

void script_call(struct script *s, const char *label, long nr, uint64_t a0, uint64_t a1,
		 uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	(void)s;
	must(syscall(nr, a0, a1, a2, a3, a4, a5) >= 0 || !label);
}

uint64_t script_data(struct script *s, const void *data, size_t length)
{
	(void)s;
	(void)length;
	return (uintptr_t)data;
}

/* ---- cr_checkpoint -------------------------------------------------------------- */

static void register_files(struct file_table *t, Kcr__Process *p, pid_t pid)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0);
	struct dirent *entry;
	char path[64];
	DIR *dir;

	kcr__process__init(p);
	p->pid = pid;
	p->has_files_id = true;
	p->files_id = pid;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while ((entry = readdir(dir))) {
		int number = atoi(entry->d_name), fd;
		Kcr__Descriptor *d;
		uint32_t id;

		if (!isdigit(entry->d_name[0]) || number >= CONTROL)
			continue;
		fd = syscall(SYS_pidfd_getfd, pidfd, number, 0);
		assert_true(fd >= 0);
		assert_int_equal(file_table_add(t, fd, pid, pid, number, FILE_NOT_MAPPED, &id), 0);
		d = malloc(sizeof(*d));
		kcr__descriptor__init(d);
		d->fd = number;
		d->file_id = id;
		p->descriptor = realloc(p->descriptor, (p->n_descriptor + 1) * sizeof(d));
		p->descriptor[p->n_descriptor++] = d;
	}
	closedir(dir);
	close(pidfd);
}

static void *pack(const ProtobufCMessage *m, size_t *length)
{
	void *data;

	*length = protobuf_c_message_get_packed_size(m);
	data = malloc(*length + 1);
	protobuf_c_message_pack(m, data);
	return data;
}

static ProtobufCMessage *repack(const ProtobufCMessage *m)
{
	size_t length;
	void *data = pack(m, &length);
	ProtobufCMessage *copy;

	copy = protobuf_c_message_unpack(m->descriptor, NULL, length, data);
	free(data);
	assert_non_null(copy);
	return copy;
}

static void write_contents(struct file_table *t, int fd)
{
	struct context_writer *w;
	Kcr__Preamble preamble;

	kcr__preamble__init(&preamble);
	preamble.kcr_version = preamble.machine = preamble.kernel_release =
		preamble.kernel_version = preamble.host = (char *)"test";
	assert_int_equal(context_writer_new(&w, fd, 0), 0);
	assert_int_equal(context_write_message(w, CONTEXT_PREAMBLE, &preamble.base), 0);
	assert_int_equal(file_table_write_contents(t, w), 0);
	assert_int_equal(context_writer_finish(w), 0);
	context_writer_free(w);
}

/* What is in the "image": the metadata in memory, the contents in a file. */
static struct context *save(const struct files_test *test, int content)
{
	struct file_table *t = file_table_new(test->skip_unsupported);
	size_t nr = test->make_child ? 2 : 1;
	struct context *c = calloc(1, sizeof(*c));
	Kcr__Process p[2];
	int err;

	for (size_t i = 0; i < nr; i++)
		register_files(t, &p[i], shared->program[i]);
	if (test->before_save)
		test->before_save(t, shared->program[0]);
	err = file_table_check(t, NULL, NULL);
	if (!err)
		err = file_table_save(t);
	if (err != test->expect_save)
		print_message("%s\n", report_message() ?: "no message");
	assert_int_equal(err, test->expect_save);
	c->nr_files = err ? 0 : file_table_count(t);
	c->file = calloc(c->nr_files + 1, sizeof(*c->file));
	for (size_t i = 0; i < c->nr_files; i++)
		c->file[i] = (Kcr__File *)repack(&file_table_get(t, i + 1)->base);
	c->nr_processes = nr;
	c->process = calloc(nr, sizeof(*c->process));
	c->by_pid = calloc(nr, sizeof(*c->by_pid));
	for (size_t i = 0; i < nr; i++) {
		if (!err)
			assert_int_equal(file_table_posix_locks(t, &p[i]), 0);
		c->process[i] = (Kcr__Process *)repack(&p[i].base);
		for (size_t j = 0; j < p[i].n_descriptor; j++)
			free(p[i].descriptor[j]);
		free(p[i].descriptor);
		for (size_t j = 0; j < p[i].n_posix_lock; j++)
			free(p[i].posix_lock[j]);
		free(p[i].posix_lock);
	}
	for (size_t i = 0; i < nr; i++)
		c->by_pid[i] = c->process[nr == 2 && c->process[0]->pid > c->process[1]->pid ? 1 - i : i];
	if (!err)
		write_contents(t, content);
	else
		report_clear();
	file_table_close(t);
	file_table_free(t);
	return c;
}

/* ---- cr_restart ------------------------------------------------------------------ */

static int restore_contents(struct rebuild *r, int content)
{
	struct context_reader *reader;
	struct context_item item;
	int err;

	lseek(content, 0, SEEK_SET);
	err = context_reader_new(&reader, content, "test");
	while (!err) {
		int more = context_read(reader, &item);

		if (more <= 0) {
			err = more;
			break;
		}
		if (item.type == CONTEXT_CONTENT)
			err = files_content(r, &item);
		else if (item.message)
			protobuf_c_message_free_unpacked(item.message, NULL);
	}
	context_reader_free(reader);
	return err;
}

static void fail_step(int err)
{
	shared->status = -err;
	snprintf(shared->message, sizeof(shared->message), "%s", report_message() ?: "?");
	_exit(2);
}

/* A process of the restarted program. */
static void become(const struct files_test *test, struct rebuild *r, size_t i, int messages)
{
	const Kcr__Process *p = r->context->process[i];
	int err, fd;

	shared->new_pid[i] = getpid();
	err = files_install(r, p);
	if (err)
		fail_step(err);
	fd = fcntl(messages, F_DUPFD_CLOEXEC, 2000);
	must(fd == 2000);
	close_range(r->high_fd, 1999, 0);
	close_range(2001, ~0u, 0);
	files_script(r, p, NULL);
	arrive(&shared->ready);
	wait_for(&shared->go, 1);
	dup2(2000, 2);			/* for messages */
	(i ? test->use_child : test->use)();
	_exit(0);
}

static void run_restart(const struct files_test *test, const struct context *c, int content)
{
	struct rebuild r = { .context = c, .job = -1, .new_pid = shared->new_pid };
	int messages = fcntl(2, F_DUPFD_CLOEXEC, CONTROL), status, failed = 0, err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (test->before_restart)
		test->before_restart();
	err = files_open(&r);
	if (!err)
		err = restore_contents(&r, content);
	if (!err)
		err = files_complete(&r);
	if (err) {
		files_close(&r);
		fail_step(err);
	}
	if (test->opened)
		test->opened(&r);
	for (size_t i = 0; i < c->nr_processes; i++)
		if (!fork())
			become(test, &r, i, messages);
	while (__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) < (int)c->nr_processes &&
	       !shared->status)
		usleep(200);
	files_close(&r);
	arrive(&shared->go);
	while (wait(&status) > 0)
		failed |= status;
	_exit(failed ? 3 : 0);
}

static pid_t start(void (*what)(const struct files_test *, const struct context *, int),
		   const struct files_test *test, const struct context *c, int content)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		what(test, c, content);
	return pid;
}

static void program(const struct files_test *test, const struct context *c, int content)
{
	(void)c;
	(void)content;
	run_program(test);
}

void files_cycle(const struct files_test *test)
{
	int content = memfd_create("content", MFD_CLOEXEC), status;
	struct context *c;
	pid_t pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	pid = start(program, test, NULL, -1);
	while (__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) < (test->make_child ? 2 : 1)) {
		usleep(200);
		assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	}
	c = save(test, content);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (!test->expect_save) {
		shared->ready = 0;
		pid = start(run_restart, test, c, content);
		waitpid(pid, &status, 0);
		if (shared->status != -test->expect_restart)
			print_message("restart: %s\n", shared->message);
		assert_int_equal(shared->status, -test->expect_restart);
		if (!test->expect_restart)
			assert_int_equal(status, 0);
	}
	close(content);
	munmap(shared, sizeof(*shared));
	context_free(c);
}

/* ---- sockets --------------------------------------------------------------------- */

void files_say(int fd, const char *text)
{
	must(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

bool files_hears(int fd, const char *text)
{
	char buffer[256] = "";
	size_t length = strlen(text);
	ssize_t got = recv(fd, buffer, length ? length : sizeof(buffer), 0);

	if (got == (ssize_t)length && !memcmp(buffer, text, length))
		return true;
	fprintf(stderr, "heard %zd: %s\n", got, buffer);
	return false;
}

bool files_silent(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN;
}

/* ---- the folder ------------------------------------------------------------------ */

int files_set_up(void **state)
{
	(void)state;
	return mkdtemp(files_folder) ? 0 : -1;
}

int files_tear_down(void **state)
{
	char command[80];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", files_folder);
	return system(command);
}
