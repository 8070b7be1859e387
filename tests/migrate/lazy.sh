# SPDX-License-Identifier: GPL-2.0
# For the cases of cr_migrate --lazy to another host, behind tests/lib.sh: programs run there before
# their memory is there, do everything to it that changes mappings (tests/programs/lazy.c), and find
# what they would have found here.
. "$KCR_TOP/tests/migrate/hosts.sh"
need_lazy
host_start there

# moves LEAST [OPTION...]: $pid; it ends there as it should, and at least so many MB came later.
moves() {
	local least=$1
	shift
	: > said.out
	cr_migrate --rsh="$rsh" --lazy --json "$@" "$pid" there < /dev/null > moved.out 2> said.out &
	mover=$!
	wait_until moved_or_not
	says downtime_ms said.out || fail "it was not moved: $(cat said.out)"
	wait_until ended "$pid"
	: > go
	finish "$mover"
	[ "$(jq ".later_bytes >= $least * 1000000 and .rounds == 1" < <(grep '^{' said.out))" = true ] ||
		fail "$(cat said.out)"
	wait_until no_folders
}

runs_there() { [ "$(at there readlink "/proc/$pid/exe")" = "$KCR_TESTS/lazy" ]; }

moved_or_not() {
	says downtime_ms said.out || ended "$mover"
}
