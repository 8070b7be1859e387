# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# For the cases of areas slurm and gridengine, after lib.sh: jobs of an ordinary user under
# cr_batch, each in a folder of its own, that count to 20, and what becomes of them.

as_user() { HOME=/home/user setpriv --reuid user --regid user --init-groups "$@"; }

# logged FOLDER TEXT [TIMES]: is that, an extended regular expression, in a log of cr_batch there (so
# often)?  Starts no program, as it may be asked again and again.
logged() {
	local file line lines count=0
	for file in "$1"/kcr/*.log; do
		mapfile -t lines < "$file"
		for line in "${lines[@]}"; do
			[[ ! $line =~ $2 ]] || count=$((count + 1))
		done
	done 2> /dev/null
	[ $count -ge "${3:-1}" ]
}
was_saved() { logged "$1" "saved and requeued|to go on in the next run"; }
was_restarted() { logged "$1" "restarted from checkpoint"; }

# program FOLDER: the `solver` there is the script on standard input.
program() {
	as_user mkdir -p "$1"
	cat > "$1/solver"
	chmod 755 "$1/solver"
}

# counting FOLDER: a program there which counts to 20, in the file `count` and on its output;
# the step 10 and those that follow wait until `go` exists in the folder above.
counting() {
	program "$1" <<'TEXT'
#!/bin/bash
exec 8<> <(:)
for ((i = 1; i <= 20; i++)); do
	while [ $i -ge 10 ] && [ ! -e ../go ]; do read -r -t 0.1 -u 8; done
	echo $i >> count
	echo "step $i"
done
TEXT
}

# counting_pipeline FOLDER OTHER: a shell and its pipeline, which count along with another folder.
# No program with IDs in its memory (tail --pid; tests/programs/threads.c): they may be in use on
# the next node.
counting_pipeline() {
	program "$1" <<TEXT
#!/bin/bash
exec 8<> <(:)
until [ -e ../$2/count ]; do read -r -t 0.1 -u 8; done
until [ "\$n" = 20 ]; do read -r n && echo "\$n" || read -r -t 0.1 -u 8; done < ../$2/count |
	while read -r n; do echo "step \$n"; echo "\$n" >> count; done
TEXT
}

# counting_threads FOLDER: two threads, which count the even and the odd numbers.
counting_threads() {
	program "$1" <<'TEXT'
#!/usr/bin/python3
import os, threading, time
turn = threading.Condition()
at = [1]
def count(odd):
    while at[0] <= 20:
        with turn:
            turn.wait_for(lambda: at[0] > 20 or at[0] % 2 == odd)
            while at[0] >= 10 and not os.path.exists("../go"):
                time.sleep(0.05)
            if at[0] <= 20:
                with open("count", "a") as out:
                    print(at[0], file=out)
                print("step", at[0], flush=True)
            at[0] += 1
            turn.notify()
both = [threading.Thread(target=count, args=(n,)) for n in (0, 1)]
[each.start() for each in both]
[each.join() for each in both]
TEXT
}

nine() { says 9 "$1/count"; }
# counted FOLDER: each step was made once, in order, and each line of output is there.
counted() {
	local steps
	steps=$(seq -s' ' 20)
	[ "$(paste -sd' ' "$1/count")" = "$steps" ] || fail "$1 counted $(paste -sd' ' "$1/count")"
	[ "$(sed -n 's/^step //p' "$1/out" | paste -sd' ')" = "$steps" ] || fail "$1 said: $(cat "$1/out")"
	[ -z "$(find "$1/kcr" -name '*.context*')" ] || fail "$1 left $(ls "$1/kcr")"
}
