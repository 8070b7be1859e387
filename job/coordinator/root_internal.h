/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of the coordinator, shared by its parts: root.c (the thread, the
 * nodes), strangers.c (connections not yet authenticated), versions.c (ranks of
 * other releases), phases.c (a checkpoint), hung.c, bookmarks.c, result.c, warnings.c,
 * clients.c, programs.c, trigger.c and periodic.c (requests), addresses.c, descriptors.c,
 * say.c.
 * One thread owns it.
 */
#ifndef JOB_ROOT_INTERNAL_H
#define JOB_ROOT_INTERNAL_H

#include <poll.h>

#include "job/coordinator/root.h"
#include "job/coordinator/wire.h"
#include "job/destination.h"
#include "job/request.h"

/* In this order: LOAD once after a restart, CHECK and COPY only with copies, and then RESUME before DUMP. */
enum phase {
	PHASE_IDLE, PHASE_LOAD, PHASE_CHECK, PHASE_GATE, PHASE_DRAIN, PHASE_COPY, PHASE_DUMP, PHASE_RESUME,
	PHASE_SYNC, PHASE_ABORT,
};

struct root_node {
	struct wire wire;
	uint32_t number;		/* its place in root->node */
	char *name;
	bool apart;			/* its ranks are restored, and do not know their peers yet */
	bool takes_all;			/* a rank or the daemon is of a release that does not ask */
	bool wants_all;			/* the addresses of all ranks, now */
	struct question *question, **last;	/* addresses.c */
	bool answers;			/* WIRE_ALIVE */
	bool awaited;			/* the phase waits for one of its ranks */
	unsigned int unanswered;	/* looks at it since it was asked for a sign of life */
	short watched;			/* what root->ready reports of it; 0: nothing yet */
};

struct root_rank {
	struct root_node *node;		/* NULL: not connected */
	struct root_node *home;		/* the node it was last connected through */
	bool restarted, leaving, left;
	struct wire_version version;
	bool pending;			/* the phase waits for it */
	bool dumped;			/* its file is complete */
	uint8_t *address;
	uint32_t address_length;
	struct wire_bookmark *bookmark;
	size_t nr_bookmarks;
	struct wire_synced *file;	/* that was written, and those that this needs; or NULL */
	size_t nr_files;
	struct wire_ask *asks;		/* a request of the application, or NULL */
};

struct root {
	struct snapshot *job;		/* the same in all manifests */
	struct root_settings settings;
	char secret[WIRE_SECRET + 1];
	struct wire launch;		/* fd -1: there is none */
	struct root_node **node;
	size_t nr_nodes;
	int ready;			/* epoll(7): many nodes, of which few say something at a time */
	struct root_rank *rank;
	uint32_t nr_ranks;		/* 0: none has connected yet */
	uint32_t nr_present;		/* connected */
	uint32_t nr_asking[2];		/* requesting a checkpoint: together, alone */
	uint32_t nr_restarted;		/* restored, and not all of them are yet */
	bool back;			/* all of them have been restored */
	uint32_t nr_pending;		/* the phase waits for these */
	bool loads;			/* restarted ranks may still lack memory (cr_restart --lazy) */
	bool unable;			/* one of the ranks cannot take part in checkpoints */

	/* The checkpoint under way. */
	enum phase phase;
	uint32_t id;
	uint32_t asker;			/* a rank, WIRE_ALL, or WIRE_NOBODY: a client */
	struct job_request request;
	bool copies;			/* the ranks go on while they are written */
	struct job_destination *destination;
	struct job_answer answer;
	uint64_t deadline_ns;		/* 0: none */
	uint64_t begun_ns, phase_ns;
	uint64_t look_ns;		/* the next look for daemons that hang; 0: not planned */
	uint64_t stopped_ns;		/* the first gate was about to close */
};

/* Queues a message for the daemons of all nodes; the thread writes it before it waits. */
void root_broadcast(struct root *root, uint32_t type, uint32_t rank,
		    const void *data, size_t length);

/* Adds a daemon that has proved to know the secret; takes `w` and `name` over. */
void root_add_node(struct root *root, const struct wire *w, char *name);
/* Handles one message of a daemon, or of a rank through it. */
void root_from_node(struct root *root, struct root_node *n, const struct wire_header *h,
		    const uint8_t *data);

/* ---- strangers.c ---- */
#define STRANGERS_MAX	64
#define LISTENERS_MAX	16

/*
 * Opens a port at each address of these interfaces (separated by commas, NULL or "":
 * all that are up) and at the loopback address; `out` lists all of them, that one last.
 * 0 or -errno.
 */
int strangers_open(const char *interfaces, char *out, size_t room);
void strangers_close(void);		/* the ports, too */
size_t strangers_count(void);
bool strangers_drop_oldest(void);	/* false: there are none */
size_t strangers_watch(struct pollfd *p);	/* fills in at most STRANGERS_MAX + LISTENERS_MAX */
int strangers_patience(void);		/* as phases_patience() */
void strangers_serve(struct root *root, const struct pollfd *p, size_t count);

/* ---- versions.c ---- */
#define VERSIONS_TEXT	256

/* Reads what follows the address in HELLO, `length` bytes, none in release 0.1.0. */
void versions_take(struct root_rank *r, const uint8_t *data, size_t length);
/* Does the rank support `what` (WIRE_CAN_*)?  Otherwise `why` says what the user can do. */
bool versions_can(const struct root *root, const struct root_rank *r, uint32_t what,
		  char why[VERSIONS_TEXT]);

/* ---- phases.c ---- */
/* Begins a checkpoint (takes the request over): 0, or -errno with *why. */
int phases_begin(struct root *root, struct job_request *request, const char **why);
/*
 * Likewise without a client: saved as `path`, of which `keep` are kept, as struct
 * root_settings says.  If all ranks ask (root->asker) they wait for the end in any case, and
 * are not copied.
 */
int phases_begin_own(struct root *root, const char *path, unsigned int keep, const char **why);
/* Handles a rank's answer. */
void phases_answer(struct root *root, struct root_rank *r, const struct wire_header *h,
		   const uint8_t *data);
/* A daemon cannot do its part (WIRE_FAILED, WIRE_ALL). */
void phases_node_failed(struct root *root, const struct root_node *n, const struct wire_header *h,
			const uint8_t *data);
/* Figures of a daemon's ranks (WIRE_FIGURES). */
void phases_figures(struct root *root, const struct wire_header *h, const uint8_t *data);
/* The rank's connection is lost. */
void phases_lost(struct root *root, struct root_rank *r);
/* The daemon's connection is lost, and with it those of its ranks. */
void phases_node_lost(struct root *root, const struct root_node *n);
/* Cancels the checkpoint; the ranks go on.  `text` may be NULL. */
void phases_abort(struct root *root, int code, const char *text);
/* Milliseconds until phases_timeout() is due, -1: never. */
int phases_patience(const struct root *root);
void phases_timeout(struct root *root);

/* ---- hung.c ---- */
#define HUNG_TEXT	512

/* Now and then while a phase waits for daemons: those that hang end it. */
void hung_look(struct root *root);
int hung_patience(const struct root *root);	/* as phases_patience() */
/* The daemon has sent this message. */
void hung_heard(struct root_node *n, const struct wire_header *h);
/* It has not answered when it was asked, and has said nothing since. */
bool hung_is(const struct root_node *n);
/* Says for the user which daemons hang; false: none does. */
bool hung_names(const struct root *root, char text[HUNG_TEXT]);

/* ---- bookmarks.c ---- */
/* Keeps what a rank has answered: 0 or -ENOMEM. */
int bookmarks_take(struct root_rank *r, const struct wire_header *h, const uint8_t *data);
/* Sends DRAIN to all ranks, each with what the others have sent to it: 0 or -ENOMEM. */
int bookmarks_send(struct root *root);
void bookmarks_drop(struct root *root);

/* ---- result.c ---- */
/*
 * Opens root->destination as the request says, which also gets the argument that tells the ranks
 * where the last snapshot of this name has its files, if they may use them.  0 or -errno with a
 * message.
 */
int result_open(struct root *root, struct job_request *request);
/* A rank's files, as told by its daemon (WIRE_SYNCED): 0, -EPROTO or -ENOMEM. */
int result_take(struct root_rank *r, const struct wire_header *h, const uint8_t *data);
/* All files are complete: writes the manifest.  0 or -errno with a message. */
int result_commit(struct root *root);
/* Removes what was not committed. */
void result_close(struct root *root);

/* ---- warnings.c ---- */
/* Adds those that came with DUMPED to the answer. */
void warnings_take(struct root *root, const struct root_rank *r, const struct wire_header *h,
		   const uint8_t *data);

/* ---- addresses.c ---- */
/* A restored rank has connected by this node: if it was the last one, their daemons may ask. */
void addresses_came(struct root *root, struct root_node *n, const struct root_rank *r);
/* A daemon, or a rank by one that does not ask, needs addresses (WIRE_WHERE). */
void addresses_asked(struct root *root, struct root_node *n, const struct wire_header *h,
		     const uint8_t *data);
void addresses_lost(struct root_node *n);	/* its connection */
void addresses_send(struct root *root);		/* to the next nodes; call before waiting */
/* Do the ranks of some nodes not know yet where their peers are? */
bool addresses_wanted(const struct root *root);

/* ---- descriptors.c ---- */
int descriptors_keep(void);		/* 0 or -errno */
/* A new connection (non-blocking), or -errno: -EMFILE: it was closed for lack of descriptors. */
int descriptors_accept(struct root *root, int listener);

/* ---- say.c ---- */
/* From now on through launch/; its descriptor may be -1. */
void say_begin(struct wire *launch);
/* A line for the user, without "KCR: " and newline. */
void say_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- programs.c ---- */
/* The application in this rank asks for a checkpoint (struct wire_ask). */
void programs_ask(struct root *root, struct root_rank *r, const uint8_t *data, size_t length);
/* Begins a waiting request if it can begin now. */
void programs_serve(struct root *root);
/* The rank's connection is lost. */
void programs_lost(struct root *root, struct root_rank *r);
/* Answers the asker, which is then WIRE_NOBODY: an errno, 0: complete. */
void programs_answer(struct root *root, int code);

/* ---- trigger.c ---- */
int trigger_fd(void);			/* readable: the signal has been sent */
void trigger_serve(struct root *root);
/* Prints the outcome on mpirun's standard error, if the signal asked for it. */
void trigger_answer(const struct job_answer *answer);

/* ---- periodic.c ---- */
void periodic_begin(const struct root *root);
int periodic_patience(const struct root *root);	/* as phases_patience() */
/* Begins a checkpoint if one is due. */
void periodic_serve(struct root *root);
/* One has ended, whoever has asked for it: prints why it failed if the interval did. */
void periodic_answer(const struct root *root);

/* ---- clients.c ---- */
#define CLIENTS_MAX	16

int clients_open(void);			/* 0 or -errno */
size_t clients_watch(struct pollfd *p);	/* fills in at most CLIENTS_MAX + 1 */
int clients_patience(void);		/* as phases_patience() */
void clients_serve(struct root *root, const struct pollfd *p, size_t count);
/* Tells the client being served: complete, except for the signal. */
void clients_committed(struct job_answer *answer);
/* Sends it the last answer. */
void clients_answer(const struct job_answer *answer);

/* Descriptors polled besides strangers: trigger, launch/, all nodes in one, clients, listeners. */
#define OWN_FDS		3
#define POLLED_MAX	(OWN_FDS + CLIENTS_MAX + 1 + LISTENERS_MAX)

#endif /* JOB_ROOT_INTERNAL_H */
