// SPDX-License-Identifier: GPL-2.0
/* The source's end; see tcp.h. */
#include "migrate/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "job/coordinator/greeting.h"
#include "migrate/address.h"
#include "migrate/key.h"
#include "migrate/tunnel.h"
#include "report/report.h"

static int greet(struct wire *w, int fd, const char *key, const char *where)
{
	struct utsname here;
	int err;

	uname(&here);
	err = greeting_daemon(w, fd, key, here.nodename);
	if (!err)
		return 0;
	close(fd);
	switch (err) {
	case -EPROTONOSUPPORT:
		report_clear();
		return report_fail(err, "%s has another release of KCR: install the same on both machines",
				   where);
	case -EACCES:
	case -ECONNRESET:
		return report_fail(-EACCES, "%s does not know this key, or serves another migration: each "
				   "takes a cr_migrate --listen of its own", where);
	case -EPROTO:
		return report_fail(err, "at %s there is no cr_migrate --listen", where);
	default:
		return report_errno(err, "%s", where);
	}
}

int tcp_connect(const char *where, const char *key_file, const char *command, int *status)
{
	struct tunnel t = {
		.fd = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO },
		.sends = { [STDIN_FILENO] = true }, .program = -1,
	};
	char key[WIRE_SECRET + 1];
	int err = seal_init() ?: key_read(key_file, key), fd;

	if (err)
		return err;
	fd = address_connect(where);
	if (fd < 0)
		return fd;
	tcp_watch(fd, command);
	err = greet(&t.wire, fd, key, where);
	if (err)
		return err;
	wire_send(&t.wire, TUNNEL_COMMAND, 0, 0, command, strlen(command));
	err = tunnel_run(&t, NULL);
	*status = t.status;
	wire_close(&t.wire);
	return err ? report_fail(err, "the connection to %s is lost (%s)", where,
				 err == -ECONNRESET ? "closed" : strerror(-err)) : 0;
}
