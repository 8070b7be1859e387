// SPDX-License-Identifier: GPL-2.0
/* The copy of a job script; see job_script.h. */
#include "batch/job_script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/report.h"

#define SCRIPT_MAX	(64 << 20)	/* bytes; Slurm's limit is 4 MB, unless a site changes it */

char *job_script_path(const struct folder *f, char out[PATH_MAX])
{
	if (snprintf(out, PATH_MAX, "%s/%s." SCRIPT_SUFFIX, f->path, f->name) >= PATH_MAX)
		out[PATH_MAX - 1] = '\0';	/* too long to be opened, which will be reported */
	return out;
}

static int read_all(FILE *in, const char *path, size_t size, char *text)
{
	size_t length = fread(text, 1, size, in);

	if (ferror(in))
		return report_errno(-EIO, "cannot read the script %s", path);
	text[length] = '\0';
	return strlen(text) == length ? 0 :
		report_fail(-EINVAL, "%s is not a script: it contains a zero byte", path);
}

/* All of a script as a string, malloc()ed.  0, or -errno with a message. */
static int read_script(const char *path, char **out)
{
	FILE *in = fopen(path, "re");
	struct stat st;
	int err;

	*out = NULL;
	if (!in || fstat(fileno(in), &st))
		err = report_errno(-errno, "cannot read the script %s", path);
	else if (!S_ISREG(st.st_mode) || st.st_size > SCRIPT_MAX)
		err = report_fail(-EINVAL, "%s is not a script: --script needs a regular file of 64 MB at "
				  "most", path);
	else if (!(*out = malloc(st.st_size + 1)))
		err = report_errno(-ENOMEM, "%s", path);
	else
		err = read_all(in, path, st.st_size, *out);
	if (in)
		fclose(in);
	return err;
}

/* Behind a first line by which the kernel runs cr_batch: the user's own first line. */
static const char *own_text(const char *text)
{
	size_t first = strcspn(text, "\n");
	const char *name = strstr(text, "cr_batch");

	return !strncmp(text, "#!", 2) && name && name < text + first && text[first] ?
		text + first + 1 : text;
}

bool job_script_is_other(const struct folder *f, const char *path)
{
	char *text, *copy = NULL, copied[PATH_MAX];
	bool other = !read_script(path, &text) && !read_script(job_script_path(f, copied), &copy) &&
		     strcmp(own_text(text), copy);

	free(text);
	free(copy);
	report_clear();
	return other;
}

int job_script_copy(const struct folder *f, const char *path)
{
	char *text, file[NAME_MAX + 1];
	int err = read_script(path, &text);

	folder_file(f->name, SCRIPT_SUFFIX, file);
	if (!err) {
		err = folder_write(f, SCRIPT_SUFFIX, own_text(text));
		if (!err && fchmodat(f->fd, file, 0700, 0))
			err = -errno;
		if (err)
			report_errno(err, "cannot copy the script to %s/%s", f->path, file);
	}
	free(text);
	return err;
}
