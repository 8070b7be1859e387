# SPDX-License-Identifier: GPL-2.0
# For the cases that let something die in the middle of a migration; to be sourced after
# tests/lib.sh.  $program, an array, is what is moved: it has kcr-mover among its arguments, touches
# `alive` now and then, and when there is `go` writes its PID to `result` and ends.  Another way than
# tests/migrate/rsh: $way, options, and $host; $strike: a function that is run beside, to let it die.
. "$KCR_TOP/tests/migrate/hosts.sh"
host_start there
way=(--rsh="$rsh")
host=there
strike=:

# The copies that run, or are held.
living() {
	local each
	for each in $(pgrep -f kcr-mover); do
		[ "$(state_of "$each")" = Z ] || echo "$each"
	done
}

# No end of the migration is left; or the program runs there, and they stand for it.
is_settled() {
	if ended "$mover" && ! pgrep -f -- --receive > pgrep.out; then
		return 0
	fi
	! ended "$pid" || ! rm -f alive || nap 0.5
	ended "$pid" && [ -e alive ]
}

all_ended() {
	[ -z "$(living)" ] && ended "$mover" && ! pgrep -f -- --receive > pgrep.out
}

# moved_with_cut "STEP VICTIM" OPTION…: $where: here, there or nowhere, after something died.
# settled: what says that it is over.
moved_with_cut() {
	local cut=$1
	shift
	rm -rf spool go result alive
	mkdir spool
	start mover "${program[@]}"
	wait_until test -e alive
	KCR_CUT="$cut" cr_migrate "${way[@]}" --spool="$PWD/spool" "$@" "$pid" "$host" \
		< /dev/null > moved.out 2> said.out &
	mover=$!
	$strike "$cut"
	wait_until "$settled"
	case $(living | wc -l) in
	0) where=nowhere ;;
	1) where=here && ! ended "$pid" || where=there ;;
	*) fail "$cut: two copies: $(living)" ;;
	esac
}

# goes_on STEP VICTIM: the copy that there is ends as it should.
goes_on() {
	if [ "$2" != source ] && [ "$where" = here ]; then
		! wait "$mover" || fail "$1 $2: cr_migrate says it was moved"
	fi
	: > go
	wait_until test -s result
	[ "$(< result)" = "$pid" ] || fail "$1 $2: another PID: $(cat result)"
	wait_until all_ended
}

# cut_is_over STEP VICTIM
cut_is_over() {
	rm -rf /tmp/kcr-migrate.*
	echo "# $1 $2: $where"
}
