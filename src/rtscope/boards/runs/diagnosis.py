"""
Explain why a boot gave no results, from QEMU, the console and the host. Pure.

The nearest cause comes first: QEMU could not run, then the last lines of the kernel,
and only then the missing results.
"""

import re
import signal
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from rtscope.boards.catalogue import Board

MIB = 1 << 20
FULL_BYTES = MIB
"""With less free space for the results, the full disk is the cause."""

TAIL_LINES = 12
LINE_CHARACTERS = 200

_FIRMWARE_ENDS = "Boot HART MEDELEG"


HOST_LIMIT = "of host time, the host limit"
"""In the reason why a board that got on was ended."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The traces of a boot that gave no results."""

    board: Board
    status: int | None
    """QEMU's; minus the signal's number if one ended it; None if we ended it."""
    given_up: str
    """Reason why we ended it; empty if it ended by itself."""
    stderr: str
    console: Sequence[str]
    missing: str
    """The error in the results."""
    host_available_bytes: int | None
    folder: str
    folder_free_bytes: int


@cache
def _causes() -> Mapping[str, Sequence[Mapping[str, str]]]:
    """Return the rows of `diagnosis.toml`, which explains them."""
    folder = resources.files("rtscope.boards.runs")
    return tomllib.loads(folder.joinpath("diagnosis.toml").read_text("utf-8"))


def diagnose(left: Evidence) -> str:
    """Return the reason for missing results, and the end of the console."""
    return f"{left.board.name}: {_cause(left)}{_console_tail(left.console)}"


def is_of_host(left: Evidence) -> bool:
    """Tell whether any board would have failed: no space left, or no memory."""
    return _is_full(left) or left.status == -signal.SIGKILL


def oom_kills(kernel_log: str, board: Board) -> str:
    """Return a sentence on the process that the OOM killer ended; may be empty."""
    killed = re.findall(r"Out of memory: (Killed process .{1,100})", kernel_log)
    if not killed:
        return ""
    return f"the board ran out of its memory of {board.memory}: {killed[-1]}"


def host_memory(left: Evidence) -> str:
    """Return the board's memory, and this machine's free memory."""
    free = left.host_available_bytes
    has = "unknown" if free is None else f"{free // MIB} MiB"
    return f"the board has {left.board.memory} besides QEMU, this machine {has} free"


def _cause(left: Evidence) -> str:
    # A full disk first: it explains all that follows from it.
    if _is_full(left):
        return (
            f"no space left in {left.folder}, where the board's results are written: "
            "free some, or name another directory in TMPDIR"
        )
    return _of_qemu(left) or _of_console(left) or _of_silence(left)


def _is_full(left: Evidence) -> bool:
    return left.folder_free_bytes < FULL_BYTES


def _of_qemu(left: Evidence) -> str:
    if left.status is None or left.status == 0:
        return ""
    if left.status == -signal.SIGKILL:
        return (
            "QEMU was killed (SIGKILL), probably because memory ran out: "
            f"{host_memory(left)}; free some memory, or run fewer boards at once with "
            "--jobs 1"
        )
    if left.status < 0:
        name = signal.Signals(-left.status).name
        return f"QEMU died by the signal {name}{_stderr_tail(left)}"
    words = {"host": host_memory(left), **_board_words(left.board)}
    for row in _causes()["qemu"]:
        if re.search(row["pattern"], left.stderr):
            return row["cause"].format(**words) + _stderr_tail(left)
    return f"QEMU failed (exit status {left.status}){_stderr_tail(left)}"


def _stderr_tail(left: Evidence) -> str:
    lines = left.stderr.strip().splitlines()
    return f"; it printed: {lines[-1][:300]}" if lines else "; it printed nothing"


def _of_console(left: Evidence) -> str:
    text = "\n".join(left.console)
    for row in _causes()["console"]:
        if match := re.search(row["pattern"], text, re.MULTILINE):
            return row["cause"].format(*match.groups(), **_board_words(left.board))
    return ""


def _of_silence(left: Evidence) -> str:
    what = left.given_up or left.missing
    # A kernel of a board that got on until then may well have printed nothing (quiet).
    if _kernel_lines(left.console) or HOST_LIMIT in what:
        return what
    return (
        f"{what}; its kernel has printed nothing: check that it is a kernel for "
        f"{left.board.arch} with the console {left.board.console} built in"
    )


def _kernel_lines(console: Sequence[str]) -> Sequence[str]:
    """Return the lines after the firmware: OpenSBI ends with its delegations."""
    ends = [i for i, line in enumerate(console, 1) if line.startswith(_FIRMWARE_ENDS)]
    return console[ends[-1] :] if ends else console


def _board_words(board: Board) -> Mapping[str, str]:
    return {name: getattr(board, name) for name in ("arch", "cpu", "machine", "memory")}


def _console_tail(console: Sequence[str]) -> str:
    lines = _kernel_lines(console)
    panics = [i for i, line in enumerate(lines) if "Kernel panic - not" in line]
    # A panic's own line, and what led to it, rather than its call trace.
    first = max(0, panics[0] - 4) if panics else max(0, len(lines) - TAIL_LINES)
    tail = lines[first : first + TAIL_LINES]
    if not tail:
        return ""
    cut = (line[:LINE_CHARACTERS] for line in tail)
    return "; the end of its console:\n  " + "\n  ".join(cut)
