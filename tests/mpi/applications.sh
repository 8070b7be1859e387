# SPDX-License-Identifier: GPL-2.0
# For the cases mpi/app_*, after tests/mpi/lib.sh: programs of others, and ours in
# languages other than C, are saved at random moments, killed wholesale, restarted,
# and have to come to the same result.  Each PROGRAM brings two functions here:
#   PROGRAM_start       sets np and command, writes what it reads to the folder;
#                       stop=--kill if it must not run on once it is saved
#   PROGRAM_same WHOLE  compares the folder with that of an uninterrupted run
# The moments are in the output, and so are those of a failure.

# rounds PROGRAM [COUNT]: KCR_ROUNDS instead, if it is set.
rounds() {
	local program=$1 count=${KCR_ROUNDS:-${2:-1}} begin round
	mkdir whole
	cd whole || fail "no folder"
	"${program}_start"
	begin=${EPOCHREALTIME/./}
	timeout 400 cr_mpirun -np "$np" "${command[@]}" > job.out 2>&1 < /dev/null ||
		fail "$program does not run"
	duration_ms=$(((${EPOCHREALTIME/./} - begin) / 1000))
	cd ..
	for ((round = 1; round <= count; round++)); do
		mkdir "round.$round"
		cd "round.$round" || fail "no folder"
		interrupted "$program"
		"${program}_same" ../whole ||
			fail "$program has another result; saved after $moments ms"
		cd ..
		rm -rf "round.$round"
		echo "# $program $round/$count: saved after $moments of $duration_ms ms"
	done
}

# interrupted PROGRAM: once, and sometimes again after the restart.
interrupted() {
	local longest=$duration_ms tries=30
	moments=
	until start_job "$1" && save $longest; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || fail "$1 cannot be saved before its end"
		longest=$((longest / 2 + 5))
	done
	start again cr_restart saved.kcr
	job=$pid
	if [ $((RANDOM % 3)) = 0 ] && save "$duration_ms"; then
		start last cr_restart saved.kcr
		job=$pid
	fi
	patience=400 ends_with 0 "$job"
}

start_job() {
	rm -rf ./*
	"$1_start"
	start job cr_mpirun -np "$np" "${command[@]}"
	job=$pid
}

# save LONGEST: saves the job at a random moment within LONGEST ms and kills it, at
# once or a little later; fails if it has ended before.
save() {
	local delay=$((RANDOM * $1 / 32768)) status
	wait_until takes_requests "$job"
	nap $((delay / 1000)).$(printf %03d $((delay % 1000)))
	while :; do
		timeout 100 cr_checkpoint ${stop:+"$stop"} --file saved "$job" > save.out 2>&1
		status=$?
		case $status in
		0) break ;;
		16) nap 0.1 ;;		# it is starting
		*) ended_well $status && return 1 ;;
		esac
	done
	moments+="${moments:+ and }$delay"
	[ -n "${stop:-}" ] || [ $((RANDOM % 2)) = 0 ] || nap 0.$((RANDOM % 900 + 100))
	kill_job
}

# A request that failed with STATUS came too late, or the test has failed.
ended_well() {
	ended "$job" || [[ $1 = @(3|32|104) ]] || fail "the checkpoint failed with status $1"
	patience=100 ends_with 0 "$job"
}

# All that it printed before and after the restarts, without repetitions.
results() {
	sed -n 's/^result //p' "$1"/{job,again,last}.out 2> /dev/null | sort -u
}

same_results() {
	[ -n "$(results .)" ] && [ "$(results .)" = "$(results "$1")" ]
}

# ---- the programs ---------------------------------------------------------------

cg_start() {
	np=2 command=(cg "${KCR_CG_LINES:-40}" 16)
}
cg_same() { same_results "$1"; }

# When the common file is closed, Open MPI deletes one of its own that is saved as open.
objects_start() {
	stop=--kill np=2 command=(/usr/bin/python3 "$KCR_TOP/tests/mpi/objects.py" 15)
}
objects_same() { same_results "$1"; }

# The positions at the end, to the last bit.
lammps_start() {
	cp "$KCR_TOP/tests/mpi/in.melt" .
	np=2 command=(lmp -var size 5 -var steps 150 -in in.melt)
}
lammps_same() { [ -s final ] && cmp final "$1/final"; }

# NetPIPE checks what arrives, and ends the job if it is not right: each size has to
# have come in one life or another.  Its lines may be completed in the next life.
# It ends a measurement that took a second for each of its repetitions, the time
# between two lives included.
netpipe_start() {
	np=2 command=(NPopenmpi -i -u 300000 -n 50)
}
netpipe_sizes() {
	sed -n 's/^ *\([0-9]*\): *[0-9]* bytes.*/\1/p' "$1"/*.out | sort -un
}
netpipe_same() {
	[ -n "$(netpipe_sizes .)" ] && [ "$(netpipe_sizes .)" = "$(netpipe_sizes "$1")" ] &&
		not grep -qi failed ./*.out
}

# It appends to its file and checks itself; some of its residuals are random.
hpcc_start() {
	sed -e 's/^1000 .*/120 Ns/' -e 's/^80 .*/32 NBs/' -e 's/^2 *Ps/1 Ps/' \
		/usr/share/doc/hpcc/examples/_hpccinf.txt > hpccinf.txt
	np=2 command=(hpcc)
}
hpcc_figures() {
	grep -E '^(Success|.*_residual|MPI.*_Errors|MPIFFT_maxErr)=|\.\.\.\. PASSED' "$1/hpccoutf.txt" | sort -u
}
hpcc_same() {
	grep -q '^Success=1' hpccoutf.txt && [ "$(hpcc_figures .)" = "$(hpcc_figures "$1")" ] &&
		not grep -q FAILED hpccoutf.txt
}
