/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What needs no checkpoint: errors of calls without cr_init(), hold control,
 * persistence, spinlocks, error texts, defaults; and dlopen(3) and dlclose(3)
 * of the library, before and after its service thread is there.
 */
#include <libcr.h>

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

#include "tests/programs/check.h"

static cr_spinlock_t lock = CR_SPINLOCK_INITIALIZER;
static volatile long counter;

static void without_init(void)
{
	CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_INIT, CR_HOLD_READ) == -1 && errno == CR_ENOINIT);
	CHECK(cr_inc_persist() == -1 && errno == CR_ENOINIT);
	CHECK(cr_dec_persist() == -1 && errno == CR_ENOINIT);
	CHECK(cr_status() == -1 && errno == CR_ENOINIT);
	CHECK(cr_tryenter_cs(0) == -1 && errno == CR_ENOINIT);
	CHECK(cr_leave_cs(0) == -1 && errno == CR_ENOINIT);
	CHECK(cr_replace_callback(0, NULL, NULL, CR_THREAD_CONTEXT) == -1 && errno == CR_ENOINIT);
	CHECK(cr_replace_self(NULL, NULL, CR_THREAD_CONTEXT) == -1 && errno == CR_ENOTCB);
	CHECK(cr_checkpoint(0) == -CR_ENOTCB);
}

static void hold(void)
{
	CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_INIT, CR_HOLD_READ) == CR_HOLD_BOTH);
	CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_UNINIT, CR_HOLD_READ) == CR_HOLD_BOTH);
	CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_THREAD, CR_HOLD_READ) == CR_HOLD_DFLT);
	CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_THREAD, CR_HOLD_NONE) == CR_HOLD_DFLT);
	CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_THREAD, CR_HOLD_CONT) == CR_HOLD_NONE);
	CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_INIT, CR_HOLD_DFLT) == -1 && errno == EINVAL);
	CHECK(cr_hold_ctrl(3, CR_HOLD_READ) == -1 && errno == EINVAL);
	CHECK(cr_hold_ctrl(CR_HOLD_SCOPE_INIT, -2) == -1 && errno == EINVAL);
}

static void persist(void)
{
	CHECK(cr_dec_persist() == -1 && errno == ERANGE);
	CHECK(cr_inc_persist() == 0);
	CHECK(cr_inc_persist() == 1);
	CHECK(cr_dec_persist() == 2);
	CHECK(cr_dec_persist() == 1);
	CHECK(cr_dec_persist() == -1 && errno == ERANGE);
}

static pthread_key_t key;
static int rounds;

/* In a thread that persists libcr is there for destructors until it has no reason any more. */
static void on_end(void *id)
{
	if (++rounds < 3) {
		CHECK(cr_enter_cs(*(cr_client_id_t *)id) == 0);
		CHECK(rounds == 1 ? cr_inc_persist() == 1 :
				    cr_dec_persist() == 2 && cr_dec_persist() == 1);
		pthread_setspecific(key, id);
	} else {
		CHECK(cr_leave_cs(*(cr_client_id_t *)id) == -1 && errno == CR_ENOINIT);
	}
}

static void *persist_in_thread(void *for_good)
{
	static cr_client_id_t id;

	id = cr_init();
	CHECK(cr_dec_persist() == -1 && errno == ERANGE);
	CHECK(cr_inc_persist() == 0);
	if (!for_good)
		NEED(!pthread_setspecific(key, &id));
	return NULL;
}

/* The count is each thread's own; one that ends with it leaves nothing behind. */
static void persist_in_threads(void)
{
	pthread_t thread;

	NEED(!pthread_key_create(&key, on_end));
	CHECK(cr_inc_persist() == 0);
	for (long i = 0; i < 2; i++) {
		NEED(!pthread_create(&thread, NULL, persist_in_thread, (void *)i));
		NEED(!pthread_join(thread, NULL));
	}
	CHECK(rounds == 3);
	CHECK(cr_dec_persist() == 1);
}

static void *add(void *arg)
{
	for (int i = 0; i < 20000; i++) {
		cr_spinlock_lock(&lock);
		counter++;
		cr_spinlock_unlock(&lock);
	}
	return arg;
}

static void spin(void)
{
	pthread_t thread[3];

	CHECK(cr_spinlock_trylock(&lock));
	CHECK(!cr_spinlock_trylock(&lock));
	cr_spinlock_unlock(&lock);
	cr_spinlock_init(&lock);
	for (int i = 0; i < 3; i++)
		NEED(!pthread_create(&thread[i], NULL, add, NULL));
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	CHECK(counter == 60000);
}

static void texts(void)
{
	for (int i = CR_MIN_ERRCODE + 1; i < CR_MAX_ERRCODE; i++)
		CHECK(cr_strerror(i) && !strcasestr(cr_strerror(i), "unknown"));
	CHECK(!strcmp(cr_strerror(ENOENT), strerror(ENOENT)));
	CHECK(CR_ETEMPFAIL == 2354 && CR_ENOINIT == 2365);
}

/* In a thread that ends afterwards: by a path of its own, so that it is not there yet. */
static void *load(void *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	cr_client_id_t (*init)(void);
	int (*enter)(cr_client_id_t), (*leave)(cr_client_id_t);

	NEED(handle);
	init = dlsym(handle, "cr_init");
	NEED(init);
	enter = dlsym(handle, "cr_enter_cs");
	leave = dlsym(handle, "cr_leave_cs");
	NEED(init && enter && leave);
	CHECK(init() >= 0);
	CHECK(enter(0) == 0 && leave(0) == 0);
	CHECK(!dlclose(handle));
	return NULL;
}

/* Unloaded with nothing but a cr_init() of a thread that lives on for a while. */
static void *load_only(void *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	cr_client_id_t (*init)(void);

	NEED(handle);
	init = dlsym(handle, "cr_init");
	NEED(init);
	CHECK(init() >= 0);
	CHECK(!dlclose(handle));
	CHECK(!dlopen(path, RTLD_NOW | RTLD_NOLOAD));
	return NULL;
}

/* A reason keeps the library where it is. */
static void *load_persistent(void *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	cr_client_id_t (*init)(void);
	int (*inc)(void);

	NEED(handle);
	init = dlsym(handle, "cr_init");
	inc = dlsym(handle, "cr_inc_persist");
	NEED(init && inc);
	CHECK(init() >= 0 && inc() == 0);
	CHECK(!dlclose(handle));
	CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	check_begin(argc, argv);
	without_init();
	texts();
	spin();
	if (argc > 3) {
		NEED(!pthread_create(&thread, NULL, load_only, argv[3]));
		NEED(!pthread_join(thread, NULL));
		NEED(!pthread_create(&thread, NULL, load, argv[3]));
		NEED(!pthread_join(thread, NULL));
		NEED(argc == 5);
		NEED(!pthread_create(&thread, NULL, load_persistent, argv[4]));
		NEED(!pthread_join(thread, NULL));
	} else {
		NEED(cr_init() == 0);
		hold();
		persist();
		persist_in_threads();
	}
	check_ready();
	check_wait();
	return check_end();
}
