# SPDX-License-Identifier: GPL-2.0
# For the cases of area slurm; to be sourced instead of tests/lib.sh.  They share a Slurm of
# Debian's packages: the case is on the controller, kcr0, and jobs run on kcr1 to kcr4, which
# are nodes as in tests/mpi/nodes.sh; the first case starts it.  All jobs are those of an
# ordinary user, where Yama lets processes look at their descendants only.
export KCR_CLUSTER=/run/kcr-slurm
export HWLOC_PLUGINS_PATH=/nonexistent	# OpenCL's and X11's, which take time to load
[ -n "${KCR_NODES:-}" ] || { [ -x /usr/sbin/slurmctld ] && [ -x /usr/sbin/slurmd ] && [ -x /usr/sbin/munged ]; } ||
	{ echo "# SKIP there is no Slurm here"; exit 4; }
. "$KCR_TOP/tests/cluster.sh"
cluster_enter slurm
. "$KCR_TOP/tests/mpi/nodes.sh"
. "$KCR_TOP/tests/lib.sh"
. "$KCR_TOP/tests/batch_jobs.sh"
need jq
cluster_join 4

# submit FOLDER SCRIPT [OPTION OF sbatch...]: its ID in $job; its output in FOLDER/out.  The
# folder has what the script needs.
submit() {
	local folder=$1 script=$2
	shift 2
	job=$(as_user sbatch --parsable --chdir "$PWD/$folder" --output out --job-name "$folder" \
		"$@" "$script") || fail "sbatch: $job"
}

# field JOB NAME: what Slurm says of it, such as JobState, NodeList, Restarts.
field() { scontrol --oneliner show job "$1" | grep -o " $2=[^ ]*" | head -n 1 | cut -d= -f2; }

# is JOB STATE, runs JOB
is() { [ "$(field "$1" JobState)" = "$2" ]; }
runs() { is "$1" RUNNING; }

# all CONDITION JOB...: it is true of each.
all() {
	local condition=$1 each
	shift
	for each in "$@"; do
		$condition "$each" || return 1
	done
}

# nodes_of JOB...: theirs, with commas between them.
nodes_of() {
	local each
	for each in "$@"; do
		field "$each" NodeList
	done | sort -u | paste -sd,
}

# urgent NODES: a job of higher priority takes them over; its ID in $urgent.
urgent() {
	urgent=$(as_user sbatch --parsable --partition high --nodes 2 --exclusive --nodelist "$1" \
		--output /dev/null --wrap "sleep 1000") || fail "sbatch: $urgent"
}

# leader FOLDER: the PID of the program on its node.
leader() { cr_batch --status "$1/kcr" --json | jq '.[0].pid'; }

# in_job FOLDER JOB: the program is in the cgroup of that job.
in_job() {
	local node
	node=$(field "$2" NodeList)
	on "${node#kcr}" grep -q "/job_$2/" "/proc/$(leader "$1")/cgroup"
}

# completed JOB: with 0; fails if it ended otherwise.
completed() {
	case $(field "$1" JobState) in
	COMPLETED) ;;
	PENDING | RUNNING | COMPLETING | REQUEUED | CONFIGURING) return 1 ;;
	"") return 1 ;;		# the controller is too busy to answer
	*) tell; fail "$(scontrol --oneliner show job "$1")" ;;
	esac
}

# What a failure may be due to.
tell() {
	squeue --all
	tail -n 15 $KCR_CLUSTER/log/*
	tail -n 20 ./*/kcr/*.log ./*/out
}

# jobs_end: no job is left, for the next case.
no_job() { [ -z "$(squeue --noheader)" ]; }
jobs_end() {
	local status=$?
	[ $status = 0 ] || tell
	scancel --user user
	wait_until no_job
	exit $status
}

# script FOLDER OPTION OF cr_batch...: a job script there, FOLDER/script, which saves on
# SIGUSR2 as well, and whose program is that of `counting`.
script() {
	local folder=$1
	shift
	counting "$folder"
	printf '#!/bin/bash\n#SBATCH --requeue --open-mode=append\nexec cr_batch --save-on=USR2 %s -- ./solver\n' \
		"$*" > "$folder/script"
}

# warn SIGNAL JOB: cr_batch alone.
warn() { as_user scancel --batch --signal "$1" "$2" || fail "scancel: $?"; }
