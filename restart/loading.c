// SPDX-License-Identifier: GPL-2.0
/* See loading.h. */
#include "restart/loading.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "proc/proc.h"

/* comm of proc_pid_comm(5): 15 characters at most. */
#define LOADING_NAME	"cr_restart-lazy"

static void set_name(const char *name)
{
	int fd = proc_open(PROC_SELF, "comm", O_WRONLY);
	ssize_t n;

	if (fd < 0)
		return;
	n = write(fd, name, strlen(name));
	(void)n;			/* if it fails, others only know less */
	close(fd);
}

void loading_begin(struct loading *l)
{
	if (proc_read(PROC_SELF, "comm", l->name, sizeof(l->name)) < 0)
		l->name[0] = '\0';
	l->name[strcspn(l->name, "\n")] = '\0';
	set_name(LOADING_NAME);
}

void loading_end(const struct loading *l)
{
	set_name(l->name);
}

bool loading_is(pid_t pid)
{
	char name[32];
	ssize_t length = proc_read(pid, "comm", name, sizeof(name));

	return length > 0 && !strncmp(name, LOADING_NAME "\n", length);
}
