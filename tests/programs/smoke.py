#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Python with threads, a subprocess that is talked to, sockets, locks and a
generator under way; see check.h for the protocol of READY and GO."""
import hashlib
import os
import queue
import socket
import subprocess
import sys
import threading
import time

ready, go = sys.argv[1:3]


def wait():
    while not os.path.exists(go):
        time.sleep(0.02)


def chain(n):
    value = b"start"
    for _ in range(n):
        value = hashlib.sha256(value).digest()
        yield value


work, done = queue.Queue(), queue.Queue()


def worker():
    while (item := work.get()) is not None:
        done.put(item * item)


threads = [threading.Thread(target=worker) for _ in range(4)]
for thread in threads:
    thread.start()
child = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
left, right = socket.socketpair()
left.sendall(b"under way")
table = {i: str(i) * 3 for i in range(20000)}
links = chain(2000)
first = [next(links) for _ in range(1000)]
file = open(__file__)
line = file.readline()

open(ready, "w").close()
wait()

assert right.recv(100) == b"under way"
right.sendall(b"back")
assert left.recv(100) == b"back"
child.stdin.write(b"through the cat\n")
child.stdin.flush()
assert child.stdout.readline() == b"through the cat\n"
child.stdin.close()
assert child.wait() == 0
for i in range(100):
    work.put(i)
assert sum(done.get() for _ in range(100)) == sum(i * i for i in range(100))
for _ in threads:
    work.put(None)
for thread in threads:
    thread.join()
assert first + list(links) == list(chain(2000))
assert all(table[i] == str(i) * 3 for i in table) and len(table) == 20000
assert line + file.read() == open(__file__).read()
assert subprocess.run(["/bin/echo", "new"], capture_output=True).stdout == b"new\n"
