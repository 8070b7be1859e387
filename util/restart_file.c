// SPDX-License-Identifier: GPL-2.0
/* See restart_file.h. */
#include "util/restart_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/place.h"
#include "proc/proc.h"
#include "report/report.h"
#include "restart/trust.h"

static int check(const char *name, int fd, bool trust)
{
	struct stat st;

	if (fstat(fd, &st))
		return report_errno(-errno, "descriptor %d", fd);
	if (S_ISDIR(st.st_mode))
		return report_fail(-EISDIR, "%s is a directory, not a context file",
				   name ? name : "the descriptor given");
	return trust_source(fd, trust);
}

/* Opens it by name, once it is known that this cannot wait for ever. */
static int open_named(const char *name, bool trust)
{
	int node = place_node(name), fd;

	if (node < 0)
		return node;
	fd = check(name, node, trust);
	if (!fd) {
		fd = proc_fd_reopen(node, O_RDONLY | O_NOCTTY);
		if (fd < 0)
			report_errno(fd, "cannot open the context file %s", name);
	}
	close(node);
	return fd;
}

int restart_file_open(const char *name, int fd, bool trust)
{
	int file = fd < 0 ? open_named(name, trust) : check(name, fd, trust) ?: fd;

	if (file >= 0)
		posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
	return file;
}

void restart_file_path(int fd, char *path, size_t size)
{
	if (proc_fd_link(fd, path, size) < 0 || path[0] != '/')
		path[0] = '\0';
}
