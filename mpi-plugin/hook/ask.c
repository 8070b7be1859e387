// SPDX-License-Identifier: GPL-2.0
/*
 * A checkpoint that the application asks for (kcr_mpi_checkpoint).  Its thread
 * waits here while the rank's checkpoint thread takes part; it is saved waiting, and
 * a restored rank wakes it with another answer.  One request at a time; `lock`
 * guards all.
 */
#include "mpi-plugin/hook/rank.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/coordinator/wire.h"
#include "mpi-plugin/hook/hook_cr_control.h"
#include "mpi-plugin/library/kcr_mpi.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct wire_ask *message;	/* NULL: no request */
	size_t length;
	bool taken;			/* the checkpoint under way is the one asked for */
	bool answered;
	int result;
} asked = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* The message, with the name made absolute. */
static int prepare(const char *name, unsigned int keep, unsigned int flags,
		   struct wire_ask **out, size_t *length)
{
	char folder[PATH_MAX] = "";
	struct wire_ask *message;
	size_t room;

	if (!name || !*name || !keep || flags & ~KCR_MPI_ALONE)
		return -EINVAL;
	if (strlen(name) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (*name != '/' && !getcwd(folder, sizeof(folder)))
		return -errno;
	room = sizeof(*message) + strlen(folder) + 1 + strlen(name) + 1;
	message = calloc(1, room);
	if (!message)
		return -ENOMEM;
	message->keep = keep;
	message->alone = flags & KCR_MPI_ALONE ? 1 : 0;
	if (*folder) {
		strcpy(message->path, folder);
		strcat(message->path, "/");
	}
	strcat(message->path, name);
	*length = sizeof(*message) + strlen(message->path) + 1;
	*out = message;
	return 0;
}

static int checkpoint(const char *name, unsigned int keep, unsigned int flags)
{
	struct wire_ask *message;
	size_t length;
	int err = prepare(name, keep, flags, &message, &length);

	if (err)
		return err;
	pthread_mutex_lock(&asked.lock);
	if (asked.message) {
		pthread_mutex_unlock(&asked.lock);
		free(message);
		return -EBUSY;
	}
	asked.message = message;
	asked.length = length;
	asked.taken = asked.answered = false;
	err = rank_send(WIRE_ASK, message, length);
	/*
	 * A connection that has ended is the first job's, in a rank that was just
	 * restarted: ask_restarted() sends it again, and has not done so yet, as it takes
	 * our lock after the new connection is up.  If the daemon died, so does the rank.
	 */
	if (err == -EPIPE || err == -ECONNRESET || err == -ENOTCONN)
		err = 0;
	while (!err && !asked.answered)
		pthread_cond_wait(&asked.changed, &asked.lock);
	asked.message = NULL;
	err = err ? err : asked.result;
	pthread_mutex_unlock(&asked.lock);
	free(message);
	return err;
}

/* Under the lock. */
static void answer(int result)
{
	asked.result = result;
	asked.answered = true;
	pthread_cond_broadcast(&asked.changed);
}

void ask_prepared(uint32_t rank, uint32_t asker)
{
	pthread_mutex_lock(&asked.lock);
	asked.taken = asked.message && !asked.answered &&
		      asker == (asked.message->alone ? rank : WIRE_ALL);
	pthread_mutex_unlock(&asked.lock);
}

void ask_answered(int code)
{
	pthread_mutex_lock(&asked.lock);
	if (asked.message && !asked.answered)
		answer(-code);
	pthread_mutex_unlock(&asked.lock);
}

int ask_restarted(void)
{
	int err = 0;

	pthread_mutex_lock(&asked.lock);
	if (asked.message && !asked.answered) {
		if (asked.taken)
			answer(1);
		else
			err = rank_send(WIRE_ASK, asked.message, asked.length);
	}
	pthread_mutex_unlock(&asked.lock);
	return err;
}

extern const struct mca_hook_cr_control mca_hook_cr_control;

__attribute__((visibility("default")))
const struct mca_hook_cr_control mca_hook_cr_control = {
	.version = MCA_HOOK_CR_CONTROL_VERSION,
	.size = sizeof(struct mca_hook_cr_control),
	.checkpoint = checkpoint,
};
