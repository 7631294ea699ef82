"""What a command line answers, for the tests that type one."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Said:
    """What a command answered."""

    status: int
    out: str
    err: str


Rtscope = Callable[..., Said]
"""Type it: each argument is a word after `rtscope`."""
