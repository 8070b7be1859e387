#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""How much a user of the module can slow down one who has nothing to do with it.

The attacker (attack.c) with all its processes runs on one processor, the bystander
(bystander.c) on another.  The bystander's forks and context switches are counted
while the attacker calls the module and, in turn, while the same processes do as much
work without it.  Ratios are of two adjacent slices, so that a slow spell of the machine
hits both.  Medians and quartiles are printed: if these are far apart, the machine has
other work, and the result says nothing about the module.  The bystander's share of its
processor shows what others took of it, whatever else the machine does; a rate that drops
without that share is due to the emulator, caches or a lock."""
import os
import signal
import statistics
import subprocess
import sys

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/tests/bench")
PAIRS = 3 * int(os.environ.get("KCR_ROUNDS", "5"))
LIMIT = 0.98
KINDS = ["members", "forks", "list", "timers", "park", "clone", "clients"]


def start(user, processor, *command):
    return subprocess.Popen(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups",
                             "taskset", "-c", str(processor), f"{BENCH}/{command[0]}",
                             *command[1:]],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                            start_new_session=True)


def ask(child, line):
    child.stdin.write(f"{line}\n".encode())
    answer = child.stdout.readline().decode()
    if not answer:
        sys.exit(f"bystander.py: a process ended: {child.args}")
    return answer


def end(child):
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    child.stdin.close()
    child.stdout.close()


def measure(kinds, bystander):
    """Forks and switches per second: idle and attacked, a dictionary for each pair of slices."""
    attackers = [start(1000, 1, "attack", kind) for kind in kinds]
    for attacker in attackers:
        attacker.stdout.readline()
    pairs = []
    for number in range(PAIRS):
        rates = {}
        for mode in ("idle", "attack") if number % 2 else ("attack", "idle"):
            for attacker in attackers:
                ask(attacker, mode)
            rates[mode] = [float(word) for word in ask(bystander, "go").split()]
        pairs.append(rates)
    for attacker in attackers:
        end(attacker)
    return pairs


def row(name, what, at, pairs):
    idle, attacked = (statistics.median(rates[mode][at] for rates in pairs)
                      for mode in ("idle", "attack"))
    left = statistics.median(rates["attack"][at + 1] / rates["idle"][at + 1] for rates in pairs)
    low, ratio, high = statistics.quantiles(
        (rates["attack"][at] / rates["idle"][at] for rates in pairs), n=4)
    print(f"{name + ': ' + what:20} {attacked:8.0f}/s of {idle:8.0f}/s  {ratio:.3f} "
          f"({low:.3f} to {high:.3f})  >= {LIMIT}   {'ok' if ratio >= LIMIT else 'MISSED'}"
          f"   processor {left:.3f}", flush=True)


def main():
    kinds = sys.argv[1:] or KINDS + ["all"]
    if os.cpu_count() < 2:
        sys.exit("bystander.py: this needs two processors")
    bystander = start(1001, 0, "bystander")
    print(f"{os.uname().release}: a bystander, while another user does the worst he can; "
          f"medians of {PAIRS}")
    for kind in kinds:
        pairs = measure([k for k in KINDS if k != "members"] if kind == "all" else [kind], bystander)
        row(kind, "forks", 0, pairs)
        row(kind, "switches", 2, pairs)
    end(bystander)


main()
