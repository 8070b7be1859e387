# SPDX-License-Identifier: GPL-2.0
"""What the rounds of a benchmark measure: samples by name, their medians, and all of them
for others: in the file KCR_RESULTS, as JSON, if that is set."""
import json
import os
import statistics

ROUNDS = int(os.environ.get("KCR_ROUNDS", "5"))
EMULATED = os.environ.get("KCR_NATIVE") != "1"
samples = {}


def record(name, value):
    samples.setdefault(name, []).append(value)


def median(name):
    """The median, or None if there was no such sample."""
    return statistics.median(samples[name]) if name in samples else None


def steady_addresses():
    """An emulator translates a program's code again wherever it is loaded, which
    costs every command 20-40 ms that a real processor does not need."""
    if EMULATED:
        with open("/proc/sys/kernel/randomize_va_space", "w", encoding="ascii") as file:
            file.write("0")


def save(benchmark, emulated=EMULATED, **more):
    """Puts all samples, and what else there is to know, into that member of the results; the
    members of other benchmarks stay."""
    path = os.environ.get("KCR_RESULTS")
    if not path:
        return
    results = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
    results[benchmark] = {"kernel": os.uname().release, "processors": os.cpu_count(),
                          "emulated": emulated, "rounds": ROUNDS, **more,
                          "median": {name: median(name) for name in samples},
                          "samples": samples}
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    os.rename(f"{path}.new", path)
