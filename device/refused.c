// SPDX-License-Identifier: GPL-2.0
/*
 * The module refuses with a bare errno; the reason is found here: in the
 * device's owner and mode, the module's parameters, and the kernel's
 * information on this process.  Holds no state.  See refused.h.
 */
#include "device/refused.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <linux/kcr.h>

#include "proc/namespace.h"
#include "proc/proc.h"
#include "proc/status.h"
#include "report/report.h"

#define PARAMETERS	"/sys/module/kcr/parameters/"
#define FIRST_CHOSEN	300	/* lower PIDs need CAP_CHECKPOINT_RESTORE */

/* ---- finding the reason -------------------------------------------------------- */

/* The value of a module parameter; "": there is none, or it cannot be read. */
static void parameter(const char *name, char *value, size_t size)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	file = fopen(path, "re");
	if (!file || !fgets(value, size, file))
		*value = '\0';
	value[strcspn(value, "\n")] = '\0';
	if (file)
		fclose(file);
}

static bool is_off(const char *name)
{
	char value[8];

	parameter(name, value, sizeof(value));
	return *value == 'N';
}

/* " is 16" after the name of a parameter, if it can be read. */
static const char *now(const char *name, char *text, size_t size)
{
	char value[32];

	parameter(name, value, sizeof(value));
	snprintf(text, size, *value ? " is %s" : "%s", value);
	return text;
}

static bool is_filtered(void)
{
	char status[8192];

	return proc_read(PROC_SELF, "status", status, sizeof(status)) > 0 &&
	       status_number(status, "Seccomp", 10, 0);
}

/* ---- open ------------------------------------------------------------------------ */

static int not_in_group(gid_t gid)
{
	struct group *group = getgrgid(gid);
	char number[16];

	snprintf(number, sizeof(number), "%u", gid);
	return report_fail(-EACCES, "only members of the group %s may open " KCR_DEVICE ": ask the "
			   "administrator to make you one, then log in again",
			   group ? group->gr_name : number);
}

static int no_access(void)
{
	const mode_t all = S_IROTH | S_IWOTH, members = S_IRGRP | S_IWGRP;
	struct stat st;

	if (stat(KCR_DEVICE, &st) || (st.st_mode & all) == all)
		return report_fail(-EACCES, "no access to " KCR_DEVICE ": a mount option (nodev) "
				   "or a security module forbids it; ask the administrator");
	if ((st.st_mode & members) == members && st.st_gid)
		return not_in_group(st.st_gid);
	return report_fail(-EACCES, "only root may open " KCR_DEVICE ": ask the administrator to "
			   "open it to a group that you are in, see kcr(4)");
}

static int not_permitted(void)
{
	if (is_off("enabled"))
		return report_fail(-EPERM, "the administrator has switched checkpoints and restarts "
				   "off (parameter enabled of the module kcr)");
	return report_fail(-EPERM, "not permitted to open " KCR_DEVICE ": the rules of a container "
			   "or a security module forbid it; ask the administrator");
}

int refused_open(int err)
{
	char text[64];

	switch (-err) {
	case ENOENT:
	case ENXIO:
	case ENODEV:
		return report_fail(-ENOSYS, "the kernel module is not loaded: "
				   "run \"modprobe kcr\" as root");
	case EACCES:
		return no_access();
	case EPERM:
		return not_permitted();
	case EDQUOT:
		return report_fail(err, "you have as many checkpoints and restarts under way as one "
				   "user may (parameter max_jobs of the module kcr%s): try again "
				   "when one has ended", now("max_jobs", text, sizeof(text)));
	default:
		return report_errno(err, "cannot open " KCR_DEVICE);
	}
}

/* ---- processes ------------------------------------------------------------------- */

int refused_process(pid_t pid, int err)
{
	char text[64], whose[32] = "";

	if (pid)
		snprintf(whose, sizeof(whose), "process %d: ", pid);
	return report_fail(err, "%syour checkpoints and restarts would hold more processes than one "
			   "user may (parameter max_processes of the module kcr%s)", whose,
			   now("max_processes", text, sizeof(text)));
}

int refused_trace(pid_t pid)
{
	return report_fail(-EPERM, "process %d: permission denied: checkpointing needs the right to "
			   "ptrace it (same user, or CAP_SYS_PTRACE; see "
			   "/proc/sys/kernel/yama/ptrace_scope)", pid);
}

bool refused_all_ids(void)
{
	return is_off("restore_ids");
}

int refused_clone(pid_t pid, pid_t number)
{
	if (is_filtered())
		return report_fail(-EPERM, "process %d cannot be created under a seccomp filter: "
				   "restart outside the container or sandbox that has set it", pid);
	if (number && refused_all_ids())
		return report_fail(-EPERM, "you may not choose process IDs here (parameter "
				   "restore_ids of the module kcr): use --no-restore-pid");
	if (number && !namespace_is_first("pid"))
		return report_fail(-EPERM, "you may not choose process IDs here, as this user namespace is "
				   "not the one that owns the container's PID namespace (bwrap --dev "
				   "makes two): use --no-restore-pid, or bwrap --dev-bind /dev /dev");
	if (number && number < FIRST_CHOSEN)
		return report_fail(-EPERM, "process or thread ID %d is one of those below %d, "
				   "which you may not choose: use --no-restore-pid", number,
				   FIRST_CHOSEN);
	return report_fail(-EPERM, "process %d: you may not %s here%s", pid,
			   number ? "choose process IDs" : "create processes",
			   number ? ": use --no-restore-pid" : "");
}
