"""
Every error this program raises on purpose, and the exit status of each.

    RtscopeError
    ├── UsageError           2  the command line or the campaign file is wrong
    └── MeasurementError     3  no valid measurement
        ├── RecordError         a record cannot be read or written
        ├── ContractError       the agent wrote something its contract does not allow
        ├── TargetError         the machine did not do what it was told
        ├── BoardError          a part of a virtual board cannot be had or is damaged
        └── KernelError         a kernel cannot be patched, configured, built or packed

Status 1 is no error: it says "measured, and the limit was exceeded". Whatever is
not a RtscopeError is a bug of ours and keeps its traceback.
"""

import difflib
from collections.abc import Collection, Mapping


class RtscopeError(Exception):
    """The base class; `cli.main` prints it as one message without a traceback."""

    exit_status = 3


class UsageError(RtscopeError):
    """The user can put it right by changing what they typed or wrote."""

    exit_status = 2


class MeasurementError(RtscopeError):
    """The run has no valid result. Never to be reported as a latency verdict."""


class RecordError(MeasurementError):
    """A record is missing, damaged, too new, or cannot be written."""


class ContractError(MeasurementError):
    """The agent's output is not what its contract promises."""


class TargetError(MeasurementError):
    """A command on the target failed, or the target stopped answering."""


class BoardError(MeasurementError):
    """A part of a virtual board cannot be fetched or built, or is damaged."""


class KernelError(MeasurementError):
    """A kernel cannot be patched, configured, built or packed as was asked."""


def shown(value: object) -> str:
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


def no_such(kind: str, found: object, known: Collection[str]) -> str:
    """Return the message for a name that is not known, with the nearest that is."""
    near = difflib.get_close_matches(str(found)[:64], known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"no such {kind}: {shown(found)}{hint} (there are: {', '.join(known)})"
