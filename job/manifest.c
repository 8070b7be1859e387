// SPDX-License-Identifier: GPL-2.0
/*
 * The manifest as JSON.  Numbers that may need 64 bits (ids) are written
 * as hexadecimal strings, since JSON's numbers hold 53.
 */
#include "job/manifest.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/proc.h"
#include "report/report.h"

#define MANIFEST_MAX	(256 << 20)	/* bytes; a rank takes about a hundred, as does an older file */
#define WHOLE_MAX	1e18		/* for numbers that need not be exact */
#define FORMAT_NAME	"kcr-mpi-snapshot"

/* ---- vectors of strings -------------------------------------------------------- */

int strings_add(char ***vector, const char *text)
{
	size_t count = 0;
	char **grown;

	while (*vector && (*vector)[count])
		count++;
	grown = realloc(*vector, (count + 2) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	*vector = grown;
	grown[count] = strdup(text);
	grown[count + 1] = NULL;
	return grown[count] ? 0 : -ENOMEM;
}

void strings_free(char **vector)
{
	for (char **each = vector; each && *each; each++)
		free(*each);
	free(vector);
}

static void put_strings(cJSON *json, const char *name, char **vector)
{
	cJSON *array = cJSON_AddArrayToObject(json, name);

	for (; vector && *vector; vector++)
		cJSON_AddItemToArray(array, cJSON_CreateString(*vector));
}

static int get_strings(const cJSON *json, const char *name, char ***out)
{
	const cJSON *item, *array = cJSON_GetObjectItemCaseSensitive(json, name);
	size_t count = 0;

	if (!cJSON_IsArray(array))
		return -EINVAL;
	*out = calloc((size_t)cJSON_GetArraySize(array) + 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	cJSON_ArrayForEach(item, array) {
		(*out)[count] = cJSON_IsString(item) ? strdup(item->valuestring) : NULL;
		if (!(*out)[count++])
			return -EINVAL;
	}
	return 0;
}

static char *get_string(const cJSON *json, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, name));

	return text ? strdup(text) : NULL;
}

/* 0 if it is not a number from 0 to `most`. */
static double get_number(const cJSON *json, const char *name, double most)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);

	return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= most ?
		item->valuedouble : 0;
}

/* ---- writing -------------------------------------------------------------------- */

static void put_id(cJSON *json, const char *name, uint64_t id)
{
	char text[24];

	snprintf(text, sizeof(text), "%016" PRIx64, id);
	cJSON_AddStringToObject(json, name, text);
}

static void put_file(cJSON *json, const struct snapshot_file *file)
{
	cJSON_AddNumberToObject(json, "bytes", (double)file->bytes);
	put_id(json, "id", file->id);
}

static void put_ranks(cJSON *json, const struct snapshot *s)
{
	cJSON *ranks = cJSON_AddArrayToObject(json, "ranks");

	for (uint32_t i = 0; i < s->nr_ranks; i++) {
		const struct snapshot_rank *r = &s->rank[i];
		cJSON *rank = cJSON_CreateObject();
		cJSON *older = r->nr_older ? cJSON_AddArrayToObject(rank, "older") : NULL;

		cJSON_AddStringToObject(rank, "node", r->node);
		put_file(rank, &r->file);
		for (uint32_t k = 0; k < r->nr_older; k++) {
			cJSON *file = cJSON_CreateObject();

			put_file(file, &r->older[k]);
			cJSON_AddItemToArray(older, file);
		}
		cJSON_AddItemToArray(ranks, rank);
	}
}

static uint32_t format_number(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->nr_ranks; i++)
		if (s->rank[i].nr_older)
			return SNAPSHOT_FORMAT;
	return SNAPSHOT_WHOLE;
}

static char *format(const struct snapshot *s)
{
	cJSON *json = cJSON_CreateObject(), *times;
	char *text;

	cJSON_AddStringToObject(json, "format", FORMAT_NAME);
	cJSON_AddNumberToObject(json, "version", format_number(s));
	if (s->id)
		put_id(json, "job", s->id);
	cJSON_AddNumberToObject(json, "interval", s->interval);
	cJSON_AddNumberToObject(json, "created", (double)s->created);
	cJSON_AddStringToObject(json, "openmpi", s->openmpi);
	cJSON_AddStringToObject(json, "kcr", s->kcr);
	cJSON_AddStringToObject(json, "cwd", s->cwd);
	if (s->local)
		cJSON_AddStringToObject(json, "local", s->local);
	put_strings(json, "options", s->options);
	put_strings(json, "program", s->program);
	put_strings(json, "environment", s->environment);
	times = cJSON_AddObjectToObject(json, "times");
	cJSON_AddNumberToObject(times, "gate_ms", s->times.gate_ms);
	cJSON_AddNumberToObject(times, "drain_ms", s->times.drain_ms);
	cJSON_AddNumberToObject(times, "copy_ms", s->times.copy_ms);
	cJSON_AddNumberToObject(times, "dump_ms", s->times.dump_ms);
	put_ranks(json, s);
	text = cJSON_Print(json);
	cJSON_Delete(json);
	return text;
}

int manifest_write(const char *path, const struct snapshot *s)
{
	char *text = format(s);
	size_t length = text ? strlen(text) : 0, done = 0;
	int err = 0, fd;

	if (!text)
		return report_fail(-ENOMEM, "no memory for the manifest");
	if (length > MANIFEST_MAX) {
		free(text);
		return report_fail(-EFBIG, "so many older files are too many for %s: begin anew earlier, "
				   "by a smaller --full-every", path);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		err = report_errno(-errno, "cannot create %s", path);
		free(text);
		return err;
	}
	while (done < length && !err) {
		ssize_t n = write(fd, text + done, length - done);

		if (n < 0)
			err = report_errno(-errno, "cannot write %s", path);
		else
			done += n;
	}
	if (!err && fsync(fd))
		err = report_errno(-errno, "cannot write %s", path);
	close(fd);
	free(text);
	return err;
}

/* ---- reading -------------------------------------------------------------------- */

static int read_text(const char *path, char **out)
{
	struct stat st;
	size_t done = 0;
	char *text;
	int fd = proc_open_regular(AT_FDCWD, path, 0, &st);

	if (fd == -ENOENT || fd == -ENOTDIR)
		return -ENOENT;
	if (fd < 0 && fd != -EINVAL)
		return report_errno(fd, "cannot open %s", path);
	if (fd < 0 || st.st_size > MANIFEST_MAX) {
		if (fd >= 0)
			close(fd);
		return report_fail(-EINVAL, "%s is not a manifest", path);
	}
	text = calloc(1, st.st_size + 1);
	while (text && done < (size_t)st.st_size) {
		ssize_t n = read(fd, text + done, st.st_size - done);

		if (n <= 0)
			break;
		done += n;
	}
	close(fd);
	*out = text;
	return text ? 0 : report_fail(-ENOMEM, "no memory for %s", path);
}

static int get_id(const cJSON *json, const char *name, uint64_t *id)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, name));

	return text && sscanf(text, "%" SCNx64, id) == 1 ? 0 : -EINVAL;
}

static int parse_file(const cJSON *item, uint32_t format_number, struct snapshot_file *file)
{
	file->bytes = get_number(item, "bytes", WHOLE_MAX);
	return get_id(item, format_number == SNAPSHOT_SUMS ? "xxh64" : "id", &file->id);
}

static int parse_older(const cJSON *list, uint32_t format_number, struct snapshot_rank *rank)
{
	const cJSON *item;
	int err = 0;

	if (!list)
		return 0;
	if (format_number < SNAPSHOT_FORMAT || !cJSON_IsArray(list) || !cJSON_GetArraySize(list))
		return -EINVAL;
	rank->older = calloc(cJSON_GetArraySize(list), sizeof(*rank->older));
	if (!rank->older)
		return -ENOMEM;
	cJSON_ArrayForEach(item, list)
		err = err ?: parse_file(item, format_number, &rank->older[rank->nr_older++]);
	return err;
}

static int parse_ranks(const cJSON *json, struct snapshot *s)
{
	const cJSON *item, *ranks = cJSON_GetObjectItemCaseSensitive(json, "ranks");
	struct snapshot_rank *rank;

	if (!cJSON_IsArray(ranks) || !cJSON_GetArraySize(ranks))
		return -EINVAL;
	rank = s->rank = calloc(cJSON_GetArraySize(ranks), sizeof(*s->rank));
	if (!rank)
		return -ENOMEM;
	cJSON_ArrayForEach(item, ranks) {
		s->nr_ranks++;
		rank->node = get_string(item, "node");
		if (!rank->node || parse_file(item, s->format, &rank->file) ||
		    parse_older(cJSON_GetObjectItemCaseSensitive(item, "older"), s->format, rank))
			return -EINVAL;
		rank++;
	}
	return 0;
}

static int parse(const cJSON *json, struct snapshot *s)
{
	const cJSON *times = cJSON_GetObjectItemCaseSensitive(json, "times");
	const char *format_name =
		cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "format"));

	if (!format_name || strcmp(format_name, FORMAT_NAME))
		return -EINVAL;
	s->format = get_number(json, "version", UINT32_MAX);
	if (s->format < 1 || s->format > SNAPSHOT_FORMAT)
		return -EPROTO;
	if (cJSON_HasObjectItem(json, "job") && get_id(json, "job", &s->id))
		return -EINVAL;
	s->interval = get_number(json, "interval", UINT32_MAX);
	s->created = get_number(json, "created", WHOLE_MAX);
	s->openmpi = get_string(json, "openmpi");
	s->kcr = get_string(json, "kcr");
	s->cwd = get_string(json, "cwd");
	s->times.gate_ms = get_number(times, "gate_ms", WHOLE_MAX);
	s->times.drain_ms = get_number(times, "drain_ms", WHOLE_MAX);
	s->times.copy_ms = get_number(times, "copy_ms", WHOLE_MAX);
	s->times.dump_ms = get_number(times, "dump_ms", WHOLE_MAX);
	if (!s->openmpi || !s->kcr || !s->cwd || get_strings(json, "options", &s->options) ||
	    get_strings(json, "program", &s->program) ||
	    get_strings(json, "environment", &s->environment))
		return -EINVAL;
	return parse_ranks(json, s);
}

int manifest_read(const char *path, struct snapshot **out)
{
	struct snapshot *s;
	char *text = NULL;
	cJSON *json;
	int err = read_text(path, &text);

	if (err)
		return err;
	json = cJSON_Parse(text);
	s = calloc(1, sizeof(*s));
	err = !s ? -ENOMEM : parse(json, s);
	cJSON_Delete(json);
	if (s)
		s->text = text;
	else
		free(text);
	if (!err) {
		*out = s;
		return 0;
	}
	snapshot_free(s);
	if (err == -EPROTO)
		return report_fail(err, "%s is of a later version of KCR", path);
	return report_fail(err, "%s is damaged or not a manifest", path);
}
