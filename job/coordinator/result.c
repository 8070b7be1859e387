// SPDX-License-Identifier: GPL-2.0
/*
 * The snapshot under way in the job's folder: its destination is opened, gets the
 * manifest of all ranks' files, and is closed; folders that it makes superfluous go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job/coordinator/root_internal.h"
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

int result_open(struct root *root, const struct job_request *request)
{
	char **gone = NULL;
	int err = job_destination_open(&root->destination, request->path, request->local,
				       request->keep, &gone);

	forget(root, gone);
	return err;
}

int result_commit(struct root *root)
{
	struct snapshot s = *root->job;
	char **gone = NULL;
	int err;

	s.interval++;
	s.created = time(NULL);
	s.times = root->answer;
	s.nr_ranks = root->nr_ranks;
	s.rank = calloc(root->nr_ranks, sizeof(*s.rank));
	if (!s.rank)
		return -ENOMEM;
	for (uint32_t i = 0; i < root->nr_ranks; i++) {
		struct root_rank *r = &root->rank[i];

		s.rank[i].node = r->home->name;
		s.rank[i].bytes = r->file.bytes;
		s.rank[i].id = r->file.id;
		root->answer.bytes += r->file.bytes;
	}
	report_clear();
	err = job_destination_commit(root->destination, &s, &gone);
	free(s.rank);
	forget(root, gone);
	if (!err)
		root->job->interval = s.interval;
	return err;
}
