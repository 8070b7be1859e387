# SPDX-License-Identifier: GPL-2.0
"""The program that holds memory for the benchmarks: hold.c."""
import mmap
import os
import subprocess

HOLD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/tests/bench/hold")


def hold_beating(directory, size, *rate):
    """Starts it (hold SIZE --beat) with a file in the directory, of which a map comes along."""
    path = f"{directory}/beat"
    with open(path, "wb") as file:
        file.write(bytes(4096))
    with open(path, "r+b") as file:
        beat = mmap.mmap(file.fileno(), 4096)
    child = subprocess.Popen([HOLD, str(size), "--beat", path, *rate], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             start_new_session=True)
    return child, beat


def hold(*arguments):
    """Starts it in a session of its own, and returns when it is ready."""
    child = subprocess.Popen([HOLD, *arguments], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
    child.stdout.readline()
    return child


def hold_twice(size):
    """A shell and two that hold the same, each for itself."""
    child = subprocess.Popen(["/bin/sh", "-c", '"$0" "$1" & "$0" "$1"; wait', HOLD, size],
                             stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
    child.stdout.readline()
    child.stdout.readline()
    return child
