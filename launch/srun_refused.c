// SPDX-License-Identifier: GPL-2.0
/*
 * What is refused to users of srun, see srun_refused.h.  Variables that an option of cr_mpirun's
 * own overrides (SLURM_MPI_TYPE, SLURM_EXPORT_ENV) need no look.
 */
#include "launch/srun_refused.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "job/srun.h"
#include "report/report.h"

static const struct {
	const char *name, *variable, *why;
} refused[] = {
	{ "bcast", "SLURM_BCAST", "cr_rank is what srun starts: copy the program by sbcast" },
	{ "clusters", "SLURM_CLUSTERS", "the job must run in this allocation" },
	{ "container", "SRUN_CONTAINER", "the daemon that starts the ranks is outside of it" },
	{ "container", "SLURM_CONTAINER", "the daemon that starts the ranks is outside of it" },
	{ "container-id", "SRUN_CONTAINER_ID", "the daemon that starts the ranks is outside of it" },
	{ "external-launcher", NULL, "srun itself must start the ranks" },
	{ "het-group", NULL, "all ranks must be in one step" },
	{ "jobid", NULL, "run cr_mpirun inside the allocation" },
	{ "mem-bind", "SLURM_MEM_BIND", "srun would only bind the memory of cr_rank: put numactl before "
					"the program" },
	{ "multi-prog", NULL, "all ranks must run one program; let a script choose by SLURM_PROCID" },
	{ "no-allocate", NULL, "it needs an allocation" },
	{ "pty", NULL, "the ranks' terminal would be srun's" },
	{ "uid", NULL, "the daemons would be another user's" },
	{ "gid", NULL, "the daemons would be of another group" },
};

#define COUNT	(sizeof(refused) / sizeof(*refused))

/* PMIx is the only interface by which Open MPI 5 starts, and the one that a restarted rank uses. */
static int check_mpi(const char *type)
{
	return !strncmp(type, "pmix", 4) ? 0 :
	       report_fail(-EOPNOTSUPP, "srun --mpi=%s: ranks that can be saved need --mpi=pmix, which "
			   "is the default here", type);
}

bool srun_exports_all(const char *list)
{
	return !strncmp(list, "ALL", 3) && (!list[3] || list[3] == ',');
}

static int check_export(const char *list)
{
	return srun_exports_all(list) ? 0 :
	       report_fail(-EOPNOTSUPP, "srun --export=%s: ranks that can be saved need what cr_mpirun "
			   "puts into the environment: begin the list with ALL", list);
}

/* srun itself would read a plain file and pass it on, but the ranks get cr_mpirun's input. */
static int check_input(const char *value)
{
	if (!*value || !strcasecmp(value, "all") || !strcasecmp(value, "none") || strchr(value, '%') ||
	    !value[strspn(value, "0123456789")])
		return 0;
	return report_fail(-EOPNOTSUPP, "srun --input=%s: ranks that can be saved get cr_mpirun's input: "
			   "say < %s instead", value, value);
}

int srun_check_option(const char *option)
{
	static const struct {
		const char *name;
		int (*check)(const char *value);
	} checked[] = {
		{ "mpi", check_mpi }, { "export", check_export }, { "input", check_input },
	};

	for (size_t i = 0; i < sizeof(checked) / sizeof(*checked); i++) {
		const char *value = srun_value(option, checked[i].name);

		if (value)
			return checked[i].check(value);
	}
	for (size_t i = 0; i < COUNT; i++)
		if (srun_value(option, refused[i].name))
			return report_fail(-EOPNOTSUPP, "a job started with srun --%s cannot be saved: %s",
					   refused[i].name, refused[i].why);
	return 0;
}

int srun_check_variables(void)
{
	const char *parts = getenv("SLURM_HET_SIZE"), *input = getenv("SLURM_STDINMODE");

	if (parts && strtoul(parts, NULL, 10) > 1)
		return report_fail(-EOPNOTSUPP, "this heterogeneous job of Slurm has %s parts, and all "
				   "ranks that can be saved must be in one step, of one part", parts);
	for (size_t i = 0; i < COUNT; i++)
		if (refused[i].variable && getenv(refused[i].variable))
			return report_fail(-EOPNOTSUPP, "a job started with srun --%s (%s is set) cannot "
					   "be saved: %s", refused[i].name, refused[i].variable,
					   refused[i].why);
	return input ? check_input(input) : 0;
}
