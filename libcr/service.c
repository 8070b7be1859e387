// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The thread that answers requests: it sleeps in the module until there is one,
 * runs the callbacks, and sleeps in the module again while the process is saved.
 * In a restarted process that sleep ends with another outcome.  All signals are
 * blocked in it.
 */
#include "libcr/internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define HIGH_FD		200	/* programs rely on getting low descriptors */
#define REOPEN_MS	100	/* between attempts, at first … */
#define REOPEN_MAX_MS	10000	/* … and in the end: it may be refused for good */

/* ---- the descriptor --------------------------------------------------------------- */

int cri_open_device(void)
{
	int fd = open(KCR_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0 && (errno == ENOENT || errno == ENXIO || errno == ENODEV))
		errno = ENOSYS;
	return fd;
}

/* Moves it to HIGH_FD or above if the limit allows it. */
static int raise_descriptor(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);

	if (high < 0)
		return fd;
	close(fd);
	return high;
}

/* The descriptor of a client, or -1 with errno. */
static int open_client(void)
{
	struct kcr_client_new request = { .size = sizeof(request) };
	int job = cri_open_device(), client, err;

	if (job < 0)
		return -1;
	client = ioctl(job, KCR_IOC_CLIENT, &request);
	err = errno;
	close(job);
	errno = err;
	return client < 0 ? -1 : raise_descriptor(client);
}

/* The program closed the client, perhaps unknowingly: open another one. */
static void reopen(void)
{
	long pause_ms = REOPEN_MS;
	int fd;

	while ((fd = open_client()) < 0) {
		struct timespec pause = { pause_ms / 1000, pause_ms % 1000 * 1000000 };

		nanosleep(&pause, NULL);
		pause_ms = pause_ms < REOPEN_MAX_MS / 2 ? 2 * pause_ms : REOPEN_MAX_MS;
	}
	__atomic_store_n(&cri.client, fd, __ATOMIC_RELEASE);
}

/* ---- one request -------------------------------------------------------------------- */

static uint32_t answer_of(int flags)
{
	if (flags & CR_CHECKPOINT_PERM_FAILURE)
		return KCR_ANSWER_PERMANENT;
	if (flags & CR_CHECKPOINT_TEMP_FAILURE)
		return KCR_ANSWER_TEMPORARY;
	return flags & CR_CHECKPOINT_OMIT ? KCR_ANSWER_OMIT : KCR_ANSWER_READY;
}

static int result_of(const struct kcr_client_answer *answer)
{
	switch (answer->outcome) {
	case KCR_OUTCOME_CONTINUED:
		return 0;
	case KCR_OUTCOME_RESTARTED:
		return cri_record_requester() ?: answer->result;
	case KCR_OUTCOME_OMITTED:
		return -CR_EOMITTED;
	default:
		return -answer->result;
	}
}

/* All callbacks are ready: the checkpoint happens in here. */
static void answer_request(struct cri_request *request)
{
	struct kcr_client_answer answer = {
		.size = sizeof(answer), .answer = answer_of(request->flags),
		.code = (unsigned int)request->flags >> 16, .path = (uintptr_t)request->source,
	};
	const struct kcr_answer_thread *threads;

	answer.nr_threads = cri_signal_exceptions(&threads, &answer.flags);
	answer.threads = (uintptr_t)threads;
	if (ioctl(cri.client, KCR_IOC_CLIENT_ANSWER, &answer))
		request->result = -errno;
	else
		request->result = result_of(&answer);
	request->restart.requester = request->result > 0 ? request->result : 0;
	request->restart.src = request->source;
	cri_signal_over(request);
}

/* All thread-context callbacks have reached cr_checkpoint(): now those in other threads. */
static void reach(struct cri_run *run)
{
	struct cri_request *request = run->request;

	request->flags = run->flags;
	if (run->flags)
		answer_request(request);
	else
		cri_signal_begin(request, answer_request);
}

static void run_request(struct cri_request *request)
{
	struct cri_run run = {
		.context = CR_THREAD_CONTEXT, .request = request, .reach = reach,
		.origin = &cri.thread_callbacks,
	};
	struct kcr_client_done done = { .size = sizeof(done) };
	bool copied;

	cri_sections_close();
	cri_lock();
	copied = cri_callbacks_copy(&run.callbacks, &cri.thread_callbacks);
	cri_unlock();
	if (!copied)
		run.flags = CR_CHECKPOINT_TEMP_FAILURE_CODE(ENOMEM);
	cri_callbacks_run(&run);
	if (run.callbacks.count)
		cri_hook_run(CR_HOOK_CONT_THREAD_CONTEXT, request);
	cri_signal_finish();
	cri_sections_open();		/* before any thread goes on */
	done.code = request->code;
	ioctl(cri.client, KCR_IOC_CLIENT_DONE, &done);
	cri_callbacks_free(&run.callbacks);
	cri_signal_free();
}

int cri_service_forward(int scope, pid_t target)
{
	struct kcr_client_forward forward = {
		.size = sizeof(forward), .scope = scope, .target = target,
	};

	int ret, err;

	/* Callbacks of several threads may ask at once: the second would get the first's answer. */
	pthread_mutex_lock(&cri.forwarding);
	ret = ioctl(cri.client, KCR_IOC_CLIENT_FORWARD, &forward);
	err = errno;
	pthread_mutex_unlock(&cri.forwarding);
	errno = err;
	return ret ? -1 : 0;
}

/* ---- the thread ----------------------------------------------------------------------- */

static void *serve(void *unused)
{
	static struct cri_request request;
	unsigned int generation = cri.generation;

	(void)unused;
	prctl(PR_SET_NAME, "libcr");
	cri_self = (struct cri_thread){ .generation = generation, .id = CR_ID_CALLBACK };
	for (;;) {
		struct kcr_client_wait wait = {
			.size = sizeof(wait), .path = (uintptr_t)request.dest,
		};

		if (ioctl(cri.client, KCR_IOC_CLIENT_WAIT, &wait)) {
			if (errno == ENOMEM || errno == EINTR || errno == EAGAIN)
				usleep(REOPEN_MS * 1000);	/* it is a client still */
			else
				reopen();
			continue;
		}
		request.notice = wait.notice;
		request.checkpoint = (struct cr_checkpoint_info) {
			.signal = wait.notice.signal, .dest = request.dest,
			.requester = wait.notice.requester, .target = wait.notice.target,
			.scope = (cr_scope_t)wait.notice.scope,
		};
		request.result = request.code = request.flags = 0;
		request.over = 0;
		run_request(&request);
	}
	return NULL;
}

void cri_stay_loaded(void)
{
	/* A static program has no dlopen() and does not need it. */
	void *(*open_again)(const char *, int) =
		(void *(*)(const char *, int))dlsym(RTLD_DEFAULT, "dlopen");
	Dl_info info;

	if (open_again && dladdr((void *)(uintptr_t)serve, &info) && info.dli_fname)
		open_again(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static int start_thread(void)
{
	pthread_attr_t attributes;
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attributes, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	return err;
}

int cri_service_start(void)
{
	int fd, err;

	if (cri.client >= 0)
		return 0;
	cri_stay_loaded();	/* our code may run at any time now */
	fd = open_client();
	if (fd < 0)
		return -1;
	__atomic_store_n(&cri.client, fd, __ATOMIC_RELEASE);
	err = start_thread();
	if (!err)
		return 0;
	cri.client = -1;
	close(fd);
	errno = err == EAGAIN ? ENOMEM : err;
	return -1;
}

void cri_service_forget(void)
{
	if (cri.client >= 0)
		close(cri.client);
	cri.client = -1;
}
