# SPDX-License-Identifier: GPL-2.0
"""What is measured while the programs run, and whether it has grown."""
import os
import statistics

KIB = 1024
series = {}			# name: values in the order of their measurement

# What may be more at the end than in the beginning: a part of it, and so much besides.
# Times are told, not judged: the machine is shared.  From its first restart on each of the eight
# programs has a cr_restart above it, and their shells have children or not at the moment.
BOUNDS = {"slab KiB": (0.10, 4096), "unreclaimable KiB": (0.10, 4096), "cache KiB": (0.5, 1024),
          "processes": (0, 10), "threads": (0, 18), "open files": (0.1, 64), "descriptors": (0.25, 8),
          "image KiB": (0.25, 1024)}
allowed = {}			# name: besides, by what has happened


def note(name, value):
    series.setdefault(name, []).append(value)


def may_grow(name, value):
    """By so much more than its bound, as of now."""
    allowed[name] = allowed.get(name, 0) + value


def numbers_of(path):
    """Of a file of lines KEY: VALUE."""
    with open(path, encoding="ascii") as file:
        return {line.split(":")[0]: int(line.split()[1]) for line in file}


def count_processes():
    """Programs, not threads of the kernel."""
    count = 0
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    count += bool(file.read(1))
            except OSError:
                pass
    return count


def note_slabs():
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("2")		# what may go is no leak
    memory = numbers_of("/proc/meminfo")
    note("slab KiB", memory["Slab"])
    note("unreclaimable KiB", memory["SUnreclaim"])
    with open("/proc/slabinfo", encoding="ascii") as file:
        for line in file.readlines()[2:]:
            name, active, _, size = line.split()[:4]
            note(f"cache KiB: {name}", int(active) * int(size) / KIB)


def note_machine():
    note_slabs()
    note("processes", count_processes())
    with open("/proc/loadavg", encoding="ascii") as file:
        note("threads", int(file.read().split()[3].split("/")[1]))
    with open("/proc/sys/fs/file-nr", encoding="ascii") as file:
        note("open files", int(file.read().split()[0]))


def first_and_last(values):
    """Medians of the first and the last fifth, after a warm-up of a fifth; None: too few."""
    values = values[len(values) // 5:]
    fifth = len(values) // 5
    if fifth < 2:
        return None
    return statistics.median(values[:fifth]), statistics.median(values[-fifth:])


def bound_of(name):
    return BOUNDS.get(name.split(":")[0])


def grown():
    """A line for each figure that has grown beyond its bound."""
    found = []
    for name, values in series.items():
        ends, bound = first_and_last(values), bound_of(name)
        most = bound and ends and ends[0] * (1 + bound[0]) + bound[1] + allowed.get(name, 0)
        if most and ends[1] > most:
            found.append(f"{name}: grown from {ends[0]:.0f} to {ends[1]:.0f}")
    return found


def table():
    """Lines: each figure at the beginning and at the end; of the caches the largest changes."""
    lines = [f"{'':34}{'number':>8}{'first':>12}{'last':>12}{'most':>12}"]
    caches = []
    for name in sorted(series):
        values = series[name]
        ends = first_and_last(values) or (values[0], values[-1])
        line = f"{name:34}{len(values):8}{ends[0]:12.0f}{ends[1]:12.0f}{max(values):12.0f}"
        if name.startswith("cache KiB"):
            caches.append((ends[1] - ends[0], line))
        else:
            lines.append(line)
    caches.sort(reverse=True)
    return lines + [line for _, line in caches[:8]]
