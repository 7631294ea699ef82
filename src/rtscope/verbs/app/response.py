"""
The verdict on the response time of a program's threads, for `--response`.

One cycle that took longer is NO. Without one, what is not known of some
cycles leaves the limit NOT SHOWN, and a recording that failed makes it INVALID.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rtscope.contract import CyclesEnd
from rtscope.host.escape import printable
from rtscope.host.units import format_us, plural
from rtscope.present.document import Phrase, Weight
from rtscope.stats.evidence import Verdict
from rtscope.stats.exposure import MIN_WAKEUPS
from rtscope.verbs.app.cycles import ThreadCycles

_ORDER = (Verdict.NO, Verdict.INVALID, Verdict.NOT_SHOWN, Verdict.HELD_IN_TEST)
"""Of several threads the first of these decides."""


@dataclass(frozen=True, slots=True)
class ThreadResponse:
    """What the cycles of one thread show about the limit."""

    tid: int
    thread: str
    verdict: Verdict
    words: str
    """Why, in a sentence."""
    longer: int
    """Cycles that took longer."""
    worst_ns: int | None
    """None: no response time is known."""


@dataclass(frozen=True, slots=True)
class Response:
    """The verdict on all judged threads: that of the thread that decides."""

    limit_ns: int
    threads: tuple[ThreadResponse, ...]

    @property
    def verdict(self) -> Verdict:
        """What may be said of all."""
        return min((one.verdict for one in self.threads), key=_ORDER.index)

    @property
    def in_order(self) -> list[ThreadResponse]:
        """The threads, the one that decides first."""
        return sorted(self.threads, key=lambda one: _ORDER.index(one.verdict))

    @property
    def exit_status(self) -> int:
        """Return 1 for NO, 3 for INVALID, 4 for NOT SHOWN, else 0."""
        return self.verdict.exit_status

    def row(self) -> dict[str, Any]:
        """Return it for a JSON document; times in ns."""
        return {"verdict": self.verdict.value, **asdict(self)}

    def sentences(self) -> Iterator[str]:
        """Say the verdict on each thread, the one that decides first."""
        limit = f"{format_us(self.limit_ns)} µs"
        for one in self.in_order:
            who = f"thread {one.tid} {one.thread}"
            yield f"{one.verdict.value}: response within {limit}: {who}: {one.words}"


def judge_response(
    limit_ns: int,
    end: CyclesEnd,
    threads: Mapping[int, ThreadCycles],
    names: Mapping[int, str],
    unseen: Mapping[int, str] | None = None,
) -> Response:
    """
    Judge the cycles of the threads in `names`, of which there is at least one.

    `unseen` says why there are none of a thread.
    """
    why = unseen or {}
    return Response(
        limit_ns,
        tuple(
            _of_thread(
                limit_ns, end, threads.get(tid) or why.get(tid, NO_CYCLE), (tid, name)
            )
            for tid, name in names.items()
        ),
    )


NO_CYCLE = "it made no cycle in this time"


def _of_thread(
    limit_ns: int,
    end: CyclesEnd,
    cycles: ThreadCycles | str,
    thread: tuple[int, str],
) -> ThreadResponse:
    known: list[int] = []
    if not isinstance(cycles, str):
        known = [one.response_ns for one in cycles.cycles]
        known += [cycles.cut_longest_ns] if cycles.cut_longest_ns else []
    longer = sum(ns > limit_ns for ns in known)
    worst_ns = max(known, default=None)
    verdict, words = _verdict(end, cycles, longer, worst_ns)
    return ThreadResponse(*thread, verdict, words, longer, worst_ns)


def _verdict(
    end: CyclesEnd, cycles: ThreadCycles | str, longer: int, worst_ns: int | None
) -> tuple[Verdict, str]:
    if longer:
        times = plural(longer, "cycle")
        return Verdict.NO, f"{times} took longer, at most {format_us(worst_ns or 0)} µs"
    if not end.tracing.enabled:
        return Verdict.INVALID, f"no cycle was recorded: {end.tracing.reason}"
    if isinstance(cycles, str):
        return Verdict.NOT_SHOWN, cycles
    if unknown := list(_unknown(end, cycles)):
        return Verdict.NOT_SHOWN, ", ".join(unknown)
    total = plural(len(cycles.cycles), "cycle")
    longest = f"the longest of {total} took {format_us(worst_ns or 0)} µs"
    if len(cycles.cycles) < MIN_WAKEUPS:
        wanted = f"watch until there are {MIN_WAKEUPS:,}, with a longer --duration"
        return Verdict.NOT_SHOWN, f"{longest}: {wanted}"
    return Verdict.HELD_IN_TEST, longest


def _unknown(end: CyclesEnd, cycles: ThreadCycles) -> Iterator[str]:
    """Say of which cycles the response time is not known."""
    if end.losses:
        yield f"the kernel lost events {plural(end.losses, 'time')}"
    if end.left_out:
        yield f"{plural(end.left_out, 'later run')} of threads are not counted"
    if cycles.period is None and not cycles.sleeps_for_intervals:
        yield "its cycles have no period, and a wait may be within one: give --period"
    for number, what in (
        (cycles.cut_unknown, "without all events"),
        (cycles.before, "due before the recording began"),
        (cycles.withdrawn, "whose events contradict them"),
    ):
        if number:
            yield f"{plural(number, 'cycle')} {what}"


_WEIGHTS: Mapping[Verdict, Weight] = {
    Verdict.NO: "alarm",
    Verdict.INVALID: "unseen",
    Verdict.NOT_SHOWN: "limit",
    Verdict.HELD_IN_TEST: "good",
}
MAX_THREADS = 3


def verdict_phrases(
    response: Response | None, *, everything: bool = False
) -> list[Phrase]:
    """Return the verdict on three threads and how many more there are, or on all."""
    if response is None:
        return []
    said = list(zip(response.in_order, response.sentences(), strict=True))
    shown = said if everything else said[:MAX_THREADS]
    phrases: list[Phrase] = [
        (printable(sentence, limit=400), _WEIGHTS[one.verdict])
        for one, sentence in shown
    ]
    if left := len(said) - len(shown):
        phrases.append((f"and {plural(left, 'more thread')}: see -v", "muted"))
    return phrases
