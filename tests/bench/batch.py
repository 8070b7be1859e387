#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What cr_batch adds to the tools: from a warning until the program is saved and ended, beside
cr_checkpoint alone, and from the start of the next run until the program runs, beside cr_restart
alone.

The program writes the time into a file each millisecond, so it tells itself since when it runs.
Every round measures everything in turn, a small program three times, as its times vary more;
medians are printed, and ratios of medians.  All files are synced, and on tmpfs.  KCR_MIB= sets the
size of the large process."""
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from samples import ROUNDS, median, record, save, steady_addresses

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.join(TOP, "build/bin")
SMALL, LARGE = 8, int(os.environ.get("KCR_MIB", "256"))
LIMIT, SAVED = 1.5, 85
PATIENCE = 120


def start(directory, *command):
    with open(f"{directory}/out", "wb") as out:
        return subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=out, start_new_session=True)


def runs(directory, tool, since):
    """Waits until the program has run after that time; its PID, and after how many ms it has."""
    while time.time_ns() < since + PATIENCE * 10**9 and tool.poll() is None:
        try:
            with open(f"{directory}/beat", "rb") as file:
                pid, beat = struct.unpack("QQ", file.read(16))
        except (FileNotFoundError, struct.error):
            beat = 0
        if beat > since:
            return pid, (beat - since) / 1e6
        time.sleep(0.002)
    with open(f"{directory}/out", encoding="utf-8") as out:
        sys.exit(f"the program does not run: {out.read()}")


def restart(directory, name, *command):
    """Starts what restarts the program, and ends that when it runs."""
    since = time.time_ns()
    tool = start(directory, *command)
    pid, took = runs(directory, tool, since)
    record(f"{name} restart", took)
    os.kill(pid, signal.SIGKILL)
    tool.wait()


def expect(status, wanted, what):
    if status != wanted:
        sys.exit(f"{what}: status {status}")


def one_round(directory, mib):
    hold = f"{TOP}/build/tests/bench/hold", str(mib), "--beat", f"{directory}/beat"
    batch = f"{BIN}/cr_batch", "--dir=jobs", "--name=job", *hold

    run = start(directory, *batch)
    runs(directory, run, time.time_ns())
    since = time.monotonic()
    run.send_signal(signal.SIGUSR1)
    expect(run.wait(), SAVED, "cr_batch")
    record(f"{mib} batch save", (time.monotonic() - since) * 1e3)
    restart(directory, f"{mib} batch", *batch)
    shutil.rmtree(f"{directory}/jobs")

    program = start(directory, *hold)
    pid, _ = runs(directory, program, time.time_ns())
    since = time.monotonic()
    tool = start(directory, f"{BIN}/cr_checkpoint", "--kill", "-f", "image", str(pid))
    expect(tool.wait(), 0, "cr_checkpoint")
    record(f"{mib} alone save", (time.monotonic() - since) * 1e3)
    program.wait()
    restart(directory, f"{mib} alone", f"{BIN}/cr_restart", "image")
    os.unlink(f"{directory}/image")


def report(mib):
    for step, beside in ("save", "cr_checkpoint --kill"), ("restart", "cr_restart"):
        batch, alone = median(f"{mib} batch {step}"), median(f"{mib} alone {step}")
        print(f"{mib:4} MiB  {step:8} {batch:8.1f} ms under cr_batch, {alone:8.1f} ms by {beside:20} "
              f"{batch / alone:5.2f}   <= {LIMIT}  {'ok' if batch <= LIMIT * alone else 'MISSED'}")


def main():
    directory = tempfile.mkdtemp(prefix="kcr-bench.")
    steady_addresses()
    for _ in range(ROUNDS):
        for mib in (SMALL, SMALL, SMALL, LARGE):
            one_round(directory, mib)
    shutil.rmtree(directory)
    save("batch", mib=[SMALL, LARGE])
    print(f"\n{os.uname().release}, {os.cpu_count()} processors, {ROUNDS} rounds, medians; files on "
          "tmpfs")
    for mib in (SMALL, LARGE):
        report(mib)


main()
