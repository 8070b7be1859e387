#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Increments against full images.

Every round measures everything once, in turn, so that a slow spell of the machine
hits all of them; medians are printed, and ratios of medians.  Files are on tmpfs.
KCR_MIB= sets the size of the process."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from samples import ROUNDS, median, record, save, steady_addresses

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.join(TOP, "build/bin")
BENCH = os.path.join(TOP, "build/tests/bench")
MIB = int(os.environ.get("KCR_MIB", "256"))
PERCENT, LENGTH = 5, 20


class Program:
    """hold, which changes PERCENT of its memory when it is told to."""

    def __init__(self, mib=MIB):
        self.child = subprocess.Popen([f"{BENCH}/hold", str(mib), str(PERCENT)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      start_new_session=True)
        self.child.stdout.readline()

    def change(self):
        self.child.stdin.write(b".")
        self.child.stdin.flush()
        self.child.stdout.readline()

    def end(self):
        self.child.kill()
        self.child.wait()


def checkpoint(program, name, path, *options):
    start = time.monotonic()
    out = subprocess.run([f"{BIN}/cr_checkpoint", "--json", "--nosync", *options, "-f", path,
                          str(program.child.pid)], stdout=subprocess.PIPE, check=True).stdout
    took = (time.monotonic() - start) * 1e3
    done = json.loads(out.splitlines()[-1])
    if name:
        record(f"{name} whole", took)
        record(f"{name} stopped", done["stopped_ms"])
        record(f"{name} bytes", done["bytes"])


def bare_copy(program, path):
    """What there is no way around: the changed pages from memory into a file."""
    out = subprocess.run([f"{BENCH}/copy", str(program.child.pid), str(PERCENT), path],
                         stdout=subprocess.PIPE, check=True).stdout
    record("copy", float(out))
    os.unlink(path)


def restart(name, path):
    out = f"{path}.json"
    with open(out, "w") as f:
        start = time.monotonic()
        tool = subprocess.Popen([f"{BIN}/cr_restart", "--json", path], stdout=f)
        while not os.path.getsize(out) and tool.poll() is None:
            time.sleep(0.002)
    record(f"{name} restart", (time.monotonic() - start) * 1e3)
    with open(out) as f:
        os.kill(json.load(f)["pid"], signal.SIGKILL)
    tool.wait()
    os.unlink(out)


def one_round(directory):
    plain, chain = f"{directory}/plain", f"{directory}/chain"
    program = Program()
    checkpoint(program, None, plain)  # so that all start from files that exist
    checkpoint(program, "full", plain)
    checkpoint(program, "first", chain, "--incremental")
    program.change()
    checkpoint(program, "increment", chain, "--incremental")
    bare_copy(program, plain + ".copy")
    program.change()
    checkpoint(program, "snapshot", chain, "--incremental", "--snapshot")
    checkpoint(program, "idle", chain, "--incremental")
    for _ in range(LENGTH - 3):
        program.change()
        checkpoint(program, None, chain, "--incremental")
    checkpoint(program, None, plain)
    program.end()
    restart("full", plain)
    restart("chain", chain)
    small = Program(1)
    checkpoint(small, None, plain)
    checkpoint(small, "small", plain)
    small.end()
    for name in os.listdir(directory):
        os.unlink(os.path.join(directory, name))


def row(what, value, target, ok):
    print(f"{what:58} {value:>14}   {target:22} {'ok' if ok else 'MISSED'}")


def share(what, name, target):
    """Time and size of an image as shares of a full one's."""
    for kind, text in ("whole", "time"), ("bytes", "size"):
        ratio = median(f"{name} {kind}") / median(f"full {kind}")
        row(f"{what}: {text}", f"{ratio:.1%}", f"<= {target:.0%} of a full one", ratio <= target)


def report():
    print(f"\n{os.uname().release}, {os.cpu_count()} processors, {ROUNDS} rounds, medians; "
          f"process of {MIB} MiB, files on tmpfs")
    print(f"full image {median('full whole'):.1f} ms (stopped {median('full stopped'):.1f} ms), with "
          f"tables {median('first whole'):.1f} ms")
    share(f"increment after {PERCENT} % of the pages were written", "increment", 0.08)
    limit = median("copy") + median("small whole")
    print(f"    the limit is {limit / median('full whole'):.1%}: {median('copy'):.1f} ms for a bare copy of "
          f"the pages (process_vm_readv, write) and\n    {median('small whole'):.1f} ms to save a process "
          "of 1 MiB")
    share("increment of an idle process", "idle", 0.08)
    row("increment with --snapshot: stop time", f"{median('snapshot stopped'):.1f} ms", "<= 25 ms",
        median("snapshot stopped") <= 25)
    ratio = median("chain restart") / median("full restart")
    row(f"restart from a full image and {LENGTH} increments", f"{ratio:.2f}",
        "<= 1.3 of a full one's", ratio <= 1.3)
    print(f"    {median('chain restart'):.1f} ms, of one full image {median('full restart'):.1f} ms")


def main():
    directory = tempfile.mkdtemp(prefix="kcr-bench.")
    steady_addresses()
    for _ in range(ROUNDS):
        one_round(directory)
    shutil.rmtree(directory)
    save("increments", mib=MIB, percent=PERCENT, length=LENGTH)
    report()


main()
