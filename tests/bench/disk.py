#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Checkpoints to a disk that is slower than memory: a program of 256 MiB (KCR_MIB=), saved as
ever, with --snapshot and with --stop, beside what the disk alone needs for the bytes of the
image (dd with O_DIRECT), in turn.

    tests/bench/disk.py DEVICE [FOLDER]

DEVICE loses what is on it.  FOLDER has the tools of another tree, to be measured beside."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from holding import hold
from samples import ROUNDS, median, record, save

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
MIB = os.environ.get("KCR_MIB", "256")
DEVICE = sys.argv[1]
TREES = {"": f"{TOP}/build/bin"} | ({"other ": sys.argv[2]} if len(sys.argv) > 2 else {})
WAYS = {"plain": [], "snapshot": ["--snapshot"], "lz4": ["--snapshot", "--compress=lz4"],
        "stop": ["--stop"]}


def limit(folder, size):
    """Seconds that the disk needs for so many bytes."""
    path = f"{folder}/raw"
    start = time.monotonic()
    subprocess.run(["dd", "if=/dev/zero", f"of={path}", "bs=4M", f"count={size >> 22}", "oflag=direct",
                    "conv=fsync", "status=none"], check=True)
    took = time.monotonic() - start
    os.unlink(path)
    return took


def checkpoint(name, tools, pid, folder, options):
    path = f"{folder}/image"
    start = time.monotonic()
    out = subprocess.run([f"{tools}/cr_checkpoint", "--json", *options, "-f", path, str(pid)], check=True,
                         capture_output=True, text=True).stdout
    took = time.monotonic() - start
    record(f"{name} s", took)
    record(f"{name} stopped", json.loads(out.splitlines()[-1])["stopped_ms"])
    record(f"{name} ratio", took / limit(folder, os.path.getsize(path)))
    os.unlink(path)
    os.killpg(pid, signal.SIGCONT)


def one_round(folder):
    child = hold(MIB)
    for way, options in WAYS.items():
        for tree, tools in TREES.items():
            checkpoint(tree + way, tools, child.pid, folder, options)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def report():
    print(f"\n{MIB} MiB to a slow disk, {ROUNDS} rounds, medians: the whole command, beside the disk alone")
    for way in WAYS:
        for tree in TREES:
            name = tree + way
            print(f"{name:16} {median(f'{name} s'):6.2f} s, {median(f'{name} ratio'):.2f} of the disk's "
                  f"time, stopped {median(f'{name} stopped'):.0f} ms")


def main():
    folder = tempfile.mkdtemp(prefix="kcr-bench.")
    subprocess.run(["modprobe", "-a", "virtio_blk", "ext4"], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", DEVICE], check=True)
    subprocess.run(["mount", DEVICE, folder], check=True)
    for number in range(ROUNDS):
        one_round(folder)
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
    subprocess.run(["umount", folder], check=True)
    os.rmdir(folder)
    save("disk", mib=int(MIB))
    report()


main()
