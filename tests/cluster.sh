# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# For tests/slurm/cluster.sh and tests/gridengine/cluster.sh: nodes, as in tests/mpi/nodes.sh, which
# all cases of an area share.  KCR_CLUSTER is their folder.

# cluster_enter NAME: the case goes on among the nodes.  The first one has them started, by
# tests/NAME/start, which stays and makes the file `up` when all is ready.
cluster_enter() {
	[ -z "${KCR_NODES:-}" ] || return 0
	[ -d /run/kcr-vm ] || { echo "# SKIP it would take over this machine"; exit 4; }
	export KCR_NODES=$KCR_CLUSTER/nodes
	if [ ! -e "$KCR_CLUSTER/up" ]; then
		mkdir -p "$KCR_CLUSTER"
		setsid unshare --net --mount --uts "$KCR_TOP/tests/$1/start" \
			< /dev/null > "$KCR_CLUSTER/start.out" 2>&1 &
		echo $! > "$KCR_CLUSTER/keeper"
		while [ ! -e "$KCR_CLUSTER/up" ]; do
			kill -0 $! 2> /dev/null || { cat "$KCR_CLUSTER/start.out"; exit 1; }
			sleep 0.2
		done
	fi
	exec nsenter --target "$(< "$KCR_CLUSTER/keeper")" --net --mount --uts --root --wd="$PWD" "$0"
}

# cluster_join N: knows kcr1 to kcrN, and is in a folder of the user's, for the jobs; at its end
# is jobs_end.
cluster_join() {
	local number
	for ((number = 1; number <= $1; number++)); do
		node_pid[number]=$(< "$KCR_NODES/kcr$number")
	done
	trap jobs_end EXIT
	unset TMPDIR
	chmod 711 .
	install -d -m 755 -o user -g user own
	cd own || exit
}
