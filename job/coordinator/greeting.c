// SPDX-License-Identifier: GPL-2.0
/* Mutual authentication, and the keys for what follows.  See greeting.h. */
#include "job/coordinator/greeting.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "report/report.h"

#define PATIENCE_S	5

static void prove(uint8_t out[SEAL_KEY], const char *secret, const char *purpose,
		  const struct greeting_challenge *challenge, const uint8_t *number,
		  const char *name)
{
	const struct iovec part[] = {
		{ (void *)challenge, sizeof(*challenge) }, { (void *)number, GREETING_NUMBER },
		{ (void *)name, strlen(name) },
	};

	seal_proof(out, secret, WIRE_SECRET, purpose, part, 3);
}

static void seal_both(struct wire *w, const char *secret, bool in_daemon,
		      const struct greeting_challenge *challenge, const uint8_t *number,
		      const char *name)
{
	uint8_t up[SEAL_KEY], down[SEAL_KEY];

	prove(up, secret, "kcr-mpi key to mpirun", challenge, number, name);
	prove(down, secret, "kcr-mpi key to daemon", challenge, number, name);
	wire_seal(w, in_daemon ? down : up, in_daemon ? up : down);
}

/* ---- in mpirun ------------------------------------------------------------------------ */

int greeting_challenge(struct wire *w, struct greeting_challenge *challenge)
{
	int err;

	memset(challenge, 0, sizeof(*challenge));
	challenge->version = GREETING_VERSION;
	err = seal_random(challenge->number, sizeof(challenge->number));
	if (err)
		return err;
	wire_queue(w, WIRE_CHALLENGE, WIRE_ALL, 0, challenge, sizeof(*challenge));
	return wire_flush(w);
}

int greeting_take(struct wire *w, const struct greeting_challenge *challenge, const char *secret,
		  const struct wire_header *h, const uint8_t *data, char **name)
{
	const struct greeting_node *node = (const struct greeting_node *)data;
	uint8_t proof[SEAL_KEY];

	if (h->type != WIRE_NODE || h->length <= sizeof(*node) + 1 ||
	    h->length > sizeof(*node) + GREETING_NAME_MAX || data[h->length - 1])
		return -EPERM;
	prove(proof, secret, "kcr-mpi daemon", challenge, node->number, node->name);
	if (!seal_same(proof, node->proof, sizeof(proof)))
		return -EPERM;
	*name = strdup(node->name);
	if (!*name)
		return -ENOMEM;
	if (h->id && h->id != GREETING_VERSION)
		return -EPROTONOSUPPORT;
	prove(proof, secret, "kcr-mpi mpirun", challenge, node->number, node->name);
	wire_queue(w, WIRE_WELCOME, WIRE_ALL, 0, proof, sizeof(proof));
	seal_both(w, secret, false, challenge, node->number, node->name);
	return 0;
}

/* ---- in a daemon ---------------------------------------------------------------------- */

/* The next message, which has to be this one. */
static int expect(int fd, uint32_t type, void *out, size_t length)
{
	struct wire_header header;
	uint8_t *data;
	int err = wire_read(fd, &header, &data, length);

	if (!err && (header.type != type || header.length != length))
		err = -EPROTO;
	if (!err)
		memcpy(out, data, length);
	free(data);
	return err == -EAGAIN ? -ETIMEDOUT : err;
}

static int introduce(int fd, const char *secret, const char *name,
		     const struct greeting_challenge *challenge, uint8_t *number)
{
	struct {
		struct greeting_node head;
		char name[GREETING_NAME_MAX];
	} answer = { 0 };
	size_t length = strlen(name);
	int err = seal_random(number, GREETING_NUMBER);

	if (err)
		return err;
	memcpy(answer.head.number, number, GREETING_NUMBER);
	memcpy(answer.name, name, length);
	prove(answer.head.proof, secret, "kcr-mpi daemon", challenge, number, answer.name);
	return wire_write(fd, WIRE_NODE, WIRE_ALL, GREETING_VERSION, &answer,
			  sizeof(answer.head) + length + 1);
}

int greeting_daemon(struct wire *w, int fd, const char *secret, const char *name)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	uint8_t number[GREETING_NUMBER], proof[SEAL_KEY], told[SEAL_KEY];
	struct greeting_challenge challenge;
	char own[GREETING_NAME_MAX];
	int err;

	snprintf(own, sizeof(own), "%s", name);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	err = expect(fd, WIRE_CHALLENGE, &challenge, sizeof(challenge));
	if (!err)
		err = introduce(fd, secret, own, &challenge, number);
	if (!err && challenge.version != GREETING_VERSION)
		return report_fail(-EPROTONOSUPPORT, "mpirun has version %" PRIu32 " of the greeting, "
				   "this node's daemon has version %u: install the same release of "
				   "KCR on all nodes", challenge.version, GREETING_VERSION);
	if (!err)
		err = expect(fd, WIRE_WELCOME, told, sizeof(told));
	if (err)
		return err;
	prove(proof, secret, "kcr-mpi mpirun", &challenge, number, own);
	if (!seal_same(proof, told, sizeof(proof)))
		return -EACCES;
	wire_open(w, fd);
	seal_both(w, secret, true, &challenge, number, own);
	return 0;
}
