/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fuzz_ioctl: attacks /dev/kcr as an ordinary user, with calls that are valid,
 * nearly valid and random, from several threads and processes at once.
 *
 * main.c, as root, runs rounds (round.c): a process of user 1000 that has jobs,
 * targets (target.c) and actors, threads that make calls (request.c,
 * checkpoint.c, restart.c) or overwrite the requests of others.  Two more processes,
 * of root and of user 1001, are attacked all the time and must never be affected
 * (canary.c).  All of them share one memory, `fuzz`, through file descriptor
 * FUZZ_FD, which stays open across exec.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <linux/kcr.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FUZZ_FD		200	/* file descriptor of `fuzz`; the next one: of `setting` */
#define FUZZ_USER	1000
#define FUZZ_STRANGER	1001	/* the other user */

#define WORKERS		4	/* maximum of concurrent rounds */
#define ACTORS		8	/* per round */
#define TARGETS		6	/* per round */
#define JOBS		3	/* per round */
#define CANARIES	2
#define LOGGED		48	/* last calls kept per actor */
#define ERRORS		134

/* Every target and every canary maps a file of its own at this address. */
#define TOKEN		((char *)0x10000000000)
/* The canaries and the set-user-ID program have SECRET_BYTES of secrets here. */
#define SECRET_PLACE	((uint64_t *)0x10000100000)
#define SECRET_BYTES	4096
#define SECRET_FD	201

struct call {			/* log entry */
	uint64_t when;		/* ns; 0: none */
	int32_t result;		/* -errno */
	int32_t process;
	uint32_t number;
	uint32_t words[16];	/* start of the request */
};

struct slot {			/* a target */
	_Atomic uint64_t beats;
	_Atomic int32_t pid;
	uint64_t token;		/* inode number of the file at TOKEN */
};

struct identity { uint64_t device, number; };	/* of a file */

/* Not mapped in rounds, which could spoil it. */
struct canary {
	_Atomic uint64_t beats;
	_Atomic uint32_t signals;
	_Atomic uint64_t longest_ns;	/* longest time without running */
	struct identity secret;		/* its file */
	_Atomic bool ready;
};

/* Fixed before the first round; no one can write to it then. */
struct setting {
	uint64_t seed;
	uint32_t slow;			/* factor by which the machine is slower */
	char program[256];		/* the set-user-ID copy of this */
	int32_t canaries[CANARIES];	/* PIDs */
	struct identity secret[CANARIES];	/* files of the canaries */
	uint64_t module_start, module_size;	/* 0: no coverage */
};

extern const struct setting *setting;

#define FAILED		0x6661696cu	/* in `failed`: another value was not meant */

struct fuzz {
	_Atomic uint32_t nr_calls[256], nr_done[256], errors[256][ERRORS];
	_Atomic uint32_t nr_held, nr_released;	/* with and without HOLD */
	_Atomic uint32_t nr_revived;	/* threads that ran after RESUME */
	_Atomic uint32_t nr_privileged;	/* runs of the set-user-ID program */
	_Atomic uint32_t failed;	/* FAILED, or what a spoiled round has left */
	char failure[256];
	struct slot slots[WORKERS][TARGETS];
	_Atomic int32_t calm[WORKERS];	/* targets only show that they run */
	struct call log[WORKERS][ACTORS][LOGGED];
	_Atomic uint8_t covered[1 << 18];	/* by offset from the module's start */
};

extern struct fuzz *fuzz;

struct random {
	uint64_t state;
};

uint64_t random_next(struct random *random);
uint32_t below(struct random *random, uint32_t limit);
bool chance(struct random *random, uint32_t percent);
uint64_t now_ns(void);
void nap_us(unsigned int us);
/* Resets the signal handlers of a new process. */
void signals_default(void);

/* Shared by the threads of a round. */
struct world {
	int worker;
	_Atomic int jobs[JOBS];
	_Atomic pid_t pids[TARGETS];
	char *arena;			/* requests and buffers that others overwrite … */
	int arena_file;			/* … also in strangers */
	_Atomic bool over;
};

#define ARENA_SIZE	(32 * 4096)
#define FLIPPED		2	/* requests at its start whose PID is flipped */
#define OUT_SIZE	(64 * 4096)

struct actor {
	struct world *world;
	struct random random;
	struct call *log;
	unsigned int logged;
	uint64_t *cover;	/* NULL: none */
	char *out;		/* a buffer of its own, OUT_SIZE */
	bool owner;		/* is it in the process that opened the jobs? */
	int file;		/* to write pages to */
	pid_t tid;
};

/* main.c */
/* Records a failure; the first one counts. */
bool fuzz_has_failed(void);
void fuzz_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* sockets.c */
void sockets_make(void);		/* as root, before anything is created */
int any_packet_socket(struct actor *actor);
int any_socket(struct actor *actor);			/* … of another kind */

/* record.c */
long call(struct actor *actor, int fd, unsigned long number, void *request);
void record_print_log(void);
void record_print(void);
const char *record_missing(void);	/* what was not reached often enough; or NULL */
void cover_init(struct setting *made);	/* as root, before anything is created */
int cover_open(void);			/* as root; -1: none */
void cover_begin(struct actor *actor, int fd);
void cover_print(const char *file);

/* canary.c */
extern struct canary *canaries;
void canaries_start(struct setting *made);	/* and says there who they are */
bool canary_check(void);
void canaries_end(void);

/* target.c */
void target_main(int worker, int number, uint64_t seed) __attribute__((noreturn));
int target_exec(char **argv);		/* main() of the programs that targets exec */

/* request.c */
int any_job(struct actor *actor);
pid_t any_pid(struct actor *actor);
void noise(struct actor *actor);	/* one call, of any kind */
void attack(struct actor *actor);	/* one call against a canary */
void spoil(struct actor *actor);	/* overwrites the memory of others' requests */

/* checkpoint.c */
void checkpoint(struct actor *actor, int job);

/* theft.c */
void steal(struct actor *actor, int job, pid_t member);	/* of a parked job */

/* restart.c */
void restart(struct actor *actor);

/* round.c */
void round_main(int worker, uint64_t seed) __attribute__((noreturn));

#endif /* FUZZ_H */
