#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""cr_migrate: for how long a program of 256 MiB that writes 10 MB/s does not run when it is moved,
by post-copy (--lazy), by pre-copy, by pre-copy that loads all memory first, and by a checkpoint that a
restart there reads from a pipe.

The other host is one of tests/migrate/: namespaces of the same machine, reached through pipes.  The
program tells itself what its longest pause was (hold --beat).  Every round moves a program in
each way in turn (KCR_MIB=256, KCR_KBPS=10000); medians are printed, and ratios of medians."""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from holding import hold_beating
from samples import EMULATED, ROUNDS, median, record, save, steady_addresses

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.join(TOP, "build/bin")
RSH = os.path.join(TOP, "tests/migrate/rsh")
SIZE = int(os.environ.get("KCR_MIB", "256"))
RATE = os.environ.get("KCR_KBPS", "10000")
WAYS = {"stop and copy": None, "pre-copy": ("", ""), "pre-copy, all first": ("", "-- --no-lazy"),
        "post-copy": ("--lazy", "")}
PATIENCE = 60


class Host:
    """A process 1, with namespaces of its own."""

    def __init__(self, folder):
        self.keeper = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "--uts", "--mount",
                                        "--mount-proc", "sh", "-c", "while :; do sleep 0.2; done"],
                                       start_new_session=True)
        children = f"/proc/{self.keeper.pid}/task/{self.keeper.pid}/children"
        self.pid = ""
        while not self.pid:
            time.sleep(0.05)
            with open(children, encoding="ascii") as file:
                self.pid = file.read().strip()
        time.sleep(0.5)  # its mounts
        with open(f"{folder}/there.pid", "w", encoding="ascii") as file:
            file.write(f"{self.pid}\n")

    def end(self):
        self.keeper.kill()
        self.keeper.wait()


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.01)


class Program:
    """hold --beat, here."""

    def __init__(self, folder):
        self.child, self.map = hold_beating(folder, SIZE, RATE)
        self.pid = self.child.pid
        wait_for(lambda: self.number(1))
        time.sleep(0.5)
        self.map[24:32] = bytes(8)

    def number(self, index):
        return struct.unpack("Q", self.map[8 * index:8 * index + 8])[0]

    def has_run_on(self):
        """It has ended here, and runs there since half a second."""
        if self.child.poll() is None:
            return False
        before = self.number(1)
        time.sleep(0.5)
        return self.number(1) > before


def move(name, options, folder, program):
    env = dict(os.environ, KCR_HOST_FOLDER=folder, KCR_BIN=BIN, KCR_CUT="",
               PATH=f"{BIN}:{os.environ['PATH']}")
    with open(f"{folder}/said", "wb") as said:
        if options is None:
            command = (f"cr_checkpoint --kill -F 1 {program.pid} | "
                       f"{RSH} there 'cr_restart --trust -F 0 > /dev/null'")
        else:
            command = (f"cr_migrate --rsh={RSH} --json {options[0]} {program.pid} there {options[1]} "
                       "< /dev/null")
        tool = subprocess.Popen(["sh", "-c", command], env=env, stderr=said, stdout=subprocess.DEVNULL,
                                start_new_session=True)
    try:
        wait_for(program.has_run_on)
    except TimeoutError:
        with open(f"{folder}/said", encoding="utf-8", errors="replace") as said:
            sys.exit(f"{name}: it has not been moved: {said.read()}")
    if options is not None:
        with open(f"{folder}/said", encoding="utf-8") as said:
            result = [json.loads(line) for line in said if line.startswith("{")][0]
        record(f"{name} downtime", result["downtime_ms"])
        record(f"{name} MB stopped", result["bytes"] / 1e6)
    record(f"{name} pause", program.number(3) / 1e6)
    return tool


def one(name, options):
    folder = tempfile.mkdtemp(prefix="kcr-bench.")
    host = Host(folder)
    program = Program(folder)
    tool = move(name, options, folder, program)
    host.end()
    try:
        os.killpg(tool.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    tool.wait()
    shutil.rmtree(folder)


def main():
    steady_addresses()
    for _ in range(ROUNDS):
        for name, options in WAYS.items():
            one(name, options)
    save("migrate", mib=SIZE, kbps=int(RATE))
    print(f"\n{os.uname().release}, {os.cpu_count()} processors, {ROUNDS} rounds, medians; {SIZE} MiB, "
          f"{RATE} kB/s written" + ("; emulated, addresses not randomized" if EMULATED else ""))
    whole = median("stop and copy pause")
    for name, options in WAYS.items():
        pause = median(f"{name} pause")
        more = "" if options is None else (f"; cr_migrate: {median(f'{name} downtime'):.1f} ms, "
                                           f"{median(f'{name} MB stopped'):.2f} MB")
        goal = f"   <= 1/10   {'ok' if pause <= whole / 10 else 'MISSED'}"
        if options is None or options[1]:
            goal = ""
        print(f"{name:19} does not run for {pause:8.1f} ms, {pause / whole:6.3f}{goal}{more}")


main()
