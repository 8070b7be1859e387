#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Lazy restarts against eager ones: the time until the program runs, and until all its
memory is there, of a small and a large process.

Every round measures everything once, in turn; medians are printed.  Files are on tmpfs.
KCR_MIB= sets the sizes."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from samples import EMULATED, ROUNDS, median, record, save

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.join(TOP, "build/bin")
BENCH = os.path.join(TOP, "build/tests/bench")
SIZES = [int(n) for n in os.environ.get("KCR_MIB", "256 1024").split()]


def make_image(mib, path):
    program = subprocess.Popen([f"{BENCH}/hold", str(mib), "5"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, start_new_session=True)
    program.stdout.readline()
    subprocess.run([f"{BIN}/cr_checkpoint", "--nosync", "--kill", "-f", path, str(program.pid)],
                   check=True)
    program.wait()


def loads(pid):
    """Has cr_restart a userfaultfd?"""
    folder = f"/proc/{pid}/fd"
    for number in os.listdir(folder):
        try:
            if "userfaultfd" in os.readlink(f"{folder}/{number}"):
                return True
        except FileNotFoundError:
            pass
    return False


def restart(name, path, *options):
    out = f"{path}.json"
    with open(out, "w") as f:
        start = time.monotonic()
        tool = subprocess.Popen([f"{BIN}/cr_restart", "--json", *options, path], stdout=f)
        while not os.path.getsize(out) and tool.poll() is None:
            time.sleep(0.001)
    record(f"{name} runs", (time.monotonic() - start) * 1e3)
    while loads(tool.pid):
        time.sleep(0.002)
    record(f"{name} loaded", (time.monotonic() - start) * 1e3)
    with open(out) as f:
        os.kill(json.load(f)["pid"], signal.SIGKILL)
    tool.wait()
    os.unlink(out)


def row(what, value, target, ok):
    print(f"{what:58} {value:>14}   {target:22} {'ok' if ok else 'MISSED'}")


def report():
    print(f"\n{os.uname().release}, {os.cpu_count()} processors, {ROUNDS} rounds, medians; "
          "files on tmpfs")
    for mib in SIZES:
        eager, lazy = f"{mib} MiB eager", f"{mib} MiB lazy"
        runs, loaded = median(f"{lazy} runs"), median(f"{lazy} loaded")
        row(f"{mib} MiB: lazy restart, the program runs after", f"{runs:.1f} ms", "<= 60 ms",
            runs <= 60)
        ratio = loaded / median(f"{eager} loaded")
        row(f"{mib} MiB: everything is loaded", f"{ratio:.2f}", "<= 1.3 of an eager one", ratio <= 1.3)
        print(f"    {loaded:.1f} ms, an eager restart {median(f'{eager} loaded'):.1f} ms")


def main():
    directory = tempfile.mkdtemp(prefix="kcr-bench.")
    if EMULATED:  # see checkpoint.py
        with open("/proc/sys/kernel/randomize_va_space", "w") as f:
            f.write("0")
    for mib in SIZES:
        path = f"{directory}/{mib}"
        make_image(mib, path)
        for _ in range(ROUNDS):
            restart(f"{mib} MiB eager", path)
            restart(f"{mib} MiB lazy", path, "--lazy")
        os.unlink(path)
    shutil.rmtree(directory)
    save("lazy", sizes=SIZES)
    report()


main()
