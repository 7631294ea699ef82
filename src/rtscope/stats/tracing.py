"""Cost of tracing a run, and the caveats of its trace."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtscope.contract import LOST, ThreadResult, Tracing
from rtscope.host.units import format_duration
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.model import RunRecord
from rtscope.stats.figures import Figure, columns
from rtscope.stats.summary import Summary, observed_ns, summarize


@dataclass(frozen=True, slots=True)
class TraceCost:
    """The same numbers with tracing and without; of the same load, minutes apart."""

    untraced: Summary
    traced: Summary
    untraced_ns: tuple[int, ...]
    """How long each run without tracing was; one before and one after."""


def was_traced(record: RunRecord) -> bool:
    """Whether the kernel recorded its events, which makes every wake-up later."""
    if record.result.stopped == LOST:
        return record.hello.options.get("trace") is True
    return record.result.tracing is not None and record.result.tracing.enabled


def trace_cost(record: RunRecord) -> TraceCost | None:
    """
    Compare a traced run with those around it; None if nothing was measured there.

    Raises RecordError for a damaged record, MeasurementError without samples.
    """
    runs = record.untraced_runs
    without: Sequence[ThreadResult] = [thread for run in runs for thread in run]
    # A run shorter than its interval has none.
    if not any(thread.counted for thread in without):
        return None
    return TraceCost(
        untraced=summarize(without),
        traced=summarize(record.result.threads),
        untraced_ns=tuple(observed_ns(run) or 0 for run in runs),
    )


def check_tracing(record: RunRecord) -> Iterator[Caveat]:
    """Yield the caveats of a requested trace."""
    tracing = record.result.tracing
    if tracing is None:
        return
    if not tracing.enabled:
        yield make("trace_refused", _refused_words(tracing))
        return
    yield make("traced", _cost_words(trace_cost(record)))
    if lost := _lost_words(tracing):
        yield make("trace_incomplete", lost)


def _refused_words(tracing: Tracing) -> str:
    words = [tracing.reason, tracing.remedy]
    if tracing.candidates_lost:
        words.append(_too_fast(tracing))
    return "; ".join(words)


def _too_fast(tracing: Tracing) -> str:
    return f"{tracing.candidates_lost} late wake-ups came too fast to keep"


def _cost_words(cost: TraceCost | None) -> str:
    if cost is None:
        return "its cost was not measured"
    each = ", ".join(_pair_words(one, cost) for one in columns("traced"))
    times = " and ".join(format_duration(ns) for ns in cost.untraced_ns)
    # A run that was interrupted has none after it.
    when = "before and after" if len(cost.untraced_ns) > 1 else "before"
    return (
        f"{each}; untraced for {times} {when}, under the same load, "
        f"{cost.untraced.samples or 0} against {cost.traced.samples or 0} samples"
    )


def _pair_words(figure: Figure, cost: TraceCost) -> str:
    name = figure.name_in("traced")
    before, after = figure.of_summary(cost.untraced), figure.of_summary(cost.traced)
    if before is None or after is None:
        return f"{name}: too few samples"
    return f"{name} {figure.show(before)} us untraced, {figure.show(after)} us traced"


def _lost_words(tracing: Tracing) -> str:
    kept = tracing.kept
    holes = sum(one.overwritten or one.truncated for one in kept)
    overrun = sum(max(0, cpu.overrun) for cpu in tracing.cpus)
    words = []
    if overrun:
        words.append(f"the kernel overwrote {overrun} events before they were read")
    if dropped := sum(max(0, cpu.dropped) for cpu in tracing.cpus):
        words.append(f"its buffer had no space for {dropped} more")
    if damaged := sum(cpu.damaged for cpu in tracing.cpus):
        words.append(f"{damaged} pages are damaged")
    if tracing.candidates_lost:
        words.append(_too_fast(tracing))
    if holes:
        words.append(f"{holes} of {len(kept)} kept wake-ups have a gap")
    return "; ".join(words)
