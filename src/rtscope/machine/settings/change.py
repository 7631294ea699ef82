"""
Let the agent change and restore settings of a machine, through its journal.

`apply` lasts until `restore`; `hold` lasts as long as its block. Nothing is decided
here: the changes come from `remedies`.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from rtscope.contract import AgentError, Applied, Line, Refused, Restored, Tuned
from rtscope.host.errors import TargetError
from rtscope.machine.settings.remedies import SettingChange
from rtscope.machine.target import Stream, Target
from rtscope.machine.target.stream import collect, run_agent

TIMEOUT_S = 30.0

RESTORE_NOW = "restore them now: rtscope audit --restore, as root"


@dataclass(frozen=True, slots=True)
class RefusedSetting:
    """A change that was refused."""

    change: SettingChange
    cause: str
    reason: str


@dataclass(frozen=True, slots=True)
class TuningResult:
    """What became of a list of changes."""

    applied: tuple[SettingChange, ...] = ()
    """As the agent found them: `old` is what it replaced."""
    refused: tuple[RefusedSetting, ...] = ()
    left_by_others: tuple[Restored, ...] = ()
    """What a killed agent had left changed, and was put back first."""


@dataclass(slots=True)
class HeldSettings:
    """Settings that are being held."""

    result: TuningResult
    stream: Stream
    after: list[Line] = field(default_factory=list)

    def check(self) -> None:
        """Raise TargetError if what held the settings has ended."""
        self.after += self.stream.take_lines()
        if self.stream.ended:
            raise TargetError(
                "the agent that held the settings of --tuned ended during the "
                "measurement: later samples may lack these settings"
            )


def apply(target: Target, changes: Sequence[SettingChange]) -> TuningResult:
    """
    Change settings until `restore`.

    Raises TargetError if none was tried; its message says why.
    """
    lines = _run(target, ["apply", *agent_options(changes)])
    return result_of(target.name, changes, lines)


def restore(target: Target) -> tuple[tuple[Restored, ...], tuple[Refused, ...]]:
    """
    Put back everything that was applied, or left changed by a killed agent.

    Returns what was put back, and what was not; TargetError if nothing was tried.
    """
    lines = _run(target, ["restore", "--applied"])
    refused = tuple(line for line in lines if isinstance(line, Refused))
    if not refused:
        _raise_error(target.name, lines)
    return _restored(lines), refused


@contextlib.contextmanager
def hold(target: Target, changes: Sequence[SettingChange]) -> Iterator[HeldSettings]:
    """
    Change settings for as long as the block lasts; they are put back at its end.

    Whatever ends this program ends the block as well. Raises TargetError if none was
    tried, or if one could not be put back.
    """
    stream = target.start_agent(["hold", *agent_options(changes)], privileged=True)
    try:
        lines = _until_tuned(target, stream)
        holding = HeldSettings(result_of(target.name, changes, lines), stream)
        yield holding
        _put_back(target, holding)
    finally:
        stream.kill()


def _put_back(target: Target, holding: HeldSettings) -> None:
    holding.stream.ask_stop()
    lines = [*holding.after, *collect(holding.stream, timeout_s=TIMEOUT_S)]
    _raise_error(target.name, lines)
    wanted = {(c.knob, c.index) for c in holding.result.applied if c.changed}
    back = {(x.knob, x.index) for x in lines if isinstance(x, Restored)}
    missing = sorted(wanted - back)
    if missing:
        names = ", ".join(dict.fromkeys(knob for knob, _ in missing))
        raise TargetError(
            f"{target.name}: the agent did not confirm that it restored {names}; "
            f"{RESTORE_NOW}"
        )


def agent_options(changes: Iterable[SettingChange]) -> list[str]:
    """Return the agent's options: one for all places that get the same value."""
    made: list[str] = []
    by_knob = groupby(changes, key=lambda change: (change.knob, change.value))
    for (knob, value), group in by_knob:
        made += ["--set", f"{knob}:{_ranges(change.index for change in group)}={value}"]
    return made


def _ranges(numbers: Iterable[int]) -> str:
    """Write numbers as the agent reads them: `24,30-32`."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in ranges)


def _run(target: Target, args: Sequence[str]) -> list[Line]:
    lines, stream = run_agent(target, args, timeout_s=TIMEOUT_S)
    if not lines and (said := stream.stderr_tail()):
        raise TargetError(f"{target.name}: {said}")
    return lines


def _until_tuned(target: Target, stream: Stream) -> list[Line]:
    lines = collect(
        stream, timeout_s=TIMEOUT_S, until=lambda line: isinstance(line, Tuned)
    )
    if any(isinstance(line, Tuned) for line in lines):
        return lines
    _raise_error(target.name, lines)
    raise TargetError(
        f"{target.name}: the agent did not report the settings; its last output: "
        f"{stream.stderr_tail() or 'none'}"
    )


def result_of(
    name: str, changes: Sequence[SettingChange], lines: Sequence[Line]
) -> TuningResult:
    """
    Sort the answers of the agent by change; `name` is that of the target.

    Raises TargetError if the agent gave up, or changed what it was not asked to.
    """
    _raise_error(name, lines)
    known = {(change.knob, change.index): change for change in changes}
    applied, refused = [], []
    for line in lines:
        if isinstance(line, Applied | Refused):
            change = known.pop((line.knob, line.index), None)
            if change is None:
                raise TargetError(
                    f"{name}: the agent changed {line.knob} without a request"
                )
            if isinstance(line, Applied):
                applied.append(replace(change, old=line.old))
            else:
                refused.append(RefusedSetting(change, line.cause, line.reason))
    refused += [
        RefusedSetting(change, "refused", "the agent did not answer")
        for change in known.values()
    ]
    return TuningResult(tuple(applied), tuple(refused), _restored(lines))


def _raise_error(name: str, lines: Iterable[Line]) -> None:
    for line in lines:
        if isinstance(line, AgentError):
            remedy = f" ({line.remedy})" if line.remedy else ""
            raise TargetError(f"{name}: {line.message}{remedy}")


def _restored(lines: Iterable[Line]) -> tuple[Restored, ...]:
    return tuple(line for line in lines if isinstance(line, Restored))
