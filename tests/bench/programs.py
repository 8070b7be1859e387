#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What increments cost for real programs: one full image and five increments, some time of
work apart, and the same increments compressed.  Before each increment a full image of the same
moment is made beside the chain.

KCR_WAIT= is the time between two of them, in seconds.  Files are on tmpfs."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from openmpi import environment
from samples import EMULATED, median, record, save

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.path.join(TOP, "build/bin")
WAIT = float(os.environ.get("KCR_WAIT", "20" if EMULATED else "60"))
INCREMENTS = 5
STARTING = 16  # the exit status of cr_checkpoint while an MPI job starts

# Clusters of points: the points stay, the centres and sums move.
NUMPY = """
import numpy
random = numpy.random.default_rng(1)
points = random.random((1500000, 8))
centres = points[:50].copy()
while True:
    batch = points[random.integers(0, len(points), 20000)]
    nearest = ((batch[:, None, :] - centres) ** 2).sum(2).argmin(1)
    for k in range(len(centres)):
        members = batch[nearest == k]
        if len(members):
            centres[k] += 0.05 * (members.mean(0) - centres[k])
"""

MELT = f"{TOP}/tests/mpi/in.melt"
HPCC_EXAMPLE = "/usr/share/doc/hpcc/examples/_hpccinf.txt"


def hpcc():
    """The benchmark's own example, for two processes, with a matrix of 3000 lines, many times."""
    with open(HPCC_EXAMPLE, encoding="utf-8") as example:
        for line in example.read().splitlines():
            name = line.split()[-1:]
            yield {"Ns": "3000 " * 20 + "Ns", "(N)": "20 # of problems sizes (N)",
                   "Ps": "1 Ps"}.get(name[0], line) if name else line


def table():
    """A table in memory."""
    yield "CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT);"
    yield ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000) "
           "INSERT INTO t SELECT i, hex(randomblob(60)) FROM n;")


def updates():
    """Updates of a few rows of it at a time."""
    for i in range(400000):
        first = i * 7919 % 400000
        yield f"UPDATE t SET v = hex(randomblob(60)) WHERE k BETWEEN {first} AND {first + 50};"


def c_source():
    """A file that takes the compiler a while and some memory."""
    for i in range(3000):
        yield (f"int f{i}(int *a, int n) {{ int s = {i}; for (int i = 0; i < n; i++) "
               f"{{ if (a[i] % {i + 2}) s += a[i] * {i}; else s ^= a[i] >> 3; a[i] = s; }} "
               "return s; }")


PROGRAMS = {
    "numpy": (["/usr/bin/python3", "points.py"], {"points.py": NUMPY}),
    "sqlite3": (["sqlite3", ":memory:", ".read table.sql", *[".read updates.sql"] * 100],
                {"table.sql": table, "updates.sql": updates}),
    "gcc": (["sh", "-c", "while gcc -O2 -c source.c; do :; done"], {"source.c": c_source}),
    "LAMMPS": ([f"{BIN}/cr_mpirun", "-np", "2", "lmp", "-var", "size", "20", "-var", "steps",
                "1000000", "-in", MELT], {}),
    "hpcc": ([f"{BIN}/cr_mpirun", "-np", "2", "hpcc"], {"hpccinf.txt": hpcc}),
}


def start(name, directory):
    command, files = PROGRAMS[name]
    for file, content in files.items():
        with open(f"{directory}/{file}", "w", encoding="utf-8") as out:
            out.write(content if isinstance(content, str) else "\n".join(content()))
    with open(f"{directory}/out", "wb") as out:
        return subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=out, start_new_session=True,
                                # OpenCL's plugin takes seconds to load
                                env=environment(HWLOC_PLUGINS_PATH="/nonexistent"))


def checkpoint(program, directory, name, *options):
    """One image, recorded under that name unless it is None."""
    while True:
        begun = time.monotonic()
        tool = subprocess.run([f"{BIN}/cr_checkpoint", "--json", "--nosync", *options,
                               str(program.pid)], cwd=directory, stdout=subprocess.PIPE)
        took = (time.monotonic() - begun) * 1e3
        if tool.returncode != STARTING:
            break
        time.sleep(0.5)
    if tool.returncode:
        with open(f"{directory}/out", encoding="utf-8", errors="replace") as out:
            sys.exit(f"{name}: not saved; the program's output: {out.read()[-2000:]}")
    if name:
        record(f"{name} ms", took)
        record(f"{name} bytes", json.loads(tool.stdout.splitlines()[-1])["bytes"])


def end(program):
    os.killpg(program.pid, signal.SIGTERM)
    try:
        program.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()


def measure(name, kind, *options):
    directory = tempfile.mkdtemp(prefix="kcr-bench.")
    program = start(name, directory)
    time.sleep(WAIT)
    checkpoint(program, directory, None, "--incremental", *options, "-f", "chain")
    for _ in range(INCREMENTS):
        time.sleep(WAIT)
        if not options:
            checkpoint(program, directory, f"{name} full", "-f", "full")
        checkpoint(program, directory, f"{name} {kind}", "--incremental", *options, "-f", "chain")
    end(program)
    shutil.rmtree(directory)


def report(names):
    print(f"\n{os.uname().release}, {os.cpu_count()} processors; {INCREMENTS} increments {WAIT:.0f} s "
          "of work apart, medians; files on tmpfs")
    print(f"{'':10}{'full image':>22}{'increment':>22}{'of it':>8}{'increment, zstd':>24}")
    for name in names:
        size, time_ = ({kind: median(f"{name} {kind} {what}")
                        for kind in ("full", "increment", "zstd")} for what in ("bytes", "ms"))
        cells = [f"{size[kind] / 1e6:9.1f} MB {time_[kind]:7.0f} ms" for kind in size]
        print(f"{name:10}{cells[0]:>22}{cells[1]:>22}{size['increment'] / size['full']:>8.1%}"
              f"{cells[2]:>24}")


def main():
    names = sys.argv[1:] or list(PROGRAMS)
    for name in names:
        measure(name, "increment")
        measure(name, "zstd", "--compress=zstd")
    save("programs", wait=WAIT, names=names)
    report(names)


main()
