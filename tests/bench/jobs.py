#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""How long MPI jobs stand still to be saved, and are away until they are back: what job_times
measures, in medians of KCR_ROUNDS (5), with the targets.  Times to read images are those of `cat`.
KCR_MEGABYTES (200) is the memory of each of four ranks that are saved, KCR_NODE_TIMEOUT (2) the
--node-timeout in seconds."""

import os
import statistics
import subprocess
import sys

from samples import ROUNDS, median, record, samples, save, steady_addresses

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STOP_LIMIT = 100                # ms
RANK_LIMIT = 2000               # ms
MEGABYTES = os.environ.get("KCR_MEGABYTES", "200")
NODE_TIMEOUT = os.environ.get("KCR_NODE_TIMEOUT", "2")
NODE_LIMIT = 3000               # ms, and the time to read the images


def judged(value, limit):
    return f"{value:.4g} <= {limit:g} {'ok' if value <= limit else 'MISSED'}"


def measure():
    environment = dict(os.environ, KCR_TOP=TOP, KCR_BIN=f"{TOP}/build/bin",
                       KCR_TESTS=f"{TOP}/build/tests", KCR_ROUNDS=str(ROUNDS),
                       KCR_MEGABYTES=MEGABYTES, KCR_NODE_TIMEOUT=NODE_TIMEOUT)
    with subprocess.Popen([f"{TOP}/tests/bench/job_times"], env=environment,
                          stdout=subprocess.PIPE, text=True) as job:
        for line in job.stdout:
            name, _, value = line.rstrip().rpartition(" ")
            try:
                record(name, float(value))
            except ValueError:
                print(line, end="")
    if job.returncode:
        sys.exit(f"job_times failed ({job.returncode})")


def main():
    steady_addresses()
    measure()
    for name, values in samples.items():
        print(f"{name:18} {median(name):8.0f} ms   {min(values):.0f} to {max(values):.0f}")
    print(f"4 ranks of {MEGABYTES} MB saved with --snapshot: stop, ms: "
          f"{judged(median('stop snapshot'), STOP_LIMIT)}")
    print(f"  of the stop without: {judged(median('stop snapshot') / median('stop copied'), 0.01)}")
    print(f"  whole command, of that without: "
          f"{judged(median('command snapshot') / median('command copied'), 1.1)}")
    print(f"  restart until the first message, of the time to read the images: "
          f"{judged(median('restart') / median('read'), 1.5)}")
    print(f"one of 16 ranks killed, ms until all are back: {judged(median('rank'), RANK_LIMIT)}")
    print(f"  known after {median('known rank'):.0f} ms, {median('read rank'):.0f} ms to read the images")
    beyond = statistics.median(away - read for away, read in
                               zip(samples["node"], samples["read node"]))
    print(f"a node of 4 ranks lost, onto a spare, ms beyond reading the images: "
          f"{judged(beyond, NODE_LIMIT)}")
    print(f"  known after {median('known node'):.0f} ms, with --node-timeout={NODE_TIMEOUT}")
    save("jobs")


main()
