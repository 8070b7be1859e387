// SPDX-License-Identifier: GPL-2.0
/*
 * What the module answers about a socket: an older one, which does not know the question, is told
 * of once; a kind that it does not know has nothing; what cannot be saved is named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/device.h"
#include "report/report.h"
#include "resource/file.h"
#include "resource/file_table.h"
#include "resource/socket_hidden.h"

static int answer;
static uint32_t state;

/* The module. */
int ioctl(int fd, unsigned long request, ...)
{
	struct kcr_socket *socket;
	va_list list;

	(void)fd;
	if (answer) {
		errno = answer;
		return -1;
	}
	va_start(list, request);
	socket = va_arg(list, struct kcr_socket *);
	va_end(list);
	assert_int_equal(request, KCR_IOC_SOCKET);
	socket->state = state;
	return 0;
}

static struct file_table *table;
static struct file_probe probe = { .pid = 1, .link = "socket:[1]" };

static int get(struct kcr_socket *out)
{
	int err;

	probe.fd = socket(AF_INET, SOCK_DGRAM, 0);
	err = socket_hidden_get(table, &probe, out);
	close(probe.fd);
	return err;
}

static void nothing_known(void **unused)
{
	struct kcr_socket hidden;

	(void)unused;
	state = KCR_SOCKET_KEYS;
	answer = EOPNOTSUPP;
	assert_int_equal(get(&hidden), 0);
	assert_int_equal(hidden.state, 0);
	answer = ENOTTY;
	for (int i = 0; i < 2; i++)
		assert_int_equal(get(&hidden), 0);
	assert_int_equal(hidden.state, 0);
	answer = EINTR;
	assert_int_equal(get(&hidden), -EINTR);
	file_table_use_job(table, -1);
	assert_int_equal(get(&hidden), 0);
	file_table_use_job(table, 3);
}

static void refused(void **unused)
{
	struct kcr_socket hidden;

	(void)unused;
	answer = 0;
	for (uint32_t bit = 1; bit <= KCR_SOCKET_TXTIME; bit <<= 1) {
		bool saved = bit & (KCR_SOCKET_SYN | KCR_SOCKET_ALERT | KCR_SOCKET_TXTIME);

		state = bit;
		assert_int_equal(get(&hidden), 0);
		assert_int_equal(socket_hidden_check(table, &hidden), saved ? 0 : -EOPNOTSUPP);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_known), cmocka_unit_test(refused),
	};
	int failed;

	table = file_table_new(false);
	assert_non_null(table);
	file_table_use_job(table, 3);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	file_table_free(table);
	return failed;
}
