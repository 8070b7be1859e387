// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which threads take part.  All state belongs to one process: a forked child
 * starts as if cr_init() had never been called.  The client descriptor is opened
 * at the first use of a service, so that a program that only calls cr_init()
 * gets neither a thread nor a descriptor.
 */
#include "libcr/internal.h"

#include <errno.h>
#include <limits.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct cri cri = {
	.lock = PTHREAD_MUTEX_INITIALIZER, .generation = 1, .client = -1,
	.hold_init = CR_HOLD_BOTH, .hold_uninit = CR_HOLD_BOTH,
	.forwarding = PTHREAD_MUTEX_INITIALIZER,
};
__thread struct cri_thread cri_self;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static bool has_exit_key;

/* Any handler of the program may call us, or fork(2), which takes the lock. */
void cri_lock(void)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pthread_mutex_lock(&cri.lock);
	cri_self.mask = old;
}

void cri_unlock(void)
{
	sigset_t old = cri_self.mask;

	pthread_mutex_unlock(&cri.lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

bool cri_is_init(void)
{
	if (cri_self.generation == cri.generation)
		return true;
	errno = CR_ENOINIT;
	return false;
}

bool cri_is_busy(void)
{
	unsigned int part = __atomic_load_n(&cri_self.part, __ATOMIC_SEQ_CST);

	if (cri_self.generation != cri.generation)
		return false;
	/* FINISHED: its own are over, but not those of others. */
	return cri_self.run || cri_self.id == CR_ID_CALLBACK || part == CRI_PART_CLAIMED ||
	       part == CRI_PART_REACHED;
}

/* ---- fork, thread exit ------------------------------------------------------------ */

static void before_fork(void)
{
	cri_lock();
}

static void after_fork(void)
{
	cri_unlock();
}

static void in_child(void)
{
	cri_service_forget();
	cri_requests_forget();
	cri_signal_forget();
	cri.generation++;
	cri.next_id = 0;
	cri.sections = 0;
	cri.thread_callbacks = (struct cri_callbacks){};
	cri.threads = NULL;
	for (int i = 0; i < CR_NUM_HOOKS; i++)
		cri.hook[i] = NULL;
	cri.hold_init = cri.hold_uninit = CR_HOLD_BOTH;
	pthread_mutex_init(&cri.forwarding, NULL);	/* its owner is not here */
	cri_unlock();
	cri_omit_child();
}

/*
 * A thread that ends inside a critical section leaves it.  One that persists stays for the
 * destructors of other keys, but for the last of the rounds that these have: what it leaves in
 * cri.threads ends with it.
 */
static void on_thread_exit(void *value)
{
	cri_self.exits++;
	if (cri_self.generation == cri.generation && cri_self.persist &&
	    cri_self.exits < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(exit_key, value);
		return;
	}
	if (cri_self.generation == cri.generation && cri_self.depth) {
		cri_self.depth = 1;
		cr_leave_cs(cri_self.id);
	}
	if (cri_self.generation == cri.generation) {
		cri_lock();
		for (struct cri_thread **at = &cri.threads; *at; at = &(*at)->next)
			if (*at == &cri_self) {
				*at = cri_self.next;
				break;
			}
		cri_signal_leave();
		cri_unlock();
	}
	cri_self.generation = 0;
}

static void prepare(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
	has_exit_key = !pthread_key_create(&exit_key, on_thread_exit);
}

void cri_watch_forks(void)
{
	pthread_once(&once, prepare);
}

/*
 * Forks are watched from the beginning: handlers that the program registers later for what happens
 * before one (pthread_atfork(3)) come first, so that ours takes its lock when all others are taken.
 */
static __attribute__((constructor)) void load(void)
{
	int err = errno;

	cri_watch_forks();
	cri_record_begin();
	cri_nscd_begin();
	errno = err;
}

/* dlclose(3), before there is a service thread: nothing may call us from now on. */
static __attribute__((destructor)) void unload(void)
{
	cri_record_end();
	if (has_exit_key)
		pthread_key_delete(exit_key);
}

/* ---- cr_init ------------------------------------------------------------------------ */

/* 0 or an errno. */
static int check_module(void)
{
	struct kcr_info info = { .size = sizeof(info) };
	int fd = cri_open_device(), err = 0;

	if (fd < 0)
		return errno;
	if (ioctl(fd, KCR_IOC_INFO, &info) || info.abi != KCR_ABI_VERSION)
		err = CR_EVERSION;
	close(fd);
	return err;
}

cr_client_id_t cr_init(void)
{
	int err = 0;

	/* libcr's own thread has no id of its own; callbacks in it use 0. */
	if (cri_self.generation == cri.generation)
		return cri_self.id == CR_ID_CALLBACK ? 0 : cri_self.id;
	cri_watch_forks();
	cri_lock();
	if (!has_exit_key)	/* without it, it would not be known when the thread ends */
		err = ENOMEM;
	else if (!cri.next_id)
		err = check_module();
	if (!err) {
		cri_self = (struct cri_thread) {
			.generation = cri.generation, .id = cri.next_id++, .tid = gettid(),
			.hold = CR_HOLD_DFLT, .next = cri.threads, .mask = cri_self.mask,
			.exits = cri_self.exits,	/* called again by a destructor */
		};
		cri.threads = &cri_self;
	}
	cri_unlock();
	if (err) {
		errno = err;
		return -1;
	}
	/* Any value but NULL makes on_thread_exit() run. */
	pthread_setspecific(exit_key, &cri);
	return cri_self.id;
}
