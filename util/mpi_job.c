// SPDX-License-Identifier: GPL-2.0
/*
 * The tools' side of MPI jobs.  See mpi_job.h; the work is done in job/.
 */
#include "util/mpi_job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "image/context.h"
#include "image/view.h"
#include "job/folder.h"
#include "job/relaunch.h"
#include "job/request.h"
#include "job/snapshot.h"
#include "proc/proc.h"
#include "proc/status.h"
#include "report/plain.h"
#include "report/report.h"
#include "restart/userfault.h"
#include "util/choices.h"
#include "util/json.h"

#define ANSWER_PATIENCE_S	15	/* for mpirun to report that the time is over */

/* ---- checkpoint ------------------------------------------------------------------ */

static void add(struct job_request *r, const char *argument, int *err)
{
	if (!*err)
		*err = job_request_add(r, argument);
}

/* What each rank's cr_checkpoint does with processes that are debugged, or debug others. */
static int add_ptrace(struct job_request *r, const struct checkpoint_options *o)
{
	static const char *const traced[] = {
		[CHECKPOINT_PTRACE_ERROR] = NULL,
		[CHECKPOINT_PTRACE_SKIP] = "--ptraced-skip",
		[CHECKPOINT_PTRACE_ALLOW] = "--ptraced-allow",
	};
	int err = 0;

	if (traced[o->traced])
		add(r, traced[o->traced], &err);
	if (o->tracer == CHECKPOINT_PTRACE_SKIP)
		add(r, "--ptracer-skip", &err);
	return err;
}

static int add_increment(struct job_request *r, const struct checkpoint_options *o)
{
	static const char *const changes[] = {
		[CHECKPOINT_AUTO] = NULL,
		[CHECKPOINT_DIRTY] = "--changes=dirty",
		[CHECKPOINT_HASH] = "--changes=hash",
	};
	char every[32];
	int err = 0;

	r->incremental = true;
	add(r, "--incremental", &err);
	if (changes[o->changes])
		add(r, changes[o->changes], &err);
	snprintf(every, sizeof(every), "--full-every=%u", o->full_every);
	if (o->full_every)
		add(r, every, &err);
	return err;
}

static void add_compression(struct job_request *r, const struct compression *how, int *err)
{
	char *option = choice_compression_option(how);

	if (!*err)
		*err = option ? job_request_add(r, option) : -ENOMEM;
	free(option);
}

static void add_bandwidth(struct job_request *r, uint64_t rate, int *err)
{
	char option[48];

	snprintf(option, sizeof(option), "--bandwidth=%llu", (unsigned long long)rate);
	add(r, option, err);
}

/* Options that are passed on to each rank's cr_checkpoint. */
static int add_arguments(struct job_request *r, const struct checkpoint_options *o)
{
	static const struct {
		unsigned int flag;
		const char *argument;
	} save[] = {
		{ CHECKPOINT_SAVE_EXE, "--save-exe" },
		{ CHECKPOINT_SAVE_PRIVATE, "--save-private" },
		{ CHECKPOINT_SAVE_SHARED, "--save-shared" },
	};
	int err = 0;

	if (o->compression.adaptive || o->compression.kind != CONTEXT_RAW)
		add_compression(r, &o->compression, &err);
	if (o->bandwidth)
		add_bandwidth(r, o->bandwidth, &err);
	if (!o->sync)
		add(r, "--nosync", &err);
	if (o->dedup)
		add(r, "--dedup", &err);
	if (o->skip_unsupported)
		add(r, "--skip-unsupported", &err);
	if (o->ends)
		add(r, "--ends", &err);
	for (size_t i = 0; i < sizeof(save) / sizeof(*save); i++)
		if (o->save & save[i].flag)
			add(r, save[i].argument, &err);
	if (!err)
		err = add_ptrace(r, o);
	if (!err && o->incremental)
		err = add_increment(r, o);
	return err;
}

/* The snapshot that is to be continued. */
static int name_parent(struct job_request *r, const struct checkpoint_options *o)
{
	char *folder;

	r->parent = snapshot_name(o->parent);
	folder = r->parent ? snapshot_files_folder(r->parent) : NULL;
	if (r->parent && !folder && !o->parent_optional)
		return report_fail(-ENOENT, "the parent %s is no snapshot of an MPI job", r->parent);
	free(folder);
	return r->parent ? 0 : report_fail(-ENOMEM, "no memory");
}

static int check_options(const struct checkpoint_options *o, const char *path)
{
	if (o->scope != CHECKPOINT_TREE && o->scope != CHECKPOINT_PROCESS)
		return report_fail(-EINVAL, "an MPI job is saved as a whole: name its mpirun only");
	if (!path)
		return report_fail(-EINVAL, "an MPI job is saved to a folder: use --file");
	if (o->replace == CHECKPOINT_CLOBBER)
		return report_fail(-EINVAL, "--clobber does not work for MPI jobs: the old snapshot "
				   "stays until the new one is complete");
	if (o->replace == CHECKPOINT_BACKUP && o->backup)
		return report_fail(-EINVAL, "--backup=NAME does not work for MPI jobs: --backup keeps "
				   "the old snapshot as NAME.kcr.~N~");
	if (o->precopy)
		return report_fail(-EINVAL, "--precopy does not work for MPI jobs");
	if (o->chain_path)
		return report_fail(-EINVAL, "--chain-path does not work for MPI jobs: a snapshot has all "
				   "files that it needs");
	if (o->parent_folder)
		return report_fail(-EINVAL, "--parent-folder does not work for MPI jobs: name the snapshot "
				   "that is to be continued, --incremental=NAME.kcr");
	if (o->replace == CHECKPOINT_NOCLOBBER && !access(path, F_OK))
		return report_fail(-EEXIST, "%s exists", path);
	return 0;
}

/* Times of single ranks: of each phase that of the rank in which it took longest. */
static void print_slowest(const struct job_figures *f)
{
	fputs(",\"slowest\":{", stdout);
	for (size_t i = JOB_FIGURES_COUNTS; i < JOB_FIGURES; i++)
		printf("%s\"%s\":%.3f", i > JOB_FIGURES_COUNTS ? "," : "", job_figure_names[i],
		       (double)f->number[i] / 1e3);
	putchar('}');
}

static void print_answer(const struct job_answer *a, int target, bool json)
{
	if (a->not_copied)
		report_warn("%" PRIu32 " of %" PRIu32 " ranks could not be copied: they stood still "
			    "until they were written, and the others waited for them (a stopped "
			    "process, private huge pages, or a limit of processes or of memory)",
			    a->not_copied, a->ranks);
	for (size_t i = 0; i < JOB_MAX_WARNINGS && a->warning[i]; i++)
		report_warn("%s", a->warning[i]);
	report_verbose("%" PRIu32 " ranks, %.1f MB; they were stopped for %.1f ms (gate %.1f, drain "
		       "%.1f, copy %.1f, dump %.1f)", a->ranks, (double)a->bytes / 1e6,
		       a->stopped_ms, a->gate_ms, a->drain_ms, a->copy_ms, a->dump_ms);
	if (!json)
		return;
	json_event(stdout, "done");
	json_number(stdout, "target", target);
	json_text(stdout, "file", a->path ? a->path : "");
	json_number(stdout, "ranks", a->ranks);
	json_number(stdout, "not_copied", a->not_copied);
	json_number(stdout, "bytes", a->bytes);
	for (size_t i = 0; i < JOB_FIGURES_COUNTS; i++)
		json_number(stdout, job_figure_names[i], a->figures.number[i]);
	print_slowest(&a->figures);
	printf(",\"gate_ms\":%.3f,\"drain_ms\":%.3f,\"copy_ms\":%.3f,\"dump_ms\":%.3f,"
	       "\"commit_ms\":%.3f,\"stopped_ms\":%.3f", a->gate_ms, a->drain_ms, a->copy_ms,
	       a->dump_ms, a->commit_ms, a->stopped_ms);
	json_end(stdout);
}

static int ask(int fd, const struct job_request *request, int target, bool json)
{
	struct job_answer answer;
	int err = job_ask(fd, request, &answer);

	if (err)
		return report_fail(err, "mpirun %d ended before the checkpoint was complete", target);
	err = -answer.code;
	if (err)
		report_fail(err, "%s", answer.message ? answer.message : strerror(-err));
	else
		print_answer(&answer, target, json);
	job_answer_free(&answer);
	return err;
}

/* Is it, or its parent, a cr_mpirun?  Its child is the launcher. */
static bool is_mpirun(pid_t pid)
{
	char path[PATH_MAX];

	for (int i = 0; i < 2; i++, pid = stat_parent(pid)) {
		const char *name = pid > 0 ? proc_program(pid, path, sizeof(path)) : NULL;

		if (name && !strcmp(name, "cr_mpirun"))
			return true;
	}
	return false;
}

bool mpi_job_checkpoint(const struct checkpoint_options *o, const struct mpi_job_options *job,
			bool json, int *err)
{
	struct job_request request = { .signal = o->signal, .timeout_s = o->timeout_s,
				       .keep = o->replace == CHECKPOINT_BACKUP ? INT_MAX :
										  job->keep,
				       .snapshot = o->snapshot };
	int fd = job_connect(o->target);

	if (fd < 0 && is_mpirun(o->target)) {
		*err = report_fail(-EBUSY, "cr_mpirun %d takes no requests: it is starting or ending, "
				   "has said why its job cannot be checkpointed, or is in another "
				   "network namespace", o->target);
		return true;
	}
	if (fd < 0) {
		*err = checkpoint_refuse_idle_restart(o->target);	/* it may become cr_mpirun */
		return *err != 0;
	}
	/* mpirun enforces the limit; this is for one that does not answer at all. */
	if (o->timeout_s)
		alarm(o->timeout_s + ANSWER_PATIENCE_S);
	request.path = o->path ? snapshot_name(o->path) : NULL;
	*err = check_options(o, request.path);
	if (!*err && job->local && !(request.local = folder_absolute(job->local)))
		*err = report_fail(-ENOMEM, "no memory");
	if (!*err && o->parent)
		*err = name_parent(&request, o);
	if (!*err && add_arguments(&request, o))
		*err = report_fail(-ENOMEM, "no memory");
	if (!*err)
		*err = ask(fd, &request, o->target, json);
	job_request_free(&request);
	close(fd);
	return true;
}

int mpi_job_refuse(pid_t target)
{
	int fd = job_connect(target);

	if (fd >= 0)
		close(fd);
	if (fd < 0 && !is_mpirun(target))
		return 0;
	return report_fail(-EOPNOTSUPP, "process %d is the mpirun of a job, which cannot be moved as a "
			   "process: save it with cr_checkpoint and restart it on other nodes", target);
}

/* ---- listing ---------------------------------------------------------------------- */

/* Whoever wrote the manifest: its text must not control the terminal. */
static void print_line(const char *title, const char *text)
{
	printf("%-12s", title);
	text_put(stdout, text);
	putchar('\n');
}

static void print_words(const char *title, char **words)
{
	printf("%-12s", title);
	for (; words && *words; words++) {
		text_put(stdout, *words);
		fputs(words[1] ? " " : "", stdout);
	}
	putchar('\n');
}

static void print_versions(const struct snapshot *s)
{
	printf("%-12sOpen MPI ", "versions");
	text_put(stdout, s->openmpi);
	fputs(", KCR ", stdout);
	text_put(stdout, s->kcr);
	putchar('\n');
}

static void print_local(const struct snapshot *s, uint32_t elsewhere)
{
	printf("%-12s", "local");
	text_put(stdout, s->local);
	printf(" on each node; %" PRIu32 " of %" PRIu32 " ranks' files on this one\n",
	       s->nr_ranks - elsewhere, s->nr_ranks);
}

static void print_rank(const struct snapshot *s, uint32_t number)
{
	const struct snapshot_rank *r = &s->rank[number];
	uint64_t older = 0;

	printf("rank %-7" PRIu32, number);
	text_put(stdout, r->node);
	printf(", %" PRIu64 " bytes, %s %016" PRIx64, r->file.bytes,
	       s->format == SNAPSHOT_SUMS ? "xxh64" : "id", r->file.id);
	for (uint32_t k = 0; k < r->nr_older; k++)
		older += r->older[k].bytes;
	if (r->nr_older)
		printf(", needs %" PRIu32 " older of %" PRIu64 " bytes", r->nr_older, older);
	putchar('\n');
}

static void show_text(const char *dir, const struct snapshot *s, uint32_t elsewhere)
{
	time_t created = s->created;
	struct tm *local = localtime(&created);		/* NULL: the year does not fit into an int */
	uint64_t older, bytes = snapshot_bytes(s, &older);
	char when[32] = "";

	if (local)
		strftime(when, sizeof(when), "%F %T", local);
	print_line("snapshot", dir);
	printf("%-12s%s\n%-12s%" PRIu32 "\n", "created", when, "interval", s->interval);
	print_words("program", s->program);
	print_words("mpirun", s->options);
	print_line("folder", s->cwd);
	printf("%-12s%" PRIu32 "\n%-12s%" PRIu64 "\n", "ranks", s->nr_ranks, "bytes", bytes);
	if (older)
		printf("%-12s%" PRIu64 " bytes, in files that the ranks' need\n", "older", older);
	if (s->local)
		print_local(s, elsewhere);
	print_versions(s);
	printf("%-12sgate %.1f ms, drain %.1f ms, copy %.1f ms, dump %.1f ms\n", "phases",
	       s->times.gate_ms, s->times.drain_ms, s->times.copy_ms, s->times.dump_ms);
	for (uint32_t i = 0; i < s->nr_ranks; i++)
		print_rank(s, i);
}

/* As it is, but for what would speak to the terminal: that is escaped as in JSON. */
static void print_manifest(const char *text)
{
	while (*text) {
		bool harmless;
		size_t length = plain_next(text, &harmless);

		if (harmless || *text == '\n' || *text == '\t')
			printf("%.*s", (int)length, text);
		else	/* a C1 character has its number in the second byte */
			printf("\\u%04x", (unsigned char)text[length - 1]);
		text += length;
	}
	putchar('\n');
}

static int sum_file(int fd, uint64_t *sum)
{
	XXH64_state_t *state = XXH64_createState();
	char text[65536];
	ssize_t n = 0;

	if (!state)
		return -ENOMEM;
	XXH64_reset(state, 0);
	while ((n = read(fd, text, sizeof(text))) > 0)
		XXH64_update(state, text, n);
	*sum = XXH64_digest(state);
	XXH64_freeState(state);
	return n < 0 ? -errno : 0;
}

/* Of format 1 it is enough that it is the same; later ones name the file, which says the rest. */
static int read_file(int fd, const char *path, const struct snapshot *s,
		     const struct snapshot_file *file)
{
	uint64_t found = 0;
	bool sums = s->format == SNAPSHOT_SUMS;
	int err = sums ? sum_file(fd, &found) : context_verify(fd, path, &found);

	if (err)
		return sums ? report_errno(err, "cannot read %s", path) : err;
	return found == file->id ? 0 : snapshot_damaged(path);
}

static int verify_file(const char *path, const struct snapshot *s, const struct snapshot_file *file)
{
	struct stat st;
	int fd = proc_open_regular(AT_FDCWD, path, 0, &st), err;

	if (fd == -EINVAL)
		err = snapshot_damaged(path);
	else if (fd < 0)
		err = report_errno(fd, "cannot read %s", path);
	else
		err = read_file(fd, path, s, file);
	if (fd >= 0)
		close(fd);
	return err;
}

int mpi_job_show(const char *dir, bool json, bool verify)
{
	struct snapshot *s = NULL;
	char *found = NULL;
	uint32_t elsewhere = 0;
	int err = snapshot_load(dir, &s, &found);

	if (!err)
		err = snapshot_check(found, s, verify ? verify_file : NULL, &elsewhere);
	if (!err && json)
		print_manifest(s->text);
	else if (!err)
		show_text(found, s, elsewhere);
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = report_errno(-errno, "cannot write");
	free(found);
	snapshot_free(s);
	return err;
}

/* ---- restart ------------------------------------------------------------------------ */

static int find_snapshot(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (*argv[i] != '-' && snapshot_is(argv[i]))
			return i;
	return -1;
}

/*
 * Whether the nodes can is known only there.  But what the caller may not do here its ranks may not
 * do anywhere, and one message says it better than that of each rank.
 */
static int check_lazy(void)
{
	int err = userfault_check();

	if (err != -EPERM)
		report_clear();
	return err == -EPERM ? err : 0;
}

int mpi_job_check_rank(void)
{
	return relaunch_check(getenv(RELAUNCH_VARIABLE), NULL);
}

int mpi_job_restart(int argc, char **argv, char **file)
{
	char self[PATH_MAX], **overrides = NULL;
	int at = find_snapshot(argc, argv), err;
	bool lazy = false;
	ssize_t length;

	if (at < 0)
		return 1;
	err = relaunch_rank_file(argv[at], file);
	if (err || *file)
		return err ? err : 1;
	length = proc_link(PROC_SELF, "exe", self, sizeof(self));
	if (length < 0)
		return report_errno(length, "/proc/self/exe");
	for (int i = 1; i < argc && !err; i++) {
		bool named = i == at || (i + 1 == at && (!strcmp(argv[i], "-f") ||
							 !strcmp(argv[i], "--file")));

		if (!strcmp(argv[i], "--pid-namespace"))
			return report_fail(-EINVAL, "--pid-namespace is not for MPI jobs, whose ranks get "
					   "new process IDs where the old ones are in use");
		if (!strcmp(argv[i], "--lazy") || !strcmp(argv[i], "--no-lazy"))
			lazy = argv[i][2] == 'l';
		else if (!named)
			err = strings_add(&overrides, argv[i]);
	}
	if (err)
		return report_fail(err, "no memory");
	err = lazy ? check_lazy() : 0;
	if (!err)
		err = relaunch_job(argv[at], self, lazy, overrides ? overrides : (char *[]){ NULL });
	strings_free(overrides);
	return err;
}
