/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What cr_status() says around checkpoints that the program requests of itself, to
 * the file `image`.  The third argument says which:
 *	late		callbacks take longer than other threads are held: when the
 *			result is known, nothing is pending any more
 *	free		likewise, from a thread with a callback of its own that is not held
 *	section		from within a critical section: pending at once, for all
 *			threads, and done when the section is left
 */
#include <libcr.h>

#include <pthread.h>

#include "tests/programs/check.h"

static cr_client_id_t id;
static int saved, restarted;
static bool in_vain;

static int callback(void *late)
{
	const struct timespec longer_than_held = { .tv_sec = 7 };
	int ret = cr_checkpoint(CR_CHECKPOINT_READY);

	CHECK(in_vain ? ret < 0 : ret >= 0);
	if (ret < 0)
		return 0;
	if (late)
		nanosleep(&longer_than_held, NULL);
	__atomic_fetch_add(ret > 0 ? &restarted : &saved, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static void begin(cr_checkpoint_handle_t *handle, unsigned int flags)
{
	int fd = open("image", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	cr_checkpoint_args_t args;

	NEED(fd >= 0);
	NEED(!cr_initialize_checkpoint_args_t(&args));
	args.cr_scope = CR_SCOPE_PROC;
	args.cr_fd = fd;
	args.cr_flags = flags;
	CHECK(cr_request_checkpoint(&args, handle) == 0);
	close(fd);
}

static void end(cr_checkpoint_handle_t *handle)
{
	int ret = cr_poll_checkpoint(handle, NULL), err = errno;

	CHECK(ret == 1 || (ret == CR_POLL_CHKPT_ERR_POST && err == CR_ERESTARTED));
}

static void is_idle(void)
{
	CHECK(cr_status() == CR_STATE_IDLE);
	CHECK(cr_tryenter_cs(id) == 0);
	CHECK(cr_leave_cs(id) == 0);
}

static int in_this_thread(void *unused)
{
	(void)unused;
	CHECK(cr_checkpoint(CR_CHECKPOINT_READY) >= 0);
	return 0;
}

static void request_late(bool held)
{
	cr_checkpoint_handle_t handle;

	if (!held) {
		NEED(cr_register_callback(in_this_thread, NULL, CR_SIGNAL_CONTEXT) >= 0);
		NEED(cr_hold_ctrl(CR_HOLD_SCOPE_THREAD, CR_HOLD_NONE) == CR_HOLD_DFLT);
	}
	NEED(cr_register_callback(callback, "late", CR_THREAD_CONTEXT) >= 0);
	begin(&handle, 0);
	end(&handle);
	CHECK(saved + restarted == 1);
	is_idle();
}

static void *try_in_other_thread(void *unused)
{
	cr_client_id_t own = cr_init();

	CHECK(own >= 0 && cr_status() == CR_STATE_PENDING);
	CHECK(cr_tryenter_cs(own) == 1);
	return unused;
}

static void request_in_section(unsigned int flags)
{
	cr_checkpoint_handle_t handle;
	pthread_t other;
	int before = saved + restarted;

	CHECK(cr_enter_cs(id) == 0);
	begin(&handle, flags);
	CHECK(cr_status() == CR_STATE_PENDING);
	CHECK(saved + restarted == before);
	NEED(!pthread_create(&other, NULL, try_in_other_thread, NULL));
	NEED(!pthread_join(other, NULL));
	CHECK(cr_leave_cs(id) == 0);
	CHECK(saved + restarted == before + 1);
	end(&handle);
	is_idle();
}

/* What fails, when the program is stopped already, ends the wait, too. */
static void request_in_vain(void)
{
	cr_checkpoint_handle_t handle;
	cr_checkpoint_args_t args;

	NEED(!cr_initialize_checkpoint_args_t(&args));
	args.cr_scope = CR_SCOPE_PROC;
	args.cr_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	NEED(args.cr_fd >= 0);
	args.cr_flags = CR_CHKPT_ASYNC_ERR;
	in_vain = true;
	CHECK(cr_enter_cs(id) == 0);
	CHECK(cr_request_checkpoint(&args, &handle) == 0);
	CHECK(cr_leave_cs(id) == 0);
	in_vain = false;
	CHECK(cr_poll_checkpoint(&handle, NULL) == CR_POLL_CHKPT_ERR_POST && errno == ENOSPC);
	is_idle();
	close(args.cr_fd);
}

int main(int argc, char **argv)
{
	check_begin(argc, argv);
	NEED(argc > 3);
	id = cr_init();
	NEED(id >= 0);
	if (strcmp(argv[3], "section")) {
		request_late(!strcmp(argv[3], "late"));
	} else {
		NEED(cr_register_callback(callback, NULL, CR_THREAD_CONTEXT) >= 0);
		request_in_vain();
		request_in_section(CR_CHKPT_ASYNC_ERR);
		request_in_section(0);
	}
	check_ready();
	check_wait();
	return check_end();
}
