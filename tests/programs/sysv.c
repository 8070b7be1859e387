// SPDX-License-Identifier: GPL-2.0
/*
 * System V semaphores and message queues (sysvipc(7)): IDs, keys, owners, values, who used them
 * last, what the end of a process undoes (SEM_UNDO), and messages.  Arguments: `semaphores`,
 * `queues`; `threads`: several threads undo in common; `loop`: they come and go; `idle`: who used
 * them has ended; `made`: nobody has; `held KEY`: a set that others may want; `sent KEY`: a queue
 * that it may only send to; `zero KEY`: a set that it may only read.  What cannot be saved: `shared`, `several`, `in_memory`.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/wait.h>

#include "check.h"

#define MOST	32767

union argument {
	int value;
	struct semid_ds *status;
	unsigned short *values;
};

struct message {
	long type;
	char text[4000];
};

static void operate(int set, int number, int add, int flags)
{
	struct sembuf operation = { (unsigned short)number, (short)add, (short)flags };

	NEED(!semop(set, &operation, 1));
}

static int value(int set, int number)
{
	return semctl(set, number, GETVAL);
}

static int make_set(key_t key, int count, int mode)
{
	int set = semget(key, count, IPC_CREAT | IPC_EXCL | mode);

	NEED(set >= 0);
	return set;
}

static void drop_set(int set)
{
	CHECK(!semctl(set, 0, IPC_RMID));
}

/* A child that does this with the semaphores, and stays until it is told to end. */
static pid_t child(int set, void (*first)(int set))
{
	int done[2];
	char byte;
	pid_t pid;

	NEED(!pipe(done));
	pid = fork();
	NEED(pid >= 0);
	if (!pid) {
		close(done[0]);
		first(set);
		NEED(write(done[1], "x", 1) == 1);
		close(done[1]);
		for (;;)
			pause();
	}
	close(done[1]);
	NEED(read(done[0], &byte, 1) == 1);
	close(done[0]);
	return pid;
}

static void end(pid_t pid)
{
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
}

/* ---- semaphores ---- */

static void take(int set)
{
	operate(set, 0, -2, SEM_UNDO);
	operate(set, 3, 1, SEM_UNDO);
	operate(set, 4, -7, 0);
}

static void take_more(int set)
{
	operate(set, 0, -1, SEM_UNDO);
	operate(set, 3, -1, 0);		/* so that less is there than is undone */
}

static void semaphores(void)
{
	unsigned short values[] = { 5, 0, MOST, 0, 9, 1 }, now[6];
	int set = make_set(IPC_PRIVATE, 6, 0640), keyed = make_set(0x4b43, 1, 0600);
	pid_t first, second, pids[6];
	struct semid_ds status;

	NEED(!semctl(set, 0, SETALL, (union argument){ .values = values }));
	operate(keyed, 0, 3, SEM_UNDO);
	operate(set, 5, -1, SEM_UNDO);
	first = child(set, take);
	second = child(set, take_more);
	NEED(!semctl(set, 0, GETALL, (union argument){ .values = values }));
	for (int i = 0; i < 6; i++)
		pids[i] = semctl(set, i, GETPID);
	NEED(pids[0] == second && pids[1] == getpid() && pids[4] == first);

	checkpoint_here();

	CHECK(!semctl(set, 0, GETALL, (union argument){ .values = now }));
	for (int i = 0; i < 6; i++) {
		CHECK(now[i] == values[i]);
		CHECK(semctl(set, i, GETPID) == pids[i]);
	}
	CHECK(!semctl(set, 0, IPC_STAT, (union argument){ .status = &status }));
	CHECK((status.sem_perm.mode & 0777) == 0640 && status.sem_nsems == 6);
	CHECK(status.sem_perm.uid == geteuid() && status.sem_perm.gid == getegid());
	CHECK(semget(0x4b43, 1, 0) == keyed && value(keyed, 0) == 3);
	end(first);
	CHECK(value(set, 0) == 4 && value(set, 3) == 0 && value(set, 4) == 2);
	end(second);
	CHECK(value(set, 0) == 5 && value(set, 2) == MOST && value(set, 5) == 0);
	operate(set, 5, 1, SEM_UNDO);
	drop_set(set);
	drop_set(keyed);
}

static int common;

static void *take_in_thread(void *unused)
{
	(void)unused;
	operate(common, 0, -1, SEM_UNDO);
	for (;;)
		pause();
	return NULL;
}

static void take_by_threads(int set)
{
	pthread_t thread;

	common = set;
	operate(set, 0, 4, 0);
	NEED(!pthread_create(&thread, NULL, take_in_thread, NULL));
	NEED(!pthread_create(&thread, NULL, take_in_thread, NULL));
	while (value(set, 0) != 2)
		usleep(1000);
	operate(set, 0, -1, SEM_UNDO);
}

static void threads(void)
{
	int set = make_set(IPC_PRIVATE, 1, 0600);
	pid_t pid = child(set, take_by_threads);

	checkpoint_here();
	CHECK(value(set, 0) == 1);
	end(pid);
	CHECK(value(set, 0) == 4);
	drop_set(set);
}

static void *pass(void *unused)
{
	return unused;
}

/* Threads come and go, and with them their shares of what is undone. */
static void loop(void)
{
	int set = make_set(IPC_PRIVATE, 1, 0600);
	pthread_t thread[8];

	operate(set, 0, 2, 0);
	operate(set, 0, -1, SEM_UNDO);
	check_ready();
	while (!check_gone()) {
		for (int i = 0; i < 8; i++)
			CHECK(!pthread_create(&thread[i], NULL, pass, NULL));
		for (int i = 0; i < 8; i++)
			CHECK(!pthread_join(thread[i], NULL));
	}
	CHECK(value(set, 0) == 1);
	operate(set, 0, 1, SEM_UNDO);
	drop_set(set);
}

static void held(void)
{
	int set = make_set((key_t)strtol(check_argument, NULL, 0), 2, 0666);

	operate(set, 0, 1, 0);
	operate(set, 0, -1, SEM_UNDO);
	operate(set, 1, 6, 0);
	checkpoint_here();
	CHECK(value(set, 0) == 0 && value(set, 1) == 6);
	drop_set(set);
}

/* One that it may only read. */
static void zero(void)
{
	int set = semget((key_t)strtol(check_argument, NULL, 0), 0, 0);

	NEED(set >= 0);
	operate(set, 0, 0, 0);
	checkpoint_here();
	operate(set, 0, 0, 0);
}

/* ---- what cannot be saved ---- */

static char stack[65536] __attribute__((aligned(16)));
static int started[2];

/* Neither of them has thread-local storage of its own. */
static int take_and_stay(void *number)
{
	struct sembuf down = { 0, -1, SEM_UNDO };

	NEED(!semop(common, &down, 1));
	NEED(write(started[1], number, 1) == 1);
	for (;;)
		pause();
	return 0;
}

static pid_t clone_of(int flags, const char *name)
{
	char byte;
	pid_t pid;

	common = make_set(IPC_PRIVATE, 1, 0600);
	operate(common, 0, 5, 0);
	operate(common, 0, -1, SEM_UNDO);
	NEED(!pipe(started));
	pid = clone(take_and_stay, stack + sizeof(stack), flags, (void *)name);
	NEED(pid > 0 && read(started[0], &byte, 1) == 1);
	return pid;
}

static void apart(int flags)
{
	pid_t pid = clone_of(flags, "x");

	checkpoint_here();
	CHECK(value(common, 0) == 3);
	if (!(flags & CLONE_THREAD))
		end(pid);
	drop_set(common);
}

static void shared(void) { apart(SIGCHLD | CLONE_SYSVSEM); }
static void in_memory(void) { apart(SIGCHLD | CLONE_VM); }

static void several(void)
{
	apart(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD);
	_exit(check_end());	/* as the other one has its storage */
}

/* ---- message queues ---- */

static void send_one(int queue, long type, char fill, size_t length)
{
	struct message message = { .type = type };

	memset(message.text, fill, length);
	NEED(!msgsnd(queue, &message, length, 0));
}

static void receive_one(int queue, long wanted, long type, char fill, size_t length)
{
	struct message message = { .type = 0 };

	CHECK(msgrcv(queue, &message, sizeof(message.text), wanted, IPC_NOWAIT) == (ssize_t)length);
	CHECK(message.type == type);
	for (size_t i = 0; i < length; i++)
		if (message.text[i] != fill) {
			CHECK(message.text[i] == fill);
			break;
		}
}

static void nothing(int set)
{
	(void)set;
}

static void queues(void)
{
	int queue = msgget(IPC_PRIVATE, 0600), keyed = msgget(0x4b44, IPC_CREAT | IPC_EXCL | 0400);
	int empty = msgget(IPC_PRIVATE, 0600);
	struct msqid_ds status;
	pid_t other = child(0, nothing);

	NEED(queue >= 0 && keyed >= 0 && empty >= 0);
	NEED(!msgctl(queue, IPC_STAT, &status));
	status.msg_qbytes = 9000;
	NEED(!msgctl(queue, IPC_SET, &status));
	send_one(queue, 7, 'a', 4000);
	send_one(queue, 3, 'b', 0);
	send_one(queue, 7, 'c', 4000);
	send_one(queue, 0x7fffffffffffffff, 'd', 1);
	status.msg_qbytes = 5000;	/* there is more in it */
	NEED(!msgctl(queue, IPC_SET, &status));
	if (!geteuid())
		send_one(keyed, 1, 'e', 10);

	checkpoint_here();

	CHECK(!msgctl(queue, IPC_STAT, &status));
	CHECK(status.msg_qbytes == 5000 && status.msg_qnum == 4);
	CHECK((status.msg_perm.mode & 0777) == 0600 && status.msg_perm.uid == geteuid());
	CHECK(msgget(0x4b44, 0) == keyed);
	CHECK(!msgctl(keyed, IPC_STAT, &status) && (status.msg_perm.mode & 0777) == 0400);
	receive_one(queue, 3, 3, 'b', 0);
	receive_one(queue, 0, 7, 'a', 4000);
	receive_one(queue, 7, 7, 'c', 4000);
	receive_one(queue, 0, 0x7fffffffffffffff, 'd', 1);
	if (!geteuid())
		receive_one(keyed, 0, 1, 'e', 10);
	send_one(empty, 1, 'f', 5);
	receive_one(empty, 0, 1, 'f', 5);
	CHECK(!msgctl(queue, IPC_RMID, NULL) && !msgctl(keyed, IPC_RMID, NULL));
	CHECK(!msgctl(empty, IPC_RMID, NULL));
	end(other);
}

static void sent(void)
{
	int queue = msgget((key_t)strtol(check_argument, NULL, 0), 0);

	NEED(queue >= 0);
	send_one(queue, 9, 's', 3);
	checkpoint_here();
	send_one(queue, 9, 't', 3);
}

/* ---- nobody who is saved has used them last ---- */

static void idle(bool used)
{
	int ids[2];
	int from[2], status;
	pid_t pid;

	NEED(!pipe(from));
	sleep(2);	/* the time of a change is told in seconds */
	pid = fork();
	NEED(pid >= 0);
	if (!pid) {
		ids[0] = make_set(IPC_PRIVATE, 2, 0600);
		ids[1] = msgget(IPC_PRIVATE, 0600);
		NEED(ids[1] >= 0);
		if (used) {
			operate(ids[0], 1, 8, 0);
			send_one(ids[1], 5, 'g', 100);
		}
		NEED(write(from[1], ids, sizeof(ids)) == sizeof(ids));
		_exit(0);
	}
	NEED(read(from[0], ids, sizeof(ids)) == sizeof(ids));
	NEED(waitpid(pid, &status, 0) == pid && !status);
	checkpoint_here();
	CHECK(value(ids[0], 0) == 0 && value(ids[0], 1) == (used ? 8 : 0));
	if (!used)
		send_one(ids[1], 5, 'g', 100);
	receive_one(ids[1], 0, 5, 'g', 100);
	drop_set(ids[0]);
	CHECK(!msgctl(ids[1], IPC_RMID, NULL));
}

static void used(void) { idle(true); }
static void made(void) { idle(false); }

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		{ "semaphores", semaphores }, { "threads", threads }, { "held", held }, { "loop", loop }, { "zero", zero },
		{ "queues", queues }, { "idle", used }, { "made", made }, { "sent", sent }, { "shared", shared },
		{ "several", several }, { "in_memory", in_memory }, { NULL, NULL },
	};

	return check_one(argc, argv, checks);
}
