# SPDX-License-Identifier: GPL-2.0
# For the cases of lazy restarts.
case $(uname -r) in
5.10.*) skip "--lazy needs Linux 5.18" ;;
esac

# loads: has cr_restart, $restarted, a userfaultfd of a program?
loads() {
	local link
	for link in "/proc/$restarted/fd/"*; do
		[[ $(readlink "$link" 2> /dev/null) != *userfaultfd* ]] || return 0
	done
	return 1
}

# loaded: has cr_restart, which --json was given to, told that the program runs, and
# loaded everything?
loaded() {
	! ended "$restarted" || fail "cr_restart has ended"
	runs && ! loads
}

# runs: has it told that the program runs?
runs() {
	says '"pid"' restart.out
}

# half_loaded FILE [OPTION...]: a restart from FILE that is stopped as soon as the program
# runs: cr_restart does nothing until it gets SIGCONT.
half_loaded() {
	local file=$1
	shift
	: > restart.out
	setsid cr_restart --lazy --json "$@" --file "$file" < /dev/null > restart.out 2>&1 &
	restarted=$!
	until runs; do
		! ended "$restarted" || fail "cr_restart has ended"
	done
	kill -STOP "$restarted"
	loads || skip "the machine is too fast: everything is loaded"
}

# gone PID...: they all have ended; their parents may not have waited for them yet.
gone() {
	local each
	for each in "$@"; do
		ended "$each" || return 1
	done
}
