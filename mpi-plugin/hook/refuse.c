// SPDX-License-Identifier: GPL-2.0
/*
 * What a job that can be checkpointed may not do, refused when it is attempted:
 * anything that makes processes of two jobs communicate.  Collective functions are
 * refused by Open MPI itself, in every rank: where errors are returned, no rank waits
 * for one that has given up.  What it says then would go through mpirun, which may be
 * dead, or lose it (4.1.4 with Debian's PMIx does at random: "Data unpack would read past
 * end of buffer"): so each rank says it itself.  (Windows of shared memory: osc/cr.)
 */
#include "opal_config.h"

#include "opal/constants.h"
#include "opal/util/show_help.h"
#include "ompi/runtime/mpiruntime.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mpi-plugin/hook/hook_cr_compat.h"
#include "mpi-plugin/hook/rank.h"

#define NOT_SUPPORTED	"not supported in a job that can be checkpointed: start it with mpirun " \
			"instead of cr_mpirun"

/* Once in this process, whatever is called how often. */
static void say(const char *function)
{
	static bool said;

	if (!said)
		fprintf(stderr, "KCR: %s is " NOT_SUPPORTED "\n", function);
	said = true;
}

/* In the place of opal_show_help(). */
static int show_help(const char *file, const char *topic, int header, ...)
{
	int ret = OPAL_SUCCESS;
	va_list list;

	va_start(list, header);
	if (!strcmp(topic, "MPI function not supported"))
		say(va_arg(list, const char *));
	else
		ret = opal_show_vhelp(file, topic, header, list);
	va_end(list);
	return ret;
}

static int refuse_publish(opal_list_t *info)
{
	(void)info;
	say("MPI_Publish_name");
	return OPAL_ERR_NOT_SUPPORTED;
}

static int refuse_lookup(opal_list_t *data, opal_list_t *info)
{
	(void)data;
	(void)info;
	say("MPI_Lookup_name");
	return OPAL_ERR_NOT_SUPPORTED;
}

void refuse_begin(void)
{
	ompi_mpi_dynamics_disable(NOT_SUPPORTED);
	opal_show_help = show_help;
	cr_compat_publish(refuse_publish, refuse_lookup);
}
