# SPDX-License-Identifier: GPL-2.0
# For the cases of cr_batch, after tests/lib.sh: a program whose output shows whether each
# of its steps was made once, and runs of it.
need jq

# A script that counts to $1 in the file `count`; the step 10 and those that follow wait
# until the file `go` exists, so that a case is never too late.
cat > counting <<'TEXT'
exec 8<> <(:)
for ((i = 1; i <= $1; i++)); do
	while [ $i -ge 10 ] && [ ! -e go ]; do read -r -t 0.05 -u 8; done
	echo $i >> count
done
exit "${2:-0}"
TEXT

# batch [OPTION...]: a run of cr_batch in the background, for the script or, if `command` is
# set, for that; PID in $run, output in batch.out.
command=(bash counting 20)
batch() {
	: > batch.out
	setsid cr_batch --verbose --dir jobs "$@" -- "${command[@]}" < /dev/null > batch.out 2>&1 &
	run=$!
}

# Has the script made its first nine steps?
nine() { says "9" count; }

# logged TEXT [TIMES]: is that in the job's log (so often)?
logged() { [ "$(cat jobs/*.log 2> /dev/null | grep -c -- "$1")" -ge "${2:-1}" ]; }

# ends STATUS: the run ends, with that status.
ends() {
	local got
	wait_until ended "$run"
	wait "$run"
	got=$?
	[ $got = "$1" ] || fail "cr_batch ended with $got, not $1: $(cat batch.out)"
}

# counted N: each step was made once, in order.
counted() {
	[ "$(paste -sd' ' count)" = "$(seq -s' ' "$1")" ] || fail "counted $(paste -sd' ' count)"
}

# leader: the PID of the program that the running cr_batch stands for.
leader() { cr_batch --status jobs --json | jq '.[0].pid'; }

# complete: the names of the complete checkpoints, on a line.
complete() { (cd jobs && find . -name '*.context' -printf '%P\n' | sort -V | paste -sd' '); }

# A program that counts like the script, with 300 MB of memory that no save skips: one that
# is being written when something happens.
cat > large.py <<'TEXT'
import os, sys, time
memory = os.urandom(1 << 20) * 300
for i in range(1, int(sys.argv[1]) + 1):
    while i >= 10 and not os.path.exists("go"):
        time.sleep(0.05)
    with open("count", "a") as out:
        print(i, file=out)
TEXT

# Is the first checkpoint being written?
writing() { [ -s jobs/.job.1.context.tmp ] || [ -e jobs/job.1.context ]; }

# one_line STATUS: the run ends with that, and says one line on standard error.
one_line() {
	ends "$1"
	[ "$(wc -l < batch.out)" = 1 ] || fail "not one line: $(cat batch.out)"
}
