# SPDX-License-Identifier: GPL-2.0
# Results of tests that run side by side, for tests/run: a line of TAP each, with
# what a failed one said, and at the end how many they were.
verdicts=$(mktemp)		# lines `VERDICT NAME`: ok, fail or skip a test,
				# begin or end a task that runs several
failures=$(mktemp)		# what failed ones said
trap 'rm -f "$verdicts" "$failures"' EXIT

# count VERDICT NAME
count() {
	echo "$1 $2" >> "$verdicts"
}

# judge NAME STATUS LOG: one result of a test that ran on the host.
judge() {
	case $2 in
	0) count ok "$1"; echo "ok - $1" ;;
	4) count skip "$1"; echo "ok - $1 # SKIP $(sed -n 's/^# SKIP //p' "$3" | tail -n 1)" ;;
	*) count fail "$1"; printf '%s\n' "not ok - $1 (status $2)
$(tail -n 60 "$3" | sed 's/^/# /')" ;;
	esac
}

# whole COPY: passes the lines of one source on, what belongs to a failed test at
# once, so that no other source gets in between; and keeps them in the file COPY.
whole() {
	local line block=
	: > "$1"
	while IFS= read -r line; do
		printf '%s\n' "$line" >> "$1"
		case $line in
		'#'*)	if [ -n "$block" ]; then
				block+=$'\n'$line
				continue
			fi ;;
		esac
		[ -z "$block" ] || printf '%s\n' "$block"
		block=
		case $line in
		"not ok"*) block=$line ;;
		*) printf '%s\n' "$line" ;;
		esac
	done
	[ -z "$block" ] || printf '%s\n' "$block"
}

# numbered: the results from all sources, in the order in which they come, until the
# last of them ends.
numbered() {
	local line number=0 failed=
	trap '' INT TERM HUP
	while IFS= read -r line; do
		case $line in
		"ok - "* | "not ok - "*)
			number=$((number + 1))
			failed=
			[[ $line = ok* ]] || failed=yes
			line=${line/ok - /ok $number - } ;;
		'#'*) ;;
		*) failed= ;;
		esac
		printf '%s\n' "$line"
		[ -z "$failed" ] || printf '# %s\n' "$line" >> "$failures"
	done
}

nr() {
	grep -c "^$1 " "$verdicts"
}

# summary: what failed once more, where a long log is looked at first, and the last line; fails
# if a test has, or a task died on the way.
summary() {
	if [ "$(nr begin)" != "$(nr end)" ]; then
		count fail tests/run
		echo "not ok - tests/run (it was ended, or one of its tasks died)"
	fi
	cat "$failures"
	echo "$(nr ok) passed, $(nr fail) failed, $(nr skip) skipped"
	[ "$(nr fail)" = 0 ]
}
