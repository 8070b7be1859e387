// SPDX-License-Identifier: GPL-2.0
/*
 * The command line of the new mpirun: the old one's options, minus the number
 * of ranks, minus what the caller overrides, and cr_restart as the program.
 * Ranks whose files are on their nodes are placed there (add_placement()), whatever
 * the old options say, unless the caller places them.
 */
#include "job/relaunch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/folder.h"
#include "job/identity.h"
#include "job/snapshot.h"
#include "job/srun.h"
#include "proc/mount.h"
#include "proc/proc.h"
#include "report/report.h"

#define LAZY	"--lazy"
#define ID_ROOM	64		/* of RELAUNCH_ID_VARIABLE */

/* Of mpirun. */
static const struct {
	const char *name;
	enum topic topic;
	int values;
} options[] = {
	{ "np", TOPIC_COUNT, 1 },		{ "n", TOPIC_COUNT, 1 },
	{ "c", TOPIC_COUNT, 1 },		{ "host", TOPIC_HOSTS, 1 },
	{ "H", TOPIC_HOSTS, 1 },		{ "hostfile", TOPIC_HOSTS, 1 },
	{ "machinefile", TOPIC_HOSTS, 1 },	{ "default-hostfile", TOPIC_HOSTS, 1 },
	{ "map-by", TOPIC_MAP, 1 },		{ "npernode", TOPIC_MAP, 1 },
	{ "N", TOPIC_MAP, 1 },			{ "pernode", TOPIC_MAP, 0 },
	{ "ppr", TOPIC_MAP, 1 },		{ "rankfile", TOPIC_MAP, 1 },
	{ "rf", TOPIC_MAP, 1 },			{ "bynode", TOPIC_MAP, 0 },
	{ "byslot", TOPIC_MAP, 0 },		{ "bind-to", TOPIC_BIND, 1 },
	{ "rank-by", TOPIC_RANK, 1 },		{ "wdir", TOPIC_CWD, 1 },
	{ "wd", TOPIC_CWD, 1 },
};

/*
 * What follows the name in this argument: "", or with Open MPI 5 its value, as in map-by=node, n4
 * or Hlist.  NULL: it is about something else.
 */
static const char *attached(const char *argument, const char *name)
{
	size_t length = strlen(name);

	if (strncmp(argument, name, length))
		return NULL;
	argument += length;
	if (!*argument || *argument == '=')
		return argument;
	if (length > 1)
		return NULL;
	return *name == 'H' || strspn(argument, "0123456789") == strlen(argument) ? argument : NULL;
}

/* `srun`: of srun, in the form of srun.h.  *values: so many words follow that belong to it. */
static enum topic topic_of(bool srun, const char *argument, int *values)
{
	*values = 0;
	if (srun)
		return srun_topic(argument);
	if (*argument++ != '-')
		return TOPIC_NONE;
	argument += *argument == '-';
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		const char *value = attached(argument, options[i].name);

		if (value && (!*value || options[i].values)) {
			*values = *value ? 0 : options[i].values;
			return options[i].topic;
		}
	}
	return TOPIC_NONE;
}

static bool is_by_srun(const struct snapshot *s)
{
	return s->options && *s->options && !strcmp(*s->options, JOB_BY_SRUN);
}

static bool chosen_anew(bool srun, enum topic topic, char **overrides)
{
	int values;

	for (; *overrides; overrides++)
		if (topic_of(srun, *overrides, &values) == topic)
			return true;
	return false;
}

static bool places(enum topic topic)
{
	return topic == TOPIC_HOSTS || topic == TOPIC_MAP || topic == TOPIC_RANK;
}

/* Adds those of the old options that still apply. */
static int add_old(char ***command, const struct snapshot *s, bool placed, char **overrides)
{
	bool srun = is_by_srun(s);
	int err = 0, values;

	for (char **old = s->options; old && *old && !err; old++) {
		enum topic topic = topic_of(srun, *old, &values);

		if (topic == TOPIC_COUNT || topic == TOPIC_CWD || (placed && places(topic)) ||
		    (topic != TOPIC_NONE && chosen_anew(srun, topic, overrides))) {
			while (values-- && old[1])
				old++;
			continue;
		}
		err = strings_add(command, *old);
	}
	return err;
}

/*
 * Places each rank on the node that has its file; with Open MPI 5 also where it thinks that
 * there is no processor for it, as it must have had one before.
 */
static int add_placement(char ***command, const char *dir, const struct snapshot *s)
{
	bool srun = is_by_srun(s);
	char *hosts = folder_path(srun ? "--nodelist=%s/" SNAPSHOT_HOSTS : "%s/" SNAPSHOT_HOSTS, dir);
	const char *by_mpirun[] = { "--hostfile", hosts, "--map-by",
				    atoi(s->openmpi) > 4 ? "seq:oversubscribe" : "seq", NULL };
	const char *by_srun[] = { "--distribution=arbitrary", hosts, NULL };
	int err = hosts ? 0 : -ENOMEM;

	for (const char **each = srun ? by_srun : by_mpirun; *each && !err; each++)
		err = strings_add(command, *each);
	free(hosts);
	return err;
}

/* cr_mpirun is beside cr_restart, which is `self`. */
static int add_launcher(char ***command, const char *self)
{
	const char *slash = strrchr(self, '/');
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.*scr_mpirun", slash ? (int)(slash + 1 - self) : 0, self);
	return strings_add(command, path);
}

/* What each rank is. */
static int add_ranks(char ***command, const struct snapshot *s, const char *dir, const char *self, bool lazy)
{
	char count[16];
	const char *with_lazy[] = { is_by_srun(s) ? "-n" : "-np", count, self, LAZY, dir, NULL };
	const char *without[] = { with_lazy[0], count, self, dir, NULL };
	int err = 0;

	snprintf(count, sizeof(count), "%" PRIu32, s->nr_ranks);
	for (const char **each = lazy ? with_lazy : without; *each && !err; each++)
		err = strings_add(command, *each);
	return err;
}

static int build(char ***command, const struct snapshot *s, const char *dir, const char *self,
		 bool lazy, char **overrides)
{
	bool srun = is_by_srun(s);
	bool placed = s->local && !chosen_anew(srun, TOPIC_HOSTS, overrides) &&
		      !chosen_anew(srun, TOPIC_MAP, overrides);
	int err = add_launcher(command, self);

	if (!err)
		err = add_old(command, s, placed, overrides);
	if (!err && placed)
		err = add_placement(command, dir, s);
	for (; *overrides && !err; overrides++)
		err = strings_add(command, *overrides);
	return err ? err : add_ranks(command, s, dir, self, lazy);
}

/* What it says of the number of ranks; NULL: it is about something else. */
static const char *count_of(bool srun, char *const *word)
{
	int values;

	if (topic_of(srun, *word, &values) != TOPIC_COUNT)
		return NULL;
	if (srun || values)
		return (srun ? srun_value(*word, "ntasks") : word[1]) ?: "";
	return *word + strcspn(*word, "0123456789");
}

/* The number of ranks and the launcher are the snapshot's. */
static int check_overrides(char **overrides, const struct snapshot *s)
{
	for (; *overrides; overrides++) {
		const char *count = count_of(is_by_srun(s), overrides);

		if (count && strtoul(count, NULL, 10) != s->nr_ranks)
			return report_fail(-EINVAL, "the snapshot has %" PRIu32 " ranks; that number "
					   "cannot be changed", s->nr_ranks);
		if (!strncmp(*overrides, "--launcher", strlen("--launcher")))
			return report_fail(-EINVAL, "the snapshot is of a job of %s, which restarts it, "
					   "too: leave --launcher out", is_by_srun(s) ? "srun" : "mpirun");
	}
	return 0;
}

/* Those of srun in the form of srun.h, and all others as they are. */
static int read_overrides(char *const *given, const struct snapshot *s, char ***out)
{
	int err = 0;

	while (*given && err >= 0) {
		err = is_by_srun(s) ? srun_take_option(&given, out) : 0;
		if (!err)
			err = strings_add(out, *given++);
	}
	return err < 0 ? err : 0;
}

static void set_environment(char **environment)
{
	for (; environment && *environment; environment++) {
		char *equals = strchr(*environment, '=');

		if (!equals)
			continue;
		*equals = '\0';
		setenv(*environment, equals + 1, 0);
		*equals = '=';
	}
}

/* Is it owned by root and writable by nobody else? */
static bool is_roots(int folder, const char *name, uid_t *owner)
{
	struct stat st = { .st_uid = ~0u };
	bool is = !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) && !st.st_uid &&
		  !(st.st_mode & 022) && !S_ISLNK(st.st_mode);

	*owner = st.st_uid;
	return is;
}

/*
 * Can only root make the path refer to another folder?  mpirun and the ranks use it
 * again.  Checks each folder above it, from the root down: a user who cannot change the
 * ones before cannot replace the next.  `path` has no links.
 */
static bool name_is_roots(const char *path, uid_t *owner)
{
	const char *slash;

	for (slash = path; slash; slash = strchr(slash + 1, '/')) {
		char folder[PATH_MAX];
		struct stat st;

		snprintf(folder, sizeof(folder), "%.*s/", (int)(slash - path), path);
		if (lstat(folder, &st))
			return false;
		*owner = st.st_uid;
		if (st.st_uid || (st.st_mode & 022 && !(st.st_mode & S_ISVTX)))
			return false;
	}
	return true;
}

/* Can the owners of all these folders be believed?  -EPERM, reported: of one they cannot. */
static int check_mounts(const char *path)
{
	const char *slash;
	int err = 0;

	for (slash = path; slash && !err; slash = strchr(slash + 1, '/')) {
		const char *end = strchr(slash + 1, '/');
		char folder[PATH_MAX], what[512];
		int fd;

		snprintf(folder, sizeof(folder), "%.*s", end ? (int)(end - path) : PATH_MAX, path);
		fd = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return report_errno(-errno, "%s", folder);
		if (mount_makes_up_owners(fd, what, sizeof(what)))
			err = report_fail(-EPERM, "root's mpirun would do what the snapshot %s says, and "
					  "nothing says whose %s is: %s: restart a copy in root's own "
					  "folders", path, folder, what);
		close(fd);
	}
	return err;
}

/* Are the folder, and all in it that mpirun itself uses, under root's control alone? */
static bool is_roots_alone(int folder, const char *path, uid_t *owner)
{
	struct stat st;

	return name_is_roots(path, owner) && is_roots(folder, ".", owner) &&
	       is_roots(folder, SNAPSHOT_MANIFEST, owner) &&
	       (fstatat(folder, SNAPSHOT_HOSTS, &st, AT_SYMLINK_NOFOLLOW) ||
		is_roots(folder, SNAPSHOT_HOSTS, owner));
}

/* Loads it again from an open folder that was checked to be root's. */
static int load_as_root(const char *path, struct snapshot **s)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	char link[PROC_PATH];
	uid_t owner = 0;

	if (folder < 0)
		return report_errno(-errno, "%s", path);
	err = check_mounts(path);
	if (err) {
		close(folder);
		return err;
	}
	if (!is_roots_alone(folder, path, &owner)) {
		err = report_fail(-EPERM, "root's mpirun would do what the snapshot %s says, which "
				  "belongs to user %u or which others may write to, or a folder "
				  "above it: restart it as that user, or a copy in root's own "
				  "folders", path, owner);
	} else {
		snapshot_free(*s);
		*s = NULL;
		err = snapshot_load(proc_fd_path(link, folder), s, NULL);
	}
	close(folder);
	return err;
}

/*
 * `path` gets its name without links; *s is NULL or to be freed, also after a failure.  job: which
 * one's it has to be, or -ENOTUNIQ; 0: any.
 */
static int load(const char *dir, uint64_t job, char path[PATH_MAX], struct snapshot **s)
{
	uint32_t elsewhere;
	char *found = NULL;
	int err;

	snapshot_free(*s);
	*s = NULL;
	err = snapshot_load(dir, s, &found);
	if (!err && !realpath(found, path))
		err = report_errno(-errno, "%s", found);
	if (!err && !geteuid())
		err = load_as_root(path, s);
	if (!err && job && (*s)->id && (*s)->id != job)	/* older releases give none */
		err = report_fail(-ENOTUNIQ, "%s is a snapshot of another job", path);
	if (!err)
		err = snapshot_check(path, *s, NULL, &elsewhere);
	free(found);
	return err;
}

/* Why it cannot be used, and what is done instead. */
static void tell(const char *text)
{
	fprintf(stderr, "KCR: %s: %s\n", report_message() ?: "no memory", text);
	report_clear();
}

/* Likewise, where nobody is there who would try again, or name another one. */
static int load_to_recover(const char *dir, char path[PATH_MAX], struct snapshot **s)
{
	const uint64_t job = identity_given();
	int err = load(dir, job, path, s);
	bool others = err == -ENOTUNIQ;
	unsigned long kept = 0;
	unsigned int count;

	for (int tries = 0; err && !others && tries < RELAUNCH_RETRIES; tries++) {
		tell("it is tried again");
		sleep(RELAUNCH_PAUSE_S);
		err = load(dir, job, path, s);
		others = err == -ENOTUNIQ;
	}
	while (err && (kept = snapshot_find_kept(dir, true, kept, &count))) {
		char *older = folder_path("%s.~%lu~", dir, kept);

		tell("the one before is tried");
		err = older ? load(older, job, path, s) : -ENOMEM;
		free(older);
	}
	if (!err || !others)
		return err;
	report_clear();
	return report_fail(-ENOTUNIQ, "%s is of another job now, and none of this one is left: give each "
			   "job a name of its own (--save)", dir);
}

/* Which snapshot it is, on all nodes alike: its manifest is written once.  0 or -errno with a message. */
static int identify(const char *dir, char id[ID_ROOM])
{
	char *path = folder_path("%s/" SNAPSHOT_MANIFEST, dir);
	struct stat st;
	int err = !path ? -ENOMEM : stat(path, &st) ? -errno : 0;

	free(path);
	if (err)
		return report_errno(err, "the manifest of %s", dir);
	snprintf(id, ID_ROOM, "%" PRId64 ".%" PRId64 ".%09ld", (int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec,
		 st.st_mtim.tv_nsec);
	return 0;
}

int relaunch_check(const char *dir, const struct snapshot *s)
{
	const char *id = getenv(RELAUNCH_ID_VARIABLE);
	char now[ID_ROOM];
	int err = id ? identify(dir, now) : 0;

	if (err || !id || !strcmp(id, now))
		return err;
	/* The job itself has saved, and ended before it knew that this was complete. */
	if (s && s->id && s->id == identity_given()) {
		setenv(RELAUNCH_ID_VARIABLE, now, 1);
		return 0;
	}
	return report_fail(-ENOTUNIQ, "%s has been replaced by another snapshot since: give each job that "
			   "runs at this time a name of its own (--save)", dir);
}

int relaunch_job(const char *dir, const char *self, bool lazy, char **given)
{
	struct snapshot *s = NULL;
	char **command = NULL, **overrides = NULL, path[PATH_MAX], id[ID_ROOM], number[24];
	int err = getenv(RELAUNCH_RECOVERIES) ? load_to_recover(dir, path, &s) :
						load(dir, 0, path, &s);

	if (!err)
		err = read_overrides(given, s, &overrides);
	if (!err && overrides)
		err = check_overrides(overrides, s);
	if (!err)
		err = build(&command, s, path, self, lazy, overrides ?: (char *[]){ NULL });
	if (!err)
		err = identify(path, id);
	if (err == -ENOMEM)
		report_fail(err, "no memory");
	if (!err && chdir(s->cwd))
		report_warn("cannot enter %s: mpirun starts here", s->cwd);
	if (!err) {
		set_environment(s->environment);
		setenv(RELAUNCH_VARIABLE, path, 1);
		setenv(RELAUNCH_ID_VARIABLE, id, 1);
		snprintf(number, sizeof(number), "%016" PRIx64, s->id);
		if (s->id)
			setenv(IDENTITY_VARIABLE, number, 1);
		execvp(command[0], command);
		err = report_errno(-errno, "cannot start cr_mpirun");
	}
	strings_free(overrides);
	strings_free(command);
	snapshot_free(s);
	return err;
}

bool relaunch_has_placed(const char *hostfile)
{
	const char *dir = getenv(RELAUNCH_VARIABLE);
	size_t length = dir ? strlen(dir) : 0;

	return dir && !strncmp(hostfile, dir, length) && !strcmp(hostfile + length, "/" SNAPSHOT_HOSTS);
}

bool relaunch_is_lazy(char *const *word)
{
	const char *dir = getenv(RELAUNCH_VARIABLE);

	return dir && !strcmp(word[0], LAZY) && word[1] && !strcmp(word[1], dir) && !word[2];
}

/* Adds those of the snapshot's options that place the ranks. */
static int add_places(char ***out, const struct snapshot *s)
{
	int err = 0, values;

	for (char **options = s->options; options && *options && !err; options++) {
		bool wanted = places(topic_of(is_by_srun(s), *options, &values));

		if (wanted)
			err = strings_add(out, *options);
		for (; values && options[1] && !err; values--) {
			options++;
			if (wanted)
				err = strings_add(out, *options);
		}
	}
	return err;
}

int relaunch_options(const char *dir, const struct snapshot *s, char *const *now, char ***out)
{
	char **placement = NULL;
	bool placed = false;
	int err = add_placement(&placement, dir, s);

	for (; now && *now && !err; now++) {
		size_t same = 0;

		while (placement[same] && now[same] && !strcmp(now[same], placement[same]))
			same++;
		if (placement[same]) {
			err = strings_add(out, *now);
			continue;
		}
		placed = true;
		now += same - 1;
	}
	if (!err && placed)
		err = add_places(out, s);
	strings_free(placement);
	return err;
}

/* Reports why its file is not here. */
static int missing(const char *dir, uint32_t rank, const char *file)
{
	struct snapshot *s = NULL;
	int err = snapshot_load(dir, &s, NULL);

	if (err)
		return err;
	if (s->local && rank < s->nr_ranks)
		err = report_fail(-ENOENT, "rank %" PRIu32 " was saved on the disk of %s, in %s: have "
				  "mpirun start it there, or copy the file", rank, s->rank[rank].node,
				  s->local);
	else
		err = report_fail(-ENOENT, "the snapshot is not complete: %s", file);
	snapshot_free(s);
	return err;
}

int relaunch_rank_file(const char *dir, char **file)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *job = getenv(RELAUNCH_VARIABLE);
	int err;

	*file = NULL;
	if (!rank || !job || strcmp(job, dir))
		return 0;
	folder_look_again(dir);
	*file = snapshot_rank_path(dir, strtoul(rank, NULL, 10));
	if (!*file)
		return report_fail(-ENOMEM, "no memory");
	if (!access(*file, F_OK))
		return 0;
	err = missing(dir, strtoul(rank, NULL, 10), *file);
	free(*file);
	*file = NULL;
	return err;
}
