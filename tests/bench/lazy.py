#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""cr_restart --lazy: after what time the program runs, and after what time all of its memory is
loaded, beside a restart that loads it first, and beside CRIU with and without lazy pages.

The program tells itself since when it runs: it writes the time into a file each millisecond.
Every round measures everything in turn, of programs of 256 MiB and 1 GiB (KCR_MIB=256,1024);
medians are printed, and ratios of medians.  All files are on tmpfs.

    tests/bench/lazy.py [FOLDER]

FOLDER has the cr_restart of another tree, to be measured beside."""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from criu_command import HAS_CRIU, criu_command
from holding import hold_beating
from samples import EMULATED, ROUNDS, median, record, save, steady_addresses

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.join(TOP, "build/bin")
TREES = {"": BIN} | ({"other ": os.path.abspath(sys.argv[1])} if len(sys.argv) > 1 else {})
SIZES = [int(size) for size in os.environ.get("KCR_MIB", "256,1024").split(",")]
PATIENCE = 300


class Beat:
    """What the program writes into its file."""

    def __init__(self, directory, size):
        self.directory = directory
        self.child, self.map = hold_beating(directory, size)

    def clear(self):
        """From now on wait() waits for the program to run anew."""
        self.map[:24] = bytes(24)

    def wait(self, *tools):
        """Since when it runs, in ns; not while a tool has failed."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and not any(tool.poll() for tool in tools):
            first = struct.unpack("Q", self.map[16:24])[0]
            if first:
                return first
            time.sleep(0.005)
        return None


def resident(pid):
    """Bytes of memory that the program has."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) << 12


def wait_loaded(pid, size):
    while resident(pid) < size << 20:
        time.sleep(0.005)
    return time.time_ns()


def end(pid, *tools):
    os.kill(pid, signal.SIGKILL)
    for tool in tools:
        tool.wait()
    while os.path.exists(f"/proc/{pid}"):
        time.sleep(0.01)


def start(directory, *command):
    with open(f"{directory}/out", "ab") as out:
        return subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=out, start_new_session=True)


def measure(name, beat, pid, size, *tools, since):
    """Records when it runs and when it is loaded, and ends it."""
    first = beat.wait(*tools)
    if not first:
        with open(f"{beat.directory}/out", encoding="utf-8", errors="replace") as out:
            print(f"{name}: does not run: {out.read()[-2000:]}", file=sys.stderr)
        return
    record(f"{name} runs", (first - since) / 1e6)
    record(f"{name} loaded", (wait_loaded(pid, size) - since) / 1e6)
    end(pid, *tools)


def restart(name, directory, beat, pid, size, tools, *options):
    beat.clear()
    with open(f"{directory}/out", "wb"):
        pass
    since = time.time_ns()
    tool = start(directory, f"{tools}/cr_restart", "--json", *options, "image")
    measure(name, beat, pid, size, tool, since=since)
    with open(f"{directory}/out", encoding="utf-8") as out:
        lines = [line for line in out if line.startswith("{")]
    for phase in ("load", "open", "skeleton", "fill", "resume") if lines else ():
        record(f"{name} {phase}", json.loads(lines[0])[f"{phase}_ms"])


def criu(name, directory, beat, pid, size, lazy):
    """CRIU's restore of its own image of the same program."""
    if not os.path.exists(f"{directory}/criu/inventory.img"):
        return
    beat.clear()
    tools, options = [], ["--shell-job", "-d"]
    since = time.time_ns()
    if lazy:
        # Its socket must be there before the restore begins.
        tools.append(start(directory, *criu_command("lazy-pages", f"{directory}/criu")))
        while not os.path.exists(f"{directory}/criu/lazy-pages.socket") and tools[0].poll() is None:
            time.sleep(0.002)
        options.append("--lazy-pages")
    restore = start(directory, *criu_command("restore", f"{directory}/criu", *options))
    measure(name, beat, pid, size, restore, *tools, since=since)


def dump(pid, directory):
    """CRIU's image, if it is there; the program goes on."""
    if not HAS_CRIU:
        return
    os.mkdir(f"{directory}/criu")
    subprocess.run(criu_command("dump", f"{directory}/criu", "-t", str(pid), "-R", "--shell-job"),
                   check=False)


def one_round(size):
    directory = tempfile.mkdtemp(prefix="kcr-bench.")
    beat = Beat(directory, size)
    child = beat.child
    beat.wait(child)
    dump(child.pid, directory)
    subprocess.run([f"{BIN}/cr_checkpoint", "--nosync", "--kill", "-f", f"{directory}/image",
                    str(child.pid)], check=True)
    child.wait()
    for tree, tools in TREES.items():
        restart(f"{tree}{size} eager", directory, beat, child.pid, size, tools)
        restart(f"{tree}{size} lazy", directory, beat, child.pid, size, tools, "--lazy")
    criu(f"{size} criu", directory, beat, child.pid, size, False)
    criu(f"{size} criu lazy", directory, beat, child.pid, size, True)
    shutil.rmtree(directory)


def row(what, value, target, ok):
    print(f"{what:44} {value:>12}   {target:28} {'ok' if ok else 'MISSED'}")


def report_size(size):
    eager, runs, loaded = (median(f"{size} {name}") for name in ("eager runs", "lazy runs", "lazy loaded"))
    print(f"\n{size} MiB, after the start of the command")
    for tree in TREES:
        for way in ("eager", "lazy"):
            name = f"{tree}{size} {way}"
            phases = " ".join(f"{phase} {median(f'{name} {phase}'):.0f}"
                              for phase in ("load", "open", "skeleton", "fill", "resume"))
            print(f"{tree + way:12} runs {median(f'{name} runs'):8.1f} ms, loaded "
                  f"{median(f'{name} loaded'):8.1f} ms; {phases}")
    for way in "criu", "criu lazy":
        if median(f"{size} {way} runs"):
            print(f"{way:12} runs {median(f'{size} {way} runs'):8.1f} ms, loaded "
                  f"{median(f'{size} {way} loaded'):8.1f} ms")
    row("lazy: runs", f"{runs:.1f} ms", "<= 60 ms", runs <= 60)
    row("lazy: loaded", f"{loaded / eager:.2f}", "<= 1.3 of an eager restart", loaded / eager <= 1.3)
    theirs = median(f"{size} criu runs")
    if theirs:
        row("lazy: runs", f"{runs / theirs:.2f}", "<= 1/10 of criu restore", runs / theirs <= 0.1)


def main():
    steady_addresses()
    for number in range(ROUNDS):
        for size in SIZES:
            one_round(size)
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
    save("lazy", sizes=SIZES)
    print(f"\n{os.uname().release}, {os.cpu_count()} processors, {ROUNDS} rounds, medians; files on tmpfs"
          + ("; emulated, addresses not randomized" if EMULATED else ""))
    for size in SIZES:
        report_size(size)


main()
