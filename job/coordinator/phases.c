// SPDX-License-Identifier: GPL-2.0
/*
 * A checkpoint, phase by phase.  Each phase is announced to all ranks and over when
 * every one has answered; a failure, a lost rank, the time-out or the requester's
 * disconnecting leads from any of them to PHASE_ABORT, in which the ranks are told
 * to go on.  Once they are copied, a lost rank is no failure: its copy is written.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job/coordinator/root_internal.h"
#include "proc/clock.h"
#include "report/report.h"

#define PATIENCE_NS	10000000000ull	/* for ranks to confirm that they go on */

static void next_phase(struct root *root, enum phase phase, uint32_t type,
		       const void *data, size_t length);
static void check_phase(struct root *root);

static double since_ms(uint64_t then)
{
	return (double)(now_ns() - then) / 1e6;
}

/* ---- the end ------------------------------------------------------------------------ */

static void grant_leaves(struct root *root)
{
	for (uint32_t i = 0; i < root->nr_ranks; i++) {
		struct root_rank *r = &root->rank[i];

		if (!r->leaving || r->left || !r->node)
			continue;
		r->left = true;
		wire_queue(&r->node->wire, WIRE_LEFT, i, 0, NULL, 0);
	}
}

/* Makes the daemons remove folders that no snapshot refers to any more. */
static void forget(struct root *root, char **gone)
{
	for (char **each = gone; each && *each; each++)
		root_broadcast(root, WIRE_FORGET, WIRE_ALL, *each, strlen(*each) + 1);
	strings_free(gone);
}

static void close_destination(struct root *root)
{
	char **gone = NULL;

	job_destination_close(root->destination, &gone);
	root->destination = NULL;
	forget(root, gone);
}

static void finish(struct root *root)
{
	close_destination(root);
	root->phase = PHASE_IDLE;
	root->deadline_ns = 0;
	clients_answer(&root->answer);
	trigger_answer(&root->answer);
	programs_answer(root, root->answer.code);
	job_answer_free(&root->answer);
	job_request_free(&root->request);
	for (uint32_t i = 0; i < root->nr_ranks; i++) {
		free(root->rank[i].bookmark);
		root->rank[i].bookmark = NULL;
		root->rank[i].nr_bookmarks = 0;
		root->rank[i].dumped = false;
	}
	grant_leaves(root);
	programs_serve(root);
}

static int commit(struct root *root)
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

/* ---- from phase to phase -------------------------------------------------------------- */

/* Does the phase wait for an answer of this rank, or of its daemon for it? */
static bool is_awaited(const struct root *root, const struct root_rank *r, enum phase phase)
{
	/* The daemons answer, also for ranks that have ended. */
	if (phase == PHASE_SYNC || (phase == PHASE_DUMP && root->copies))
		return phase == PHASE_SYNC || !r->dumped;
	return r->node;
}

static void expect_all(struct root *root, enum phase phase)
{
	root->phase = phase;
	root->phase_ns = now_ns();
	root->nr_pending = 0;
	for (uint32_t i = 0; i < root->nr_ranks; i++) {
		root->rank[i].pending = is_awaited(root, &root->rank[i], phase);
		root->nr_pending += root->rank[i].pending;
	}
}

static void next_phase(struct root *root, enum phase phase, uint32_t type,
		       const void *data, size_t length)
{
	expect_all(root, phase);
	root_broadcast(root, type, WIRE_ALL, data, length);
}

static bool counts(const struct root *root, const struct wire_bookmark *b)
{
	return b->sent && b->rank < root->nr_ranks;
}

/*
 * Transposes the ranks' lists of what they have sent: first[i] to
 * first[i + 1] - 1 of *list is what others have sent to rank i.
 */
static int turn_bookmarks(struct root *root, size_t *first, struct wire_bookmark **list)
{
	for (uint32_t i = 0; i < root->nr_ranks; i++)
		for (size_t k = 0; k < root->rank[i].nr_bookmarks; k++)
			if (counts(root, &root->rank[i].bookmark[k]))
				first[root->rank[i].bookmark[k].rank + 2]++;
	for (uint32_t i = 2; i <= root->nr_ranks; i++)
		first[i] += first[i - 1];
	*list = calloc(first[root->nr_ranks] + first[root->nr_ranks + 1] + 1, sizeof(**list));
	if (!*list)
		return -ENOMEM;
	/* first[i + 1] is the index of the next entry for rank i. */
	for (uint32_t i = 0; i < root->nr_ranks; i++)
		for (size_t k = 0; k < root->rank[i].nr_bookmarks; k++) {
			const struct wire_bookmark *b = &root->rank[i].bookmark[k];

			if (counts(root, b))
				(*list)[first[b->rank + 1]++] =
					(struct wire_bookmark){ .rank = i, .sent = b->sent };
		}
	return 0;
}

static void begin_drain(struct root *root)
{
	size_t *first = calloc(root->nr_ranks + 2, sizeof(*first));
	struct wire_bookmark *list = NULL;

	if (!first || turn_bookmarks(root, first, &list)) {
		free(first);
		phases_abort(root, ENOMEM, NULL);
		return;
	}
	expect_all(root, PHASE_DRAIN);
	for (uint32_t i = 0; i < root->nr_ranks; i++)
		wire_queue(&root->rank[i].node->wire, WIRE_DRAIN, i, root->id, list + first[i],
			   (first[i + 1] - first[i]) * sizeof(*list));
	free(list);
	free(first);
}

static void close_gates(struct root *root)
{
	root->stopped_ns = now_ns();
	next_phase(root, PHASE_GATE, WIRE_PREPARE, &root->asker, sizeof(root->asker));
}

/* Where the daemons save to and how, for DUMP or CHECK. */
static void send_order(struct root *root, enum phase phase, uint32_t type)
{
	bool local;
	const char *folder = job_destination_folder(root->destination, &local);
	size_t length = sizeof(struct wire_dump) + strlen(folder) + 1, at;
	struct wire_dump *order;

	for (size_t i = 0; i < root->request.nr_arguments; i++)
		length += strlen(root->request.argument[i]) + 1;
	expect_all(root, phase);
	order = malloc(length);
	if (!order) {
		phases_abort(root, ENOMEM, NULL);
		return;
	}
	order->local = local;
	strcpy(order->strings, folder);
	at = strlen(folder) + 1;
	for (size_t i = 0; i < root->request.nr_arguments; i++) {
		strcpy(order->strings + at, root->request.argument[i]);
		at += strlen(root->request.argument[i]) + 1;
	}
	root_broadcast(root, type, WIRE_ALL, order, length);
	free(order);
}

static void begin_dump(struct root *root)
{
	if (root->copies)
		next_phase(root, PHASE_COPY, WIRE_COPY, NULL, 0);
	else
		send_order(root, PHASE_DUMP, WIRE_DUMP);
}

/* The deadline set by the request; 0: none. */
static uint64_t request_deadline(const struct root *root)
{
	return root->request.timeout_s ?
		root->begun_ns + root->request.timeout_s * 1000000000ull : 0;
}

static void resume_all(struct root *root)
{
	root->deadline_ns = now_ns() + PATIENCE_NS;
	next_phase(root, PHASE_RESUME, root->copies ? WIRE_WRITE : WIRE_CONTINUE, NULL, 0);
}

/* They all run. */
static void after_resume(struct root *root)
{
	root->answer.stopped_ms = since_ms(root->stopped_ns);
	root->deadline_ns = request_deadline(root);
	if (job_destination_committed(root->destination)) {
		finish(root);
	} else if (root->copies) {
		expect_all(root, PHASE_DUMP);
		check_phase(root);		/* all files may be complete */
	} else {
		next_phase(root, PHASE_SYNC, WIRE_SYNC, NULL, 0);
	}
}

static void after_sync(struct root *root)
{
	int32_t number = root->request.signal;
	int err = commit(root);

	if (err) {
		phases_abort(root, -err, report_message());
		return;
	}
	root->answer.commit_ms = since_ms(root->phase_ns);
	root->answer.ranks = root->nr_ranks;
	root->answer.path = strdup(root->request.path);
	if (!number) {
		finish(root);
		return;
	}
	root->answer.stopped_ms = since_ms(root->stopped_ns);	/* so far */
	clients_committed(&root->answer);	/* mpirun may end with its ranks */
	root_broadcast(root, WIRE_SIGNAL, WIRE_ALL, &number, sizeof(number));
	resume_all(root);
	if (number == SIGSTOP)		/* they answer once they are continued */
		finish(root);
}

/* Ranks that are to get a signal get it before they go on; others need not wait. */
static void phase_done(struct root *root)
{
	switch (root->phase) {
	case PHASE_CHECK:
		close_gates(root);
		break;
	case PHASE_GATE:
		root->answer.gate_ms = since_ms(root->phase_ns);
		begin_drain(root);
		break;
	case PHASE_DRAIN:
		root->answer.drain_ms = since_ms(root->phase_ns);
		begin_dump(root);
		break;
	case PHASE_COPY:
		root->answer.copy_ms = since_ms(root->phase_ns);
		resume_all(root);
		break;
	case PHASE_DUMP:
		root->answer.dump_ms = since_ms(root->phase_ns);
		if (root->request.signal || root->copies)
			next_phase(root, PHASE_SYNC, WIRE_SYNC, NULL, 0);
		else
			resume_all(root);
		break;
	case PHASE_RESUME:
		after_resume(root);
		break;
	case PHASE_SYNC:
		after_sync(root);
		break;
	case PHASE_ABORT:
		finish(root);
		break;
	case PHASE_IDLE:
		break;
	}
}

static void check_phase(struct root *root)
{
	if (!root->nr_pending)
		phase_done(root);
}

static void settle(struct root *root, struct root_rank *r)
{
	root->nr_pending -= r->pending;
	r->pending = false;
	check_phase(root);
}

void phases_abort(struct root *root, int code, const char *text)
{
	if (root->phase == PHASE_IDLE || root->phase == PHASE_ABORT)
		return;
	/* Complete already: only the ranks' answers to CONTINUE are missing. */
	if (job_destination_committed(root->destination)) {
		finish(root);
		return;
	}
	root->answer.code = code;
	free(root->answer.message);
	root->answer.message = text ? strdup(text) : NULL;
	root->deadline_ns = now_ns() + PATIENCE_NS;
	next_phase(root, PHASE_ABORT, WIRE_CONTINUE, NULL, 0);
	check_phase(root);			/* no rank may be left */
}

/* ---- answers of ranks ------------------------------------------------------------------- */

/* WIRE_FAILED of `who`: a rank, or a node. */
static void failed(struct root *root, const char *who, const struct wire_header *h,
		   const uint8_t *data)
{
	struct wire_failed failure = { EIO };
	char text[512];
	int length = 0;

	if (h->length > sizeof(failure)) {
		memcpy(&failure, data, sizeof(failure));
		length = h->length - sizeof(failure);
	}
	snprintf(text, sizeof(text), "%s: %.*s", who, length,
		 length ? (const char *)data + sizeof(failure) : "");
	phases_abort(root, failure.code > 0 ? failure.code : EIO, text);
}

void phases_node_failed(struct root *root, const struct root_node *n, const struct wire_header *h,
			const uint8_t *data)
{
	if (h->id == root->id)
		failed(root, n->name, h, data);
}

static void rank_failed(struct root *root, const struct root_rank *r, const struct wire_header *h,
			const uint8_t *data)
{
	char who[32];

	snprintf(who, sizeof(who), "rank %td", r - root->rank);
	failed(root, who, h, data);
}

static int take_bookmarks(struct root_rank *r, const struct wire_header *h, const uint8_t *data)
{
	r->nr_bookmarks = h->length / sizeof(*r->bookmark);
	r->bookmark = calloc(r->nr_bookmarks + 1, sizeof(*r->bookmark));
	if (!r->bookmark) {
		r->nr_bookmarks = 0;
		return -ENOMEM;
	}
	memcpy(r->bookmark, data, r->nr_bookmarks * sizeof(*r->bookmark));
	return 0;
}

static void count_standing(struct root *root, const struct wire_header *h, const uint8_t *data)
{
	struct wire_copied told;

	if (h->length < sizeof(told))
		return;
	memcpy(&told, data, sizeof(told));
	root->answer.not_copied += !told.copied;
}

void phases_answer(struct root *root, struct root_rank *r, const struct wire_header *h,
		   const uint8_t *data)
{
	static const uint32_t expected[] = {
		[PHASE_CHECK] = WIRE_READY, [PHASE_GATE] = WIRE_BOOKMARKS,
		[PHASE_DRAIN] = WIRE_DRAINED,
		[PHASE_COPY] = WIRE_COPIED, [PHASE_DUMP] = WIRE_DUMPED,
		[PHASE_RESUME] = WIRE_CONTINUED, [PHASE_SYNC] = WIRE_SYNCED, [PHASE_ABORT] = WIRE_CONTINUED,
	};

	if (h->id != root->id || root->phase == PHASE_IDLE)
		return;			/* of an aborted checkpoint */
	if (h->type == WIRE_FAILED && root->phase != PHASE_ABORT) {
		rank_failed(root, r, h, data);
		return;
	}
	if (h->type == WIRE_DUMPED)
		r->dumped = true;	/* perhaps before all ranks have said that they go on */
	if (h->type != expected[root->phase] || !r->pending)
		return;
	if (h->type == WIRE_BOOKMARKS && take_bookmarks(r, h, data)) {
		phases_abort(root, ENOMEM, NULL);
		return;
	}
	if (h->type == WIRE_SYNCED && h->length >= sizeof(r->file))
		memcpy(&r->file, data, sizeof(r->file));
	if (h->type == WIRE_COPIED)
		count_standing(root, h, data);
	settle(root, r);
}

void phases_lost(struct root *root, struct root_rank *r)
{
	char text[64];

	snprintf(text, sizeof(text), "rank %td ended meanwhile", r - root->rank);
	switch (root->phase) {
	case PHASE_CHECK:
	case PHASE_GATE:
	case PHASE_DRAIN:
	case PHASE_COPY:
		phases_abort(root, ESRCH, text);
		break;
	case PHASE_DUMP:
		if (!root->copies)
			phases_abort(root, ESRCH, text);
		break;
	case PHASE_RESUME:
	case PHASE_ABORT:
		settle(root, r);
		break;
	default:			/* its file is complete */
		break;
	}
}

void phases_node_lost(struct root *root, const struct root_node *n)
{
	char text[128];

	/* In the other phases the loss of its ranks has been handled already. */
	if (root->phase != PHASE_SYNC && root->phase != PHASE_RESUME && root->phase != PHASE_DUMP)
		return;
	for (uint32_t i = 0; i < root->nr_ranks; i++) {
		if (root->rank[i].home != n)
			continue;
		snprintf(text, sizeof(text), "the daemon on %s is lost", n->name);
		phases_abort(root, ESRCH, text);
		return;
	}
}

/* ---- beginning ----------------------------------------------------------------------------- */

static int ready(const struct root *root, const char **why)
{
	static char text[VERSIONS_TEXT];

	if (root->unable) {
		*why = "a rank cannot take part in checkpoints: the job's standard error tells why";
		return -ENOTSUP;
	}
	for (uint32_t i = 0; i < root->nr_ranks; i++) {
		if (root->rank[i].left || root->rank[i].leaving) {
			snprintf(text, sizeof(text), "the job is ending: rank %" PRIu32
				 " is in MPI_Finalize or beyond", i);
			*why = text;
			return -ESRCH;
		}
		if (!root->rank[i].node && root->rank[i].home) {
			snprintf(text, sizeof(text), "rank %" PRIu32 " has ended", i);
			*why = text;
			return -ESRCH;
		}
		if (!root->rank[i].node) {
			snprintf(text, sizeof(text), "rank %" PRIu32 " has not been through "
				 "MPI_Init yet, try again", i);
			*why = text;
			return -EBUSY;
		}
		if (!versions_can(root, &root->rank[i], WIRE_CAN_SAVE, text)) {
			*why = text;
			return -ENOTSUP;
		}
	}
	*why = "the job is starting, try again";
	return root->nr_ranks && !addresses_wanted() ? 0 : -EBUSY;
}

static int open_destination(struct root *root, const struct job_request *request)
{
	char **gone = NULL;
	int err = job_destination_open(&root->destination, request->path, request->local,
				       request->keep, &gone);

	forget(root, gone);
	return err;
}

int phases_begin(struct root *root, struct job_request *request, const char **why)
{
	int err;

	if (root->phase != PHASE_IDLE)
		return -EBUSY;
	err = ready(root, why);
	if (err)
		return err;
	report_clear();
	err = open_destination(root, request);
	if (err) {
		*why = report_message();
		return err;
	}
	root->request = *request;
	memset(request, 0, sizeof(*request));
	root->copies = root->request.snapshot && !root->request.signal;
	root->id++;
	root->begun_ns = now_ns();
	root->deadline_ns = request_deadline(root);
	if (root->copies)
		send_order(root, PHASE_CHECK, WIRE_CHECK);
	else
		close_gates(root);
	return 0;
}

int phases_begin_own(struct root *root, const char *path, unsigned int keep, const char **why)
{
	struct job_request request = {
		.keep = keep, .path = strdup(path),
		.snapshot = !root->settings.stand_still && root->asker != WIRE_ALL,
	};
	int err = request.path ? 0 : -ENOMEM;

	if (root->settings.local && !(request.local = strdup(root->settings.local)))
		err = -ENOMEM;
	if (!err)
		err = phases_begin(root, &request, why);
	job_request_free(&request);
	return err;
}

int phases_patience(const struct root *root)
{
	uint64_t now = now_ns();

	if (!root->deadline_ns)
		return -1;
	return root->deadline_ns > now ? (int)((root->deadline_ns - now) / 1000000) + 1 : 0;
}

void phases_timeout(struct root *root)
{
	if (!root->deadline_ns || now_ns() < root->deadline_ns)
		return;
	if (root->phase == PHASE_ABORT)
		finish(root);
	else if (root->phase == PHASE_RESUME)
		phase_done(root);
	else
		phases_abort(root, ETIMEDOUT, "not done in the time given by --time");
}
