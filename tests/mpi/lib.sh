# SPDX-License-Identifier: GPL-2.0
# For the test scripts of MPI jobs, after tests/lib.sh: a machine that mpirun
# works on as root, Open MPI with the components of this tree, and jobs.
need mpirun
[ "$patience" -ge 90 ] || patience=90	# mpirun starts slowly, its ranks spin
need jq
[ -e "$KCR_TOP/build/mpi/mca_btl_cr.so" ] || skip "the components for Open MPI are not built"
. "$KCR_TOP/tests/mpi/open_mpi.sh"
export "${components[1]}"
export PATH=$KCR_TESTS/mpi:$PATH
if [ "$(id -u)" = 0 ]; then
	ip link set lo up
	hostname "${KCR_HOSTNAME:-kcr}"
fi

# job NP PROGRAM [ARGUMENT...]: under cr_mpirun in the background, until it says
# that it runs; mpirun's number in $job, its output in job.out.
job() {
	local np=$1
	shift
	start job cr_mpirun ${MPIRUN:-} -np "$np" "$@"
	job=$pid
	wait_until job_runs
	wait_until knows_ranks
}

# Has mpirun heard of all ranks?  They run before it has; until then it refuses with 16,
# afterwards for the folder.
knows_ranks() {
	says "@kcr-mpi.$job"$'\n' /proc/net/unix || return 0	# no coordinator, or it has ended
	status_of timeout 60 cr_checkpoint --file /nowhere/saved "$job"
	[ "$status" != 16 ]
}

# uninterrupted NP STEPS: what the program `job` has to print, to `expected`.
uninterrupted() {
	try command job -s "$1" "$2" > expected
}

job_runs() {
	says running job.out || ended "$job"
}

# kill_job: cr_mpirun and everything below it, wholesale, and with it the daemons and the
# ranks, their children.
kill_job() {
	local daemons
	daemons=$(daemons_of "$job")
	kill_tree "$job"
	# shellcheck disable=SC2086
	wait_until all_gone $daemons
}

# daemons_of JOB: the job's cr_node on each node, and what they have started.
daemons_of() {
	local root each
	root=$(variable_of "$(pgrep -P "$1" | head -n 1)" KCR_MPI_ROOT)
	for each in $(pgrep -x cr_node); do
		[ -n "$root" ] && [ "$(variable_of "$each" KCR_MPI_ROOT)" = "$root" ] || continue
		tree_of "$each"
	done
}

# variable_of PID NAME: from its environment.
variable_of() {
	tr '\0' '\n' < "/proc/$1/environ" 2> /dev/null | sed -n "s/^$2=//p"
}

# Does the process take requests for the job (is it an mpirun that has begun)?
takes_requests() {
	says "@kcr-mpi.$1"$'\n' /proc/net/unix || ended "$1"
}

# accepted: mpirun refuses until all ranks are back.
accepted() {
	ended "$job" && fail "the restarted job ended"
	nap 0.5
	timeout 60 cr_checkpoint --file saved "$job" > answer.out 2>&1
}

# save_again: a checkpoint of a job that was just restarted, as soon as it can be.
save_again() {
	wait_until takes_requests "$job"
	wait_until accepted
}

# right_result LOG: of the program `job`, that of the uninterrupted run in `expected`.
right_result() {
	[ -n "$(result "$1")" ] || fail "no result"
	[ "$(result "$1")" = "$(result expected)" ] || fail "another result"
}

# ends_with STATUS PID
ends_with() {
	local status
	wait_until ended "$2"
	wait "$2"
	status=$?
	[ "$status" = "$1" ] || fail "status $status instead of $1 from $2"
}

# result FILE: what the program `job` has computed.
result() {
	tr -d '\0' < "$1" | sed -n 's/^result //p'	# there is one at the end of a text of prterun's
}

# hold_writes: before `job`: what --snapshot has copied is written only once there is the
# file `permit`.  This stands before each rank's cr_checkpoint, passes on the word that lets
# it copy and keeps the next, that lets it write; `held.NODE.PID` says that it has come.
hold_writes() {
	local real
	real=$(command -v cr_checkpoint)
	mkdir -p held
	cat > held/cr_checkpoint <<- EOF
		#!/bin/bash
		[[ " \$* " = *" --hold-fd=0 "* ]] || exec "$real" "\$@"
		exec 3<&0
		exec "$real" "\$@" < <(
			word() { [ -n "\$(head -c 1 <&3 | tr '\\0' x)" ]; }
			word && printf x && word || exit
			: > "$PWD/held.\$HOSTNAME.\$\$"
			until [ -e "$PWD/permit" ] || [ ! -e /proc/\$\$ ]; do sleep 0.1; done
			printf x) 3<&-
	EOF
	chmod +x held/cr_checkpoint
	PATH=$PWD/held:$PATH
}

# held N: are so many copies waiting?
held() {
	local -a all=(held.*)
	[ -e "${all[0]}" ] && [ ${#all[@]} = "$1" ]
}

# steps_on N: waits until the job, which keeps its step in the file `step`, has made N more.
steps_on() {
	local before
	before=$(< step)
	wait_until stepped "$((10#$before + $1))"
}

stepped() {
	local now
	now=$(< step)
	[ "$((10#$now))" -ge "$1" ]
}
