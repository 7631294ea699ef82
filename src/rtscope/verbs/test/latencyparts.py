"""The parts of all wake-up latencies of a thread, not of the worst alone. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rtscope.host.units import count, format_us
from rtscope.present.document import Block, Section, table
from rtscope.present.words import as_sentence
from rtscope.programs.outside.model import OutsideThread, Stage
from rtscope.stats.summary import Summary, summarize_samples
from rtscope.verbs.test.file import ProgramTest
from rtscope.verbs.test.judge import SeenStart, judged_threads

MEANING: Mapping[Stage, str] = {
    Stage.INTERRUPT: "from when the timer was due to where it wakes the thread",
    Stage.SCHEDULER: "from there to where the thread has its CPU",
    Stage.RETURN: "from there to its first own instruction",
}


@dataclass(frozen=True, slots=True)
class LatencyParts:
    """The parts of the wake-ups with which cycles of a thread began."""

    samples: Mapping[Stage, Sequence[int]]
    """Of each part in ns, in the order of the cycles; without parts that none has."""
    unknown: int
    """Cycles that began without a sleep or late, or that two CPUs saw."""

    @property
    def summaries(self) -> Mapping[Stage, Summary]:
        """The numbers of each part."""
        return {stage: summarize_samples(of) for stage, of in self.samples.items()}


def parts_of(thread: OutsideThread) -> LatencyParts:
    """Return the parts of all wake-ups of a thread that began cycles."""
    samples: dict[Stage, list[int]] = {stage: [] for stage in Stage}
    unknown = 0
    for cycle in thread.cycles:
        stages = cycle.stages
        unknown += stages is None
        for stage, ns in (stages or {}).items():
            samples[stage].append(ns)
    return LatencyParts({stage: of for stage, of in samples.items() if of}, unknown)


def parts_row(thread: OutsideThread) -> Mapping[str, Any]:
    """Return the parts for a JSON document, in virtual ns."""
    parts = parts_of(thread)
    found = parts.summaries
    return {
        **{stage.name.lower(): _row(found.get(stage)) for stage in Stage},
        "unknown": parts.unknown,
    }


def _row(part: Summary | None) -> Mapping[str, Any] | None:
    if part is None:
        return None
    return {
        "count": part.samples,
        "min_ns": part.min_ns,
        "mean_ns": part.mean_ns,
        "p99_ns": part.ranks.percentile_ns(99),
        "max_ns": part.max_ns,
    }


def parts_blocks(
    test: ProgramTest, tested: Sequence[SeenStart], *, drawn: Sequence[Block]
) -> Iterator[Block]:
    """Yield a section with the parts of the wake-ups of the judged threads."""
    rows: list[list[str]] = []
    unknown = 0
    for one in tested:
        for thread in judged_threads(test, one.outside):
            parts = parts_of(thread)
            unknown += parts.unknown
            run = f"{one.name} " if len(tested) > 1 else ""
            rows += _rows(f"{run}{thread.name}", thread, parts)
    if not rows:
        return
    heads = ("thread", "part"), ("wake-ups", "average", "p99", "most", "in the worst")
    blocks: list[Block] = [table(*heads, rows)]
    said = "; ".join(f"{stage.value}: {words}" for stage, words in MEANING.items())
    blocks.append((f"Virtual µs. {as_sentence(said)}", "muted"))
    blocks += drawn
    if unknown:
        blocks.append(
            (
                f"{count(unknown)} cycles began without a sleep, late by the cycle "
                "before, or on two CPUs whose times are not in order: their parts are "
                "not known.",
                "limit",
            )
        )
    yield Section("Parts of the wake-up latency", tuple(blocks))


def _rows(name: str, thread: OutsideThread, parts: LatencyParts) -> Iterator[list[str]]:
    latest = max(thread.cycles, key=lambda one: one.latency_ns).stages or {}
    for stage, one in parts.summaries.items():
        yield [
            name,
            stage.value,
            count(one.samples or 0),
            format_us(one.mean_ns),
            format_us(one.ranks.percentile_ns(99)),
            format_us(one.max_ns),
            format_us(latest.get(stage)),
        ]
