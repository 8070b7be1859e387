// SPDX-License-Identifier: GPL-2.0
/*
 * One checkpoint.  It is taken in this process, not by cr_checkpoint, as Yama lets only an
 * ancestor of the program do it.
 *
 * A save that ends the program kills it in the moment when the file is complete; if it is
 * to be verified first, the program is stopped meanwhile, and goes on if the file is bad.  The
 * same with all ranks of an MPI job, by its coordinator.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "batch/command.h"
#include "batch/log.h"
#include "batch/program.h"
#include "batch/run.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/inside.h"
#include "job/snapshot.h"
#include "proc/clock.h"
#include "proc/container.h"
#include "proc/spawn.h"
#include "proc/tree.h"
#include "report/report.h"
#include "util/mpi_job.h"

#define STOP_LIMIT_S	60		/* for the program to come to a stop */
#define VERIFY_LIMIT_S	86400

int run_verify(const char *path, char *why, size_t size)
{
	char *tool = spawn_beside("cr_info"), *line;
	const char *const argv[] = { tool, "--verify", path, NULL };
	int status = tool ? command_run(argv, VERIFY_LIMIT_S, why, size) : -ENOMEM;

	free(tool);
	if (status < 0) {
		snprintf(why, size, "cannot run cr_info: %s", strerror(-status));
		return status;
	}
	line = strstr(why, "cr_info: ");
	memmove(why, line ? line + 9 : why, strlen(line ? line + 9 : why) + 1);
	why[strcspn(why, "\n")] = '\0';
	if (!status)
		return 0;
	if (status > 128)
		return -EINTR;
	/* A snapshot without one of its files is as good as a damaged one. */
	return status == EINVAL || (status == ENOENT && !access(path, F_OK)) ? -EINVAL : -EIO;
}

void run_set_aside(const struct run *r, const struct folder_checkpoint *c)
{
	struct folder_checkpoint *all = NULL;
	ssize_t count = folder_set_aside(&r->folder, c) ?: folder_list(&r->folder, true, &all);

	if (count < 0)
		log_event(LOG_FAILURE, "%s", report_message());
	for (ssize_t i = 1; i < count; i++) {
		int err = folder_drop(&r->folder, &all[i]);

		if (err)
			log_event(LOG_FAILURE, "the damaged checkpoint %u cannot be removed: %s",
				  all[i].number, strerror(-err));
		else
			log_event(LOG_NOTICE, "the damaged checkpoint %u is removed, as of these only the "
				  "newest is kept", all[i].number);
	}
	free(all);
	report_clear();
}

/* An MPI job deeper in the tree would be saved as processes without their connections. */
static int refuse_inner_mpi(pid_t leader)
{
	pid_t *all;
	ssize_t count = proc_tree(leader, &all);
	int err = count < 0 ? report_fail(-ENOMEM, "no memory") : 0;

	for (ssize_t i = 1; i < count && !err; i++)
		if (program_is_mpi(all[i]))
			err = report_fail(-EOPNOTSUPP, "process %d of the program is the mpirun of an "
					  "MPI job, which is saved only as a whole: in the script, put "
					  "cr_batch before cr_mpirun", all[i]);
	if (count >= 0)
		free(all);
	return err;
}

/* What does not descend from the leader any more is not saved with it. */
static int warn_stray(void *arg, pid_t stray)
{
	(void)arg;
	log_event(LOG_NOTICE, "warning: process %d is no descendant of the program any more "
		  "(a daemon) and is not saved with it", stray);
	return 0;
}

/* What was written. */
struct written {
	uint64_t bytes;
	bool increment;
};

static struct written measure_job(const char *path)
{
	struct written w = {};
	struct snapshot *s = NULL;
	char *found = NULL;
	uint64_t older;

	if (snapshot_load(path, &s, &found)) {
		report_clear();
		return w;
	}
	w.bytes = snapshot_bytes(s, &older);
	w.increment = older > 0;
	snapshot_free(s);
	free(found);
	return w;
}

/* The checkpoint that an increment continues, the newest of that kind; NULL: there is none. */
static const char *find_parent(const struct run *r, bool mpi, char path[PATH_MAX])
{
	struct folder_checkpoint *all;
	ssize_t count = folder_list(&r->folder, false, &all);
	const char *found = NULL;

	for (ssize_t i = 0; i < count && !found; i++)
		if (all[i].mpi == mpi)
			found = folder_checkpoint_path(&r->folder, &all[i], path);
	free(all);
	report_clear();
	return found;
}

/* From outside of its namespaces the older files are not to be found where it is saved. */
static bool is_in_container(pid_t leader)
{
	struct container c;
	bool inside = !container_find(leader, &c) && c.namespaces;

	container_forget(&c);
	return inside;
}

/* Writes the file or folder. */
static int write_one(const struct run *r, pid_t leader, const char *path, bool mpi, int signal,
		     struct written *out)
{
	char parent[PATH_MAX];
	const struct mpi_job_options job = { .keep = 1 };
	bool incremental = r->options->incremental && (mpi || !is_in_container(leader));
	struct checkpoint_options o = {
		.scope = CHECKPOINT_TREE, .target = leader, .path = path, .fd = -1, .sync = true,
		.signal = signal, .ends = signal != 0, .must_reopen = signal != 0,
		.timeout_s = mpi ? 0 : STOP_LIMIT_S, .timeout_each = true,
		.snapshot = r->options->snapshot && !(mpi && signal),
		.skip_unsupported = r->options->skip_unsupported,
		.compression = r->options->compression, .bandwidth = r->options->bandwidth,
		.incremental = incremental,
		.parent = incremental ? find_parent(r, mpi, parent) : NULL,
		.parent_optional = true, .full_every = r->options->full_every,
	};
	struct checkpoint_result result = {};
	int err;

	if (mpi) {
		if (!mpi_job_checkpoint(&o, &job, false, &err))
			return report_fail(-ESRCH, "mpirun %d has ended", leader);
		if (!err)
			*out = measure_job(path);
		return err;
	}
	err = refuse_inner_mpi(leader);
	if (err)
		return err;
	/* Of a survivor there is no child of ours. */
	program_each_stray(leader, r->child ?: leader, warn_stray, NULL);
	err = inside_run(&o, &result, checkpoint_run);
	*out = (struct written){ result.bytes, result.nr_older > 0 };
	return err;
}

/* Checks a new file; the program, stopped if it is to `leave`, runs on if it is bad. */
static int verify_new(struct run *r, const struct folder_checkpoint *c, const char *path,
		      pid_t leader, bool leave)
{
	char why[512];
	int err = run_verify(path, why, sizeof(why));

	if (!err)
		return 0;
	if (leave)
		program_run_on(leader);
	if (err == -EINVAL)
		run_set_aside(r, c);
	/* What was written is not what was read: not the program's fault. */
	return report_fail(-EIO, "checkpoint %u %s: %s", c->number,
			   err == -EINVAL ? "is damaged" : "could not be verified", why);
}

static void count_new(struct run *r, const struct folder_checkpoint *c, uint64_t bytes,
		      uint64_t cost_ns)
{
	r->state.last = (struct state_last){ c->number, time(NULL), bytes, (double)cost_ns / 1e9 };
	r->state.failures = 0;
	r->state.fruitless = 0;
}

/* 0, with a message: the folder cannot be read. */
static uint32_t next_number(const struct run *r)
{
	struct folder_checkpoint *all;
	uint32_t newest = r->state.last.number;

	for (int damaged = 0; damaged < 2; damaged++) {		/* its name may be needed again */
		ssize_t count = folder_list(&r->folder, damaged, &all);

		if (count < 0)
			return 0;
		if (count > 0 && all[0].number > newest)
			newest = all[0].number;
		free(all);
	}
	return newest + 1;
}

int run_save(struct run *r, pid_t leader, bool leave)
{
	struct folder_checkpoint c = { .mpi = program_is_mpi(leader) };
	bool verify = r->options->verify, verify_first = verify && leave;
	uint64_t start = now_ns(), cost;
	struct written written = {};
	char path[PATH_MAX];
	int err, signal = !leave ? 0 : verify_first ? SIGSTOP : SIGKILL;

	report_clear();
	c.number = next_number(r);
	if (!c.number)
		return -EIO;
	folder_checkpoint_path(&r->folder, &c, path);
	err = write_one(r, leader, path, c.mpi, signal, &written);
	cost = now_ns() - start;
	if (!err && verify)
		err = verify_new(r, &c, path, leader, leave);
	if (err)
		return err;
	if (verify_first)
		program_kill(leader);
	else if (leave)
		program_end(leader);
	count_new(r, &c, written.bytes, cost);
	log_event(LOG_ROUTINE, "checkpoint %u: %.1f MB in %.2f s%s%s%s", c.number,
		  (double)written.bytes / 1e6, (double)cost / 1e9,
		  written.increment ? ", an increment" : "", verify ? ", verified" : "",
		  leave ? "; the program is ended, to go on in the next run" : "");
	err = folder_prune(&r->folder, r->options->keep);
	if (err)
		log_event(LOG_NOTICE, "warning: cannot remove old checkpoints: %s", report_message());
	report_clear();
	return 0;
}
