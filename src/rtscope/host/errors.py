"""
Every error this program raises on purpose, and the exit status of each.

    RtscopeError
    ├── UsageError           2  the command line or the campaign file is wrong
    └── MeasurementError     3  no valid measurement
        ├── RecordError         a record cannot be read or written
        ├── ContractError       the agent's output breaks its contract
        ├── TargetError         a command on the machine failed, or no answer came
        │   └── ImpossibleRemedy    a check that --tuned names has no remedy there
        ├── LoadError           the load ended before the measurement began
        ├── BoardError          a part of a virtual board is missing or damaged
        │   └── HostError       this machine lacks space or memory for a board
        └── KernelError         a kernel cannot be patched, configured, built or packed

Status 1 is no error: a deadline was missed or a check failed. Any other exception is
a bug of rtscope and keeps its traceback.
"""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence

_ENDLESS = re.compile(r"(?<![0-9A-Fa-f])[0-9]{41,}(?![0-9A-Fa-f])")
"""A run of digits that is no digest."""


def _shortened(number: re.Match[str]) -> str:
    return f"{number[0][:20]}… ({len(number[0]):,} digits)"


class RtscopeError(Exception):
    """
    The base class; `cli.main` prints it as one message without a traceback.

    Of a number of more than 40 digits the message has the first 20, and how many.
    """

    exit_status = 3

    def __str__(self) -> str:
        """Return the message."""
        return _ENDLESS.sub(_shortened, super().__str__())


class UsageError(RtscopeError):
    """The command line or a file of the user is wrong; the message has the remedy."""

    exit_status = 2


class MeasurementError(RtscopeError):
    """The run has no valid result; never report it as a latency verdict."""


class RecordError(MeasurementError):
    """A record is missing, damaged, too new, or cannot be written."""


class ContractError(MeasurementError):
    """The output of the agent breaks its contract."""


class TargetError(MeasurementError):
    """A command on the target failed, or the target stopped answering."""


class SilentAgent(TargetError):
    """An agent did not answer in time."""


class ImpossibleRemedy(TargetError):
    """Checks that `--tuned` names have no remedy on the target."""

    def __init__(self, message: str, *, whys: Mapping[str, str]) -> None:
        """Keep why each of them has none, by its id."""
        super().__init__(message)
        self.whys = whys


class LoadError(MeasurementError):
    """The load ended before the measurement began; another load may run."""


class BoardError(MeasurementError):
    """A part of a virtual board cannot be fetched or built, or is damaged."""


class HostError(BoardError):
    """This machine lacks what a virtual board needs, whatever was to boot on it."""


class KernelError(MeasurementError):
    """A kernel cannot be patched, configured, built or packed."""


def quote(value: object) -> str:
    """Write a refused value for a message: short and on one line, whatever it is."""
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:40] + "…")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 64 else "a huge number"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, Mapping):
        return "a table"
    return "nothing" if value is None else repr(value)[:40]


def first_of(
    most: int, words: Sequence[str], *, between: str = ", ", last: str = " and "
) -> str:
    """Join the first words of a list, and count the others."""
    left = len(words) - most
    return between.join(words[:most]) + (f"{last}{left} more" if left > 0 else "")


def no_such(kind: str, name: object, known: Collection[str]) -> str:
    """Return the message for an unknown name, with the nearest known one."""
    near = difflib.get_close_matches(str(name)[:64], known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"no such {kind}: {quote(name)}{hint} (known: {', '.join(known)})"
