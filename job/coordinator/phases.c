// SPDX-License-Identifier: GPL-2.0
/*
 * A checkpoint, phase by phase.  Each phase is announced to all ranks and over when
 * every one has answered; a failure, a lost rank, a daemon that hangs, the time-out or the
 * requester's disconnecting leads from any of them to PHASE_ABORT, in which the ranks are told
 * to go on.  Once they are copied, a lost rank is no failure: its copy is written.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void finish(struct root *root)
{
	result_close(root);
	root->phase = PHASE_IDLE;
	root->deadline_ns = 0;
	clients_answer(&root->answer);
	trigger_answer(&root->answer);
	periodic_answer(root);
	programs_answer(root, root->answer.code);
	job_answer_free(&root->answer);
	job_request_free(&root->request);
	bookmarks_drop(root);
	for (uint32_t i = 0; i < root->nr_ranks; i++)
		root->rank[i].dumped = false;
	grant_leaves(root);
	programs_serve(root);
}

/* ---- from phase to phase -------------------------------------------------------------- */

/* Does the phase wait for an answer of this rank, or of its daemon for it? */
static bool is_awaited(const struct root *root, const struct root_rank *r, enum phase phase)
{
	/* The daemons answer, also for ranks that have ended. */
	if (phase == PHASE_SYNC || (phase == PHASE_DUMP && root->copies))
		return phase == PHASE_SYNC || !r->dumped;
	return r->node && !(phase == PHASE_ABORT && hung_is(r->node));
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

static void begin_drain(struct root *root)
{
	expect_all(root, PHASE_DRAIN);
	if (bookmarks_send(root))
		phases_abort(root, ENOMEM, NULL);
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
	order->signal = root->request.signal;
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

/* What comes before the ranks stop. */
static void begin(struct root *root)
{
	if (root->loads)
		next_phase(root, PHASE_LOAD, WIRE_LOAD, NULL, 0);
	else if (root->copies)
		send_order(root, PHASE_CHECK, WIRE_CHECK);
	else
		close_gates(root);
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

static void note_failure(struct root *root, int code, const char *text)
{
	root->answer.code = code;
	free(root->answer.message);
	root->answer.message = text ? strdup(text) : NULL;
}

static void after_sync(struct root *root)
{
	int32_t number = root->request.signal;
	int err = result_commit(root);

	if (err && job_destination_committed(root->destination)) {
		note_failure(root, -err, report_message());
		if (number)
			resume_all(root);
		else
			finish(root);
		return;
	}
	if (err) {
		phases_abort(root, -err, report_message());
		return;
	}
	root->answer.commit_ms = since_ms(root->phase_ns);
	root->answer.ranks = root->nr_ranks;
	root->answer.path = strdup(root->request.path);
	wire_send(&root->launch, WIRE_SYNCED, WIRE_ALL, number, root->request.path,
		  strlen(root->request.path) + 1);
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
	case PHASE_LOAD:
		root->loads = false;
		root->deadline_ns = request_deadline(root);
		begin(root);
		break;
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
	note_failure(root, code, text);
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

void phases_figures(struct root *root, const struct wire_header *h, const uint8_t *data)
{
	struct job_figures told;

	if (h->id != root->id || root->phase != PHASE_SYNC || h->length != sizeof(told))
		return;
	memcpy(&told, data, sizeof(told));
	job_figures_add(&root->answer.figures, &told);
}

static void rank_failed(struct root *root, const struct root_rank *r, const struct wire_header *h,
			const uint8_t *data)
{
	char who[32];

	snprintf(who, sizeof(who), "rank %td", r - root->rank);
	failed(root, who, h, data);
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
		[PHASE_LOAD] = WIRE_LOADED, [PHASE_CHECK] = WIRE_READY,
		[PHASE_GATE] = WIRE_BOOKMARKS, [PHASE_DRAIN] = WIRE_DRAINED,
		[PHASE_COPY] = WIRE_COPIED, [PHASE_DUMP] = WIRE_DUMPED,
		[PHASE_RESUME] = WIRE_CONTINUED, [PHASE_SYNC] = WIRE_SYNCED, [PHASE_ABORT] = WIRE_CONTINUED,
	};

	if (h->id != root->id || root->phase == PHASE_IDLE)
		return;			/* of an aborted checkpoint */
	if (h->type == WIRE_FAILED && root->phase != PHASE_ABORT) {
		rank_failed(root, r, h, data);
		return;
	}
	if (h->type == WIRE_DUMPED) {
		r->dumped = true;	/* perhaps before all ranks have said that they go on */
		warnings_take(root, r, h, data);
	}
	if (h->type != expected[root->phase] || !r->pending)
		return;
	if (h->type == WIRE_BOOKMARKS && bookmarks_take(r, h, data)) {
		phases_abort(root, ENOMEM, NULL);
		return;
	}
	if (h->type == WIRE_SYNCED && result_take(r, h, data)) {
		phases_abort(root, ENOMEM, NULL);
		return;
	}
	if (h->type == WIRE_COPIED)
		count_standing(root, h, data);
	settle(root, r);
}

void phases_lost(struct root *root, struct root_rank *r)
{
	char text[64];

	snprintf(text, sizeof(text), "rank %td ended meanwhile", r - root->rank);
	switch (root->phase) {
	case PHASE_LOAD:
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
	static char text[HUNG_TEXT > VERSIONS_TEXT ? HUNG_TEXT : VERSIONS_TEXT];

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
	if (hung_names(root, text)) {
		*why = text;
		return -ETIMEDOUT;
	}
	*why = root->nr_ranks ? "the job is starting, try again" :
	       "the job is starting, no rank has been through MPI_Init yet: try again (programs without "
	       "MPI are saved each by itself, see cr_batch(1))";
	return root->nr_ranks && !addresses_wanted(root) ? 0 : -EBUSY;
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
	err = result_open(root, request);
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
	begin(root);
	return 0;
}

int phases_begin_own(struct root *root, const char *path, unsigned int keep, const char **why)
{
	struct job_request request = {
		.keep = keep, .path = strdup(path),
		.snapshot = !root->settings.stand_still && root->asker != WIRE_ALL,
		.incremental = root->settings.incremental,
	};
	int err = request.path ? 0 : -ENOMEM;

	if (root->settings.local && !(request.local = strdup(root->settings.local)))
		err = -ENOMEM;
	for (char **each = root->settings.arguments; each && *each && !err; each++)
		err = job_request_add(&request, *each);
	if (!err)
		err = phases_begin(root, &request, why);
	/* Nobody can end it who sees that it waits in vain, and it keeps others from being made. */
	if (!err && root->phase == PHASE_LOAD && root->settings.loading_s)
		root->deadline_ns = root->begun_ns + root->settings.loading_s * 1000000000ull;
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

static void time_out(struct root *root)
{
	char text[80];

	if (root->request.timeout_s)
		snprintf(text, sizeof(text), "not done in the time given by --time");
	else
		snprintf(text, sizeof(text), "ranks have not had all of their memory loaded within %u s",
			 root->settings.loading_s);
	phases_abort(root, ETIMEDOUT, text);
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
		time_out(root);
}
