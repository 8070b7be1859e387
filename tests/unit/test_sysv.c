// SPDX-License-Identifier: GPL-2.0
/*
 * System V objects: how a restart gets an ID that it may not choose, and what is made of the
 * module's answers about SEM_UNDO.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "checkpoint/internal.h"
#include "report/report.h"
#include "resource/sysv.h"

/* ---- the kernel's ways with IDs: the next place, of 64 free ones, with the next number ---------- */

#define PLACES	64
#define NUMBERS	65535

static int next_place, number, taken = -1;
static unsigned int nr_made, nr_removed;

static int look(int id, struct ipc_perm *permissions, uint64_t *length)
{
	(void)id;
	(void)permissions;
	(void)length;
	return -EINVAL;
}

static int get(key_t key, uint64_t length, int flags)
{
	static int last = PLACES;

	(void)key;
	(void)length;
	if (!flags)
		return -ENOENT;
	if (next_place == taken)
		next_place++;
	if (next_place >= PLACES)
		next_place = 0;
	if (next_place <= last)
		number = (number + 1) % NUMBERS;
	last = next_place++;
	nr_made++;
	return number << 15 | last;
}

static int remove_it(int id)
{
	(void)id;
	nr_removed++;
	return 0;
}

static int set(int id, const struct ipc_perm *permissions)
{
	(void)id;
	(void)permissions;
	return 0;
}

static const struct sysv_kind kind = {
	.name = "thing", .next_id = "not/there", .limits = "none", .look = look, .get = get, .set = set,
	.remove = remove_it,
};

/* All but the last one that was made are removed, and that, too, if the restart fails. */
static void get_id(int id)
{
	Kcr__SysvIdentity saved = KCR__SYSV_IDENTITY__INIT;

	saved.id = id;
	saved.used = true;
	nr_made = nr_removed = 0;
	assert_int_equal(sysv_get(&kind, &saved, 1), 0);
	assert_true(sysv_is_made(&kind, id));
	assert_int_equal(nr_removed, nr_made - 1);
	sysv_drop();
	assert_int_equal(nr_removed, nr_made);
	assert_false(sysv_is_made(&kind, id));
}

static void counted(void **unused)
{
	(void)unused;
	get_id(5 << 15 | 7);
	get_id(5 << 15 | 7);	/* once around */
	get_id(5 << 15 | 6);
	get_id(65534 << 15 | 63);
	get_id(0);
}

static void no_place(void **unused)
{
	Kcr__SysvIdentity saved = KCR__SYSV_IDENTITY__INIT;

	(void)unused;
	saved.id = 9 << 15 | 3;
	saved.used = true;
	taken = 3;
	nr_made = nr_removed = 0;
	assert_int_equal(sysv_get(&kind, &saved, 1), -EEXIST);
	assert_non_null(strstr(report_message(), "cannot get its ID back"));
	assert_int_equal(nr_removed, nr_made);
	assert_int_equal(sysv_forgive(&saved, -EEXIST), -EEXIST);
	saved.used = false;	/* not so long, and for no more than a warning */
	nr_made = 0;
	assert_int_equal(sysv_forgive(&saved, sysv_get(&kind, &saved, 1)), 0);
	assert_true(nr_made < 1 << 17);
	assert_null(report_message());
	assert_false(sysv_is_known(&kind, saved.id));
	taken = -1;
}

/* ---- the module ---------------------------------------------------------------------- */

static int answer;
static uint32_t state, count;

int ioctl(int fd, unsigned long request, ...)
{
	struct kcr_undos *all;
	struct kcr_undo *list;
	va_list arguments;

	(void)fd;
	if (answer) {
		errno = answer;
		return -1;
	}
	va_start(arguments, request);
	all = va_arg(arguments, struct kcr_undos *);
	va_end(arguments);
	assert_int_equal(request, KCR_IOC_UNDOS);
	assert_true(all->count >= count);
	list = (void *)(uintptr_t)all->undos;
	for (uint32_t i = 0; i < count; i++)
		list[i] = (struct kcr_undo){ .set = 7, .number = i, .adjustment = -3 };
	all->count = count;
	all->state = state;
	return 0;
}

static int ask(Kcr__Process *p, Kcr__Mm *mm)
{
	kcr__process__init(p);
	p->pid = 10;
	p->mm = mm;
	return describe_undos(&(struct checkpoint){}, p);
}

static void undos(void **unused)
{
	Kcr__Mm mm = KCR__MM__INIT;
	Kcr__Process p;

	(void)unused;
	count = 2;
	assert_int_equal(ask(&p, &mm), 0);
	assert_int_equal(p.n_semaphore_undo, 2);
	assert_int_equal(p.semaphore_undo[1]->set, 7);
	assert_int_equal(p.semaphore_undo[1]->number, 1);
	assert_int_equal(p.semaphore_undo[1]->adjustment, -3);
	p.mm = NULL;
	kcr__semaphore_undo__free_unpacked(p.semaphore_undo[0], NULL);
	kcr__semaphore_undo__free_unpacked(p.semaphore_undo[1], NULL);
	free(p.semaphore_undo);
	assert_int_equal(ask(&p, NULL), -EOPNOTSUPP);
	report_clear();
	count = 0;
	assert_int_equal(ask(&p, NULL), 0);
}

static void unknown(void **unused)
{
	Kcr__Mm mm = KCR__MM__INIT;
	Kcr__Process p;

	(void)unused;
	answer = ENOTTY;	/* an older module */
	assert_int_equal(ask(&p, &mm), 0);
	answer = EOPNOTSUPP;	/* a warning */
	assert_int_equal(ask(&p, &mm), 0);
	assert_int_equal(p.n_semaphore_undo, 0);
	answer = E2BIG;
	assert_int_equal(ask(&p, &mm), -E2BIG);
	report_clear();
	answer = 0;
	state = KCR_UNDOS_SHARED;
	assert_int_equal(ask(&p, &mm), -EOPNOTSUPP);
	assert_non_null(strstr(report_message(), "CLONE_SYSVSEM"));
	report_clear();
	state = KCR_UNDOS_SEVERAL;
	assert_int_equal(ask(&p, &mm), -EOPNOTSUPP);
	assert_non_null(strstr(report_message(), "of their own"));
	report_clear();
	state = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counted), cmocka_unit_test(no_place), cmocka_unit_test(undos),
		cmocka_unit_test(unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
