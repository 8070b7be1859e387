// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Signal-context callbacks: they run in the thread that registered them, which
 * is interrupted by a signal.  A program may use that signal itself, block or
 * ignore it, or have the thread in a long wait: what a thread has not begun
 * after CLAIM_MS is run by the service thread instead.
 *
 * A thread's part goes from SENT to CLAIMED, by the thread or the service thread,
 * then to REACHED and FINISHED.  Until then the thread's struct is in use: a
 * thread that ends sets FINISHED itself.
 *
 * An interrupted thread keeps the locks that it has, those of malloc() too, until the
 * checkpoint is over: from the first signal until then nothing is allocated or freed here,
 * and cri.lock, which others may hold while they allocate or fork, is not taken.
 */
#include "libcr/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CLAIM_MS	1000
#define POLL_NS		10000000l
#define HOLD_S		5		/* as long as the tools hold the other threads */

static struct {
	struct cri_request *request;
	void (*answer)(struct cri_request *request);
	struct cri_thread **thread;	/* those that have a part */
	unsigned int count;
	unsigned int next;		/* not yet visited by take_over() */
	struct cri_callbacks *copy;	/* of theirs, to be freed */
	struct kcr_answer_thread *exception;	/* for cri_signal_exceptions() */
	unsigned int nr_exceptions;
} phase;

/* ---- in the threads ------------------------------------------------------------------ */

static void set_part(struct cri_thread *thread, enum cri_part part)
{
	__atomic_store_n(&thread->part, part, __ATOMIC_SEQ_CST);
	cri_wake(&thread->part);
}

static enum cri_part part_of(struct cri_thread *thread)
{
	return __atomic_load_n(&thread->part, __ATOMIC_SEQ_CST);
}

static bool claim(struct cri_thread *thread)
{
	unsigned int sent = CRI_PART_SENT;

	return __atomic_compare_exchange_n(&thread->part, &sent, CRI_PART_CLAIMED, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* The innermost cr_checkpoint() of a thread's own callbacks. */
static void reach_in_thread(struct cri_run *run)
{
	struct cri_request *request = run->request;

	set_part(&cri_self, CRI_PART_REACHED);
	while (!__atomic_load_n(&request->over, __ATOMIC_SEQ_CST))
		cri_sleep(&request->over, 0, NULL);
}

/*
 * The hold barrier: waits until all threads of the process are done, but not for
 * ever.  A callback may need a lock that this thread held when it was interrupted.
 */
static void hold(void)
{
	int held = cri_self.hold == CR_HOLD_DFLT ? cri.hold_init : cri_self.hold;
	struct timespec end = cri_now(), left;

	if (!(held & (cri_self.part_run.request->result > 0 ? CR_HOLD_RSTRT : CR_HOLD_CONT)))
		return;
	end.tv_sec += HOLD_S;
	while (part_of(&cri_self) == CRI_PART_FINISHED) {
		left = cri_time_left(&end);
		if (!left.tv_sec && !left.tv_nsec)
			break;
		cri_sleep(&cri_self.part, CRI_PART_FINISHED, &left);
	}
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	int err = errno;

	(void)number, (void)info, (void)context;
	if (cri_self.generation == cri.generation && claim(&cri_self)) {
		cri_self.part_run.reach = reach_in_thread;
		cri_callbacks_run(&cri_self.part_run);
		cri_hook_run(CR_HOOK_CONT_SIGNAL_CONTEXT, cri_self.part_run.request);
		set_part(&cri_self, CRI_PART_FINISHED);
		hold();
	}
	errno = err;
}

void cri_signal_leave(void)
{
	enum cri_part part = part_of(&cri_self);

	cri_callbacks_free(&cri_self.callbacks);
	/* The service thread frees the copy, and does not take over a finished part. */
	if (part != CRI_PART_NONE)
		set_part(&cri_self, CRI_PART_FINISHED);
	while (part_of(&cri_self) != CRI_PART_NONE) {
		cri_unlock();
		cri_sleep(&cri_self.part, CRI_PART_FINISHED, NULL);
		cri_lock();
	}
}

int cri_signal_prepare(void)
{
	struct sigaction ours = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction now;

	/* A program that uses the signal already keeps it. */
	if (!sigaction(CR_SIGNUM, NULL, &now) && now.sa_handler == SIG_DFL)
		return sigaction(CR_SIGNUM, &ours, NULL);
	return 0;
}

static bool is_ours(void)
{
	struct sigaction now;

	return !sigaction(CR_SIGNUM, NULL, &now) && now.sa_flags & SA_SIGINFO &&
	       now.sa_sigaction == on_signal;
}

/* ---- which threads are held ---------------------------------------------------------- */

static bool is_held(struct cri_thread *thread, int when)
{
	int hold = thread->hold == CR_HOLD_DFLT ? cri.hold_init : thread->hold;

	/* A thread with a part must run to finish its callbacks. */
	return part_of(thread) == CRI_PART_NONE && hold & when;
}

/* The cases in which it is not treated like threads without cr_init(). */
static uint32_t exception_of(struct cri_thread *thread)
{
	uint32_t flags = 0;

	if (is_held(thread, CR_HOLD_CONT) != !!(cri.hold_uninit & CR_HOLD_CONT))
		flags |= KCR_ANSWER_FREE_CONTINUE;
	if (is_held(thread, CR_HOLD_RSTRT) != !!(cri.hold_uninit & CR_HOLD_RSTRT))
		flags |= KCR_ANSWER_FREE_RESTART;
	return flags;
}

/* cri.lock held. */
static void note_exceptions(void)
{
	for (struct cri_thread *t = cri.threads; t; t = t->next) {
		uint32_t flags = exception_of(t);

		if (flags && phase.nr_exceptions < KCR_ANSWER_THREADS)
			phase.exception[phase.nr_exceptions++] =
				(struct kcr_answer_thread){ t->tid, flags };
	}
}

/* ---- in the service thread ------------------------------------------------------------ */

static bool has_part(const struct cri_thread *thread)
{
	return thread->callbacks.count || cri_hook_for_all();
}

void cri_signal_forget(void)
{
	memset(&phase, 0, sizeof(phase));
}

void cri_signal_free(void)
{
	for (unsigned int i = 0; i < phase.count; i++)
		cri_callbacks_free(&phase.copy[i]);
	free(phase.thread);
	free(phase.copy);
	free(phase.exception);
	phase.thread = NULL;
	phase.copy = NULL;
	phase.exception = NULL;
	phase.count = phase.next = phase.nr_exceptions = 0;
}

/* Prepares a thread's part; false: no memory. */
static bool prepare_part(struct cri_thread *thread, struct cri_request *request)
{
	thread->part_run = (struct cri_run) {
		.context = CR_SIGNAL_CONTEXT, .request = request, .origin = &thread->callbacks,
	};
	if (!cri_callbacks_copy(&thread->part_run.callbacks, &thread->callbacks))
		return false;
	phase.copy[phase.count] = thread->part_run.callbacks;
	phase.thread[phase.count++] = thread;
	return true;
}

/* cri.lock held.  False: no memory, and no thread has a part. */
static bool prepare_all(struct cri_request *request)
{
	unsigned int count = 0, all = 0;
	bool done;

	for (struct cri_thread *t = cri.threads; t; t = t->next) {
		count += has_part(t);
		all++;
	}
	phase.thread = calloc(count + 1, sizeof(*phase.thread));
	phase.copy = calloc(count + 1, sizeof(*phase.copy));
	phase.exception = calloc(all + 1, sizeof(*phase.exception));
	done = phase.thread && phase.copy && phase.exception;
	for (struct cri_thread *t = cri.threads; t && done; t = t->next)
		if (has_part(t))
			done = prepare_part(t, request);
	if (!done)
		cri_signal_free();
	return done;
}

static bool send_all(struct cri_request *request)
{
	bool done;

	cri_lock();
	done = prepare_all(request);
	for (unsigned int i = 0; i < phase.count; i++)
		__atomic_store_n(&phase.thread[i]->part, CRI_PART_SENT, __ATOMIC_SEQ_CST);
	if (done)
		note_exceptions();
	if (phase.count && is_ours())
		for (unsigned int i = 0; i < phase.count; i++)
			syscall(SYS_tgkill, getpid(), phase.thread[i]->tid, CR_SIGNUM);
	cri_unlock();
	return done;
}

/* Waits until a thread's part is past `part`, at most *left_ns. */
static void wait_past(struct cri_thread *thread, enum cri_part part, long *left_ns)
{
	struct timespec pause = { .tv_nsec = POLL_NS };
	enum cri_part now;

	while ((now = part_of(thread)) <= part && (!left_ns || *left_ns > 0)) {
		cri_sleep(&thread->part, now, left_ns ? &pause : NULL);
		if (left_ns)
			*left_ns -= POLL_NS;
	}
}

/* The worst answer of any thread. */
static void collect_flags(struct cri_request *request)
{
	static const int order[] = {
		CR_CHECKPOINT_PERM_FAILURE, CR_CHECKPOINT_TEMP_FAILURE, CR_CHECKPOINT_OMIT,
	};

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		for (unsigned int k = 0; k < phase.count && !request->flags; k++)
			if (phase.thread[k]->part_run.flags & order[i])
				request->flags = phase.thread[k]->part_run.flags;
}

static void take_over(void);

/* The innermost cr_checkpoint() of callbacks that are run for another thread. */
static void reach_in_service(struct cri_run *run)
{
	(void)run;
	take_over();
}

/* Runs the unclaimed parts, one nested in the other; then answers. */
static void take_over(void)
{
	while (phase.next < phase.count) {
		struct cri_thread *thread = phase.thread[phase.next++];

		if (!claim(thread))
			continue;
		thread->part_run.reach = reach_in_service;
		cri_callbacks_run(&thread->part_run);
		cri_hook_run(CR_HOOK_CONT_SIGNAL_CONTEXT, thread->part_run.request);
		set_part(thread, CRI_PART_FINISHED);
		return;
	}
	for (unsigned int i = 0; i < phase.count; i++)
		if (phase.thread[i]->part_run.reach != reach_in_service)
			wait_past(phase.thread[i], CRI_PART_CLAIMED, NULL);
	collect_flags(phase.request);
	phase.answer(phase.request);
}

void cri_signal_begin(struct cri_request *request, void (*answer)(struct cri_request *request))
{
	long left_ns = CLAIM_MS * 1000000l;

	phase.request = request;
	phase.answer = answer;
	if (!send_all(request))
		request->flags = CR_CHECKPOINT_TEMP_FAILURE_CODE(ENOMEM);
	if (phase.count && is_ours())
		for (unsigned int i = 0; i < phase.count; i++)
			wait_past(phase.thread[i], CRI_PART_SENT, &left_ns);
	take_over();
}

void cri_signal_over(struct cri_request *request)
{
	__atomic_store_n(&request->over, 1, __ATOMIC_SEQ_CST);
	cri_wake(&request->over);
}

void cri_signal_finish(void)
{
	for (unsigned int i = 0; i < phase.count; i++)
		wait_past(phase.thread[i], CRI_PART_REACHED, NULL);
	for (unsigned int i = 0; i < phase.count; i++)
		set_part(phase.thread[i], CRI_PART_NONE);
}

uint32_t cri_signal_exceptions(const struct kcr_answer_thread **threads, uint32_t *flags)
{
	*flags = (cri.hold_uninit & CR_HOLD_CONT ? 0 : KCR_ANSWER_FREE_CONTINUE) |
		 (cri.hold_uninit & CR_HOLD_RSTRT ? 0 : KCR_ANSWER_FREE_RESTART);
	*threads = phase.exception;
	return phase.nr_exceptions;
}
