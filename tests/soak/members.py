# SPDX-License-Identifier: GPL-2.0
"""The programs that are checkpointed and restarted.  Each checks itself all the time, ends with
a status other than 0 at the first fault, and with 0 once there is a file `go`."""
import glob
import json
import os
import signal
import shutil
import subprocess
import time

import figures

TOP = os.environ["KCR_TOP"]
TESTS = os.environ["KCR_TESTS"]
PATIENCE = int(os.environ["KCR_PATIENCE"])
STARTING = (3, 16)		# it is being rebuilt: there is no such process yet, or it is busy
MODES = {"plain": [], "snapshot": ["--snapshot"], "lz4": ["--compress=lz4"],
         "zstd": ["--snapshot", "--compress=zstd"], "incremental": ["--incremental"]}
CHAIN = 5			# increments of one chain
# What PMIx_Finalize and PMIx_Init leave in a rank that joins another server: 156 with PMIx 4.2.2.
PMIX_KIB = 200


class Fault(Exception):
    """What was wrong."""


def wait_for(condition, what, times=1):
    end = time.monotonic() + times * PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise Fault(f"waited {times * PATIENCE} s: {what}")
        time.sleep(0.05)


def tree(pid):
    """The process and its descendants."""
    found = [pid]
    for file in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(file, encoding="ascii") as children:
                for child in children.read().split():
                    found += tree(int(child))
        except OSError:
            pass
    return found


class Member:
    """A program in a folder of its own, and what is known of its checkpoints."""
    modes = list(MODES)

    def __init__(self, name, command):
        self.name, self.command = name, command
        self.folder = os.path.abspath(name)
        self.increments = self.chain = 0

    def spawn(self, output, *command):
        with open(self.path(output), "wb") as out:
            return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=out, start_new_session=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.mkdir(self.folder)
        # Members leave the processors to the tools: they are many, and ranks of MPI spin.
        self.child = self.spawn("out", "nice", "-n", "19", *self.command)
        self.pid = self.child.pid
        wait_for(lambda: os.path.exists(self.path("ready")) or self.child.poll() is not None,
                 f"{self.name} is not ready", 4)
        self.check()

    def check(self):
        if self.child.poll() is not None:
            raise Fault(f"{self.name} ended with status {self.child.returncode}")

    def image(self, mode):
        if mode == "incremental":
            return self.path(f"image.{self.chain}")
        return self.path(f"image.{mode}")

    def options(self, mode):
        """Those of cr_checkpoint; an increment has its chain, others replace their image.  A
        restart from the last chain may not have begun when another chain does."""
        if mode == "incremental":
            if self.increments % CHAIN == 0:
                for file in glob.glob(self.path(f"image.{self.chain - 1}*")):
                    os.remove(file)
                self.chain += 1
            self.increments += 1
            return MODES[mode]
        return ["--clobber"] + MODES[mode]

    def checkpoint(self, mode, *more):
        """Seconds that it took."""
        command = ["cr_checkpoint", *self.options(mode), *more, "--file", self.image(mode),
                   str(self.pid)]
        end = time.monotonic() + PATIENCE
        while True:
            begin = time.monotonic()
            try:
                done = subprocess.run(command, cwd=self.folder, capture_output=True, check=False,
                                      timeout=PATIENCE)
            except subprocess.TimeoutExpired as late:
                raise Fault(f"{' '.join(command)}: not done after {PATIENCE} s") from late
            if done.returncode == 0:
                return time.monotonic() - begin
            self.check()
            if done.returncode not in STARTING or time.monotonic() > end:
                raise Fault(f"{' '.join(command)}: status {done.returncode}: "
                            f"{done.stderr.decode().strip()}")
            time.sleep(0.1)

    def size(self, mode):
        return os.path.getsize(self.image(mode))

    def saved(self, mode):
        """The processes in an image."""
        done = subprocess.run(["cr_info", "--json", self.image(mode)], capture_output=True,
                              check=True)
        return [process["pid"] for process in json.loads(done.stdout)["process"]]

    def kill(self, *more):
        """All of it, at once; these are killed already."""
        gone = tree(self.child.pid) + list(more)
        for pid in gone:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.child.wait()
        wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in gone),
                 f"{self.name} was killed")

    def restart(self, mode):
        self.child = self.spawn("restart.out", "cr_restart", "--file", self.image(mode))

    def kill_and_restart(self, mode):
        """The program does nothing between its checkpoint and its end, so that its files are
        those of the checkpoint."""
        took = self.checkpoint(mode, "--kill")
        self.kill(*self.saved(mode))
        self.restart(mode)
        return took

    def descriptors(self):
        """Of the first process."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def finish(self):
        with open(self.path("go"), "wb"):
            pass
        wait_for(lambda: self.child.poll() is not None, f"{self.name} does not end")
        if self.child.returncode:
            raise Fault(f"{self.name} ended with status {self.child.returncode}")


class MpiJob(Member):
    """A job of Open MPI: its coordinator is asked, and its image is a folder."""
    modes = ["plain", "snapshot", "lz4"]
    ranks = 2

    def start(self):
        super().start()
        wait_for(self.takes_requests, "mpirun takes requests")

    def takes_requests(self):
        self.check()
        with open("/proc/net/unix", encoding="ascii", errors="replace") as sockets:
            return f"@kcr-mpi.{self.pid}\n" in sockets.read()

    def image(self, mode):
        return self.path("saved")

    def options(self, mode):
        return MODES[mode]

    def size(self, mode):
        return sum(os.path.getsize(file) for file in glob.glob(self.path("saved.kcr/*")))

    def kill(self, *more):
        """With the daemon, whose children the ranks are: there is no other job here."""
        daemons = [int(pid) for pid in subprocess.run(
            ["pgrep", "-x", "cr_node"], capture_output=True, check=False).stdout.split()]
        super().kill(*more, *(pid for daemon in daemons for pid in tree(daemon)))

    def restart(self, mode):
        self.child = self.spawn("restart.out", "cr_restart", "saved.kcr")
        self.pid = self.child.pid
        for mode in self.modes:
            figures.may_grow(f"image KiB: {self.name} {mode}", self.ranks * PMIX_KIB)
        wait_for(self.takes_requests, "the restarted mpirun takes requests")

    def kill_and_restart(self, mode):
        took = self.checkpoint(mode)
        self.kill()
        self.restart(mode)
        return took

    def finish(self):
        with open(self.path("enough"), "wb"):
            pass
        super().finish()


XZ = """head -c 200000 /usr/bin/python3 > data; : > ready
while [ ! -e go ]; do xz -0 -c data | xz -dc | cmp - data || exit 1; sleep 0.2; done"""

SQLITE = """work() { sqlite3 :memory: 'CREATE TABLE t (x, y); BEGIN;
	WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 20000)
	INSERT INTO t SELECT x, x * x % 1009 FROM c; COMMIT; PRAGMA integrity_check;
	SELECT sum(y), count(*) FROM t; SELECT y, count(*) FROM t GROUP BY y LIMIT 9;'; }
work > expected && : > ready
while [ ! -e go ]; do work > got && cmp got expected || exit 1; sleep 0.2; done"""

PERL = """use Digest::SHA 'sha256_hex'; $| = 1;
sub chain { my $x = shift; $x = sha256_hex($x) for 1 .. 3000; $x }
my $expected = chain('a'); open(F, '>', 'ready'); close F;
until (-e 'go') {
	pipe(my $in, my $out); my $pid = fork;
	if (!$pid) { print $out chain('a'); close $out; exit 7 }
	close $out; my $got = join '', <$in>; waitpid $pid, 0;
	die "wrong: $got, $?" if $got ne $expected or $? >> 8 != 7;
	select undef, undef, undef, 0.2;
}"""

PYTHON = """import os, queue, socket, threading, time, zlib
jobs, results, data = queue.Queue(), queue.Queue(), os.urandom(50000) * 3
def work():
    while (job := jobs.get()) is not None:
        results.put((job, zlib.decompress(zlib.compress(data)) == data))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
left, right = socket.socketpair()
open('ready', 'w').close()
number = 0
while not os.path.exists('go'):
    for i in range(8): jobs.put(number + i)
    got = [results.get() for _ in range(8)]
    assert sorted(got) == [(number + i, True) for i in range(8)], got
    number += 8
    left.sendall(b'%d' % number)
    assert right.recv(100) == b'%d' % number
    time.sleep(0.1)
for _ in threads: jobs.put(None)"""

# A server and its client, of an ordinary user: what the client adds is what it finds.
POSTGRES = """set -e
bin=$1
[ -d data ] || $bin/initdb -D data -A trust -N > initdb.out
ask() { $bin/psql -h "$PWD" -d postgres -XAtq "$@"; }
$bin/postgres -D data -F -k "$PWD" -h '' -c shared_buffers=4MB -c max_connections=10 &
server=$!
until ask -c 'SELECT 1' > /dev/null 2>&1; do sleep 0.5; done
ask -c 'CREATE TABLE t (x int PRIMARY KEY, y int)' -c \
	'INSERT INTO t SELECT i, 0 FROM generate_series(1, 200) i'
: > ready
for ((i = 1; ; i++)); do
	[ ! -e go ] || break
	got=$(ask -c 'BEGIN' -c 'UPDATE t SET y = y + 1' -c 'COMMIT' -c 'SELECT sum(y) FROM t')
	[ "$got" = $((200 * i)) ] || { echo "got $got in round $i"; exit 1; }
	sleep 0.2
done
kill -INT $server
wait $server"""


# Its output too is opened anew by that user.
AS_USER = """chown -R 1000:1000 . && exec setpriv --reuid 1000 --regid 1000 --clear-groups \\
	/bin/bash -c "$0" - "$1\""""


def commands():
    """Of all that this machine has: name, class, command."""
    found = {}		# those that begin slowly first
    servers = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if servers:
        found["postgres"] = (Member, ["/bin/bash", "-c", AS_USER, POSTGRES, servers[-1]])
    if os.environ.get("KCR_SOAK_MPI"):
        found["mpi"] = (MpiJob, ["/bin/bash", "-c",
                                 f": > ready; exec cr_mpirun -np {MpiJob.ranks} torture ./enough 1"])
    for name, program in (("xz", XZ), ("sqlite3", SQLITE), ("perl", PERL), ("python3", PYTHON)):
        if os.path.exists(f"/usr/bin/{name}"):
            option = {"perl": "-e"}.get(name, "-c")
            shell = f"/usr/bin/{name}" if name in ("perl", "python3") else "/bin/bash"
            found[name] = (Member, [shell, option, program])
    found["libcr"] = (Member, [f"{TESTS}/cr_stress", "ready", "go"])
    found["busy"] = (Member, [f"{TESTS}/soak_busy", "ready", "go"])
    return found
