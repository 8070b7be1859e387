// SPDX-License-Identifier: GPL-2.0
/*
 * A listening Unix socket with a name in the file system and one with an abstract
 * name, and a connection that it has accepted.
 */
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "check.h"

static int listener(struct sockaddr_un *name, socklen_t length)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	NEED(fd >= 0 && !bind(fd, (struct sockaddr *)name, length) && !listen(fd, 5));
	return fd;
}

static void talk(int listener, const struct sockaddr_un *name, socklen_t length)
{
	int client = socket(AF_UNIX, SOCK_STREAM, 0), server;
	char byte;

	CHECK(!connect(client, (const struct sockaddr *)name, length));
	server = accept(listener, NULL, NULL);
	CHECK(server >= 0 && write(client, "x", 1) == 1 && read(server, &byte, 1) == 1);
	close(client);
	close(server);
}

int main(int argc, char **argv)
{
	struct sockaddr_un path = { .sun_family = AF_UNIX }, abstract = { .sun_family = AF_UNIX };
	socklen_t abstract_length;
	int a, b, client, server;
	char text[8];

	check_begin(argc, argv);
	snprintf(path.sun_path, sizeof(path.sun_path), "/tmp/kcr-unix.%d", getpid());
	abstract_length = offsetof(struct sockaddr_un, sun_path) + 1 +
			  sprintf(abstract.sun_path + 1, "kcr-abstract-%d", getpid());
	a = listener(&path, sizeof(path));
	b = listener(&abstract, abstract_length);
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	NEED(!connect(client, (struct sockaddr *)&path, sizeof(path)));
	server = accept(a, NULL, NULL);
	NEED(server >= 0 && write(client, "abc", 3) == 3);
	check_ready();
	check_wait();
	CHECK(read(server, text, 8) == 3 && !memcmp(text, "abc", 3));
	CHECK(write(server, "de", 2) == 2 && read(client, text, 8) == 2);
	talk(a, &path, sizeof(path));
	talk(b, &abstract, abstract_length);
	CHECK(!unlink(path.sun_path));
	return check_end();
}
