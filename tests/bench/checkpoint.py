#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Checkpoint and restart against their limits and against CRIU.

Every round measures everything once, in turn, so that a slow spell of the
machine hits all of them; medians are printed, and ratios of medians.  Files are
on tmpfs.  `cat` moves as many bytes as the context file has.  KCR_MIB= sets the size of the large
process."""
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
from holding import hold
from samples import EMULATED, ROUNDS, median, record, samples, save, steady_addresses

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.join(TOP, "build/bin")
BENCH = os.path.join(TOP, "build/tests/bench")
LARGE = int(os.environ.get("KCR_MIB", "256"))


def run(*command, check=True):
    """Runs a command; milliseconds, output and peak memory in KiB."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = child.stdout.read(), child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    took = (time.monotonic() - start) * 1e3
    child.returncode = os.waitstatus_to_exitcode(status)
    if check and child.returncode:
        sys.exit(f"{' '.join(command)}: exit {child.returncode}: {err.decode()}")
    return took, out.decode(), usage.ru_maxrss, child.returncode


def end(child):
    child.kill()
    child.wait()
    child.stdout.close()


def checkpoint(pid, path, *options):
    took, out, memory, _ = run(f"{BIN}/cr_checkpoint", "--json", "--nosync", *options, "-f", path, str(pid))
    return took, json.loads(out.splitlines()[-1]), memory


def cat(path, copy):
    return run("sh", "-c", f"exec cat {path} > {copy}")[0]


def varints(data):
    """Fields of a protobuf message: number -> value (varints and messages)."""
    fields, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            fields[key >> 3] = varint()
        else:
            length = varint()
            fields[key >> 3] = data[at:at + length]
            at += length
    return fields


def criu(pid, name):
    """CRIU's dump of the same process, left running; frozen time from its statistics.
    Without CRIU there is nothing to compare with."""
    if not HAS_CRIU:
        return
    directory = tempfile.mkdtemp(prefix="criu.")
    took, _, _, code = run(*criu_command("dump", directory, "-t", str(pid), "-R", "--shell-job"),
                           check=False)
    if code == 0:
        record(f"{name} criu whole", took)
        with open(f"{directory}/stats-dump", "rb") as f:
            data = f.read()
        length = struct.unpack("<I", data[8:12])[0]
        stats = varints(varints(data[12:12 + length])[1])
        record(f"{name} criu frozen", stats[2] / 1e3)
    elif f"{name} criu failed" not in samples:
        record(f"{name} criu failed", 1)
        with open(f"{directory}/dump.log") as f:
            print("criu dump failed:", [line for line in f if "Error" in line][:3], file=sys.stderr)
    shutil.rmtree(directory)


def large_round(directory):
    path, copy = f"{directory}/large", f"{directory}/copy"
    child = hold(str(LARGE))
    # One throw-away dump, so that all start from files that exist.
    took, done, memory = checkpoint(child.pid, path)
    record("dump whole", took)
    record("dump write", done["write_ms"])
    record("dump stopped", done["stopped_ms"])
    record("dump memory", memory)
    os.rename(path, copy)
    record("cat", cat(copy, path))
    os.unlink(copy)
    _, done, memory = checkpoint(child.pid, path, "--snapshot", "--clobber")
    record("snapshot stopped", done["stopped_ms"])
    record("snapshot clone", done["snapshot_ms"])
    record("snapshot memory", memory)
    criu(child.pid, "large")
    end(child)
    size = os.path.getsize(path)
    record("bytes", size)

    out = f"{directory}/restart.json"
    start = time.monotonic()
    with open(out, "w") as f:
        tool = subprocess.Popen([f"{BIN}/cr_restart", "--json", path], stdout=f)
    while not os.path.getsize(out) and tool.poll() is None:
        time.sleep(0.002)
    record("restart whole", (time.monotonic() - start) * 1e3)
    with open(out) as f:
        done = json.load(f)
    record("restart fill", done["fill_ms"])
    with open(f"/proc/{tool.pid}/status") as f:
        record("restart memory", int(next(line for line in f if line.startswith("VmHWM")).split()[1]))
    os.kill(done["pid"], signal.SIGKILL)
    tool.wait()
    os.unlink(path)


def small_round(directory):
    path = f"{directory}/small"
    child = hold("1")
    took, done, _ = checkpoint(child.pid, path)
    record("small kcr whole", took)
    record("small kcr stopped", done["stopped_ms"])
    criu(child.pid, "small")
    end(child)
    os.unlink(path)


def sparse_round():
    child = hold("--sparse", "16", "64")
    _, out, _, _ = run(f"{BENCH}/scan", str(child.pid))
    record("scan", float(out.split()[0]))
    end(child)


def row(what, value, target, ok):
    print(f"{what:58} {value:>14}   {target:22} {'ok' if ok else 'MISSED'}")


def ms(value):
    return "-" if value is None else f"{value:.1f} ms"


def rate(name):
    return median("bytes") / 1e6 / (median(name) / 1e3)


def report():
    print(f"\n{os.uname().release}, {os.cpu_count()} processors, {ROUNDS} rounds, medians; "
          f"process of {LARGE} MiB, files on tmpfs"
          + ("; emulated, addresses not randomized" if EMULATED else ""))
    row("snapshot: stop time", ms(median("snapshot stopped")), "<= 25 ms",
        median("snapshot stopped") <= 25)
    print(f"    of it the copy-on-write clone {ms(median('snapshot clone'))}; "
          f"CRIU's frozen time {ms(median('large criu frozen'))}")
    ratio = median("cat") / median("dump write")
    row(f"synchronous dump: {rate('dump write'):.0f} MB/s, cat {rate('cat'):.0f} MB/s",
        f"{ratio:.2f} of cat", ">= 0.9 of cat", ratio >= 0.9)
    print(f"    whole command {ms(median('dump whole'))}, CRIU's {ms(median('large criu whole'))}")
    ratio = median("cat") / median("restart fill")
    row(f"restart: {rate('restart fill'):.0f} MB/s", f"{ratio:.2f} of cat", ">= 0.8 of cat", ratio >= 0.8)
    print(f"    whole command until it runs {ms(median('restart whole'))}")
    if median("small criu whole"):
        ratio = median("small kcr whole") / median("small criu whole")
        row(f"1 MiB process, whole command {ms(median('small kcr whole'))}", f"{ratio:.2f} of CRIU",
            "<= 1/3 of criu dump", ratio <= 1 / 3)
        print(f"    criu dump {ms(median('small criu whole'))}; stopped "
              f"{ms(median('small kcr stopped'))} against {ms(median('small criu frozen'))}")
    row("scan of 16 GiB sparse, 64 pages touched", ms(median("scan")), "<= 20 ms", median("scan") <= 20)
    memory = max(samples["dump memory"] + samples["restart memory"] + samples["snapshot memory"]) / 1024
    row("memory of the tools", f"{memory:.1f} MiB", "<= 64 MiB", memory <= 64)


def main():
    directory = tempfile.mkdtemp(prefix="kcr-bench.")
    steady_addresses()
    for number in range(ROUNDS):
        large_round(directory)
        small_round(directory)
        sparse_round()
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
    shutil.rmtree(directory)
    save("checkpoint", mib=LARGE)
    report()


main()
