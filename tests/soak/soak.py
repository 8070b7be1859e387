# SPDX-License-Identifier: GPL-2.0
"""Round after round: a checkpoint of one of the members, at times with its end and a restart.
Tells each minute how it goes, and at the end what has grown.  See tests/soak/run."""
import os
import random
import shutil
import statistics
import sys
import time

import figures
from members import Fault, MODES, commands, tree

SECONDS = int(os.environ["KCR_SOAK_SECONDS"])
SEED = int(os.environ.get("KCR_SOAK_SEED", "1")) or int.from_bytes(os.urandom(4), "little")
FAULTS = os.environ["KCR_SOAK_FAULTS"]
MOST_FAULTS = 5			# it ends then
RESTARTS = 4			# one in so many rounds
EVERY = 8			# seconds between two measurements of the machine
counts = {"checkpoints": 0, "restarts": 0, "faults": 0}


def say(text):
    print(f"# {text}", flush=True)


def threads_of(pid):
    """What each of its threads waits for, as lines."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        words = [str(pid), tid]
        for name in ("comm", "wchan", "syscall"):
            with open(f"/proc/{pid}/task/{tid}/{name}", encoding="ascii") as file:
                words.append(file.read().strip()[:60])
        yield " ".join(words)


def keep(member):
    """What there is to look at; the machine is gone afterwards."""
    for pid in tree(member.child.pid):
        try:
            for line in threads_of(pid):
                say(f"thread: {line}")
        except OSError:
            pass			# it has ended
    folder = os.path.join(FAULTS, f"{counts['faults']}.{member.name}")
    shutil.copytree(member.folder, folder, ignore=lambda path, names: [
        name for name in names if name == "data" or
        not os.path.isfile(os.path.join(path, name)) and not name.endswith(".kcr")])
    for output in ("out", "restart.out"):
        path = member.path(output)
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                for line in file.readlines()[-20:]:
                    say(f"{output}: {line.rstrip()}")
    say(f"kept in {os.path.basename(folder)}")


def note_fault(member, fault):
    counts["faults"] += 1
    say(f"FAULT after {counts['checkpoints']} checkpoints: {fault}")
    if member:
        keep(member)


def one_round(member):
    mode = random.choice(member.modes)
    restarts = random.randrange(RESTARTS) == 0
    took = member.kill_and_restart(mode) if restarts else member.checkpoint(mode)
    counts["checkpoints"] += 1
    counts["restarts"] += restarts
    figures.note(f"ms: {member.name} {mode}", took * 1e3)
    if mode != "incremental":	# whose size is that of what has changed
        figures.note(f"image KiB: {member.name} {mode}", member.size(mode) / figures.KIB)


def minute(began):
    recent = [value for name, values in figures.series.items() if name.startswith("ms: ")
              for value in values[-5:]]
    last = {name: figures.series[name][-1] for name in ("slab KiB", "processes", "open files")}
    say(f"{(time.monotonic() - began) / 60:.0f} min: {counts['checkpoints']} checkpoints, "
        f"{counts['restarts']} restarts, {counts['faults']} faults; slab "
        f"{last['slab KiB']} KiB, {last['processes']} processes, {last['open files']} files; "
        f"a checkpoint {statistics.median(recent or [0]):.0f} ms")


def soak(members):
    began = told = measured = time.monotonic()
    while time.monotonic() < began + SECONDS and counts["faults"] < MOST_FAULTS:
        member = random.choice(members)
        try:
            one_round(member)
            for member in members:
                member.check()
        except Fault as fault:
            note_fault(member, fault)
            member.kill()
            member.start()
        now = time.monotonic()
        if now >= measured + EVERY:
            measured = now
            figures.note_machine()
            for member in members:
                if os.path.exists(f"/proc/{member.pid}/fd"):
                    figures.note(f"descriptors: {member.name}", member.descriptors())
        if now >= told + 60:
            told += 60
            minute(began)


def finish(members, processes_before):
    for member in members:
        try:
            # A checkpoint says that the last restart is complete.
            member.checkpoint("plain")
            member.finish()
        except Fault as fault:
            note_fault(member, fault)
            member.kill()
    end = time.monotonic() + 30
    while figures.count_processes() > processes_before and time.monotonic() < end:
        time.sleep(0.2)
    left = figures.count_processes() - processes_before
    if left > 0:
        note_fault(None, f"{left} processes are left")


def main():
    known = commands()
    chosen = os.environ.get("KCR_SOAK_MEMBERS", " ".join(known)).split()
    random.seed(SEED)
    say(f"{SECONDS} s, seed {SEED}: {' '.join(chosen)}; {', '.join(MODES)}")
    before = figures.count_processes()
    members = []
    for name in chosen:
        kind, command = known[name]
        members.append(kind(name, command))
        try:
            members[-1].start()
        except Fault as fault:
            note_fault(members[-1], fault)
            sys.exit(1)
    say("all run")
    figures.note_machine()
    soak(members)
    figures.note_machine()
    finish(members, before)
    for line in figures.table():
        say(line)
    for line in figures.grown():
        note_fault(None, line)
    say(f"{counts['checkpoints']} checkpoints, {counts['restarts']} restarts, "
        f"{counts['faults']} faults")
    sys.exit(1 if counts["faults"] else 0)


main()
