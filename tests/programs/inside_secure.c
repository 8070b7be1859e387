// SPDX-License-Identifier: GPL-2.0
/*
 * A program with libcr inside, to be made a set-user-ID one: asks for its own
 * checkpoint, into the file that is its first argument.  Exit status: 0 if a tool took
 * the request.  kcr-build: -Ilibcr/include -Lbuild/lib -l:libcr.a
 */
#include <fcntl.h>
#include <libcr.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	cr_checkpoint_handle_t handle;
	cr_checkpoint_args_t args;

	cr_initialize_checkpoint_args_t(&args);
	args.cr_scope = CR_SCOPE_PROC;
	args.cr_fd = open(argv[argc - 1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (args.cr_fd < 0 || cr_init() < 0)
		return 2;
	if (!cr_request_checkpoint(&args, &handle))
		return 0;
	perror("cr_request_checkpoint");
	return 1;
}
