// SPDX-License-Identifier: GPL-2.0
/*
 * A pipeline of three processes, with bytes under way in both pipes.
 */
#include <sys/wait.h>

#include "check.h"

#define TOTAL	20000

static int pass(int from, int to)
{
	uint32_t number;

	while (read(from, &number, 4) == 4) {
		number++;
		if (write(to, &number, 4) != 4)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int first[2], second[2], status;
	uint32_t number, expected = 1;
	pid_t writer, middle;

	check_begin(argc, argv);
	NEED(!pipe(first) && !pipe(second));
	writer = fork();
	if (!writer) {
		for (number = 0; number < TOTAL; number++)
			if (write(first[1], &number, 4) != 4)
				_exit(1);
		_exit(0);
	}
	close(first[1]);
	middle = fork();
	if (!middle) {
		close(second[0]);
		_exit(pass(first[0], second[1]));
	}
	close(first[0]);
	close(second[1]);
	for (int i = 0; i < 500; i++)
		NEED(read(second[0], &number, 4) == 4 && number == expected++);
	check_ready();
	check_wait();
	while (read(second[0], &number, 4) == 4 && number == expected)
		expected++;
	CHECK(expected == TOTAL + 1);
	CHECK(waitpid(writer, &status, 0) == writer && status == 0);
	CHECK(waitpid(middle, &status, 0) == middle && status == 0);
	return check_end();
}
