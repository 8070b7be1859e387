# SPDX-License-Identifier: GPL-2.0
# For increments/dirty and dirty_more: ways in which memory changes (tests/programs/changes.c).
# KCR_CHANGES: some of these ways, by name.

# increment OPTION...: of $pid; what cr_checkpoint says in JSON in `result`.
increment() {
	timeout "$patience" cr_checkpoint --incremental --json "$@" -f image "$pid" > result 2> said.out ||
		fail "increment $*: $(cat result said.out)"
}

unwritten() { tail -n 1 result | jq .pages_unwritten; }

# changed_as PROGRAM CHECK [OPTION...]: … of the second increment.
changed_as() {
	local program=$1 what=$2
	shift 2
	[[ " ${KCR_CHANGES:-$what} " = *" $what "* ]] || return 0
	rm -f image* change changed ready go
	start_ready "$program" "$what"
	increment
	: > change
	wait_until test -e changed
	increment --changes=dirty "$@"
	case $what in
	exec) [ "$(unwritten)" = 0 ] || fail "$what: $(cat result)" ;;
	other)	# 5.10 forgets writes through pinned pages, so that all are read there
		[[ $(uname -r) = 5.10.* ]] || [ "$(unwritten)" -ge 1024 ] || fail "$what: $(cat result)" ;;
	*) [ "$(unwritten)" -ge 1024 ] || fail "$what: $(cat result said.out)" ;;
	esac
	kill_tree "$pid"
	restart
	: > go
	finish "$restarted"
	echo "# $what $*"
}
