"""
Have settings of a machine changed and put back; the agent does it, through its journal.

`apply` lasts until `restore`; `held` lasts as long as its block. What is decided here
is nothing: wishes come from `audit.remedies`.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from rtscope.contract import AgentError, Applied, Line, Refused, Restored, Tuned
from rtscope.errors import TargetError
from rtscope.target import Stream, Target
from rtscope.target.stream import collect, wait_any
from rtscope.tuning.outcome import Done, NotDone, PutBack, Tuning
from rtscope.tuning.remedies import Wish

PATIENCE_S = 30.0

RESTORE_NOW = "put it back at once: rtscope audit --restore, as root"


@dataclass(slots=True)
class Held:
    """Settings that are being held."""

    tuning: Tuning
    stream: Stream
    after: list[Line] = field(default_factory=list)

    def check(self) -> None:
        """Raise TargetError if what held the settings has ended."""
        self.after += self.stream.take_lines()
        if self.stream.ended:
            raise TargetError(
                "what held the settings of --tuned ended before the measurement did: "
                "what was measured since may have been measured without them"
            )


def apply(target: Target, wishes: Sequence[Wish]) -> Tuning:
    """
    Change settings until `restore`.

    Raises TargetError if none was tried; its message says why.
    """
    lines = _run(target, ["apply", *words(wishes)])
    return _tuning(target, wishes, lines)


def restore(target: Target) -> tuple[tuple[PutBack, ...], tuple[Refused, ...]]:
    """
    Put back everything that was applied, or left changed by a killed agent.

    Returns what was put back, and what was not; TargetError if nothing was tried.
    """
    lines = _run(target, ["restore", "--applied"])
    refused = tuple(line for line in lines if isinstance(line, Refused))
    if not refused:
        _raise_error(target, lines)
    return _put_back_by(lines), refused


@contextlib.contextmanager
def held(target: Target, wishes: Sequence[Wish]) -> Iterator[Held]:
    """
    Change settings for as long as the block lasts; they are put back at its end.

    Whatever ends this program ends the block as well. Raises TargetError if none was
    tried, or if one could not be put back.
    """
    stream = target.start_agent(["hold", *words(wishes)], privileged=True)
    try:
        lines = _until_tuned(target, stream)
        tuning = _tuning(target, wishes, lines)
        holding = Held(tuning, stream)
        yield holding
        _put_back(target, holding)
    finally:
        stream.kill()


def _put_back(target: Target, holding: Held) -> None:
    holding.stream.ask_stop()
    lines = [*holding.after, *collect(holding.stream, timeout_s=PATIENCE_S)]
    _raise_error(target, lines)
    wanted = {(d.wish.knob, d.wish.index) for d in holding.tuning.done if d.changed}
    back = {(x.knob, x.index) for x in lines if isinstance(x, Restored)}
    missing = sorted(wanted - back)
    if missing:
        names = ", ".join(dict.fromkeys(knob for knob, _ in missing))
        raise TargetError(
            f"{target.name}: it was not told that {names} were put back; {RESTORE_NOW}"
        )


def words(wishes: Iterable[Wish]) -> list[str]:
    """Return the agent's options: one for all places that get the same value."""
    made: list[str] = []
    by_knob = groupby(wishes, key=lambda wish: (wish.knob, wish.value))
    for (knob, value), group in by_knob:
        made += ["--set", f"{knob}:{_ranges(wish.index for wish in group)}={value}"]
    return made


def _ranges(numbers: Iterable[int]) -> str:
    """Write numbers as the agent reads them: `24,30-32`."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in found)


def _run(target: Target, args: Sequence[str]) -> list[Line]:
    stream = target.start_agent(args, privileged=True)
    try:
        lines = collect(stream, timeout_s=PATIENCE_S)
    finally:
        stream.kill()
    if not lines and (said := stream.stderr_tail()):
        raise TargetError(f"{target.name}: {said}")
    return lines


def _until_tuned(target: Target, stream: Stream) -> list[Line]:
    lines: list[Line] = []
    while not stream.ended:
        wait_any([stream], timeout_s=PATIENCE_S)
        arrived = stream.take_lines()
        lines += arrived
        if any(isinstance(line, Tuned) for line in arrived):
            return lines
        if not arrived and not stream.ended:
            break
    _raise_error(target, lines)
    raise TargetError(
        f"{target.name}: the agent did not say what became of the settings; it said "
        f"{stream.stderr_tail() or 'nothing'}"
    )


def _tuning(target: Target, wishes: Sequence[Wish], lines: Sequence[Line]) -> Tuning:
    """Sort the agent's answers by wish; TargetError if it gave up."""
    _raise_error(target, lines)
    known = {(wish.knob, wish.index): wish for wish in wishes}
    done, refused = [], []
    for line in lines:
        if isinstance(line, Applied | Refused):
            wish = known.pop((line.knob, line.index), None)
            if wish is None:
                raise TargetError(f"{target.name}: nobody asked for {line.knob}")
            if isinstance(line, Applied):
                done.append(Done(replace(wish, old=line.old)))
            else:
                refused.append(NotDone(wish, line.cause, line.reason))
    refused += [
        NotDone(w, "refused", "the agent did not answer") for w in known.values()
    ]
    return Tuning(tuple(done), tuple(refused), _put_back_by(lines))


def _raise_error(target: Target, lines: Iterable[Line]) -> None:
    for line in lines:
        if isinstance(line, AgentError):
            remedy = f" ({line.remedy})" if line.remedy else ""
            raise TargetError(f"{target.name}: {line.message}{remedy}")


def _put_back_by(lines: Iterable[Line]) -> tuple[PutBack, ...]:
    return tuple(
        PutBack(line.knob, line.value) for line in lines if isinstance(line, Restored)
    )
