// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes the reader of a global snapshot's manifest, and those of the two lines
 * between a tool and mpirun.  The first byte of an input chooses.  What is accepted
 * is written and read again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "job/manifest.h"
#include "job/request.h"
#include "report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
	if (!condition)
		abort();
}

/* What was accepted must be the same after it has been written and read again. */
static void write_again(const struct snapshot *s)
{
	struct snapshot *again;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/dev/shm/kcr-manifest.%d", getpid());
	unlink(path);
	must(!manifest_write(path, s));
	err = manifest_read(path, &again);
	unlink(path);
	/* A number with a fraction or many digits need not be written as it was read. */
	must(!err && again->nr_ranks == s->nr_ranks && again->interval == s->interval &&
	     !strcmp(again->cwd, s->cwd));
	snapshot_free(again);
}

static void read_manifest(const uint8_t *data, size_t size)
{
	struct snapshot *s;
	char path[64];
	int fd = memfd_create("manifest", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	report_clear();
	if (!manifest_read(path, &s)) {
		write_again(s);
		snapshot_free(s);
	} else {
		must(report_message());		/* every refusal has a message */
	}
	close(fd);
}

static void read_lines(const char *line)
{
	struct job_request request;
	struct job_answer answer;
	char *text;

	if (!job_request_parse(line, &request)) {
		text = job_request_format(&request);
		must(text && request.path && *request.path == '/' && request.signal <= 64);
		job_request_free(&request);
		must(!job_request_parse(text, &request));
		job_request_free(&request);
		free(text);
	}
	if (!job_answer_parse(line, &answer)) {
		text = job_answer_format(&answer);
		must(text);
		free(text);
		job_answer_free(&answer);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line;

	if (!size)
		return 0;
	if (data[0] == 'r') {
		line = strndup((const char *)data + 1, size - 1);
		must(line);
		read_lines(line);
		free(line);
	} else {
		read_manifest(data + 1, size - 1);
	}
	return 0;
}
