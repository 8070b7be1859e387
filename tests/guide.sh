# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# For the cases of area guide, after tests/lib.sh: a chapter of the guide, as its reader would
# follow it.  Of each block that is not marked as another kind ([source,…]), the lines behind
# "$ " are run, one after the other, in this shell; each must succeed.
#
# solver: the program of that name takes steps until the file `enough` exists.  That is so
# when a command waits for the program's end.
solver() {
	cat > solver <<'TEXT'
#!/bin/bash
exec 8<> <(:)
for ((i = 1; ; i++)); do
	echo "step $i"
	[ ! -e enough ] || exit 0
	read -r -t 0.1 -u 8
done
TEXT
	chmod +x solver
}

# steps FILE: is each of the solver's steps there, once?
steps() {
	[ -s "$1" ] && seq -f "step %.0f" "$(wc -l < "$1")" | cmp -s - "$1"
}

# begun: $target was started in the background; a case may have to wait until it is ready.
begun() {
	:
}

# run COMMAND: its output, and that of what it starts, in $output.  Its $! is the PID of what
# was last started in the background, in $target.
runs=0 target=
run() {
	local killed=
	output=said.$((runs += 1)).out
	echo "\$ $1"
	case $1 in
	*\& | *--check*) ;;
	cr_checkpoint*--kill* | cr_checkpoint*--term*) killed=$(tree_of "$target") ;;
	cr_restart*) : > enough ;;
	cr_migrate*) { wait_until ended "$target"; : > enough; } & ;;
	esac
	eval "${1//\$!/$target}" > "$output" 2>&1 || fail "status $? from: $1"
	rm -f enough
	[[ $1 != *"&" ]] || { target=$!; begun; }
	[ -n "$killed" ] || return 0
	wait "$target" 2> /dev/null
	# shellcheck disable=SC2086
	wait_until all_gone $killed
}

# commands CHAPTER [SECTION]: what it shows, a line each.
commands() {
	awk -v section="${2:-}" '/^== / { elsewhere = section != "" && substr($0, 4) != section }
		elsewhere { next }
		/^\[source,/ { other = 1 }
		/^----$/ { inside = !inside; if (!inside) other = 0; next }
		inside && !other && sub(/^\$ /, "") { print }' "$KCR_TOP/doc/$1.adoc"
}

# follow CHAPTER [SECTION]
follow() {
	local lines line
	mapfile -t lines < <(commands "$@")
	[ ${#lines[@]} -gt 0 ] || fail "the chapter $* shows no commands"
	for line in "${lines[@]}"; do
		run "$line"
	done
}
