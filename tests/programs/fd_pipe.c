// SPDX-License-Identifier: GPL-2.0
/*
 * Pipes inside: contents in order, size, packet mode, a full one, one whose writers
 * have gone and one whose readers have.
 */
#include <signal.h>
#include <sys/ioctl.h>

#include "check.h"

int main(int argc, char **argv)
{
	int plain[2], packet[2], full[2], eof[2], broken[2], size, count = 0, again = 0;
	static char block[4096], got[4096];
	char text[64] = "";

	check_begin(argc, argv);
	signal(SIGPIPE, SIG_IGN);
	NEED(!pipe(plain) && !pipe2(packet, O_DIRECT) && !pipe2(full, O_NONBLOCK | O_CLOEXEC));
	NEED(!pipe(eof) && !pipe(broken));
	NEED(fcntl(plain[0], F_SETPIPE_SZ, 1 << 17) == 1 << 17);
	NEED(write(plain[1], "one,", 4) == 4 && write(plain[1], "two", 3) == 3);
	NEED(write(packet[1], "aaa", 3) == 3 && write(packet[1], "bbbb", 4) == 4);
	check_fill(block, sizeof(block), 1);
	while (write(full[1], block, sizeof(block)) == sizeof(block))
		count++;
	NEED(write(eof[1], "last", 4) == 4 && !close(eof[1]) && !close(broken[0]));
	check_ready();
	check_wait();
	CHECK(fcntl(plain[1], F_GETPIPE_SZ) == 1 << 17);
	CHECK(!ioctl(plain[0], FIONREAD, &size) && size == 7);
	CHECK(read(plain[0], text, 64) == 7 && !memcmp(text, "one,two", 7));
	CHECK(fcntl(packet[1], F_GETFL) & O_DIRECT);
	CHECK(read(packet[0], text, 64) == 3 && !memcmp(text, "aaa", 3));
	CHECK(read(packet[0], text, 64) == 4 && !memcmp(text, "bbbb", 4));
	CHECK(fcntl(full[1], F_GETFD) == FD_CLOEXEC);
	CHECK(write(full[1], "x", 1) < 0 && errno == EAGAIN);
	while (read(full[0], got, sizeof(got)) == sizeof(got) && !memcmp(got, block, sizeof(got)))
		again++;
	CHECK(again == count);
	CHECK(write(full[1], "x", 1) == 1);
	CHECK(read(eof[0], text, 64) == 4 && read(eof[0], text, 64) == 0);
	CHECK(write(broken[1], "x", 1) < 0 && errno == EPIPE);
	CHECK(write(plain[1], "more", 4) == 4 && read(plain[0], text, 64) == 4);
	return check_end();
}
