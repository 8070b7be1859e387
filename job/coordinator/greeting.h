/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How mpirun's coordinator and the daemon of a node authenticate each other, by the
 * secret of the job, which is never sent:
 *
 *	root → daemon	CHALLENGE	a random number
 *	daemon → root	NODE		another one, a proof over both, the node's name
 *	root → daemon	WELCOME		a proof over the same
 *
 * Both then seal what they write, with keys derived from the secret and the
 * two numbers: a recorded greeting or message cannot be replayed.
 *
 * CHALLENGE and NODE carry the sender's version, NODE in the header's id,
 * and keep their form in later versions, so that a mismatch can be reported.
 */
#ifndef JOB_GREETING_H
#define JOB_GREETING_H

#include "job/coordinator/wire.h"

#define GREETING_VERSION	2	/* release 0.1.0 has this one and puts 0 into NODE */
#define GREETING_NUMBER		16	/* bytes */
#define GREETING_NAME_MAX	256	/* with its NUL */
#define GREETING_MAX		4096	/* bytes that a stranger may send before it is known */

struct greeting_challenge {
	uint32_t version;
	uint8_t number[GREETING_NUMBER];
};

struct greeting_node {
	uint8_t number[GREETING_NUMBER];
	uint8_t proof[SEAL_KEY];
	char name[];			/* of the node; NUL */
};

/* In mpirun: sends CHALLENGE on a new connection.  0 or -errno. */
int greeting_challenge(struct wire *w, struct greeting_challenge *challenge);

/*
 * Its answer: 0 with the node's name (malloc()ed), and the connection is sealed, WELCOME queued;
 * -EPERM: it does not know the secret; -EPROTONOSUPPORT, with the name: it does, but is of another
 * version, h->id; -ENOMEM.
 */
int greeting_take(struct wire *w, const struct greeting_challenge *challenge, const char *secret,
		  const struct wire_header *h, const uint8_t *data, char **name);

/*
 * In a daemon: waits for mpirun, a few seconds at most for each message, and opens the
 * connection, whose descriptor it takes over if it returns 0.  -EACCES: the other end
 * does not know the secret; -EPROTO: it is not KCR; -EPROTONOSUPPORT with a
 * message (report.h): it is of another version; or -errno of the connection.
 */
int greeting_daemon(struct wire *w, int fd, const char *secret, const char *name);

#endif /* JOB_GREETING_H */
