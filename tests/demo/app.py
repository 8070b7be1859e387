#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A small distributed computation inside one program: worker threads talk to
a server thread over TCP, the server hands the work on to a child process
through pipes, and everything that comes back is folded into one digest.  The
digest depends on every byte of every message, so a lost, repeated or changed
one shows.  Usage: app.py ROUNDS"""
import hashlib
import socket
import subprocess
import sys
import threading

WORKERS = 3
ROUNDS = int(sys.argv[1])


def receive(connection, length):
    data = b""
    while len(data) < length:
        part = connection.recv(length - len(data))
        if not part:
            raise EOFError("peer is gone")
        data += part
    return data


class Child:
    """perl, computing one line for every line it is given."""

    PROGRAM = "$| = 1; while (<>) { $s = $_; $s = ($s * 69069 + 1) % 2147483648 for 1..2000; print \"$s\\n\" }"

    def __init__(self):
        self.process = subprocess.Popen(["perl", "-e", self.PROGRAM], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()

    def ask(self, number):
        with self.lock:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
            return int(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        return self.process.wait()


def serve(connection, child):
    with connection:
        for _ in range(ROUNDS):
            number = int.from_bytes(receive(connection, 8), "big")
            answer = child.ask(number)
            connection.sendall(answer.to_bytes(8, "big") * 512)


def work(index, port, results, progress):
    digest = hashlib.sha256()
    number = index + 1
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for round_number in range(ROUNDS):
            connection.sendall(number.to_bytes(8, "big"))
            answer = receive(connection, 8 * 512)
            digest.update(answer)
            number = int.from_bytes(answer[:8], "big")
            if index == 0 and round_number % 10 == 0:
                progress(round_number)
    results[index] = digest.hexdigest()


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    child = Child()
    results = [None] * WORKERS

    def progress(round_number):
        print(f"round {round_number}", file=sys.stderr, flush=True)

    def accept():
        for _ in range(WORKERS):
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, child)).start()

    threading.Thread(target=accept).start()
    workers = [threading.Thread(target=work, args=(i, listener.getsockname()[1], results, progress))
               for i in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("child ended with", child.end())
    for index, result in enumerate(results):
        print("worker", index, result)


main()
