#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Eight processes that have 200 MiB in common since they were forked (KCR_MIB=): what
cr_checkpoint --dedup saves of image, time and memory after a restart, beside an image
without it, one of a single process, and CRIU.  Then two that have as much each, equal but not in
common; and a single one, which has nothing twice: what looking for it costs.

Files are on tmpfs.  Every round measures everything once, in turn; medians are printed."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from criu_command import HAS_CRIU, criu_command
from holding import hold, hold_twice
from samples import ROUNDS, median, record, save

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.join(TOP, "build/bin")
MIB = os.environ.get("KCR_MIB", "200")
COUNT = "8"


def resident(group):
    """Memory of all processes of the group in bytes, with what they have in common once."""
    total = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.getpgid(int(name)) == group:
                with open(f"/proc/{name}/smaps_rollup") as f:
                    total += next(int(line.split()[1]) for line in f if line.startswith("Pss:"))
        except (OSError, StopIteration):
            pass
    return total * 1024


def end(group):
    os.killpg(group, signal.SIGKILL)


def checkpoint(name, pid, path, *options):
    start = time.monotonic()
    out = subprocess.run([f"{BIN}/cr_checkpoint", "--json", "--nosync", "--clobber", *options, "-f", path,
                          str(pid)], check=True, capture_output=True, text=True).stdout
    record(f"{name} ms", (time.monotonic() - start) * 1e3)
    record(f"{name} stopped", json.loads(out.splitlines()[-1])["stopped_ms"])
    record(f"{name} bytes", os.path.getsize(path))


def restart(path, name="restart"):
    start = time.monotonic()
    tool = subprocess.Popen([f"{BIN}/cr_restart", "--json", path], stdout=subprocess.PIPE, text=True,
                            start_new_session=True)
    pid = json.loads(tool.stdout.readline())["pid"]
    record(f"{name} ms", (time.monotonic() - start) * 1e3)
    record(f"{name} resident", resident(os.getpgid(pid)))
    end(os.getpgid(pid))
    tool.wait()
    tool.stdout.close()


def criu(pid, directory):
    """Size and time of CRIU's dump of the same processes, if it is there."""
    if not HAS_CRIU:
        return
    folder = f"{directory}/criu"
    os.mkdir(folder)
    start = time.monotonic()
    done = subprocess.run(criu_command("dump", folder, "-t", str(pid), "-R", "--shell-job"),
                          check=False, capture_output=True)
    if not done.returncode:
        record("criu ms", (time.monotonic() - start) * 1e3)
        record("criu bytes", sum(os.path.getsize(f"{folder}/{name}") for name in os.listdir(folder)))
    shutil.rmtree(folder)


def one_round(directory):
    path = f"{directory}/image"
    child = hold(MIB)
    checkpoint("single", child.pid, path)
    checkpoint("single dedup", child.pid, path, "--dedup")
    end(child.pid)
    child.wait()
    child = hold(MIB, "--forked", COUNT)
    record("resident before", resident(child.pid))
    checkpoint("each", child.pid, path)
    os.unlink(path)
    criu(child.pid, directory)
    checkpoint("dedup snapshot", child.pid, path, "--dedup", "--snapshot")
    checkpoint("dedup", child.pid, path, "--dedup")
    end(child.pid)
    child.wait()
    restart(path)
    os.unlink(path)
    child = hold_twice(MIB)
    for name in (("two",), ("two dedup", "--dedup")):
        checkpoint(name[0], child.pid, path, *name[1:])
    end(child.pid)
    child.wait()
    restart(path, "two restart")
    os.unlink(path)


def report():
    size = median("dedup bytes") / median("single bytes")
    memory = median("restart resident") / median("resident before")
    print(f"\n{COUNT} processes with {MIB} MiB in common, {ROUNDS} rounds, medians")
    print(f"image: {median('dedup bytes') / 1e6:.1f} MB, {size:.2f} of one of them, goal 1.1"
          f"{'' if size <= 1.1 else ' MISSED'}; without --dedup {median('each bytes') / 1e6:.1f} MB")
    print(f"memory after the restart: {memory:.2f} of that before, goal 1.1"
          f"{'' if memory <= 1.1 else ' MISSED'}")
    print(f"whole command: {median('dedup ms'):.0f} ms, stopped {median('dedup stopped'):.0f}; with "
          f"--snapshot stopped {median('dedup snapshot stopped'):.0f}; without --dedup "
          f"{median('each ms'):.0f}, stopped {median('each stopped'):.0f}; one process "
          f"{median('single ms'):.0f}; restart {median('restart ms'):.0f}")
    print(f"two with as much each, equal: {median('two bytes') / 1e6:.1f} MB, {median('two ms'):.0f} ms; "
          f"--dedup {median('two dedup bytes') / 1e6:.1f} MB, {median('two dedup ms'):.0f} ms, restart "
          f"{median('two restart ms'):.0f} ms")
    print(f"one, with nothing twice: --dedup takes "
          f"{median('single dedup ms') / median('single ms'):.2f} of a checkpoint without it")
    if median("criu ms"):
        print(f"criu dump: {median('criu bytes') / 1e6:.1f} MB, {median('criu ms'):.0f} ms")


def main():
    directory = tempfile.mkdtemp(prefix="kcr-bench.")
    for number in range(ROUNDS):
        one_round(directory)
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
    shutil.rmtree(directory)
    save("family", mib=int(MIB))
    report()


main()
