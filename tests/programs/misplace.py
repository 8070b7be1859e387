# SPDX-License-Identifier: GPL-2.0
"""misplace.py MODE FILE PATH COMMAND...: runs COMMAND with FILE as its standard output.

It was opened (MODE: path, read, write, both) by an orphan in a mount namespace of its
own, where it is at PATH, so that is its path for whoever looks in /proc/PID/fd.
"""
import array
import ctypes
import os
import socket
import sys

mode, name, path = sys.argv[1:4]
flags = {"path": os.O_PATH, "read": os.O_RDONLY, "write": os.O_WRONLY, "both": os.O_RDWR}[mode]
libc = ctypes.CDLL(None, use_errno=True)
uid, gid = os.getuid(), os.getgid()
ours, theirs = socket.socketpair()
child = os.fork()
if child:
	theirs.close()
	_, control, _, _ = ours.recvmsg(1, 64)
	os.dup2(array.array("i", control[0][2])[0], 1)
	ours.close()
	os.waitpid(child, 0)
	os.execvp(sys.argv[4], sys.argv[4:])


def call(result):
	assert result == 0, os.strerror(ctypes.get_errno())


def say(file, text):
	with open(file, "w", encoding="ascii") as f:
		f.write(text)


ours.close()
if os.fork():
	os._exit(0)
call(libc.unshare(0x10000000 | 0x20000))	# CLONE_NEWUSER, CLONE_NEWNS
say("/proc/self/setgroups", "deny")
say("/proc/self/uid_map", f"0 {uid} 1")
say("/proc/self/gid_map", f"0 {gid} 1")
found = os.open(name, os.O_PATH)
folder = os.path.dirname(path)
if folder == "/":
	path = "/.." + path	# what is mounted on the root folder
call(libc.mount(b"none", folder.encode(), b"tmpfs", 0, None))
say(path, "")
call(libc.mount(f"/proc/self/fd/{found}".encode(), path.encode(), None, 4096, None))	# MS_BIND
fd = os.open(path, flags)
theirs.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
theirs.close()
os.setsid()
libc.pause()		# the mounts stay
