"""
What an imported result leaves open: caveats that follow from its numbers alone.

A tool that tells less can show less. What it does not tell is no zero: it limits each
verdict that would need it.
"""

from collections.abc import Iterator, Sequence

from rtscope.contract import ThreadResult
from rtscope.host.units import format_duration, format_us
from rtscope.machine.cpulist import format_cpulist
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.model import UNKNOWN, Imported, RunRecord
from rtscope.stats.summary import observed_ns

SHORT_RUN_NS = 60 * 10**9

TELLING_BUCKETS = 8
"""Equal histograms with so many buckets or more are of one measurement."""

WHOLE_NS = 10**9
"""The unit in which tools tell the length of a run."""

TOO_MANY = 1.01
"""Wake-ups per period: starts and ends of threads differ by less."""


def check_import(record: RunRecord) -> Iterator[Caveat]:
    """Yield the caveats of an imported record; none for one of our own."""
    imported = record.imported
    if imported is None:
        return
    threads = record.result.threads
    yield make("imported", _source(imported))
    if not imported.verified:
        yield make("import_unverified", imported.format)
    yield from _kept(threads)
    yield from _periods(record)
    yield from _time(record)
    if record.load_unknown:
        yield make("import_load_unknown")
    if record.run.policy == UNKNOWN:
        yield make("import_settings_unknown")
    yield from _copied(threads)


def _source(imported: Imported) -> str:
    version = f" {imported.version}" if imported.version else ""
    return f"{imported.file}: {imported.tool}{version}: {imported.measures}"


def _kept(threads: Sequence[ThreadResult]) -> Iterator[Caveat]:
    """Yield what the buckets of the tool do not hold."""
    kept = [(t, t.foreign) for t in threads if t.foreign is not None]
    if not kept:
        return
    step_ns = max(foreign.step_ns for _, foreign in kept)
    if step_ns > 1:
        yield make("import_cut_values", f"steps of {format_us(step_ns)} us")
    if any(not foreign.end_ns for _, foreign in kept):
        yield make("import_no_histogram")
        return
    beyond = sum(t.overflow for t, _ in kept)
    if beyond:
        end_ns = min(foreign.end_ns for t, foreign in kept if t.overflow)
        yield make(
            "import_beyond_histogram",
            f"{beyond} of {format_us(end_ns)} us or more, the longest of "
            f"{format_us(max(t.max_ns or 0 for t, _ in kept))} us",
        )


def _periods(record: RunRecord) -> Iterator[Caveat]:
    threads = record.result.threads
    if all(t.missed_periods is not None for t in threads):
        return
    interval_ns, length_ns = record.run.interval_ns, record.run.duration_ns
    detail = ""
    if interval_ns and length_ns:
        due = length_ns // interval_ns
        known = [t.samples for t in threads if t.samples is not None]
        lacking = [due - samples for samples in known if samples < due / TOO_MANY]
        if lacking:
            detail = (
                f"{due} periods in {format_duration(length_ns)}, up to {max(lacking)} "
                "of a thread have no sample"
            )
    yield make("import_missed_periods", detail)


def _time(record: RunRecord) -> Iterator[Caveat]:
    threads = record.result.threads
    watched_ns = observed_ns(threads)
    if not watched_ns:
        yield make("import_time_unknown")
        return
    interval_ns, length_ns = record.run.interval_ns, record.run.duration_ns
    if not length_ns:
        yield make("import_time_counted", f"at least {format_duration(watched_ns)}")
    elif interval_ns:
        most = max(t.samples or 0 for t in threads)
        # Tools tell whole seconds: 1.9 s is 1 s to some.
        if most > TOO_MANY * ((length_ns + WHOLE_NS) // interval_ns + 1):
            yield make(
                "import_contradicts",
                f"{most} samples of one thread, but only {length_ns // interval_ns} "
                f"periods in {format_duration(length_ns)}",
            )
    if watched_ns < SHORT_RUN_NS:
        yield make("short_run", format_duration(watched_ns))


def _copied(threads: Sequence[ThreadResult]) -> Iterator[Caveat]:
    by_histogram: dict[object, list[int]] = {}
    for place, thread in enumerate(threads):
        if len(thread.histogram) >= TELLING_BUCKETS:
            by_histogram.setdefault(thread.histogram, []).append(place)
    for same in by_histogram.values():
        if len(same) > 1:
            yield make("import_copied", f"threads {format_cpulist(same)}")
