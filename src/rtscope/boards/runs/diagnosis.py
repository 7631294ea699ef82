"""
Explain why a boot gave no results; test that a kernel runs as it was built. Pure.

The nearest cause comes first: QEMU could not run, then the last lines of the kernel,
and only then the missing results.

A record has the kernel's messages during the measurement only; here the whole log
counts, from its first line.
"""

import re
import signal
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from rtscope.boards.catalogue import Board
from rtscope.contract import KernelMessage
from rtscope.machine.facts import FactValue
from rtscope.record.caveats.catalogue import kind_of_message as kind_of_message
from rtscope.record.caveats.catalogue import uncounted
from rtscope.record.model import RunRecord

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
        f"{left.board.arch} with the console {left.board.console} built in, for which "
        f"{left.board.memory} of memory are enough"
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


# --- test that a kernel runs as it was built, without complaints in its log -----------

KERNEL_LOG = "kernel.log"
"""Attachment of a record: the whole kernel log, with the level of each line."""

CONFIG_IN_GUEST = "/proc/config.gz"

_WARNING = 4
"""Messages of a lower level are no complaints: a booting kernel reports a lot."""

# Without CONFIG_PRINTK_TIME there is no time in front.
_LINE = re.compile(r"<(\d{1,4})>(?:\[ *(\d{1,9})\.(\d{6})\] ?)?(.*)")
_SEVERITY = 8
"""A priority modulo this is the severity; the rest is the facility."""


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """The kernel as it was built."""

    name: str
    release: str
    digest: str
    config_digest: str
    preempt_rt: bool


@dataclass(frozen=True, slots=True)
class SmokeBoot:
    """One boot of a kernel."""

    record: RunRecord
    log: str
    """The whole kernel log, as `dmesg -r` prints it."""


@dataclass(frozen=True, slots=True)
class SmokeTest:
    """The result of testing one kernel."""

    kernel: BuiltKernel
    worst_ns: Mapping[str, int]
    """The longest latency under each load, in virtual time, of runs that count."""
    messages: tuple[KernelMessage, ...]
    """Its complaints, each text once."""
    problems: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether it runs as built and complained of nothing."""
        return not self.problems and not self.messages


def smoke_test(
    kernel: BuiltKernel, boots: Sequence[SmokeBoot], *, failures: Sequence[str] = ()
) -> SmokeTest:
    """
    Test a kernel by its boots, one or more for each load.

    `failures` are the errors of boots that ended without a measurement.
    """
    worst: dict[str, int] = {}
    for boot in boots:
        load = boot.record.run.load
        if uncounted(boot.record.caveats):
            continue
        worst[load] = max(worst.get(load, 0), boot.record.max_ns or 0)
    messages = {
        message.text: message
        for boot in boots
        for message in complaints(boot.log, boot.record.kernel_log)
    }
    problems = dict.fromkeys(p for boot in boots for p in _problems(kernel, boot))
    problems |= dict.fromkeys(failures)
    return SmokeTest(kernel, worst, tuple(messages.values()), tuple(problems))


def complaints(
    log: str, watched: Sequence[KernelMessage] = ()
) -> Iterator[KernelMessage]:
    """Yield the messages of a kernel log that are errors, or known to cause caveats."""
    logged = [m for m in messages_of(log) if m.level <= _WARNING]
    for message in (*logged, *watched):
        if kind_of_message(message) is not None:
            yield message


def messages_of(log: str) -> Iterator[KernelMessage]:
    """Yield the messages of a raw kernel log; lines without a priority are skipped."""
    for line in log.splitlines():
        match = _LINE.match(line)
        if match:
            priority, seconds, micros, text = match.groups()
            yield KernelMessage(
                time_us=int(seconds or 0) * 1_000_000 + int(micros or 0),
                level=int(priority) % _SEVERITY,
                text=text,
            )


def _problems(kernel: BuiltKernel, boot: SmokeBoot) -> Iterator[str]:
    facts, run = boot.record.facts_before, boot.record.run
    for name, wanted in (
        ("kernel_release", kernel.release),
        ("kernel_config_digest", kernel.config_digest),
        ("preempt_rt", kernel.preempt_rt),
    ):
        fact = facts.get(name)
        value = None if fact is None else fact.value
        if value != wanted:
            yield f"{name}: {_value_text(fact)} runs, and {wanted} was built"
    config = facts.get("kernel_config_digest")
    if config is not None and not config.source.startswith(CONFIG_IN_GUEST):
        yield f"its configuration could not be read from inside ({config.source})"
    if not any(messages_of(boot.log)):
        lost = boot.record.why_lost(KERNEL_LOG)
        why = f"{KERNEL_LOG} was not kept: {lost}" if lost else "it sent no kernel log"
        yield f"{run.id}: {why}"
    for caveat in boot.record.caveats:
        if uncounted([caveat]):
            yield f"{run.id}: {caveat.id}: {caveat.detail}"


def _value_text(fact: FactValue | None) -> str:
    if fact is None or fact.value is None:
        return "an unknown value" + (f" ({fact.reason})" if fact else "")
    return str(fact.value)
