"""
Whether a descriptor had O_NONBLOCK when a thread used it. Pure.

The kernel is asked at the end. Until then calls give its number to other files, copy it
and set its flags; the agent of a machine follows them in agent/watch/descriptors.c.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rtscope.programs.outside.wakeups import Call

_O_NONBLOCK = 0o4000
_F_SETFL = 4
_F_DUPFD = (0, 1030)
_FIONBIO = 0x5421
_SETS_FCNTL = ("fcntl", "fcntl64")
_MAKES: Mapping[str, tuple[int, bool | None]] = {
    "socket": (1, True),
    "inotify_init1": (0, True),
    "mq_open": (1, True),
    "open": (1, None),
    "openat": (2, None),
}
"""By name: the argument with flags, and what O_NONBLOCK says; None: a file waits."""
_MAKES_ALWAYS: Mapping[str, bool] = {
    **dict.fromkeys(("accept", "inotify_init", "creat", "memfd_create"), False),
    **dict.fromkeys(("eventfd", "eventfd2", "signalfd", "signalfd4"), True),
    "timerfd_create": True,
}
_COPIES = ("dup", "dup2", "dup3")
_CLOSED_BY = {"close": 0, "dup2": 1, "dup3": 1}


@dataclass(slots=True)
class _Numbers:
    known: dict[int, bool | None] = field(default_factory=dict)
    same: dict[int, object] = field(default_factory=dict)
    """Numbers of one open file share their flags, and this."""

    def give(self, number: int, says: bool | None, same: object = None) -> None:
        self.known[number] = says
        self.same[number] = same

    def copy(self, number: int, copy: int, says: bool | None) -> None:
        same = self.same.get(number) or object()
        self.same[number] = same
        self.give(copy, says, same)

    def set(self, number: int, says: bool | None) -> None:
        same = self.same.get(number)
        for other in (number, *(o for o, s in self.same.items() if same and s is same)):
            self.known[other] = says


def nonblocking_at(
    calls: Sequence[Call], at_the_end: Callable[[int], bool | None]
) -> Iterator[Callable[[int], bool | None]]:
    """
    Yield for each call of a thread, while it is made, what says it of a descriptor.

    None: it is not known. What the thread changes later says nothing of the end.
    """
    changed = {n for call in calls for n in _changes(call)}
    numbers = _Numbers()

    def says(number: int) -> bool | None:
        if number in numbers.known:
            return numbers.known[number]
        return None if number in changed else at_the_end(number)

    for call in calls:
        yield says
        _follow(call, numbers, says)


def _changes(call: Call) -> tuple[int, ...]:
    """Return the numbers whose file or flags are others after a call."""
    if call.name in _CLOSED_BY:
        return (call.arguments[_CLOSED_BY[call.name]],)
    return (call.arguments[0],) if _flags_set(call) else ()


def _flags_set(call: Call) -> bool:
    command = call.arguments[1]
    is_fcntl = call.name in _SETS_FCNTL
    return (is_fcntl and command == _F_SETFL) or (
        call.name == "ioctl" and command == _FIONBIO
    )


def _copies(call: Call) -> bool:
    return call.name in _COPIES or (
        call.name in _SETS_FCNTL and call.arguments[1] in _F_DUPFD
    )


def _made(call: Call) -> bool | None:
    """Return what a call says of the descriptor that it returns."""
    if call.name not in _MAKES:
        return _MAKES_ALWAYS.get(call.name)
    at, says = _MAKES[call.name]
    return says if call.arguments[at] & _O_NONBLOCK else False


def _follow(call: Call, numbers: _Numbers, says: Callable[[int], bool | None]) -> None:
    first, _, value = call.arguments
    made = -1 if call.result is None else call.result
    if _flags_set(call):
        # the value of FIONBIO is in memory
        is_fcntl = call.name in _SETS_FCNTL
        numbers.set(first, bool(value & _O_NONBLOCK) if is_fcntl else None)
    elif call.name == "close":
        numbers.give(first, None)
    elif _copies(call) and made >= 0:
        numbers.copy(first, made, says(first))
    elif call.name in (*_MAKES, *_MAKES_ALWAYS, "accept4") and made >= 0:
        numbers.give(made, _made(call))
