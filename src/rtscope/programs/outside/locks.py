"""Tells a wait for a lock from other waits in the same call. Pure."""

from collections.abc import Sequence
from itertools import islice

from rtscope.programs.outside.wakeups import Call, Wakeup

_FILE_LOCKS = {("flock", None), ("fcntl", 7), ("fcntl", 38)}
"""Calls that wait for a lock of a file: F_SETLKW and F_OFD_SETLKW of fcntl."""
_FUTEX = ("futex", "futex_time64")
_OPERATION = 0x7F
_WAIT = (0, 9)
_WAKE = (1, 5, 10)
_LOCK_PI = (6, 13)
"""Operations of futex: without and with a set of bits, or of a newer kernel."""
_CONTENDED = (2, 3)
"""What the word of a lock has that is waited for: of glibc, Rust and Go."""
_WAITERS = 0x8000_0000
"""Beside who holds it, in the word of other locks: all of musl are such."""
_MOST_CALLS = 1_000
"""Of the calls after a wait: the one that gives the lock back is among them."""


def is_of_a_lock(call: Call, wakeups: Sequence[Wakeup], after: int) -> bool:
    """
    Whether a thread waits for what another one holds: no condition, semaphore or end.

    Who has waited for a lock gives it back by a call of its own, or its word tells.
    """
    address, operation, value = call.arguments
    word = value & 0xFFFFFFFF
    if call.name not in _FUTEX:
        return (call.name, operation if call.name == "fcntl" else None) in _FILE_LOCKS
    if operation & _OPERATION in _LOCK_PI:
        return True
    if operation & _OPERATION not in _WAIT:
        return False
    if word > _WAITERS:
        return True
    if word not in _CONTENDED:
        return False
    later = range(after, len(wakeups))
    calls = (one for at in later for one in wakeups[at].calls)
    return any(
        one.name in _FUTEX
        and one.arguments[0] == address
        and one.arguments[1] & _OPERATION in _WAKE
        for one in islice(calls, _MOST_CALLS)
    )
