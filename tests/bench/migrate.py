#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""cr_migrate: for how long a program of 256 MiB that writes 10 MB/s does not run when it is moved,
by post-copy (--lazy), by pre-copy, by pre-copy that loads all memory first, and by a checkpoint that a
restart there reads from a pipe; and by CRIU's pre-copy: two pre-dumps, of all memory and of what was
written meanwhile, a dump, and a restore there.

The other host is one of tests/migrate/: namespaces of the same machine, reached through pipes; CRIU's
images need not get there, as all files are the same, on tmpfs.  The program tells itself what its
longest pause was (hold --beat).  Every round moves a program in each way in turn (KCR_MIB=256,
KCR_KBPS=10000); medians are printed, and ratios of medians."""
import json
import os
import shlex
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
RSH = os.path.join(TOP, "tests/migrate/rsh")
SIZE = int(os.environ.get("KCR_MIB", "256"))
RATE = os.environ.get("KCR_KBPS", "10000")
CRIU_ROUNDS = 3  # the last one stops it
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
    """Has it become true?"""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


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


def stop_and_copy(program, _folder):
    return (f"cr_checkpoint --kill -F 1 {program.pid} | "
            f"{RSH} there 'cr_restart --trust -F 0 > /dev/null'")


def cr_migrate(here="", there=""):
    return lambda program, _folder: (f"cr_migrate --rsh={RSH} --json {here} {program.pid} there {there} "
                                     "< /dev/null")


def criu(program, folder):
    commands = []
    for number in range(CRIU_ROUNDS):
        images = f"{folder}/{number}"
        os.mkdir(images)
        before = ["--prev-images-dir", f"../{number - 1}"] if number else []
        action = "pre-dump" if number < CRIU_ROUNDS - 1 else "dump"
        commands.append(shlex.join(criu_command(action, images, "-t", str(program.pid), "--track-mem",
                                                "--shell-job", *before)))
    restore = shlex.join(criu_command("restore", images, "--shell-job", "-d"))
    return " && ".join([*commands, f"{RSH} there {shlex.quote(restore)}"])


STOP_AND_COPY, CRIU = "stop and copy", "CRIU pre-dump"
WAYS = {STOP_AND_COPY: stop_and_copy, "pre-copy": cr_migrate(),
        "pre-copy, all first": cr_migrate(there="-- --no-lazy"), "post-copy": cr_migrate("--lazy")}
WAYS |= {CRIU: criu} if HAS_CRIU else {}
GOALS = "pre-copy", "post-copy"


def move(name, command, folder, program):
    """Returns the tool, which may run as long as the program.  Whatever CRIU does, the others go on."""
    env = dict(os.environ, KCR_HOST_FOLDER=folder, KCR_BIN=BIN, KCR_CUT="",
               PATH=f"{BIN}:{os.environ['PATH']}")
    with open(f"{folder}/said", "wb") as said:
        tool = subprocess.Popen(["sh", "-c", command], env=env, stderr=said, stdout=subprocess.DEVNULL,
                                start_new_session=True)
    moved = wait_for(lambda: tool.poll() or program.has_run_on()) and not tool.poll()
    with open(f"{folder}/said", encoding="utf-8", errors="replace") as said:
        lines = said.readlines()
    if not moved and name != CRIU:
        sys.exit(f"{name}: it has not been moved: {''.join(lines)}")
    if not moved:
        print(f"{name}: it has not been moved: {''.join(lines)}", file=sys.stderr)
        program.child.kill()
        return tool
    for result in (json.loads(line) for line in lines if line.startswith("{")):
        record(f"{name} downtime", result["downtime_ms"])
        record(f"{name} MB stopped", result["bytes"] / 1e6)
    record(f"{name} pause", program.number(3) / 1e6)
    return tool


def one(name, way):
    folder = tempfile.mkdtemp(prefix="kcr-bench.")
    host = Host(folder)
    program = Program(folder)
    tool = move(name, way(program, folder), folder, program)
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
        for name, way in WAYS.items():
            one(name, way)
    save("migrate", mib=SIZE, kbps=int(RATE))
    print(f"\n{os.uname().release}, {os.cpu_count()} processors, {ROUNDS} rounds, medians; {SIZE} MiB, "
          f"{RATE} kB/s written" + ("; emulated, addresses not randomized" if EMULATED else ""))
    whole, theirs = median(f"{STOP_AND_COPY} pause"), median(f"{CRIU} pause")
    for name in WAYS:
        pause = median(f"{name} pause")
        if not pause:
            continue
        line = f"{name:19} does not run for {pause:8.1f} ms, {pause / whole:6.3f}"
        if theirs:
            line += f", {pause / theirs:6.3f} of CRIU's"
        if name in GOALS:
            line += f"   <= 1/10 {'ok' if pause <= whole / 10 else 'MISSED'}"
        if median(f"{name} downtime"):
            line += (f"; cr_migrate: {median(f'{name} downtime'):.1f} ms, "
                     f"{median(f'{name} MB stopped'):.2f} MB")
        print(line)


main()
