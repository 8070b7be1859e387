# SPDX-License-Identifier: GPL-2.0
"""The program that holds memory for the benchmarks: hold.c."""
import os
import subprocess

HOLD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/tests/bench/hold")


def hold(*arguments):
    """Starts it in a session of its own, and returns when it is ready."""
    child = subprocess.Popen([HOLD, *arguments], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
    child.stdout.readline()
    return child
