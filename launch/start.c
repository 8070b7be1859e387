// SPDX-License-Identifier: GPL-2.0
/* A program on its way from the proxy to the daemon.  See start.h. */
#include "launch/start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BYTES_MAX	(64u << 20)	/* several times what execve(2) takes */
#define SEALS		(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define SEAL_EXEC	0x20	/* F_SEAL_EXEC of Linux 6.3, added where vm.memfd_noexec is set */

/* What the file begins with; the working folder, arguments and environment follow. */
struct head {
	uint32_t mask, cpus_length;
	uint32_t nr_arguments, nr_variables;
	uint8_t cpus[START_CPUS];
	struct rlimit limit[RLIM_NLIMITS];
};

static int write_all(int fd, const void *data, size_t length)
{
	const char *at = data;

	while (length) {
		ssize_t n = write(fd, at, length);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		length -= n > 0 ? n : 0;
	}
	return 0;
}

static int write_text(int fd, const char *text)
{
	return write_all(fd, text, strlen(text) + 1);
}

static uint32_t count(char *const *vector)
{
	uint32_t n = 0;

	while (vector[n])
		n++;
	return n;
}

static int write_file(int fd, char *const *argv)
{
	struct head head = { .nr_arguments = count(argv), .nr_variables = count(environ) };
	char cwd[PATH_MAX];
	long cpus = syscall(SYS_sched_getaffinity, 0, sizeof(head.cpus), head.cpus);
	int err;

	head.mask = umask(0);
	umask(head.mask);
	head.cpus_length = cpus > 0 ? cpus : 0;
	for (int i = 0; i < RLIM_NLIMITS; i++)
		getrlimit(i, &head.limit[i]);
	if (!getcwd(cwd, sizeof(cwd)))
		return -errno;
	err = write_all(fd, &head, sizeof(head));
	if (!err)
		err = write_text(fd, cwd);
	for (; *argv && !err; argv++)
		err = write_text(fd, *argv);
	for (char **each = environ; *each && !err; each++)
		err = write_text(fd, *each);
	return err;
}

int start_describe(char *const *argv)
{
	int fd = memfd_create("kcr-start", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	if (fd < 0)
		return -errno;
	err = write_file(fd, argv);
	if (!err && fcntl(fd, F_ADD_SEALS, SEALS))
		err = -errno;
	if (err)
		close(fd);
	return err ?: fd;
}

/* All of it, with a NUL behind; NULL with errno. */
static char *read_file(int fd, size_t *length)
{
	struct stat st;
	char *data;
	ssize_t n;

	if ((fcntl(fd, F_GET_SEALS) & ~SEAL_EXEC) != SEALS || fstat(fd, &st) ||
	    st.st_size < (off_t)sizeof(struct head) || st.st_size > BYTES_MAX) {
		errno = EINVAL;
		return NULL;
	}
	data = malloc(st.st_size + 1);
	if (!data)
		return NULL;
	n = pread(fd, data, st.st_size, 0);
	if (n != st.st_size) {
		free(data);
		errno = n < 0 ? errno : EINVAL;
		return NULL;
	}
	data[n] = '\0';
	*length = n;
	return data;
}

/* The next `n` strings from *at on; NULL: there are fewer. */
static char **take_strings(char **at, const char *end, uint32_t n)
{
	char **vector = n < BYTES_MAX ? calloc(n + 1, sizeof(*vector)) : NULL;

	for (uint32_t i = 0; vector && i < n; i++) {
		if (*at >= end) {
			free(vector);
			return NULL;
		}
		vector[i] = *at;
		*at += strlen(*at) + 1;
	}
	return vector;
}

int start_read(int fd, struct launch_start *s)
{
	size_t length;
	char *data = read_file(fd, &length), *at, *end;
	struct head head;

	memset(s, 0, sizeof(*s));
	if (!data)
		return -errno;
	memcpy(&head, data, sizeof(head));
	s->strings = data;
	s->mask = head.mask;
	s->cpus_length = head.cpus_length <= START_CPUS ? head.cpus_length : 0;
	memcpy(s->cpus, head.cpus, sizeof(s->cpus));
	memcpy(s->limit, head.limit, sizeof(s->limit));
	at = data + sizeof(head);
	end = data + length;
	s->cwd = at;
	at += strlen(at) + 1;
	s->argv = take_strings(&at, end, head.nr_arguments);
	s->environment = s->argv ? take_strings(&at, end, head.nr_variables) : NULL;
	if (s->environment && head.nr_arguments)
		return 0;
	start_free(s);
	return -EINVAL;
}

void start_free(struct launch_start *s)
{
	free(s->argv);
	free(s->environment);
	free(s->strings);
	memset(s, 0, sizeof(*s));
}

int start_apply(const struct launch_start *s)
{
	umask(s->mask);
	for (int i = 0; i < RLIM_NLIMITS; i++)
		setrlimit(i, &s->limit[i]);	/* a hard limit may be lower here: it stays */
	if (s->cpus_length)
		syscall(SYS_sched_setaffinity, 0, (size_t)s->cpus_length, s->cpus);
	return chdir(s->cwd) ? -errno : 0;
}

static const char *path_of(char *const *environment)
{
	for (; *environment; environment++)
		if (!strncmp(*environment, "PATH=", 5))
			return *environment + 5;
	return "/bin:/usr/bin";		/* as execvp(3) does */
}

/* Is this why a program is looked for in other folders, too? */
static bool is_missing(int err)
{
	return err == ENOENT || err == ENOTDIR || err == EACCES || err == ENODEV || err == ESTALE ||
	       err == ETIMEDOUT;
}

int start_execute(const struct launch_start *s, char *const *environment)
{
	const char *at = *s->argv[0] ? path_of(environment) : NULL;
	char path[PATH_MAX];
	int err = ENOENT;

	if (strchr(s->argv[0], '/')) {
		execvpe(s->argv[0], s->argv, environment);
		return -errno;
	}
	while (at && is_missing(err)) {
		int length = strcspn(at, ":");
		int all = snprintf(path, sizeof(path), "%.*s%s%s", length, at, length ? "/" : "./",
				   s->argv[0]);

		if (all < (int)sizeof(path) && execvpe(path, s->argv, environment))
			err = err == EACCES && is_missing(errno) ? err : errno;
		at = at[length] ? at + length + 1 : NULL;
	}
	return -err;
}
