# SPDX-License-Identifier: GPL-2.0
# For the cases of area gridengine; to be sourced instead of tests/lib.sh.  They share a Grid
# Engine of Debian's packages: the case is on the master, kcr0, and jobs run on kcr1 and kcr2,
# which are nodes as in tests/mpi/nodes.sh; the first case starts it.  All jobs are those of an
# ordinary user, where Yama lets processes look at their descendants only.
export KCR_CLUSTER=/run/kcr-gridengine
export SGE_ROOT=$KCR_CLUSTER/root SGE_CELL=default SGE_ARCH=lx-amd64
PATH=/usr/lib/gridengine:$PATH	# the commands themselves: in /usr/bin are scripts that set the above
[ -n "${KCR_NODES:-}" ] || { [ -x /usr/lib/gridengine/sge_qmaster ] && [ -x /usr/lib/gridengine/sge_execd ]; } ||
	{ echo "# SKIP there is no Grid Engine here"; exit 4; }
. "$KCR_TOP/tests/cluster.sh"
cluster_enter gridengine
. "$KCR_TOP/tests/mpi/nodes.sh"
# Jobs get it from qsub or from sge_execd, whoever starts that, and mpirun is to start its daemons by
# qrsh.
unset OMPI_MCA_plm_rsh_agent OMPI_MCA_plm_rsh_no_tree_spawn PRTE_MCA_plm_ssh_agent PRTE_MCA_plm_ssh_no_tree_spawn
. "$KCR_TOP/tests/lib.sh"
. "$KCR_TOP/tests/batch_jobs.sh"
need jq
# Without a process each time: what a case starts is not saved, so it may have this open.
exec 9<> <(:)
nap() { read -r -t "${1:-0.1}" -u 9; }
cluster_join 2

# submit FOLDER SCRIPT [OPTION OF qsub...]: its ID in $job; its output in FOLDER/out.  The
# folder has what the script needs.
submit() {
	local folder=$1 script=$2
	shift 2
	job=$(cd "$folder" && as_user qsub -terse -N "${folder##*/}" -cwd -j y -o out "$@" "$script" 2>&1) ||
		fail "qsub: $job"
	job=${job%%.*}		# of an array: ID.FIRST-LAST:STEP
}

# job_script FOLDER [OPTION OF cr_batch...]: one for the program there, FOLDER/script.
job_script() {
	local folder=$1
	shift
	printf '#!/bin/sh\n#$ -r y\nexec cr_batch --requeue=sge %s -- ./solver\n' "$*" > "$folder/script"
}

# records JOB: the runs of a job that have ended in ${ended[@]}, each "HOST FAILED EXIT-CODE", where
# FAILED is 0, 24 (migrating), 25 (rescheduled), 30 (held as it ended with 100), 37 (over its time),
# 100 (killed).  Starts no program.
records() {
	local field line lines
	ended=()
	mapfile -t lines 2> /dev/null < "$SGE_ROOT/$SGE_CELL/common/accounting"
	for line in "${lines[@]}"; do
		IFS=: read -r -a field <<< "$line"
		[ "${field[5]:-}" != "$1" ] || ended+=("${field[1]} ${field[11]} ${field[12]}")
	done
}
has_records() { records "$1"; [ ${#ended[@]} -ge "$2" ]; }

# completed JOB [EXIT-CODE]: it has ended by itself, with that code (0); fails if otherwise.
completed() {
	local last
	records "$1"
	[ ${#ended[@]} -gt 0 ] || return 1
	last=${ended[-1]}
	case $last in
	*" 0 ${2:-0}") ;;
	*" 24 "* | *" 25 "*) return 1 ;;
	*) fail "job $1 ended so: $last" ;;
	esac
}

# The only jobs are those of the user, whose ID may have another name as well.
jobs() { qstat -u '*' "$@"; }

# state JOB: as qstat shows it, such as r, qw, Eqw, dr, s; of each task a line.
state() { jobs | awk -v job="$1" '$1 == job { print $5 }'; }
is() { [ "$(state "$1")" = "$2" ]; }
gone() { [ -z "$(state "$1")" ]; }

# host_of JOB...: where they run, perhaps with qmod -sj pending, with commas between the names.
host_of() {
	local all=" $* "
	jobs | awk -v jobs="$all" 'index(jobs, " " $1 " ") && match($0, /@kcr[0-9]+/) {
		print substr($0, RSTART + 1, RLENGTH - 1) }' | sort -u | paste -sd,
}

# quiet COMMAND...: it succeeds, and what it says is of no interest.
quiet() { said=$("$@" 2>&1) || fail "status $? from $*: $said"; }

# closed HOST...: no job begins there; opened: it may again.
closed() { local host; for host; do quiet qmod -d "*@$host"; done; }
opened() { local host; for host; do quiet qmod -e "*@$host"; done; }

# What a failure may be due to.
tell() {
	qstat -f -u '*'
	qstat -j '*' 2> /dev/null | grep -A 3 "^error reason"
	tail -n 15 $KCR_CLUSTER/qmaster/messages $KCR_CLUSTER/execd/*/messages
	tail -n 20 ./*/kcr/*.log ./*/out
	tail -n 15 "$SGE_ROOT/$SGE_CELL/common/accounting"	# Open MPI's daemons have lines of their own
	pgrep -u user -a
	ls -d /tmp/*.q
}

# nothing_left: neither a job nor a process of one, on any node, nor its folder there.
nothing_left() {
	local folder
	for folder in /tmp/*.q; do
		[ ! -e "$folder" ] || return 1
	done
	! pgrep -u user > /dev/null && [ -z "$(jobs)" ]
}

# jobs_end: no job is left, for the next case.
jobs_end() {
	local status=$?
	[ $status = 0 ] || tell
	[ -z "$(jobs)" ] || qdel -u '*' > /dev/null
	[ $status = 0 ] || pkill -KILL -u user
	qmod -e '*@*' > /dev/null
	wait_until nothing_left
	exit $status
}
