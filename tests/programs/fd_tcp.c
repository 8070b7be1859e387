// SPDX-License-Identifier: GPL-2.0
/*
 * TCP inside: a connection of two descriptors of the program with bytes under way in
 * both directions, and a listening socket that still accepts.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "check.h"

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int listener, client, server, again, on = 1, value = 0;
	char text[64];

	check_begin(argc, argv);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	NEED(listener >= 0 && !bind(listener, (struct sockaddr *)&address, sizeof(address)));
	NEED(!listen(listener, 5) && !getsockname(listener, (struct sockaddr *)&address, &length));
	client = socket(AF_INET, SOCK_STREAM, 0);
	NEED(!setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
	NEED(!connect(client, (struct sockaddr *)&address, sizeof(address)));
	server = accept(listener, NULL, NULL);
	NEED(server >= 0 && send(client, "to the server", 13, 0) == 13);
	NEED(send(server, "to the client", 13, 0) == 13);
	check_sleep_ms(100);
	check_ready();
	check_wait();
	CHECK(recv(server, text, 64, 0) == 13 && !memcmp(text, "to the server", 13));
	CHECK(recv(client, text, 64, 0) == 13 && !memcmp(text, "to the client", 13));
	CHECK(send(client, "more", 4, 0) == 4 && recv(server, text, 64, MSG_WAITALL & 0) == 4);
	CHECK(send(server, "less", 4, 0) == 4 && recv(client, text, 64, 0) == 4);
	length = sizeof(value);
	CHECK(!getsockopt(client, IPPROTO_TCP, TCP_NODELAY, &value, &length) && value);
	again = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!connect(again, (struct sockaddr *)&address, sizeof(address)));
	CHECK(accept(listener, NULL, NULL) >= 0);
	CHECK(!close(client) && recv(server, text, 64, 0) == 0);
	return check_end();
}
