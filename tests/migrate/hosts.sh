# SPDX-License-Identifier: GPL-2.0
# Another host for the test scripts of migrations; to be sourced after tests/lib.sh.  It
# is a process 1, which reaps, with namespaces of its own for processes, mounts and host name, so that it
# has its own process numbers; the files are the same, as on a shared file system.
# tests/migrate/rsh gets there.
export KCR_HOST_FOLDER=$PWD
rsh=$KCR_TOP/tests/migrate/rsh

# host_start NAME
host_start() {
	local keeper
	# shellcheck disable=SC2016
	setsid unshare --pid --fork --kill-child --uts --mount --mount-proc \
		sh -c 'hostname "$1"; : > "$1.ready"; while :; do sleep 0.2; done' sh "$1" < /dev/null > "$1.log" 2>&1 &
	keeper=$!
	wait_until test -e "$1.ready"
	rm "$1.ready"
	cp "/proc/$keeper/task/$keeper/children" "$1.pid"
}

# at NAME COMMAND…: runs it there.
at() {
	local name=$1
	shift
	KCR_CUT='' "$rsh" "$name" "$(printf '%q ' "$@")"
}

# copies NAME: how many processes of this name run, here or on a host; a parked or stopped
# one counts.
copies() {
	local each count=0
	for each in $(pgrep -x "$1"); do
		[ "$(state_of "$each")" = Z ] || count=$((count + 1))
	done
	echo "$count"
}

# no_folders: nothing is left of a migration.
no_folders() {
	[ -z "$(find /tmp "$KCR_HOST_FOLDER" -maxdepth 2 -name 'kcr-migrate.*')" ]
}
