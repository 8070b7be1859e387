// SPDX-License-Identifier: GPL-2.0
/*
 * A named pipe with both ends open and contents.
 */
#include "check.h"

int main(int argc, char **argv)
{
	char path[64], text[16] = "";
	int reader, writer;

	check_begin(argc, argv);
	snprintf(path, sizeof(path), "/tmp/kcr-fifo.%d", getpid());
	NEED(!mkfifo(path, 0600));
	reader = open(path, O_RDONLY | O_NONBLOCK);
	writer = open(path, O_WRONLY);
	NEED(reader >= 0 && writer >= 0 && write(writer, "in it", 5) == 5);
	check_ready();
	check_wait();
	CHECK(read(reader, text, 16) == 5 && !memcmp(text, "in it", 5));
	CHECK(read(reader, text, 16) < 0 && errno == EAGAIN);
	CHECK(write(writer, "more", 4) == 4 && read(reader, text, 16) == 4);
	CHECK(open(path, O_WRONLY | O_NONBLOCK) >= 0);
	CHECK(!unlink(path));
	return check_end();
}
