"""
Bring a thread into one state, and keep it there: a program of its own for each.

`python statemaker.py STATE PARENT` writes one line: PID and TID of the thread,
or `refused` and the reason. It loads nothing of rtscope, so that it starts
fast and has no other threads.

It ends with its parent, whichever way that ends: the kernel kills it
(PR_SET_PDEATHSIG), or, where it has a child to bury first, standard input ends.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping

PR_SET_PDEATHSIG = 1
PTRACE_TRACEME = 0
PRIO_INHERIT = 1
CLONE_VFORK = 0x4000
CLONE: Mapping[str, int] = {"x86_64": 56, "aarch64": 220, "riscv64": 220, "armv7l": 120}
"""The number of the system call, by machine (asm/unistd.h)."""

ATTRIBUTE_BYTES, MUTEX_BYTES = 64, 128
"""More than any C library needs."""

LONG_S = 3600.0
STDIN = 0


class Refused(Exception):
    """This state cannot be made here; the message says why."""


def running() -> None:
    """Compute."""
    _show(os.getpid())
    while True:
        pass


def sleeping() -> None:
    """Wait for input."""
    _show(os.getpid())
    os.read(STDIN, 1)


def timer() -> None:
    """Wait for a time."""
    _show(os.getpid())
    time.sleep(LONG_S)


def pi_lock() -> None:
    """Let a second thread wait for a mutex with priority inheritance."""
    library = ctypes.CDLL(None, use_errno=True)
    attribute = ctypes.create_string_buffer(ATTRIBUTE_BYTES)
    mutex = ctypes.create_string_buffer(MUTEX_BYTES)
    library.pthread_mutexattr_init(attribute)
    for number in (
        library.pthread_mutexattr_setprotocol(attribute, PRIO_INHERIT),
        library.pthread_mutex_init(mutex, attribute),
        library.pthread_mutex_lock(mutex),
    ):
        if number:
            raise Refused(f"the C library refused the mutex: {os.strerror(number)}")

    def want() -> None:
        _show(os.getpid(), threading.get_native_id())
        library.pthread_mutex_lock(mutex)

    threading.Thread(target=want, daemon=True).start()
    time.sleep(LONG_S)


def vfork() -> None:
    """Wait for a child that neither executes a program nor ends."""
    number = CLONE.get(os.uname().machine)
    if number is None or (number == CLONE["x86_64"] and sys.maxsize < 1 << 32):
        raise Refused(f"the number of clone() on {os.uname().machine} is not known")
    library = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()
    # As vfork() does, but with memory of its own: Python could not share its.
    child = library.syscall(number, CLONE_VFORK | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        _end_with(parent)
        _show(parent)
        os.read(STDIN, 1)
        os._exit(0)
    if child < 0:
        raise Refused(f"clone() was refused: {os.strerror(ctypes.get_errno())}")
    os.waitpid(child, 0)


def stopped() -> None:
    """Stop by a signal."""
    _show(os.getpid())
    os.kill(os.getpid(), signal.SIGSTOP)


def traced() -> None:
    """Trace a child, which stops."""
    parent = os.getpid()
    end, said = os.pipe()
    child = os.fork()
    if child == 0:
        _end_with(parent)
        library = ctypes.CDLL(None, use_errno=True)
        if library.ptrace(PTRACE_TRACEME, 0, None, None) < 0:
            os.write(said, os.strerror(ctypes.get_errno()).encode())
            os._exit(1)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    os.close(said)
    _, status = os.waitpid(child, 0)
    if not os.WIFSTOPPED(status):
        why = os.read(end, 200).decode() or "the child that asked for it was ended"
        raise Refused(f"ptrace was refused: {why}")
    _show(child)
    os.read(STDIN, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def zombie() -> None:
    """Have a child that has ended, and do not wait for it."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    _show(child)
    os.read(STDIN, 1)
    os.waitpid(child, 0)


MAKERS: Mapping[str, Callable[[], None]] = {
    "running": running,
    "sleeping": sleeping,
    "timer": timer,
    "pi-lock": pi_lock,
    "vfork": vfork,
    "stopped": stopped,
    "traced": traced,
    "zombie": zombie,
    "gone": sleeping,
}
HAVE_CHILDREN = frozenset({"vfork", "traced", "zombie"})
"""They end when standard input does, and wait for their children."""


def _show(pid: int, tid: int = 0) -> None:
    os.write(1, f"{pid} {tid or pid}\n".encode())


def _end_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before we asked
        os._exit(1)


def main() -> int:
    """Make the state; return after standard input has ended."""
    name, parent = sys.argv[1:]
    if name not in HAVE_CHILDREN:
        _end_with(int(parent))
    try:
        MAKERS[name]()
    except (Refused, OSError) as error:
        os.write(1, f"refused {error}\n".encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
