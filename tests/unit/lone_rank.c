// SPDX-License-Identifier: GPL-2.0
/*
 * For tests of mpi-plugin/hook/rank.c: what a rank has around it is not there, neither
 * ancestors nor PMIx nor an application that asks for checkpoints.
 */
#include <errno.h>
#include <stddef.h>

#include "mpi-plugin/hook/rank.h"

int launcher_find(struct launcher *l, pid_t daemon)
{
	(void)l;
	(void)daemon;
	return -ESRCH;
}

void launcher_free(struct launcher *l)
{
	(void)l;
}

const char *launcher_get(const struct launcher *l, const char *name)
{
	(void)l;
	(void)name;
	return NULL;
}

int runtime_watch(void)
{
	return 0;
}

void runtime_expect_loss(bool expect)
{
	(void)expect;
}

int runtime_reattach(const struct launcher *l)
{
	(void)l;
	return 0;
}

void ask_prepared(uint32_t rank, uint32_t asker)
{
	(void)rank;
	(void)asker;
}

void ask_answered(int code)
{
	(void)code;
}

int ask_restarted(void)
{
	return 0;
}
