# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checkpoint and restart from Python: libcr(3) by ctypes.

    import kcr

    @kcr.callback
    def around_checkpoint():
        close_connections()
        if kcr.checkpoint() > 0:
            print("restarted from", kcr.restart_info().source)
        open_connections()

    with kcr.critical_section:
        ...                                  # no checkpoint happens in here

    if kcr.save("state.context"):
        print("restarted")                   # else: saved, and going on

    kcr.request(target=pid, scope=kcr.SCOPE_TREE, path="other.context").result()
    pid = kcr.restart("other.context").result()

Functions that fail raise kcr.Error, an OSError whose errno may be one of
kcr.E….  Callbacks run in a thread of libcr.  A child of fork starts afresh: it
registers its own callbacks.  Hooks and signal-context callbacks are not
offered: Python code could not run safely there.
"""
import ctypes
import errno
import os
import threading
import traceback
from collections import namedtuple

__all__ = ["Error", "init", "callback", "register_callback", "replace_callback",
           "checkpoint", "checkpoint_info", "restart_info", "forward",
           "critical_section", "status", "request", "save", "restart"]

# Error numbers beyond those of the module errno.
(ETEMPFAIL, EPERMFAIL, ENOSUPPORT, EVERSION, EOMITTED, EBADARCH, EPTRACED,
 EPTRACER, ERSTRTABRT, ERESTARTED, ENOTCB, ENOINIT) = range(2354, 2366)

SCOPE_PROC, SCOPE_PGRP, SCOPE_SESS, SCOPE_TREE = range(4)
STATE_IDLE, STATE_PENDING, STATE_ACTIVE = range(3)

# Arguments of checkpoint().
READY, TEMP_FAILURE, PERM_FAILURE, OMIT = 0, 1, 2, 4

# Flags of request().
PROHIBIT_SELF, PTRACED_ALLOW, PTRACED_SKIP, PTRACER_SKIP = 1, 2, 4, 8
DUMP_EXEC, DUMP_PRIVATE, DUMP_SHARED = 0x200, 0x400, 0x800
DUMP_ALL = DUMP_EXEC | DUMP_PRIVATE | DUMP_SHARED

# Flags of restart().
RESTORE_PID, RESTORE_PGID, RESTORE_SID = 2, 4, 8

CheckpointInfo = namedtuple("CheckpointInfo", "signal destination requester target scope")
RestartInfo = namedtuple("RestartInfo", "requester source")

# ---- the library ---------------------------------------------------------------

_THREAD_CONTEXT = 0x4000000


class _Timeval(ctypes.Structure):
    _fields_ = [("tv_sec", ctypes.c_long), ("tv_usec", ctypes.c_long)]


class _CheckpointArgs(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("scope", ctypes.c_int),
                ("target", ctypes.c_int), ("fd", ctypes.c_int),
                ("signal", ctypes.c_int), ("timeout", ctypes.c_uint),
                ("flags", ctypes.c_uint)]


class _Pair(ctypes.Structure):
    _fields_ = [("oldpath", ctypes.c_char_p), ("newpath", ctypes.c_char_p)]


class _RestartArgs(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("fd", ctypes.c_int),
                ("signal", ctypes.c_int), ("flags", ctypes.c_uint),
                ("relocate", ctypes.c_void_p)]


class _CheckpointInfo(ctypes.Structure):
    _fields_ = [("signal", ctypes.c_int), ("dest", ctypes.c_char_p),
                ("requester", ctypes.c_int), ("target", ctypes.c_int),
                ("scope", ctypes.c_int)]


class _RestartInfo(ctypes.Structure):
    _fields_ = [("requester", ctypes.c_int), ("src", ctypes.c_char_p)]


try:
    _lib = ctypes.CDLL("libcr.so.0", use_errno=True)
except OSError as error:
    raise ImportError("libcr.so.0 of KCR was not found: %s" % error) from error

_lib.cr_strerror.restype = ctypes.c_char_p
_lib.cr_get_checkpoint_info.restype = ctypes.POINTER(_CheckpointInfo)
_lib.cr_get_restart_info.restype = ctypes.POINTER(_RestartInfo)

# The thread of a checkpoint must keep the interpreter's lock meanwhile: otherwise
# a thread that is still held back afterwards could have it and not release it.
_locked = ctypes.PyDLL("libcr.so.0")

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Error(OSError):
    """A call failed; errno and strerror say why."""

    def __init__(self, number, detail=""):
        text = _lib.cr_strerror(number).decode(errors="replace")
        super().__init__(number, "%s (%s)" % (text, detail) if detail else text)


def _check(result):
    if result < 0:
        raise Error(ctypes.get_errno())
    return result


# ---- callbacks --------------------------------------------------------------------

# Functions that C calls must not be collected, nor may replaced ones: a checkpoint may be about to
# call them.
_callbacks = []


def init():
    """Makes the calling thread known to libcr; returns its id.

    Further calls return the same id.  The other functions call it as needed.
    """
    return _check(_lib.cr_init())


def _wrap(function, args):
    def run(_):
        try:
            function(*args)
        except BaseException as error:  # pylint: disable=broad-except
            traceback.print_exc()
            number = getattr(error, "errno", None)
            return number if isinstance(number, int) and number > 0 else ETEMPFAIL
        return 0
    return _Callback(run)


def register_callback(function, *args):
    """Calls function(*args) in every checkpoint; returns an id.

    It should call checkpoint(); otherwise its return does so.  An
    exception ends the checkpoint or restart for everybody, with the
    exception's errno or ETEMPFAIL.
    """
    init()
    wrapped = _wrap(function, args)
    number = _check(_lib.cr_register_callback(wrapped, None, _THREAD_CONTEXT))
    _callbacks.append(wrapped)
    return number


def replace_callback(number, function, *args):
    """Replaces a registered function by another one, or by None."""
    init()
    wrapped = _wrap(function, args) if function else _Callback()
    _callbacks.append(wrapped)
    _check(_lib.cr_replace_callback(number, wrapped, None, _THREAD_CONTEXT))


def callback(function):
    """Decorator: registers a function without arguments."""
    register_callback(function)
    return function


def checkpoint(flags=READY, code=0):
    """In a callback: lets the checkpoint happen, or says why it must not.

    flags: READY, TEMP_FAILURE, PERM_FAILURE or OMIT; code: 1 to 65535, the
    error number that the requester gets for a failure.
    Returns 0 when the program goes on; the PID of the process that asked
    for the restart when it was restarted; a negative error number if there
    was no checkpoint.
    """
    return _locked.cr_checkpoint(flags | (code & 0xffff) << 16)


def checkpoint_info():
    """In a callback before checkpoint(): CheckpointInfo, else None."""
    info = _lib.cr_get_checkpoint_info()
    if not info:
        return None
    info = info.contents
    return CheckpointInfo(info.signal, os.fsdecode(info.dest), info.requester,
                          info.target, info.scope)


def restart_info():
    """In a callback once checkpoint() has returned > 0: RestartInfo, else None."""
    info = _lib.cr_get_restart_info()
    return RestartInfo(info.contents.requester, os.fsdecode(info.contents.src)) if info else None


def forward(scope, target=0):
    """In a callback before checkpoint(): adds processes to the checkpoint."""
    _check(_lib.cr_forward_checkpoint(scope, target))


# ---- critical sections ---------------------------------------------------------------


class _CriticalSection:
    """Holds checkpoints off, in any thread; nests.  Use it with `with`."""

    def __init__(self):
        self._local = threading.local()

    @property
    def depth(self):
        """How many sections the calling thread is inside."""
        return getattr(self._local, "depth", 0)

    def enter(self, wait=True):
        """Waits while a checkpoint is pending; or, without wait, returns False."""
        function = _lib.cr_enter_cs if wait else _lib.cr_tryenter_cs
        entered = not _check(function(init()))
        if entered:
            self._local.depth = self.depth + 1
        return entered

    def leave(self):
        """Lets a pending checkpoint happen before it returns."""
        _check(_lib.cr_leave_cs(init()))
        self._local.depth = self.depth - 1

    def __enter__(self):
        self.enter()
        return self

    def __exit__(self, *exception):
        self.leave()


critical_section = _CriticalSection()


def status():
    """STATE_IDLE, STATE_PENDING or STATE_ACTIVE."""
    init()
    return _check(_lib.cr_status())


# ---- requests --------------------------------------------------------------------------


class _Request:
    """A request under way; result() frees it."""

    def __init__(self, kind, handle):
        self._kind = kind
        self._handle = handle

    def _call(self, name, *args):
        if self._handle is None:
            raise ValueError("this request was given up by result()")
        function = getattr(_lib, "cr_%s_%s" % (name, self._kind))
        return function(ctypes.byref(self._handle), *args)

    def fileno(self):
        """A descriptor that is readable when the request is complete."""
        return -1 if self._handle is None else self._handle.value

    def wait(self, timeout=None):
        """Waits at most `timeout` seconds; True: it is complete."""
        if timeout is not None:
            timeout = _Timeval(int(timeout), int(timeout % 1 * 1000000))
            timeout = ctypes.byref(timeout)
        while True:
            done = self._call("wait", timeout)
            if done >= 0:
                return bool(done)
            number = ctypes.get_errno()
            if number != errno.EINTR:
                raise Error(number)

    def log(self):
        """The messages of the complete request, one per line."""
        length = _check(self._call("log", 0, None))
        buffer = ctypes.create_string_buffer(length)
        _check(self._call("log", length, buffer))
        return os.fsdecode(buffer.value)

    def result(self):
        """Waits; the PID of the restored process, or 0 for a checkpoint."""
        self.wait()
        text = self.log().strip()
        number = self._call("reap")
        error = ctypes.get_errno()
        self._handle = None
        if number < 0:
            raise Error(error, text)
        return number


def request(path=None, fd=-1, *, scope=SCOPE_PROC, target=0, signal=0, timeout=0, flags=0):
    """Requests a checkpoint, into a new file or an open descriptor.

    target: the ID of what the scope names, 0 the caller's; signal: sent to every
    process afterwards; timeout: seconds, 0 for none.  A request for the caller
    itself, outside critical sections, is complete when this returns.
    """
    opened = path is not None
    if opened:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        args = _CheckpointArgs(1, scope, target, fd, signal, timeout, flags)
        handle = ctypes.c_ulong()
        _check(_lib.cr_request_checkpoint(ctypes.byref(args), ctypes.byref(handle)))
    finally:
        if opened:
            os.close(fd)
    return _Request("checkpoint", handle)


def save(path, flags=0):
    """Saves this process in a file, which is replaced only on success.

    Not from within a critical section or a callback.
    Returns False when the program goes on, True when it was restarted.
    """
    if critical_section.depth:
        raise RuntimeError("in a critical section no checkpoint happens")
    path = os.path.abspath(path)
    new = "%s.%d.new" % (path, os.getpid())
    try:
        # The file is closed when the checkpoint happens, so that a restart does not need it.
        with critical_section:
            saving = request(new, flags=flags)
        saving.result()
        os.replace(new, path)
    except Error as error:
        if error.errno == ERESTARTED:
            return True
        os.unlink(new)
        raise
    return False


def restart(path=None, fd=-1, *, signal=0, flags=RESTORE_PID, relocate=()):
    """Requests a restart; the restored process becomes a child of the caller.

    relocate: pairs of absolute paths, old and new; signal: sent to every process.
    """
    pairs = [(os.fsencode(old), os.fsencode(new)) for old, new in relocate]

    class Relocate(ctypes.Structure):
        """With room for all pairs."""
        _fields_ = [("count", ctypes.c_uint), ("path", _Pair * len(pairs))]

    places = Relocate(len(pairs), (_Pair * len(pairs))(*pairs))
    opened = path is not None
    if opened:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        args = _RestartArgs(1, fd, signal, flags, ctypes.addressof(places) if pairs else None)
        handle = ctypes.c_ulong()
        _check(_lib.cr_request_restart(ctypes.byref(args), ctypes.byref(handle)))
    finally:
        if opened:
            os.close(fd)
    return _Request("restart", handle)
