// SPDX-License-Identifier: GPL-2.0
/*
 * The snapshot under way in the job's folder: its destination is opened, gets the
 * manifest of all ranks' files, and is closed; folders that it makes superfluous go.
 * Where only what has changed is saved, each rank's cr_checkpoint decides whether it can.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job/coordinator/root_internal.h"
#include "job/folder.h"
#include "report/report.h"

/* Makes the daemons remove folders that no snapshot refers to any more. */
static void forget(struct root *root, char **gone)
{
	for (char **each = gone; each && *each; each++)
		root_broadcast(root, WIRE_FORGET, WIRE_ALL, *each, strlen(*each) + 1);
	strings_free(gone);
}

void result_close(struct root *root)
{
	char **gone = NULL;

	job_destination_close(root->destination, &gone);
	root->destination = NULL;
	forget(root, gone);
}

/* Is there a snapshot of this job?  Those of older releases may be. */
static bool is_own(const struct root *root, const char *path)
{
	struct snapshot *s = NULL;
	bool own = !snapshot_load_one(path, &s) && (!s->id || s->id == root->job->id);

	snapshot_free(s);
	report_clear();
	return own;
}

/*
 * The ranks may continue what is in the parent, or in the last snapshot of this name, if there is one
 * and it is not another job's.
 */
static int name_parent(const struct root *root, struct job_request *request)
{
	bool none = !request->parent && !is_own(root, request->path);
	char *folder = none ? NULL : snapshot_files_folder(request->parent ?: request->path);
	char *argument = folder ? folder_path("--parent-folder=%s", folder) : NULL;
	int err = argument ? job_request_add(request, argument) : folder ? -ENOMEM : 0;

	free(argument);
	free(folder);
	return err ? report_errno(err, "too many arguments") : 0;
}

static char *saved;			/* the last snapshot; NULL: none yet */

/* Tells the user, once, that the job has lost its snapshot to another one. */
static void look_for_others(const struct root *root, const char *path)
{
	struct snapshot *s = NULL;
	static bool told;

	if (told || !saved || strcmp(saved, path))
		return;
	told = !snapshot_load_one(path, &s) && s->id != root->job->id;
	if (told)
		say_line("another job saves to %s, too: give each job a name of its own (--save)", path);
	snapshot_free(s);
	report_clear();
}

int result_open(struct root *root, struct job_request *request)
{
	char **gone = NULL;
	int err = request->incremental ? name_parent(root, request) : 0;

	look_for_others(root, request->path);
	if (!err)
		err = job_destination_open(&root->destination, request->path, request->local,
					   request->keep, &gone);
	forget(root, gone);
	return err;
}

int result_take(struct root_rank *r, const struct wire_header *h, const uint8_t *data)
{
	free(r->file);
	r->file = NULL;
	r->nr_files = h->length / sizeof(*r->file);
	if (!r->nr_files)
		return -EPROTO;
	r->file = calloc(r->nr_files, sizeof(*r->file));
	if (!r->file)
		return -ENOMEM;
	memcpy(r->file, data, r->nr_files * sizeof(*r->file));
	return 0;
}

/* Of the rank's files; out->older is to be freed. */
static int describe_rank(struct snapshot_rank *out, struct root_rank *r)
{
	out->node = r->home->name;
	if (!r->file)
		return -EIO;
	out->file = (struct snapshot_file){ r->file[0].bytes, r->file[0].id };
	out->nr_older = r->nr_files - 1;
	out->older = calloc(r->nr_files, sizeof(*out->older));
	if (!out->older)
		return -ENOMEM;
	for (uint32_t k = 0; k < out->nr_older; k++)
		out->older[k] = (struct snapshot_file){ r->file[k + 1].bytes, r->file[k + 1].id };
	return 0;
}

int result_commit(struct root *root)
{
	struct snapshot s = *root->job;
	char **gone = NULL;
	uint64_t older;
	int err = 0;

	s.interval++;
	s.created = time(NULL);
	s.times = root->answer;
	s.nr_ranks = root->nr_ranks;
	s.rank = calloc(root->nr_ranks, sizeof(*s.rank));
	if (!s.rank)
		return -ENOMEM;
	for (uint32_t i = 0; i < root->nr_ranks && !err; i++)
		err = describe_rank(&s.rank[i], &root->rank[i]);
	root->answer.bytes = snapshot_bytes(&s, &older);
	report_clear();
	if (!err)
		err = job_destination_commit(root->destination, &s, &gone);
	for (uint32_t i = 0; i < root->nr_ranks; i++)
		free(s.rank[i].older);
	free(s.rank);
	forget(root, gone);
	if (job_destination_committed(root->destination)) {
		root->job->interval = s.interval;
		free(saved);
		saved = strdup(root->request.path);
	}
	return err;
}
