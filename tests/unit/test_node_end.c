// SPDX-License-Identifier: GPL-2.0
/*
 * A daemon whose cr_mpirun has gone back, or died, just after a checkpoint was aborted: nobody else
 * knows of the folder on its disk.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/coordinator/node_internal.h"

/* A cr_checkpoint that ends its file before it takes SIGTERM. */
static void be_cr_checkpoint(const char *file, int out)
{
	int fd;

	signal(SIGTERM, SIG_IGN);
	if (write(out, "\n", 1) != 1)
		_exit(1);
	usleep(300000);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	_exit(fd < 0);
}

static void removes_useless_folder(void **state)
{
	char parent[] = "/tmp/node_end.XXXXXX", folder[64], file[80], byte;
	struct member m = { .wire.fd = -1, .dump.hold = -1 }, *members[] = { &m };
	struct node node = { .root.fd = -1, .launch.fd = -1, .member = members, .nr_members = 1 };
	int out[2];

	(void)state;
	assert_non_null(mkdtemp(parent));
	snprintf(folder, sizeof(folder), "%s/saved.kcr.0123456789abcdef", parent);
	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(file, sizeof(file), "%s/rank.0.ctx", folder);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	m.dump.fd = out[0];
	m.dump.pid = fork();
	if (!m.dump.pid)
		be_cr_checkpoint(file, out[1]);
	close(out[1]);
	assert_int_equal(read(out[0], &byte, 1), 1);
	saving_forget(&node, folder, strlen(folder) + 1);
	saving_cancel(&node);
	assert_int_equal(access(folder, F_OK), 0);	/* it is written to */
	saving_end(&node);
	assert_int_not_equal(access(folder, F_OK), 0);
	assert_int_equal(rmdir(parent), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removes_useless_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
