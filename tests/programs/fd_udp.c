// SPDX-License-Identifier: GPL-2.0
/*
 * UDP sockets: bound, connected, with a datagram that has arrived.
 */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "check.h"

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET }, now;
	socklen_t length = sizeof(address);
	int bound, connected;
	char text[64];

	check_begin(argc, argv);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bound = socket(AF_INET, SOCK_DGRAM, 0);
	connected = socket(AF_INET, SOCK_DGRAM, 0);
	NEED(bound >= 0 && !bind(bound, (struct sockaddr *)&address, sizeof(address)));
	NEED(!getsockname(bound, (struct sockaddr *)&address, &length));
	NEED(!connect(connected, (struct sockaddr *)&address, sizeof(address)));
	check_ready();
	check_wait();
	length = sizeof(now);
	CHECK(!getsockname(bound, (struct sockaddr *)&now, &length) && now.sin_port == address.sin_port);
	CHECK(send(connected, "datagram", 8, 0) == 8);
	CHECK(recv(bound, text, 64, 0) == 8 && !memcmp(text, "datagram", 8));
	return check_end();
}
