# SPDX-License-Identifier: GPL-2.0
# For the cases of cr_batch, after lib.sh: commands of schedulers, simulated after what
# Slurm 22.05 and Grid Engine 8.1.9 were seen to do and the manuals of OpenPBS and Flux say.  What
# they are called with goes to `asked`; the allocation has $left (for Grid Engine and PBS:
# is $left) long.
mkdir -p commands
PATH=$PWD/commands:$PATH
export left=1:00:00 asked=$PWD/asked
: > asked

# simulate NAME: the command does what standard input says.
simulate() {
	{
		echo '#!/bin/sh'
		echo 'echo "${0##*/} $*" >> "$asked"'
		cat
	} > "commands/$1"
	chmod +x "commands/$1"
}

simulate squeue <<'TEXT'
case $* in
*%T*) echo "${state:-RUNNING None}" ;;
*) echo "$left" ;;
esac
TEXT
simulate scontrol <<< '[ "$1" = requeue ] && [ ! -e forbidden ] || { echo "Requested operation is presently disabled for job $2"; exit 1; }'
simulate qrerun <<< 'exit 0'
simulate qstat <<'TEXT'
case $1 in
-f) printf 'Job Id: %s\n    Resource_List.walltime = %s\n    resources_used.walltime = 00:00:02\n' "$2" "$left" ;;
-j) printf 'job_number:   %s\nhard resource_list:         h_rt=%s,h_vmem=1G\n' "$2" "$left" ;;
esac
TEXT

# In an initial program it tells of the job that this is.
simulate flux <<'TEXT'
case $* in
"job timeleft") [ "$left" = none ] && echo 4294967295 || echo "$left" ;;
"--parent batch "*) echo ƒ3 ;;
*) exit 1 ;;
esac
TEXT
simulate qconf <<< 'printf "qname  all.q\nh_rt   INFINITY\n"'

# as SCHEDULER JOB [TASK]: in the environment of such a job; `last`: the last task of an array,
# which has the array's number.
as() {
	unset SLURM_JOB_ID SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID PBS_JOBID PBS_O_WORKDIR JOB_ID SGE_TASK_ID QUEUE FLUX_URI \
		LSB_JOBID LSB_JOBINDEX
	case $1 in
	slurm) export SLURM_JOB_ID=$2 ;;
	array) export SLURM_JOB_ID=$(($2 + $3 + 1)) SLURM_ARRAY_JOB_ID=$2 SLURM_ARRAY_TASK_ID=$3 ;;
	last) export SLURM_JOB_ID=$2 SLURM_ARRAY_JOB_ID=$2 SLURM_ARRAY_TASK_ID=$3 ;;
	lsf) export LSB_JOBID=$2 LSB_JOBINDEX=0 ;;
	flux) export FLUX_URI=local:///run/flux-$2/local-0 ;;
	pbs) export PBS_JOBID=$2.server PBS_O_WORKDIR=$PWD ;;
	sge) export JOB_ID=$2 SGE_TASK_ID=undefined QUEUE=all.q HOSTNAME=kcr1 ;;
	esac
}

# asked_for COMMAND...: exactly once; asked_twice, at the start and before the save.
asked_for() { [ "$(grep -cxF -- "$*" asked)" = 1 ] || fail "asked: $(cat asked)"; }
asked_twice() { [ "$(grep -cxF -- "$*" asked)" = 2 ] || fail "asked: $(cat asked)"; }
