// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that stand for others which are not their descendants: tasks of a step of a
 * scheduler, a command on another machine, a container.  Saved alone such a program would
 * come back to a connection that is hung up, and what it stands for would be lost with all
 * its work.  Nothing but the name of its executable tells it from a program with a
 * connection that it can do without, so these are the names that sites meet.
 *
 * And cr_restart, while it stands for nothing yet.
 */
#include "checkpoint/internal.h"

#include <errno.h>
#include <string.h>

#include "proc/proc.h"
#include "proc/tree.h"
#include "report/report.h"

#define COUNT(array)	(sizeof(array) / sizeof(*(array)))

static const struct launcher {
	const char *const *name;	/* of executables; ends in NULL */
	const char *text;		/* why not, and what to do */
} launchers[] = {
	{ (const char *const[]){ "cr_mpirun", "cr_rank", NULL },
	  "the ranks of its MPI job are children of cr_node, and would be lost: save the job as a "
	  "whole, by cr_checkpoint with the PID of cr_mpirun; in a script, put cr_batch before "
	  "cr_mpirun" },
	{ (const char *const[]){ "srun", "sattach", NULL },
	  "the tasks of its step are children of slurmstepd, and would be lost: start them with "
	  "cr_mpirun, or each under a cr_batch of its own (srun cr_batch, see kcr-batch(7)), or wait "
	  "until the step has ended" },
	{ (const char *const[]){ "salloc", NULL },
	  "its allocation does not come back: save the program that runs in it, or use sbatch" },
	{ (const char *const[]){ "aprun", "blaunch", "flux-job", "jsrun", "pbsdsh", "pbs_tmrsh", "qrsh",
				 NULL },
	  "the tasks that it has the scheduler run are not its children, and would be lost: start "
	  "them with cr_mpirun, or each under a cr_batch of its own, or wait until they have ended" },
	{ (const char *const[]){ "ssh", "rsh", "pdsh", NULL },
	  "what it does on another machine would be lost: start ranks of MPI with cr_mpirun, run "
	  "cr_batch over there, or wait until it has ended" },
	{ (const char *const[]){ "prun", NULL },
	  "the ranks of its job are children of the daemons of prte, and would be lost: start them "
	  "with cr_mpirun, or wait until they have ended" },
	{ (const char *const[]){ "systemd-run", "machinectl", NULL },
	  "what it has systemd run is not its child, and would be lost: save that program itself, or "
	  "have it run by systemd-run --scope" },
	{ (const char *const[]){ "crictl", "ctr", "docker", "incus", "kubectl", "lxc", "nerdctl", "podman",
				 NULL },
	  "the container is not its child, and would be lost: run cr_batch inside the container, or "
	  "wait until it has ended" },
};

static const struct launcher *find(const char *name)
{
	for (size_t i = 0; i < COUNT(launchers); i++)
		for (const char *const *each = launchers[i].name; *each; each++)
			if (!strcmp(name, *each))
				return &launchers[i];
	return NULL;
}

/*
 * It has children while it rebuilds processes, and while it stands for them.  A program that was
 * rebuilt without its executable (--save-private) has cr_restart's, but its own name.
 */
static int refuse_idle_restart(pid_t pid, const char *name)
{
	char comm[32];

	if (!name || strcmp(name, "cr_restart") || proc_read(pid, "comm", comm, sizeof(comm)) <= 0 ||
	    strcmp(comm, "cr_restart\n") || proc_has_child(pid))
		return 0;
	return report_fail(-EBUSY, "process %d is a cr_restart that is starting or ending: try again", pid);
}

int checkpoint_refuse_idle_restart(pid_t pid)
{
	char path[4200];

	return refuse_idle_restart(pid, proc_program(pid, path, sizeof(path)));
}

int refuse_launcher(const struct checkpoint *c, pid_t pid, pid_t thread)
{
	char path[4200];
	const char *name = proc_program(thread, path, sizeof(path));
	const struct launcher *found = name ? find(name) : NULL;
	int err = refuse_idle_restart(pid, name);

	if (err || !found || c->options->skip_unsupported)
		return err;
	return report_fail(-EOPNOTSUPP, "process %d is %s: %s (--skip-unsupported saves %s alone)", pid,
			   name, found->text, name);
}
