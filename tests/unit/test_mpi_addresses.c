// SPDX-License-Identifier: GPL-2.0
/*
 * Where ranks are after a restart: mpirun answers when all are back, and gives what is asked
 * for; a daemon asks once for all its ranks; a rank goes on when it has its peers, and takes
 * an answer between the steps of a checkpoint.  Ranks and daemons that do not ask get
 * the addresses of all.
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

#define RANKS	3
#define ADDRESS	10		/* bytes: of rank N, "address N" */

/* ---- both ends of a connection ----------------------------------------------------------- */

/* HELLO and, as this release's ranks do, WHERE. */
static void restored(struct wire *w, uint32_t rank, bool asks)
{
	const struct wire_version version = { WIRE_VERSION, WIRE_CAN_0 | WIRE_CAN_FIND };
	struct {
		struct wire_hello head;
		char rest[ADDRESS + sizeof(version)];
	} hello = { .head = { 1, 1, RANKS, true, ADDRESS } };

	sprintf(hello.rest, "address %u", rank);
	memcpy(hello.rest + ADDRESS, &version, sizeof(version));
	wire_send(w, WIRE_HELLO, rank, 0, &hello, sizeof(hello) - (asks ? 0 : sizeof(version)));
}

static void asks_where(struct wire *w, uint32_t asker, const uint32_t *rank, uint32_t count)
{
	wire_send(w, WIRE_WHERE, asker, 0, rank, count * sizeof(*rank));
}

/* The next message within a few seconds, which is this one. */
static const uint8_t *next(struct wire *w, uint32_t type, struct wire_header *h)
{
	struct pollfd p = { w->fd, POLLIN, 0 };
	const uint8_t *data;
	int got;

	while (!(got = wire_next(w, h, &data))) {
		assert_int_equal(poll(&p, 1, 10000), 1);
		assert_true(wire_fill_once(w) >= 0);
	}
	assert_int_equal(got, 1);
	assert_int_equal(h->type, type);
	return data;
}

static void nothing_comes(struct wire *w)
{
	struct pollfd p = { w->fd, POLLIN, 0 };
	struct wire_header h;
	const uint8_t *data;

	assert_int_equal(wire_next(w, &h, &data), 0);
	assert_int_equal(poll(&p, 1, 100), 0);
}

/* The next message has the addresses of these ranks, in this order. */
static void has_addresses(struct wire *w, uint32_t type, const uint32_t *rank, uint32_t count)
{
	struct wire_header h;
	const uint8_t *data = next(w, type, &h);
	struct wire_address head;
	char expected[64];

	assert_int_equal(h.length, count * (sizeof(head) + ADDRESS));
	for (uint32_t i = 0; i < count; i++, data += sizeof(head) + ADDRESS) {
		memcpy(&head, data, sizeof(head));
		sprintf(expected, "address %u", rank[i]);
		assert_int_equal(head.rank, rank[i]);
		assert_int_equal(head.length, ADDRESS);
		assert_memory_equal(data + sizeof(head), expected, ADDRESS);
	}
}

static void has_ranks(struct wire *w, uint32_t asker, const uint32_t *rank, uint32_t count)
{
	struct wire_header h;
	const uint8_t *data = next(w, WIRE_WHERE, &h);

	assert_int_equal(h.rank, asker);
	assert_int_equal(h.length, count * sizeof(*rank));
	if (count)
		assert_memory_equal(data, rank, h.length);
}

#define LIST(...)	((const uint32_t[]){ __VA_ARGS__ }), \
			sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t)

/* ---- mpirun --------------------------------------------------------------------------------- */

static int try_to_save(void)
{
	struct job_request request = { .path = (char *)"/nowhere/x.kcr", .keep = 1 };
	struct job_answer answer = { 0 };
	int fd = job_connect(mpirun), code;

	assert_int_equal(job_ask(fd, &request, &answer), 0);
	close(fd);
	code = answer.code;
	job_answer_free(&answer);
	return code;
}

static void asked_for(void **state)
{
	struct wire_header h;
	struct wire one, other;

	(void)state;
	daemon_comes(&one, job.secret, 5);
	daemon_comes(&other, job.secret, 5);
	restored(&one, 0, true);
	restored(&one, 1, true);
	nothing_comes(&one);
	restored(&other, 2, true);
	next(&one, WIRE_BACK, &h);
	next(&other, WIRE_BACK, &h);
	asks_where(&one, WIRE_ALL, LIST(2));
	has_addresses(&one, WIRE_FOUND, LIST(2));
	assert_int_equal(try_to_save(), EBUSY);
	asks_where(&other, WIRE_ALL, NULL, 0);
	has_addresses(&other, WIRE_FOUND, NULL, 0);
	assert_int_equal(try_to_save(), ENOENT);	/* that there is no such folder comes later */
	asks_where(&other, WIRE_ALL, LIST(1, RANKS, WIRE_ALL, 0));
	asks_where(&other, WIRE_ALL, LIST(2));
	has_addresses(&other, WIRE_FOUND, LIST(1, 0));
	has_addresses(&other, WIRE_FOUND, LIST(2));
	nothing_comes(&one);
	wire_close(&one);
	wire_close(&other);
}

/* A rank that does not ask, one whose daemon does not, and one that does. */
static void all_for_some(void **state)
{
	struct wire old_rank, old_daemon, other;
	struct wire_header h;

	(void)state;
	daemon_comes(&old_rank, job.secret, 5);
	daemon_comes(&old_daemon, job.secret, 5);
	daemon_comes(&other, job.secret, 5);
	restored(&old_rank, 0, false);
	restored(&old_daemon, 1, true);
	asks_where(&old_daemon, 1, LIST(0, 2));
	usleep(100000);
	restored(&other, 2, true);
	has_addresses(&old_rank, WIRE_ADDRESSES, LIST(0, 1, 2));
	has_addresses(&old_daemon, WIRE_ADDRESSES, LIST(0, 1, 2));
	next(&other, WIRE_BACK, &h);
	nothing_comes(&other);
	wire_close(&old_rank);
	wire_close(&old_daemon);
	wire_close(&other);
}

/* The daemon that does not ask passes on what its rank asks when all are back already. */
static void all_late(void **state)
{
	struct wire_header h;
	struct wire w;

	(void)state;
	daemon_comes(&w, job.secret, 5);
	for (uint32_t i = 0; i < RANKS; i++)
		restored(&w, i, true);
	next(&w, WIRE_BACK, &h);
	asks_where(&w, 1, LIST(2));
	has_addresses(&w, WIRE_ADDRESSES, LIST(0, 1, 2));
	asks_where(&w, 2, LIST(1));
	nothing_comes(&w);
	wire_close(&w);
}

/* ---- a daemon ------------------------------------------------------------------------------- */

static struct {
	struct node node;
	struct member member[2], *members[2];
	struct wire root, rank[2];	/* the other ends; the members are ranks 1 and 2 */
} here;

static void pair(struct wire *one, struct wire *other)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	wire_open(one, ends[0]);
	wire_open(other, ends[1]);
}

static int start_daemon(void **state)
{
	(void)state;
	memset(&here, 0, sizeof(here));
	here.node = (struct node){ .member = here.members, .nr_members = 2, .launch.fd = -1 };
	pair(&here.node.root, &here.root);
	for (int i = 0; i < 2; i++) {
		here.members[i] = &here.member[i];
		here.member[i].rank = i + 1;
		here.member[i].dump.fd = -1;
		pair(&here.member[i].wire, &here.rank[i]);
	}
	return 0;
}

static int end_daemon(void **state)
{
	(void)state;
	node_addresses_free(&here.node);
	wire_close(&here.node.root);
	wire_close(&here.root);
	for (int i = 0; i < 2; i++) {
		wire_close(&here.member[i].wire);
		wire_close(&here.rank[i]);
	}
	return 0;
}

/* What this rank has sent, or mpirun (NULL). */
static void take(struct member *m)
{
	struct wire *w = m ? &m->wire : &here.node.root;
	struct wire_header h;
	const uint8_t *data;

	assert_int_equal(wire_fill(w), 0);
	while (wire_next(w, &h, &data) == 1) {
		if (m)
			node_from_member(&here.node, m, &h, data);
		else
			node_from_root(&here.node, &h, data);
	}
}

static void rank_asks(int i, const uint32_t *rank, uint32_t count)
{
	asks_where(&here.rank[i], i + 1, rank, count);
	take(&here.member[i]);
}

static void rank_comes(int i)
{
	struct wire_header h;

	restored(&here.rank[i], i + 1, true);
	take(&here.member[i]);
	next(&here.root, WIRE_HELLO, &h);
}

static void root_says(uint32_t type)
{
	const uint32_t asker = WIRE_NOBODY;

	wire_send(&here.root, type, WIRE_ALL, 1, &asker, type == WIRE_PREPARE ? sizeof(asker) : 0);
	take(NULL);
}

static void root_answers(const uint32_t *rank, uint32_t count)
{
	uint8_t data[256], *at = data;

	for (uint32_t i = 0; i < count; i++) {
		struct wire_address head = { rank[i], ADDRESS };

		memcpy(at, &head, sizeof(head));
		sprintf((char *)at + sizeof(head), "address %u", rank[i]);
		at += sizeof(head) + ADDRESS;
	}
	wire_send(&here.root, WIRE_FOUND, WIRE_ALL, 1, data, at - data);
	take(NULL);
}

/* Once for all its ranks, and not for these. */
static void asks_once(void **state)
{
	struct wire_header h;

	(void)state;
	rank_comes(0);
	rank_asks(0, LIST(0, 2, 7));
	rank_comes(1);
	rank_asks(1, LIST(7, 1, 8));
	nothing_comes(&here.root);
	root_says(WIRE_BACK);
	has_ranks(&here.root, WIRE_ALL, LIST(0, 7, 8));
	root_says(WIRE_PREPARE);		/* waits until they know their peers */
	nothing_comes(&here.rank[0]);
	root_answers(LIST(0, 7, 8));
	has_addresses(&here.rank[0], WIRE_FOUND, LIST(0, 2, 7));
	has_addresses(&here.rank[1], WIRE_FOUND, LIST(7, 1, 8));
	next(&here.rank[0], WIRE_PREPARE, &h);
	next(&here.rank[1], WIRE_PREPARE, &h);

	rank_asks(0, LIST(8));			/* known */
	has_addresses(&here.rank[0], WIRE_FOUND, LIST(8));
	rank_asks(0, LIST(9));
	rank_asks(1, LIST(9));			/* asked for already */
	rank_asks(1, LIST(5, WIRE_ALL));
	has_ranks(&here.root, WIRE_ALL, LIST(9));
	has_ranks(&here.root, WIRE_ALL, LIST(5));
	nothing_comes(&here.rank[1]);
	root_answers(LIST(9));
	has_addresses(&here.rank[0], WIRE_FOUND, LIST(9));
	has_addresses(&here.rank[1], WIRE_FOUND, LIST(9));
	root_answers(NULL, 0);			/* unknown to mpirun, too */
	has_addresses(&here.rank[1], WIRE_FOUND, NULL, 0);
	nothing_comes(&here.root);
}

/* A rank that asks after the others of its node; no peers on other nodes. */
static void late(void **state)
{
	(void)state;
	rank_comes(0);
	rank_comes(1);
	rank_asks(0, LIST(2));
	root_says(WIRE_BACK);
	has_ranks(&here.root, WIRE_ALL, NULL, 0);
	root_says(WIRE_PREPARE);
	root_answers(NULL, 0);
	has_addresses(&here.rank[0], WIRE_FOUND, LIST(2));
	nothing_comes(&here.rank[0]);
	rank_asks(1, LIST(1));
	has_addresses(&here.rank[1], WIRE_FOUND, LIST(1));
	next(&here.rank[0], WIRE_PREPARE, &(struct wire_header){ 0 });
}

/* Its mpirun does not take questions. */
static void told_all(void **state)
{
	struct wire_header h;

	(void)state;
	rank_comes(0);
	rank_asks(0, LIST(2));
	root_says(WIRE_ADDRESSES);
	next(&here.rank[0], WIRE_ADDRESSES, &h);
	root_says(WIRE_PREPARE);
	next(&here.rank[0], WIRE_PREPARE, &h);
	nothing_comes(&here.root);
}

/* ---- a rank ------------------------------------------------------------------------------- */

static struct {
	uint32_t set[8];
	int nr_set, opened, tries;
	int (*ask)(uint32_t rank);
} btl;

static int set(uint32_t rank, const void *address, size_t length)
{
	(void)address;
	assert_int_equal(length, ADDRESS);
	btl.set[btl.nr_set++] = rank;
	return 0;
}

static int open_gate(void)
{
	btl.opened++;
	return 0;
}

/* A thread is inside until it knows where rank 5 is. */
static int close_it(int timeout_ms)
{
	(void)timeout_ms;
	btl.tries++;
	return btl.nr_set && btl.set[btl.nr_set - 1] == 5 ? 0 : -ETIMEDOUT;
}

static int reconnect(int timeout_ms)
{
	(void)timeout_ms;
	return 0;
}

static int marks(struct mca_btl_cr_bookmark *entry, int max)
{
	assert_true(max >= 2);
	entry[0] = (struct mca_btl_cr_bookmark){ .rank = 1, .sent = 4 };
	entry[1] = (struct mca_btl_cr_bookmark){ .rank = 2, .received = 4 };
	return 2;
}

static int source(int (*ask)(uint32_t rank))
{
	btl.ask = ask;
	return 0;
}

static struct mca_btl_cr_control control = {
	.size = sizeof(control), .bookmarks = marks, .address_set = set, .reconnect = reconnect,
	.gate_open = open_gate, .gate_close = close_it, .address_source = source,
};

static struct wire to_rank;		/* the daemon's end */

static int start_rank(void **state)
{
	int ends[2];

	(void)state;
	memset(&btl, 0, sizeof(btl));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return -1;
	self.fd = ends[0];
	self.size = RANKS;
	self.btl = &control;
	self.gate_closed = self.suspended = self.apart = true;
	wire_open(&to_rank, ends[1]);
	return 0;
}

static int end_rank(void **state)
{
	(void)state;
	close(self.fd);
	self.fd = -1;
	self.btl = NULL;
	self.gate_closed = self.suspended = self.apart = false;
	wire_close(&to_rank);
	return 0;
}

static void tells(uint32_t rank)
{
	struct {
		struct wire_address head;
		char address[ADDRESS];
	} found = { .head = { rank, ADDRESS } };

	wire_send(&to_rank, WIRE_FOUND, 0, 0, &found, sizeof(found));
}

static void acts(void)
{
	struct wire_header h;
	uint8_t *data;

	assert_int_equal(wire_read(self.fd, &h, &data, 1000), 0);
	act(&h, data);
	free(data);
}

/* It says that it asks, and whom it needs; what it is told then opens the gate, */
static void goes_on(void **state)
{
	const struct launcher launcher = { .restart = true, .top = 42 };
	struct wire_version version;
	struct wire_header h;

	(void)state;
	assert_int_equal(say_hello(&launcher, "address 0", ADDRESS), 0);
	memcpy(&version, next(&to_rank, WIRE_HELLO, &h) + sizeof(struct wire_hello) + ADDRESS,
	       sizeof(version));
	assert_int_equal(version.can, WIRE_CAN_0 | WIRE_CAN_FIND);
	assert_int_equal(ask_for_peers(), 0);
	has_ranks(&to_rank, 0, LIST(1, 2));

	wire_send(&to_rank, WIRE_CONTINUE, 0, 1, NULL, 0);	/* of a checkpoint given up */
	acts();
	next(&to_rank, WIRE_CONTINUED, &h);
	assert_int_equal(btl.opened, 0);
	tells(2);
	acts();
	assert_int_equal(btl.opened, 1);
	assert_false(self.apart);
	btl.ask(5);
	has_ranks(&to_rank, 0, LIST(5));
	tells(5);
	acts();
	assert_int_equal(btl.nr_set, 2);
	assert_int_equal(btl.opened, 1);
}

/* and later an answer lets the thread go that the gate waits for. */
static void between(void **state)
{
	(void)state;
	self.apart = self.gate_closed = self.suspended = false;
	tells(4);
	tells(5);
	assert_int_equal(close_gate(), 0);
	assert_int_equal(btl.nr_set, 2);
	assert_false(called_off());
	wire_send(&to_rank, WIRE_CONTINUE, 0, 1, NULL, 0);
	assert_true(called_off());
	btl.set[1] = 0;
	btl.tries = 0;
	assert_int_equal(close_gate(), -ETIMEDOUT);
	assert_int_equal(btl.tries, 0);
}

/* A btl/cr of release 0.1.0. */
static void does_not_ask(void **state)
{
	const struct launcher launcher = { .restart = true };
	struct wire_version version;
	struct wire_header h;

	(void)state;
	control.size = offsetof(struct mca_btl_cr_control, address_source);
	assert_int_equal(say_hello(&launcher, NULL, 0), 0);
	assert_int_equal(ask_for_peers(), 0);
	control.size = sizeof(control);
	memcpy(&version, next(&to_rank, WIRE_HELLO, &h) + sizeof(struct wire_hello), sizeof(version));
	assert_int_equal(version.can, WIRE_CAN_0);
	nothing_comes(&to_rank);
}

#define WITH(what, test) cmocka_unit_test_setup_teardown(test, start_##what, end_##what)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(mpirun, asked_for), WITH(mpirun, all_for_some), WITH(mpirun, all_late),
		WITH(daemon, asks_once), WITH(daemon, late), WITH(daemon, told_all),
		WITH(rank, goes_on), WITH(rank, between), WITH(rank, does_not_ask),
	};

	return seal_init() ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
