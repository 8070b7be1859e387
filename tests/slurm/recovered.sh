# SPDX-License-Identifier: GPL-2.0
# For cases of area slurm in which MPI jobs go on after a failure; to be sourced after cluster.sh.
# The result that is right is in `expected`.
. "$KCR_TOP/tests/mpi/lib.sh"
unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
patience=240

save() {
	on 1 runuser -u user -- timeout 60 cr_checkpoint --file "$PWD/$folder/saved" "$mpirun" > save.out 2>&1
}
places() { jq -r '.ranks[].node' "$folder/saved.kcr/manifest.json" | sort -u | paste -sd ' '; }
goes_on() {		# N NODES: after the N-th recovery it can be saved, and is on these
	wait_until says "(recovery $1 of 2)" "$folder/out"
	wait_until save
	[ "$(places)" = "$2" ] || fail "it is on $(places), not on $2"
}
begun() {
	says status "$folder/out" && fail "it has ended: $(< "$folder/out")"
	says running "$folder/out"
}
nothing_on() { ! on "$1" pgrep -x 'job|cr_node|cr_mpirun|cr_rank' > /dev/null; }
all_idle() { [ "$(sinfo --noheader --partition low --states idle --format %D)" = 4 ]; }

# starts FOLDER NODES OPTION...: four ranks in an allocation of so many nodes, and saves them.
starts() {
	local nodes=$2
	folder=$1
	shift 2
	as_user mkdir "$folder"
	printf '#!/bin/bash\n%s\n' "cr_mpirun $* job -w ../go 100" 'echo "status $?"' > "$folder/script"
	submit "$folder" "$folder/script" --nodes "$nodes" --ntasks-per-node 2 --no-kill \
		--nodelist "kcr[1-$nodes]"
	wait_until begun
	mpirun=$(on 1 pgrep -o -x cr_mpirun)
	wait_until save
}

ends_well() {
	local number
	as_user touch go
	wait_until completed "$job"
	rm go
	right_result "$folder/out"
	says "status 0" "$folder/out" || fail "it ended with $(tail -n 1 "$folder/out")"
	for number in 1 2 3 4; do
		wait_until nothing_on $number
	done
	wait_until all_idle
}
