# SPDX-License-Identifier: GPL-2.0
# Several nodes in one kernel, for the test scripts of MPI jobs; to be sourced
# before tests/lib.sh.  The script is node kcr0, where mpirun runs; each other
# node kcrN is a process 1 with namespaces of its own for processes, network,
# host name and mounts.  So every node has its own process numbers, as machines
# have, and they meet across nodes; the files are the same everywhere, as on a
# shared file system.  A bridge connects them; mpirun gets there by tests/mpi/agent.
[ -n "${KCR_NODES:-}" ] || KCR_NODES=$PWD/nodes exec unshare --net --mount --uts "$0"
export KCR_NODES KCR_HOSTNAME=kcr0
export KCR_PATIENCE=${KCR_PATIENCE:-90}	# mpirun takes its time to get everywhere
export OMPI_MCA_mpi_yield_when_idle=1	# there are more ranks than processors
export OMPI_MCA_plm_rsh_agent=$KCR_TOP/tests/mpi/agent OMPI_MCA_plm_rsh_no_tree_spawn=1
export PRTE_MCA_plm_ssh_agent=$KCR_TOP/tests/mpi/agent PRTE_MCA_plm_ssh_no_tree_spawn=1
# Every node is given its slots, which Open MPI 5 would ignore; and it starts no more ranks on a
# node than it can bind to cores, unless told to.
unset PRTE_MCA_rmaps_default_mapping_policy
export PRTE_MCA_hwloc_default_binding_policy=core:overload-allowed

node_pid=()		# of each node's process 1, as seen from here

# nodes N: starts kcr1 to kcrN.
nodes() {
	local number
	modprobe -a veth bridge 2> /dev/null || [ -e /sys/module/bridge ] ||
		skip "no emulated network in this kernel"
	mkdir "$KCR_NODES"
	for ((number = 0; number <= $1; number++)); do
		echo "10.76.0.$((10 + number)) kcr$number"
	done > hosts
	echo "127.0.0.1 localhost" >> hosts
	try mount --bind hosts /etc/hosts
	# Otherwise it has the address of one of its links, and another one when that is deleted.
	printf '%s\n' "link add bridge address 02:00:00:00:00:0a type bridge" "address add 10.76.0.10/24 dev bridge" \
		"link set bridge up" > batch
	try ip -batch batch
	for ((number = 1; number <= $1; number++)); do
		node_start "$number"
	done
}

# node_start N: kcrN, for the first time or after node_kill.
node_start() {
	local name=kcr$1 keeper
	rm -f "$KCR_NODES/$name.ready"
	setsid unshare --pid --fork --kill-child --net --uts --mount --mount-proc \
		"$KCR_TOP/tests/mpi/node" "$name" < /dev/null > "$name.log" 2>&1 &
	keeper=$!
	wait_until test -e "$KCR_NODES/$name.ready"
	read -r node_pid[$1] < "/proc/$keeper/task/$keeper/children"
	echo "${node_pid[$1]}" > "$KCR_NODES/$name"
	printf '%s\n' "link add $name type veth peer name eth0 netns ${node_pid[$1]}" \
		"link set $name master bridge up" > batch
	try ip -batch batch
	printf '%s\n' "link set lo up" "address add 10.76.0.$((10 + $1))/24 dev eth0" \
		"link set eth0 up" > batch
	try nsenter --target "${node_pid[$1]}" --net ip -batch batch
}

# node_kill N: with all that runs there, as if its power had failed.
node_kill() {
	ip link delete "kcr$1"
	kill -KILL "${node_pid[$1]}"
	wait_until all_gone "${node_pid[$1]}"
}

# node_clear N: all its processes, but not the node.
node_clear() {
	on "$1" bash -c 'kill -KILL -1'
}

# on N COMMAND...: runs it on kcrN.
on() {
	local number=$1
	shift
	nsenter --target "${node_pid[number]}" --all --root --wd="$PWD" "$@"
}

# clear_all: mpirun and everything on the nodes, wholesale.
clear_all() {
	local number
	kill_tree "$job"
	for number in "${!node_pid[@]}"; do
		node_clear "$number"
	done
}

# nothing_runs: of any job, on any node.
nothing_runs() {
	local each
	# pgrep warns of a pattern as long as this.
	for each in $(pgrep -x 'job|torture|features|features_f08|orted|prted|mpirun|prterun|cr_mpirun|cr_node|cr_rank|cr_checkpoint|cr_restart' 2> /dev/null); do
		ended "$each" || return 1
	done
}

# runs_on PID: is not frozen and gets processor time.
runs_on() {
	local before
	before=$(cut -d' ' -f14,15 "/proc/$1/stat")
	nap 0.3
	[ "$(cut -d' ' -f14,15 "/proc/$1/stat")" != "$before" ]
}
