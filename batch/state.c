// SPDX-License-Identifier: GPL-2.0
/* The state of a job as JSON; see state.h. */
#include "batch/state.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/snapshot.h"
#include "proc/proc.h"
#include "proc/status.h"
#include "report/report.h"

#define STATE_FORMAT	"kcr-batch-state"
#define STATE_MAX	(64 << 20)	/* bytes; the command: 6 MB at most, each byte escaped as \u001f */
#define STAT_START	22		/* field of /proc/PID/stat */

static const char *const phases[] = {
	[STATE_NEW] = "new",	 [STATE_RUNNING] = "running", [STATE_SAVED] = "saved",
	[STATE_ENDED] = "ended", [STATE_FAILED] = "failed",
};

const char *state_phase_name(enum state_phase phase)
{
	return phases[phase];
}

/* ---- writing ----------------------------------------------------------------------- */

static void put_last(cJSON *json, const struct state_last *last)
{
	cJSON *one = cJSON_AddObjectToObject(json, "checkpoint");

	cJSON_AddNumberToObject(one, "number", last->number);
	cJSON_AddNumberToObject(one, "time", (double)last->time);
	cJSON_AddNumberToObject(one, "bytes", (double)last->bytes);
	cJSON_AddNumberToObject(one, "cost_s", last->cost_s);
}

static void put_strings(cJSON *json, const char *name, char *const *vector)
{
	cJSON *array = cJSON_AddArrayToObject(json, name);

	for (; vector && *vector; vector++)
		cJSON_AddItemToArray(array, cJSON_CreateString(*vector));
}

static char *format(const struct state *s)
{
	cJSON *json = cJSON_CreateObject(), *leader;
	char *text;

	cJSON_AddStringToObject(json, "format", STATE_FORMAT);
	cJSON_AddNumberToObject(json, "version", 1);
	cJSON_AddStringToObject(json, "phase", phases[s->phase]);
	put_strings(json, "command", s->command);
	put_strings(json, "scratch", s->scratch);
	leader = cJSON_AddObjectToObject(json, "leader");
	cJSON_AddNumberToObject(leader, "pid", s->leader.pid);
	cJSON_AddNumberToObject(leader, "start", (double)s->leader.start);
	cJSON_AddStringToObject(leader, "boot", s->leader.boot);
	cJSON_AddNumberToObject(json, "restarts", s->restarts);
	cJSON_AddNumberToObject(json, "fruitless", s->fruitless);
	cJSON_AddNumberToObject(json, "status", s->status);
	put_last(json, &s->last);
	cJSON_AddNumberToObject(json, "failures", s->failures);
	cJSON_AddNumberToObject(json, "all_failures", s->all_failures);
	cJSON_AddNumberToObject(json, "next_due", (double)s->next_due);
	text = cJSON_Print(json);
	cJSON_Delete(json);
	return text;
}

int state_save(const struct state *s, const struct folder *f)
{
	char *text = format(s);
	int err = text ? folder_write(f, STATE_SUFFIX, text) : -ENOMEM;

	free(text);
	return err;
}

/* ---- reading ----------------------------------------------------------------------- */

/* A number from 0 to `most`; 0: it is not there. */
static double number(const cJSON *json, const char *name, double most)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);

	return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= most ?
		item->valuedouble : 0;
}

static const char *text_of(const cJSON *json, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, name));

	return text ? text : "";
}

/* There may be hundreds of thousands. */
static int parse_strings(const cJSON *json, const char *name, char ***out)
{
	const cJSON *word, *array = cJSON_GetObjectItemCaseSensitive(json, name);
	size_t count = 0;

	if (!cJSON_GetArraySize(array))
		return 0;
	*out = calloc(cJSON_GetArraySize(array) + 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	cJSON_ArrayForEach(word, array) {
		if (!cJSON_IsString(word))
			return -EINVAL;
		(*out)[count] = strdup(word->valuestring);
		if (!(*out)[count++])
			return -ENOMEM;
	}
	return 0;
}

static int parse(const cJSON *json, struct state *s)
{
	const cJSON *leader = cJSON_GetObjectItemCaseSensitive(json, "leader");
	const cJSON *last = cJSON_GetObjectItemCaseSensitive(json, "checkpoint");

	if (strcmp(text_of(json, "format"), STATE_FORMAT) || number(json, "version", 1e9) != 1)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(phases) / sizeof(*phases); i++)
		if (!strcmp(text_of(json, "phase"), phases[i]))
			s->phase = i;
	s->leader.pid = (pid_t)number(leader, "pid", 1 << 22);
	s->leader.start = (int64_t)number(leader, "start", 1e15);
	snprintf(s->leader.boot, sizeof(s->leader.boot), "%s", text_of(leader, "boot"));
	s->restarts = (unsigned int)number(json, "restarts", 1e9);
	s->fruitless = (unsigned int)number(json, "fruitless", 1e9);
	s->status = (int)number(json, "status", 0xffff);
	s->last.number = (uint32_t)number(last, "number", UINT32_MAX - 1);
	s->last.time = (time_t)number(last, "time", 1e12);
	s->last.bytes = (uint64_t)number(last, "bytes", 1e18);
	s->last.cost_s = number(last, "cost_s", 1e9);
	s->failures = (unsigned int)number(json, "failures", 1e9);
	s->all_failures = (unsigned int)number(json, "all_failures", 1e9);
	s->next_due = (time_t)number(json, "next_due", 1e12);
	return parse_strings(json, "command", &s->command) ?:
	       parse_strings(json, "scratch", &s->scratch);
}

/* All of a regular file as a string, malloc()ed; NULL with errno. */
static char *read_small(int folder, const char *file)
{
	int fd = openat(folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	char *text = NULL;
	ssize_t n;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size < STATE_MAX)
		text = calloc(1, st.st_size + 1);
	else
		errno = EINVAL;
	n = text ? read(fd, text, st.st_size) : 0;
	close(fd);
	if (n < 0) {
		free(text);
		return NULL;
	}
	return text;
}

int state_load(struct state *s, const struct folder *f, const char *name)
{
	char file[NAME_MAX + 1], *text;
	cJSON *json;
	int err;

	memset(s, 0, sizeof(*s));
	text = read_small(f->fd, folder_file(name, STATE_SUFFIX, file));
	if (!text && errno == ENOENT)
		return 0;
	if (!text)
		return report_errno(-errno, "cannot read %s/%s", f->path, file);
	json = cJSON_Parse(text);
	free(text);
	err = parse(json, s);
	cJSON_Delete(json);
	if (!err)
		return 0;
	state_free(s);
	memset(s, 0, sizeof(*s));
	return report_fail(err, "%s/%s is damaged, or of another version: remove it (the checkpoints "
			   "stay)", f->path, file);
}

void state_free(struct state *s)
{
	strings_free(s->command);
	strings_free(s->scratch);
	s->command = s->scratch = NULL;
}

int state_set_command(struct state *s, char *const command[])
{
	size_t count = 0;

	while (command[count])
		count++;
	s->command = calloc(count + 1, sizeof(*s->command));
	for (size_t i = 0; i < count && s->command; i++) {
		s->command[i] = strdup(command[i]);
		if (!s->command[i]) {
			strings_free(s->command);
			s->command = NULL;
		}
	}
	return s->command ? 0 : -ENOMEM;
}

/* ---- the leader -------------------------------------------------------------------- */

/* The start of a process; 0: there is none, or it is a zombie. */
static int64_t start_of(pid_t pid)
{
	char stat[1024], *behind;

	if (proc_read(pid, "stat", stat, sizeof(stat)) <= 0)
		return 0;
	behind = strrchr(stat, ')');
	if (!behind || (behind[1] && strchr("ZX", behind[2])))
		return 0;
	return stat_number(stat, STAT_START);
}

static void read_boot(char *out, size_t size)
{
	if (proc_read(PROC_ROOT, "sys/kernel/random/boot_id", out, size) < 0)
		*out = '\0';
	out[strcspn(out, "\n")] = '\0';
}

void state_set_leader(struct state *s, pid_t pid)
{
	s->leader.pid = pid;
	s->leader.start = start_of(pid);
	read_boot(s->leader.boot, sizeof(s->leader.boot));
}

bool state_leader_runs(const struct state *s)
{
	char boot[sizeof(s->leader.boot)];

	read_boot(boot, sizeof(boot));
	return s->leader.pid > 0 && s->leader.start && *boot && !strcmp(boot, s->leader.boot) &&
	       start_of(s->leader.pid) == s->leader.start;
}

bool state_leader_elsewhere(const struct state *s)
{
	char boot[sizeof(s->leader.boot)];

	read_boot(boot, sizeof(boot));
	return *boot && *s->leader.boot && strcmp(boot, s->leader.boot);
}
