// SPDX-License-Identifier: GPL-2.0
/* Names of silly renames: what clients of servers call files that are deleted while open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/magic.h>

#include "resource/silly_name.h"

static void test_names(void **state)
{
	static const struct {
		const char *path;
		long type;
		bool silly;
	} names[] = {
		{ "/home/.nfs00000000000000020000001f", NFS_SUPER_MAGIC, true },
		{ ".nfs00000000000000020000001f", NFS_SUPER_MAGIC, true },
		{ "/home/.nfs00000000000000020000001", NFS_SUPER_MAGIC, false },
		{ "/home/.nfs00000000000000020000001g", NFS_SUPER_MAGIC, false },
		{ "/home/.nfs00000000000000020000001f/file", NFS_SUPER_MAGIC, false },
		{ "/home/.nfs00000000000000020000001f", EXT4_SUPER_MAGIC, false },
		{ "/home/.fuse_hidden0000000200000001", FUSE_SUPER_MAGIC, true },
		{ "/home/.fuse_hidden000000020000000", FUSE_SUPER_MAGIC, false },
		{ "/home/.fuse_hidden0000000200000001", NFS_SUPER_MAGIC, false },
		{ "/home/cifs1a", CIFS_SUPER_MAGIC, true },
		{ "/home/cifs", CIFS_SUPER_MAGIC, false },
		{ "/home/.__smbfile_silly000000000000001", (int)SMB2_SUPER_MAGIC, true },
		{ "/home/.__smbfile_silly", SMB2_SUPER_MAGIC, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(silly_name_is(names[i].path, names[i].type), names[i].silly);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
