#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""objects.py STEPS: what Python programs do with MPI, by mpi4py, which asks for
MPI_THREAD_MULTIPLE.  Pickled objects go through collectives, point to point
messages of unknown size and non-blocking requests; a second thread of each rank
passes tokens around a ring on a communicator of its own; buffers go round a
Cartesian grid; at the end all write to one file by MPI-IO.  Rank 0 prints a
digest that depends on every message."""
import array
import hashlib
import sys
import threading

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
steps = int(sys.argv[1])


def digest(*parts):
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def ring(comm, result):
    """The other thread: a token grows on its way around."""
    token = digest(rank)
    for step in range(steps):
        token = comm.sendrecv((step, token), dest=(rank + 1) % size, sendtag=step,
                              source=(rank - 1) % size, recvtag=step)
        token = digest(token, rank)
    result.append(token)


def exchange_objects(step, state):
    everybody = world.allgather({"rank": rank, "step": step, "state": state})
    tables = world.alltoall([[state, step, to] * (1 + (step + to) % 50) for to in range(size)])
    root = step % size
    word = world.bcast(digest(everybody) if rank == root else None, root=root)
    request = world.isend({"word": word, "pad": "x" * (step * 997 % 70000)},
                          dest=(rank + 1) % size, tag=9)
    status = MPI.Status()
    message = world.mprobe(source=MPI.ANY_SOURCE, tag=9, status=status)
    got = message.recv()
    request.wait()
    return digest(tables, word, got, status.source)


def exchange_buffers(grid, step, state):
    count = 1 + step * 61 % 4096
    out = array.array("q", [int(state[:12], 16) + i for i in range(count)])
    into = array.array("q", bytes(8 * count))
    for axis in range(2):
        source, to = grid.Shift(axis, 1)
        grid.Sendrecv(out, dest=to, recvbuf=into, source=source)
        out, into = into, out
    total = array.array("q", bytes(8 * count))
    grid.Iallreduce(out, total, op=MPI.BXOR).Wait()
    return digest(out.tobytes(), total.tobytes())


def write_together(state, name):
    file = MPI.File.Open(world, name, MPI.MODE_CREATE | MPI.MODE_RDWR)
    mine = state.encode()
    file.Write_at_all(rank * len(mine), mine)
    file.Sync()
    world.Barrier()
    whole = bytearray(size * len(mine))
    file.Read_at_all(0, whole)
    file.Close()
    return hashlib.sha256(whole).hexdigest()


def main():
    tokens = []
    thread = threading.Thread(target=ring, args=(world.Dup(), tokens))
    grid = world.Create_cart(MPI.Compute_dims(size, 2), periods=[True, True])
    state = digest("start", rank)
    thread.start()
    if rank == 0:
        print("running", flush=True)
    for step in range(steps):
        state = exchange_objects(step, state)
        state = exchange_buffers(grid, step, state)
    thread.join()
    state = digest(state, tokens)
    whole = write_together(state, "objects.data")
    if rank == 0:
        print("result", whole, flush=True)


main()
