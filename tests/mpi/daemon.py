#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""daemon.py RANKS COMMAND...: stands for the coordinator and this node's daemon.

COMMAND starts a job of so many ranks, which hook/cr takes part in.  They are brought
through the phases of one checkpoint after another, but are not saved, until they leave;
prints `N rounds`, and ends with COMMAND's status, or 1 if there was no round or a rank
failed.  The messages are those of job/coordinator/wire.h, the order is that of phases.c.
"""
import os
import selectors
import socket
import struct
import subprocess
import sys

(HELLO, LEAVE, LEFT, PREPARE, BOOKMARKS, DRAIN, DRAINED, CONTINUE, CONTINUED, FAILED, SUSPEND,
 SUSPENDED, UNABLE) = (2, 3, 4, 6, 7, 8, 9, 15, 16, 18, 22, 23, 24)
NOBODY = 0xfffffffe
ANSWER = {BOOKMARKS: PREPARE, DRAINED: DRAIN, SUSPENDED: SUSPEND, CONTINUED: CONTINUE}
HEADER = struct.Struct("=IIII")
MARK = struct.Struct("=IQ")


class Job:
    def __init__(self, size):
        self.size, self.rank, self.marks, self.leaving = size, {}, {}, set()
        self.rounds, self.waiting, self.type, self.bad = 0, 0, None, False

    def send(self, rank, kind, data=b""):
        header = HEADER.pack(len(data), kind, rank, self.rounds)
        try:
            self.rank[rank].sendall(header + data)
        except OSError:
            pass			# it has ended, as COMMAND's status will say

    def ask_all(self, kind, data=lambda rank: b""):
        self.type, self.waiting = kind, self.size
        for rank in self.rank:
            self.send(rank, kind, data(rank))

    def sent_to(self, rank):
        return b"".join(MARK.pack(peer, sent) for peer, marks in self.marks.items()
                        for to, sent in marks if to == rank)

    def next_phase(self):
        if self.type == PREPARE:
            self.ask_all(DRAIN, self.sent_to)
        elif self.type == DRAIN:
            self.ask_all(SUSPEND)
        elif self.type == SUSPEND:
            self.ask_all(CONTINUE)
        elif self.leaving:
            self.type = None
            for rank in self.leaving:
                self.send(rank, LEFT)
        else:
            self.rounds += 1
            self.ask_all(PREPARE, lambda rank: struct.pack("=I", NOBODY))

    def take(self, connection, kind, rank, data):
        if kind == HELLO:
            self.rank[rank] = connection
            if len(self.rank) == self.size:
                self.next_phase()
        elif kind == LEAVE and self.type:
            self.leaving.add(rank)
        elif kind == LEAVE:
            self.send(rank, LEFT)
        elif kind in (FAILED, UNABLE):
            print(f"rank {rank}", "is unable" if kind == UNABLE else
                  f"failed: {data[4:].decode(errors='replace')}")
            self.bad = True
        elif ANSWER.get(kind) == self.type:
            if kind == BOOKMARKS:
                self.marks[rank] = list(MARK.iter_unpack(data))
            self.waiting -= 1
            if self.waiting == 0:
                self.next_phase()


def exactly(connection, length):
    """So many bytes; None: the connection has ended."""
    data = b""
    while len(data) < length:
        try:
            more = connection.recv(length - len(data))
        except ConnectionResetError:
            more = b""
        if not more:
            return None
        data += more
    return data


def serve(job, listener, command):
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while command.poll() is None:
        for key, _ in selector.select(timeout=0.2):
            if key.fileobj is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
                continue
            header = exactly(key.fileobj, HEADER.size)
            length, kind, rank, _ = HEADER.unpack(header or bytes(HEADER.size))
            data = exactly(key.fileobj, length)
            if header and data is not None:
                job.take(key.fileobj, kind, rank, data)
            else:
                selector.unregister(key.fileobj)


def main():
    name = f"kcr-test-daemon.{os.getpid()}"
    job = Job(int(sys.argv[1]))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + name)
        listener.listen(64)
        os.environ.update(KCR_MPI_ROOT="test", KCR_MPI_DAEMON=name)
        with subprocess.Popen(sys.argv[2:]) as command:
            serve(job, listener, command)
    print(f"{job.rounds} rounds")
    return command.returncode or (1 if job.bad or not job.rounds else 0)


sys.exit(main())
