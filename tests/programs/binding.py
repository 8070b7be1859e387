#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What libcr/python/kcr.py offers; see check.h for the protocol of READY and
GO.  Saves itself to `image` and notes in `log` what happens then."""
import errno
import os
import sys
import threading
import time

import kcr

ready, go = sys.argv[1:3]
stop = threading.Event()
turns = 0


def say(text):
    with open("log", "a", encoding="utf-8") as log:
        print(text, file=log)


def work():
    """Contends for the interpreter's lock all the time."""
    global turns
    while not stop.is_set():
        with kcr.critical_section:
            turns += 1


def expect(number, function, *args, **options):
    try:
        function(*args, **options)
    except kcr.Error as error:
        assert error.errno == number, error
    else:
        raise AssertionError("no error %d" % number)


# Without a callback: another process, errors.
child = os.fork()
if not child:
    while not os.path.exists("child_go"):
        time.sleep(0.02)
    os._exit(7)
saving = kcr.request("child.image", target=child)
assert saving.fileno() >= 0
assert saving.wait(30)
assert saving.log() == "", saving.log()
assert saving.result() == 0 and saving.fileno() == -1
os.kill(child, 9)
os.waitpid(child, 0)
assert kcr.restart("child.image").result() == child
open("child_go", "w", encoding="utf-8").close()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
expect(errno.ESRCH, kcr.request, "none.image", target=1234567)
expect(errno.EINVAL, kcr.restart, __file__)
assert kcr.checkpoint() == -kcr.ENOTCB
assert kcr.checkpoint_info() is None

# Critical sections.
assert kcr.init() == kcr.init() == 0
assert kcr.status() == kcr.STATE_IDLE
with kcr.critical_section, kcr.critical_section:
    assert kcr.critical_section.depth == 2
assert kcr.critical_section.enter(wait=False)
kcr.critical_section.leave()
expect(errno.EINVAL, kcr.critical_section.leave)
assert kcr.critical_section.depth == 0


# A callback that fails.
def failing():
    raise OSError(77, "meant to fail")


number = kcr.register_callback(failing)
expect(77, kcr.save, "image")
assert not [name for name in os.listdir() if name.endswith(".new")]
kcr.replace_callback(number, None)


def around(name):
    assert kcr.init() == 0
    with kcr.critical_section:
        assert kcr.status() == kcr.STATE_ACTIVE
    info = kcr.checkpoint_info()
    assert info.target == os.getpid() and info.scope == kcr.SCOPE_PROC
    assert info.destination.startswith(os.getcwd()), info
    result = kcr.checkpoint()
    say("%s %s" % (name, "restarted" if result > 0 else result))
    if result > 0:
        assert kcr.restart_info().requester == result


kcr.register_callback(around, "outer")


@kcr.callback
def inner():
    around("inner")


threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
again = kcr.save("image")
say("again" if again else "saved")
if not again:
    open(ready, "w", encoding="utf-8").close()
while not os.path.exists(go):
    time.sleep(0.02)
before = turns
while turns == before:
    time.sleep(0.01)
stop.set()
for thread in threads:
    thread.join()
