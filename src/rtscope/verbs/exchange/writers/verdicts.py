"""
Write what CI shows: JUnit, KTAP and LAVA's signals, one case for each run and CPU.

A case fails if a wake-up of that CPU may have been later than the deadline, and is an
error if a caveat makes the run invalid. Without a deadline no case fails.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.contract import ThreadResult
from rtscope.host.files.junit import Outcome, TestCase, TestSuite, junit_file
from rtscope.host.units import NS_PER_S, NS_PER_US, format_duration
from rtscope.record.caveats.catalogue import Effect, kind_of
from rtscope.record.model import RunRecord
from rtscope.stats.episodes import late_samples
from rtscope.stats.figures import columns
from rtscope.stats.integrity import name_of
from rtscope.stats.runcaveats import all_caveats, clock_coarse, why_left_out
from rtscope.stats.summary import summarize


@dataclass(frozen=True, slots=True)
class Case:
    """One CPU of one run."""

    run: RunRecord
    name: str
    thread: ThreadResult
    invalid: str
    """Why the run is not valid; empty if it is."""
    limits: str
    """The caveats that limit what the run shows; empty if none does."""
    late: str
    """How many wake-ups were late; empty if none."""
    uncounted: str = ""
    """Why a run that is valid does not count, and so shows no deadline as held."""

    @property
    def id(self) -> str:
        """A name without spaces."""
        return re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{self.run.run.id}-{self.name}")

    @property
    def result(self) -> str:
        """`pass`, `fail`, or `unknown` if the run is not valid or does not count."""
        if self.late and not self.invalid:
            return "fail"
        return "unknown" if self.error else "pass"

    @property
    def error(self) -> str:
        """Why the case neither passes nor fails; empty if it does."""
        return self.invalid or ("" if self.late else self.uncounted)

    @property
    def figures(self) -> Iterator[tuple[str, str]]:
        """Numbers with their units in the name; those that are unknown are left out."""
        t = self.thread
        if t.samples is not None:
            yield "samples", str(t.samples)
        if t.missed_periods is not None:
            yield "missed_periods", str(t.missed_periods)
        if t.min_ns is None or t.max_ns is None:
            return
        summary = summarize([t])
        for one in columns("export"):
            if (ns := one.of_summary(summary)) is not None:
                yield f"{one.key}_us", f"{ns / NS_PER_US:.3f}"


def cases(records: Sequence[RunRecord], deadline_ns: int | None) -> list[Case]:
    """Return a case for each CPU of each run."""
    return [case for record in records for case in _cases(record, deadline_ns)]


def _cases(record: RunRecord, deadline_ns: int | None) -> Iterator[Case]:
    coarse = () if deadline_ns is None else clock_coarse(record, deadline_ns)
    invalid = [
        f"{kind_of(c).message}{f' ({c.detail})' if c.detail else ''}"
        for c in (*all_caveats(record), *coarse)
        if kind_of(c).effect is Effect.INVALID
    ]
    limits = dict.fromkeys(
        c.id for c in all_caveats(record) if kind_of(c).effect is Effect.LIMIT
    )
    uncounted = why_left_out(record) if record.max_ns is not None else ""
    for number, thread in enumerate(record.result.threads):
        late = 0 if deadline_ns is None else late_samples(thread, deadline_ns)[0]
        is_silent = thread.samples == 0 and not thread.nothing_found
        why = "no samples" if is_silent else "; ".join(invalid)
        yield Case(
            run=record,
            name=name_of(thread) if thread.cpu is not None else f"thread {number}",
            thread=thread,
            invalid=why,
            limits=", ".join(limits),
            uncounted=uncounted or _unseen(thread, deadline_ns),
            late=_late_words(thread, late, deadline_ns) if late and deadline_ns else "",
        )


def _unseen(thread: ThreadResult, deadline_ns: int | None) -> str:
    """Return why misses hide below what a tool looks for; empty if none does."""
    threshold_ns = thread.threshold_ns
    if deadline_ns is None or threshold_ns is None or threshold_ns <= deadline_ns:
        return ""
    return f"it looks for {format_duration(threshold_ns)} or more only"


def _late_words(thread: ThreadResult, late: int, deadline_ns: int) -> str:
    counted = (
        f"at least {late} of an unknown number of"
        if thread.samples is None
        else f"{late} of {thread.samples}"
    )
    return f"{counted} wake-ups later than {format_duration(deadline_ns)}"


def junit(records: Sequence[RunRecord], deadline_ns: int | None) -> str:
    """Return JUnit XML: a suite for each run, a case for each CPU."""
    return junit_file(
        [
            TestSuite(
                name=record.run.id,
                cases=[_junit_case(case) for case in cases([record], deadline_ns)],
                hostname=record.run.target,
                timestamp=record.started_at.rstrip("Z")[:26],
            )
            for record in records
        ]
    )


def _junit_case(case: Case) -> TestCase:
    run, t = case.run.run, case.thread
    limits = {"limits": case.limits} if case.limits else {}
    failed = case.late and not case.invalid
    return TestCase(
        classname=f"{run.target}.{run.load}",
        name=case.name,
        time_s=(t.end_ns - t.start_ns) / NS_PER_S or None,
        properties={**dict(case.figures), **limits},
        failures=[Outcome(message=case.late)] if failed else (),
        error=Outcome(message=case.error) if case.error else None,
    )


def ktap(records: Sequence[RunRecord], deadline_ns: int | None) -> str:
    """Return KTAP version 1; it has no numbers, so they are comments."""
    made = cases(records, deadline_ns)
    lines = ["KTAP version 1", f"1..{len(made)}"]
    for number, case in enumerate(made, 1):
        lines.append(f"# {case.id}: " + ", ".join(f"{n}={v}" for n, v in case.figures))
        if why := case.error or case.late:
            lines.append(f"# {case.id}: {' '.join(why.split())[:1000]}")
        word = "ok" if case.result == "pass" else "not ok"
        lines.append(f"{word} {number} {case.id}")
    return "\n".join([*lines, ""])


def lava(records: Sequence[RunRecord], deadline_ns: int | None) -> str:
    """Return LAVA's signals: a test case for each figure, as it has one number each."""
    lines = []
    for case in cases(records, deadline_ns):
        for name, value in case.figures:
            figure, _, unit = name.rpartition("_")
            if unit != "us":
                figure, unit = name, "count"
            result = case.result if figure == "max" else "pass"
            lines.append(
                f"<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={case.id}-{figure} "
                f"RESULT={result} MEASUREMENT={value} UNITS={unit}>"
            )
    return "\n".join([*lines, ""])
