# SPDX-License-Identifier: GPL-2.0
# For the test scripts in tests/cases: start a program, checkpoint it, kill it,
# restart it, wait for conditions.  A script starts with
#	. "$KCR_TOP/tests/lib.sh"
# and runs in an empty directory of its own, as root, in the emulated machine, with
# the tools in PATH and the programs of tests/programs in $KCR_TESTS.  It passes
# with status 0 and skips with `skip WHY`; anything else fails.  Lines in its
# head that tests/run reads: `# timeout: SECONDS`.
set -u
PATH=$KCR_BIN:$KCR_TESTS:$PATH
patience=${KCR_PATIENCE:-60}	# seconds to wait for anything

# Sleeps without starting a program, which costs 70 ms in the emulated machine.  Changes
# $!.
nap() {
	read -r -t "${1:-0.05}" <> <(:)
}

fail() {
	echo "# $*"
	for log in *.out; do
		[ ! -s "$log" ] || { echo "# --- $log:"; tail -n 20 "$log" | sed 's/^/#   /'; }
	done
	exit 1
}

skip() {
	echo "# SKIP $*"
	exit 4
}

# try COMMAND...: must succeed.
try() {
	"$@" || fail "status $? from: $*"
}

# status_of COMMAND...: exit status in $status, output in $said.
status_of() {
	said=$("$@" 2>&1)
	status=$?
}

# wait_until CONDITION...: a command that must succeed in time.
wait_until() {
	local end=$((SECONDS + patience))
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "waited $patience s for: $*"
		nap
	done
	return 0		# not nap's status, which is that of a timeout
}

# says TEXT FILE: does the file contain the text?
says() {
	local all=
	{ IFS= read -r -d "" all < "$2"; } 2> /dev/null
	[[ $all = *"$1"* ]]
}

# start NAME COMMAND...: in the background, in a session of its own; output in
# NAME.out, PID in $pid.
start() {
	local name=$1
	shift
	: > "$name.out"	# the output of an earlier one is removed before this returns
	setsid "$@" < /dev/null > "$name.out" 2>&1 &
	pid=$!
}

# start_ready PROGRAM [ARGUMENT...]: a program of tests/programs (or a command
# line, if it contains a slash) that creates the file `ready` when it is set up and
# goes on when a file `go` exists.
start_ready() {
	local program=$1 name command
	shift
	case $program in
	*/*) read -r -a command <<< "$program" ;;
	*) command=("$KCR_TESTS/$program") ;;
	esac
	name=${command[-1]##*/}
	[ ! -e ready ] && [ ! -e go ] || rm -f ready go
	start "$name" "${command[@]}" "$PWD/ready" "$PWD/go" "$@"
	wait_until ready_or_dead "$pid"
	[ -e ready ] && return
	wait "$pid"
	case $? in
	4) skip "$(sed -n 's/^# skipped: //p' "$name.out" | tail -n 1)" ;;
	*) fail "$program could not be set up" ;;
	esac
}

ready_or_dead() {
	[ -e ready ] || ended "$1"
}

state_of() {
	local stat
	{ stat=$(< "/proc/$1/stat"); } 2> /dev/null || return
	stat=${stat##*) }
	echo "${stat%% *}"
}

# tree_of PID: the process and all its descendants.
tree_of() {
	local file child children
	echo "$1"
	for file in "/proc/$1/task/"*/children; do
		children=()
		{ read -r -a children < "$file"; } 2> /dev/null
		for child in "${children[@]}"; do
			tree_of "$child"
		done
	done
}

all_gone() {
	local each
	for each in "$@"; do
		[ ! -e "/proc/$each" ] || return 1
	done
}

# checkpoint PID [OPTION...]: into the file `image`; the program runs on.
checkpoint() {
	local target=$1
	shift
	try timeout "$patience" cr_checkpoint --clobber --file image "$@" "$target"
}

# checkpoint_again [OPTION...]: of the program that was just restarted, as soon as
# it can be.
checkpoint_again() {
	wait_until can_be_saved "$@"
}

can_be_saved() {
	local status
	timeout "$patience" cr_checkpoint --clobber --file image "$@" "$pid" > again.out 2>&1
	status=$?
	case $status in
	0) return 0 ;;
	3 | 16) ! ended "$restarted" && return 1 ;;	# it is still being rebuilt
	esac
	fail "status $status from cr_checkpoint"
}

# flip_bit FILE AT: flips one bit of the byte at offset AT, so that it certainly changes.
flip_bit() {
	local old
	old=$(od -An -tu1 -N1 -j "$2" "$1")
	printf "\\x$(printf %x $((old ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# kill_tree PID: with SIGKILL; waits until all PIDs are free again.
kill_tree() {
	local all tries
	all=$(tree_of "$1")
	# shellcheck disable=SC2086
	kill -KILL $all 2> /dev/null
	wait "$1" 2> /dev/null
	# shellcheck disable=SC2086
	wait_until all_gone $all
	# Processes forked meanwhile are in their groups, and keep the groups' IDs in use.
	for ((tries = 0; tries < 40; tries++)); do
		# shellcheck disable=SC2086
		no_groups $all && break
		nap
	done
}

no_groups() {
	local each
	for each in "$@"; do
		! kill -0 -- "-$each" 2> /dev/null || return 1
	done
}

# checkpoint_and_kill PID [OPTION...]: the program does nothing in between.
checkpoint_and_kill() {
	checkpoint "$@" --kill
	saved_are_gone "$1"
}

# saved_are_gone PID: waits until the processes in `image`, which the checkpoint has
# killed, no longer exist; the first one, PID, is a child of the shell.
saved_are_gone() {
	wait "$1" 2> /dev/null
	# shellcheck disable=SC2046
	wait_until all_gone $(cr_info --json image | jq '.process[].pid')
}

# checkpoint_midway WHAT [OPTION...]: checkpoint_and_kill of $pid, unless it has ended.
checkpoint_midway() {
	local what=$1 status
	shift
	timeout "$patience" cr_checkpoint --clobber --file image --kill "$@" "$pid" > midway.out 2>&1
	status=$?
	[ $status != 3 ] || wait_until ended "$pid"	# it was exiting
	[ $status = 0 ] || ! ended "$pid" || skip "the machine is too fast: $what had ended"
	[ $status = 0 ] || fail "status $status from cr_checkpoint"
	saved_are_gone "$pid"
}

# restart [OPTION...]: from the file `image`, in the background; cr_restart's PID
# in $restarted, output in restart.out.
restart() {
	: > restart.out
	setsid cr_restart "$@" --file image < /dev/null > restart.out 2>&1 &
	restarted=$!
}

# finish PID: waits for its exit, in time and with status 0.
finish() {
	local status
	wait_until ended "$1"
	wait "$1"
	status=$?
	[ $status = 0 ] || fail "process $1 ended with status $status"
}

ended() {	# reaped, or a zombie without running threads
	local stat
	{ stat=$(< "/proc/$1/stat"); } 2> /dev/null || return 0
	read -r -a stat <<< "${stat##*) }"
	[ "${stat[0]-Z}" = Z ] && [ "${stat[17]-0}" -le 1 ]
}

# survives PROGRAM [ARGUMENT...]: is unharmed by a checkpoint; and after another
# one, SIGKILL and a restart, finds its state unchanged.  CHECKPOINT and RESTART
# may hold options.
survives() {
	unharmed "$@"
	start_ready "$@"
	# shellcheck disable=SC2086
	checkpoint "$pid" ${CHECKPOINT:-}
	kill_tree "$pid"
	# shellcheck disable=SC2086
	restart ${RESTART:-}
	: > go
	finish "$restarted"
}

# refused_memory KIND TEXT: such memory (tests/programs/memory_refused.c) is refused with
# one line that names the process and says TEXT; no file is left, and the program
# goes on.  CHECKPOINT may hold options.
refused_memory() {
	start_ready memory_refused "$1"
	# shellcheck disable=SC2086
	status_of cr_checkpoint --file image ${CHECKPOINT:-} "$pid"
	[ "$status" = 95 ] || fail "status $status: $said"
	case $said in *"$pid"*"$2"*) ;; *) fail "message: $said" ;; esac
	[ "$(echo "$said" | wc -l)" = 1 ] || fail "more than one line: $said"
	[ -z "$(find . -name '*image*')" ] || fail "files are left"
	: > go
	finish "$pid"
}

# unharmed PROGRAM [ARGUMENT...]: goes on after a checkpoint as if there was none.
unharmed() {
	start_ready "$@"
	# shellcheck disable=SC2086
	checkpoint "$pid" ${CHECKPOINT:-}
	: > go
	finish "$pid"
}

# same_output SECONDS COMMAND...: interrupted that long after its start, or when half the time
# of an undisturbed run has passed, it writes the same as that.  It must not run on after the checkpoint: gawk
# and others set O_APPEND, and would append the same output twice.
same_output() {
	local delay=$1 begin=${EPOCHREALTIME/./} half
	shift
	try "$@" > expected
	half=$(((${EPOCHREALTIME/./} - begin) / 2000))
	start work "$@"
	sleep "$(printf '%s\n' "$delay" "$((half / 1000)).$(printf %03d $((half % 1000)))" | sort -n | head -n 1)"
	# shellcheck disable=SC2086
	checkpoint_midway "$1" ${CHECKPOINT:-}
	restart
	finish "$restarted"
	try cmp expected work.out
}

# need COMMAND: skips the test if it is missing.
need() {
	command -v "$1" > /dev/null || skip "there is no $1 here"
}

# need_btf: skips the test where the kernel does not describe its types.
need_btf() {
	[ -e /sys/kernel/btf/vmlinux ] || skip "this kernel has no BTF"
}

# linux VERSION: is it this one or newer?
linux() { [ "$(printf '%s\n' "$1" "$(uname -r)" | sort -V | head -n 1)" = "$1" ]; }

# need_lazy: skips the test where cr_restart --lazy cannot work.
need_lazy() {
	linux 5.16 || skip "this kernel reports one change of mappings at a time"
}

not() {
	! "$@" > /dev/null 2>&1
}

# need_faults: sets up injected failures of allocations and copies, or skips
# (tests/programs/fault.c).
need_faults() {
	local folder=/sys/kernel/debug kind
	[ -d $folder/failslab ] && [ -w /proc/self/fail-nth ] || skip "this kernel injects no faults"
	for kind in failslab fail_usercopy; do
		echo 1 > $folder/$kind/verbose		# one line, for check-log; no trace
	done
	echo N > $folder/failslab/ignore-gfp-wait	# those that may sleep fail, too
}

# faulty CALL N COMMAND...: the N-th allocation in the call fails; $status, $said.
# The file `fault` exists afterwards if the call made that many.
faulty() {
	local call=$1 nth=$2
	shift 2
	rm -f fault
	FAULT_CALL=$call FAULT_NTH=$nth FAULT_LOG=$PWD/fault LD_PRELOAD=$KCR_TESTS/fault \
		status_of timeout "$patience" "$@"
}
