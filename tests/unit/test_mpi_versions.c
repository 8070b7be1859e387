// SPDX-License-Identifier: GPL-2.0
/*
 * Ranks, daemons and an mpirun of several releases: HELLO of release 0.1.0 and of later
 * ones is understood, a rank that cannot be served is refused by name, and a message
 * of a type that its receiver does not know changes nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mpi-plugin/hook/rank.c"

#include "job/coordinator/node_internal.h"
#include "job/request.h"
#include "mpirun.h"

#define RANKS	2
#define ADDRESS	"address of rank "
#define UNKNOWN	4711		/* a type of a later release */

/* ---- HELLO, to mpirun ------------------------------------------------------------------- */

/* What follows the address; its first `length` bytes are sent. */
struct told {
	struct wire_version version;
	uint32_t later;			/* of a release to come */
};

static void hello(struct wire *w, uint32_t rank, bool restarted, const struct told *told,
		  size_t length)
{
	struct wire_hello head = { .pid = 1, .top = 1, .size = RANKS, .restarted = restarted };
	uint8_t message[256];
	size_t end = sizeof(head);

	if (restarted)
		head.address_length = sprintf((char *)message + end, ADDRESS "%u", rank);
	end += head.address_length;
	memcpy(message, &head, sizeof(head));
	if (length)
		memcpy(message + end, told, length);
	wire_send(w, WIRE_HELLO, rank, 0, message, end + length);
}

/* The next message from mpirun, which comes within a few seconds; its type, 0: the end. */
static uint32_t next(struct wire *w, struct wire_header *h, const uint8_t **data)
{
	struct pollfd p = { w->fd, POLLIN, 0 };
	int got, err = 0;

	while (!(got = wire_next(w, h, data)) && err >= 0) {
		assert_int_equal(poll(&p, 1, 10000), 1);
		err = wire_fill_once(w);
	}
	assert_true(got >= 0);
	return got ? h->type : 0;
}

static void check_address(const uint8_t **data, uint32_t rank)
{
	struct wire_address head;
	char expected[64];

	memcpy(&head, *data, sizeof(head));
	*data += sizeof(head);
	assert_int_equal(head.rank, rank);
	assert_int_equal(head.length, sprintf(expected, ADDRESS "%u", rank));
	assert_memory_equal(*data, expected, head.length);
	*data += head.length;
}

/* Restored ranks of release 0.1.0, of this one and of a later one. */
static void all_served(void **state)
{
	const struct told own = { .version = { WIRE_VERSION, WIRE_CAN_SAVE | WIRE_CAN_MOVE } };
	const struct told later = { { WIRE_VERSION + 1, ~0u }, 7 };
	const size_t length[] = { 0, sizeof(own.version), sizeof(later) };
	const uint8_t *data, *end;
	struct wire_header h;
	struct wire w;

	(void)state;
	daemon_comes(&w, job.secret, 5);
	for (int i = 0; i < 3; i++) {
		hello(&w, 0, true, i == 2 ? &later : &own, length[i]);
		hello(&w, 1, true, i == 2 ? &own : &later, length[2 - i]);
		assert_int_equal(next(&w, &h, &data), WIRE_ADDRESSES);
		end = data + h.length;
		check_address(&data, 0);
		check_address(&data, 1);
		assert_ptr_equal(data, end);
	}
	wire_close(&w);
}

/* A restored rank of a release that takes the addresses otherwise: the job ends. */
static void not_restarted(void **state)
{
	const struct told told = { .version = { WIRE_VERSION + 6, WIRE_CAN_SAVE } };
	const uint8_t *data;
	struct wire_header h;
	struct wire w;

	(void)state;
	daemon_comes(&w, job.secret, 5);
	hello(&w, 0, true, NULL, 0);
	hello(&w, 1, true, &told, sizeof(told.version));
	assert_int_equal(next(&w, &h, &data), 0);
	mpirun_says("KCR: rank 1 cannot be restarted: its hook/cr has version 7 of the messages, "
		    "mpirun has version 1: install the release of KCR that has saved it, or a later "
		    "one, on all nodes\n");
	wire_close(&w);
}

/* A rank that is saved otherwise runs, and a request says which one it is. */
static void not_saved(void **state)
{
	const struct told told = { .version = { WIRE_VERSION + 6, WIRE_CAN_MOVE } };
	struct job_request request = { .path = (char *)"/nowhere/x.kcr", .keep = 1 };
	struct job_answer answer = { .code = EBUSY };
	double end = now() + 10;
	struct wire w;

	(void)state;
	daemon_comes(&w, job.secret, 5);
	hello(&w, 0, false, &told, sizeof(told.version));
	hello(&w, 1, false, NULL, 0);
	while (answer.code == EBUSY && now() < end) {
		int fd = job_connect(mpirun);

		job_answer_free(&answer);
		assert_int_equal(job_ask(fd, &request, &answer), 0);
		close(fd);
	}
	assert_int_equal(answer.code, ENOTSUP);
	assert_string_equal(answer.message, "rank 0 cannot be saved: its hook/cr has version 7 of "
			    "the messages, mpirun has version 1: install the same release of KCR on "
			    "all nodes");
	job_answer_free(&answer);
	wire_close(&w);
}

/* ---- messages of other releases ------------------------------------------------------------ */

static void unknown_to_mpirun(void **state)
{
	const uint8_t *data;
	struct wire_header h;
	struct wire w;

	(void)state;
	daemon_comes(&w, job.secret, 5);
	wire_send(&w, UNKNOWN, 0, 0, "text", 5);
	hello(&w, 0, true, NULL, 0);
	wire_send(&w, UNKNOWN, 0, 0, NULL, 0);
	wire_send(&w, UNKNOWN, WIRE_ALL, 1, "text", 5);
	hello(&w, 1, true, NULL, 0);
	assert_int_equal(next(&w, &h, &data), WIRE_ADDRESSES);
	wire_close(&w);
}

/* The next message at this end of a pair, waited for. */
static void expect(int fd, uint32_t type, uint32_t rank, const void *text, size_t length)
{
	struct wire_header h;
	uint8_t *data;

	assert_int_equal(wire_read(fd, &h, &data, 1000), 0);
	assert_int_equal(h.type, type);
	assert_int_equal(h.rank, rank);
	assert_int_equal(h.length, length);
	if (length)
		assert_memory_equal(data, text, length);
	free(data);
}

/* The daemon of a node passes it on in either direction. */
static void unknown_to_daemon(void **state)
{
	const struct wire_header down = { 5, UNKNOWN, WIRE_ALL, 0 }, up = { 5, UNKNOWN, 1, 0 };
	const uint32_t asker = 1;
	struct wire_header prepare = { sizeof(asker), WIRE_PREPARE, WIRE_ALL, 1 };
	struct member member = { .rank = 1, .dump.fd = -1 }, *members[] = { &member };
	struct node node = { .member = members, .nr_members = 1, .launch.fd = -1 };
	int root_ends[2], rank_ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, root_ends), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, rank_ends), 0);
	wire_open(&node.root, root_ends[0]);
	wire_open(&member.wire, rank_ends[0]);
	node_from_root(&node, &down, (const uint8_t *)"down");
	expect(rank_ends[1], UNKNOWN, 1, "down", 5);
	node_from_member(&node, &member, &up, (const uint8_t *)"upup");
	expect(root_ends[1], UNKNOWN, 1, "upup", 5);
	node_from_root(&node, &prepare, (const uint8_t *)&asker);
	expect(rank_ends[1], WIRE_PREPARE, 1, &asker, sizeof(asker));
	wire_close(&node.root);
	wire_close(&member.wire);
	close(root_ends[1]);
	close(rank_ends[1]);
}

/* A rank drops it, and answers what comes next. */
static void unknown_to_rank(void **state)
{
	const struct wire_header unknown = { 5, UNKNOWN, 0, 3 }, drains = { 0, WIRE_DRAIN, 0, 3 };
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	self.fd = ends[0];
	self.size = 1;
	act(&unknown, (const uint8_t *)"text");
	act(&drains, NULL);
	expect(ends[1], WIRE_DRAINED, 0, NULL, 0);
	close(ends[0]);
	close(ends[1]);
}

/* What this release's rank says of itself, as release 0.1.0 reads it and as this one does. */
static void own_hello(void **state)
{
	const struct launcher launcher = { .restart = true, .top = 42 };
	struct wire_version version;
	struct wire_header h;
	struct wire_hello head;
	uint8_t *data;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	self.fd = ends[0];
	self.size = RANKS;
	assert_int_equal(say_hello(&launcher, "where", 5), 0);
	assert_int_equal(wire_read(ends[1], &h, &data, 1000), 0);
	assert_int_equal(h.type, WIRE_HELLO);
	assert_int_equal(h.length, 20 + 5 + sizeof(version));
	memcpy(&head, data, 20);
	assert_int_equal(head.top, 42);
	assert_int_equal(head.size, RANKS);
	assert_int_equal(head.address_length, 5);
	assert_memory_equal(data + 20, "where", 5);
	memcpy(&version, data + 25, sizeof(version));
	assert_int_equal(version.number, WIRE_VERSION);
	assert_int_equal(version.can, WIRE_CAN_SAVE | WIRE_CAN_MOVE);
	free(data);
	close(ends[0]);
	close(ends[1]);
}

#define WITH_MPIRUN(test) cmocka_unit_test_setup_teardown(test, start_heard_mpirun, end_mpirun)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_MPIRUN(all_served), WITH_MPIRUN(not_restarted), WITH_MPIRUN(not_saved),
		WITH_MPIRUN(unknown_to_mpirun), cmocka_unit_test(unknown_to_daemon),
		cmocka_unit_test(unknown_to_rank), cmocka_unit_test(own_hello),
	};

	return seal_init() ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
