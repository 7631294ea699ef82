"""What sections could combine to, for every form of a report: never as a proof."""

from collections.abc import Mapping, Sequence

from rtscope.explain.bound import (
    TITLES,
    Bound,
    Interference,
    Longest,
    Section,
    worst_of,
)
from rtscope.record.explanation import CpuBound, Interrupt, LongestSection
from rtscope.report.escape import printable
from rtscope.units import format_us

CALLERS_TOLD = 3
NO_PROOF = (
    "the longest sections that were seen, as if they lined up: no proof, for a longer "
    "one may not have been executed"
)

Row = tuple[str, str, str]
"""What, how long in µs, where."""


def bound_sentence(
    bounds: Sequence[Bound], observed_ns: Mapping[int, int], *, virtual: str
) -> str:
    """Set what could be beside what was seen; empty without bounds."""
    worst = worst_of(bounds)
    if worst is None:
        return ""
    seen = format_us(max(observed_ns.values(), default=0))
    if worst.bound_ns is None:
        return (
            f"Sections seen on CPU {worst.cpu} combine to no bound: interrupts fill "
            f"every window (latest wake-up seen: {seen} {virtual}µs)."
        )
    text = (
        f"Sections seen could combine to {format_us(worst.bound_ns)} {virtual}µs on "
        f"CPU {worst.cpu}; the latest wake-up seen was {seen}."
    )
    return " ".join((text, *doubts_of_bounds(bounds, observed_ns)))


def doubts_of_bounds(
    bounds: Sequence[Bound], observed_ns: Mapping[int, int]
) -> tuple[str, ...]:
    """Return what makes a bound too small: lost events, or a wake-up outside of it."""
    lost = dict.fromkeys(what for one in bounds for what in one.lost)
    outside = [
        one.cpu
        for one in bounds
        if one.bound_ns is not None and observed_ns.get(one.cpu, 0) > one.bound_ns
    ]
    said = [f"Not recorded: {printable(what)}." for what in lost]
    if outside:
        cpus = ", ".join(map(str, outside))
        said.append(
            f"CPU {cpus} was later than its sections allow: something is outside of "
            "the model, such as a thread that is no less urgent than the measuring one."
        )
    return tuple(said)


def bound_rows(bound: Bound) -> tuple[Row, ...]:
    """Return what a bound is made of, in the order in which it adds up."""
    known = {one.section: one for one in bound.longest}
    rows = [_section_row(known[kind]) for kind in Section if kind in known]
    counted = [
        _interrupt_row(one) for one in bound.interference if one.in_window_ns > 0
    ]
    turns = [("turns of all CPUs, once", format_us(bound.turns_ns), "")]
    return (*rows, *counted, *(turns if bound.turns_ns else []))


def bound_document(bound: Bound, *, observed_ns: int) -> CpuBound:
    """Return the bound of a CPU for `explain.json`; times in ns."""
    return CpuBound(
        cpu=bound.cpu,
        bound_ns=bound.bound_ns,
        observed_max_ns=observed_ns,
        scheduling_ns=bound.scheduling_ns,
        turns_ns=bound.turns_ns,
        complete=bound.complete,
        lost=tuple(map(printable, bound.lost)),
        sections=tuple(map(_section, bound.longest)),
        interrupts=tuple(map(_interrupt, bound.interference)),
    )


def _section_row(one: Longest) -> Row:
    shown = " < ".join(one.callers[:CALLERS_TOLD]) or (
        f"most in {one.most_in}" if one.most_in else one.name
    )
    aside = f"; executing {format_us(one.own_ns)}" if one.own_ns is not None else ""
    note = f"; {one.note}" if one.note else ""
    title = f"{one.section.value}  {TITLES[one.section]}"
    return title, format_us(one.duration_ns), printable(f"{shown}{aside}{note}")


def _interrupt_row(one: Interference) -> Row:
    closest = (
        ""
        if one.closest_ns is None
        else f", {format_us(one.closest_ns)} apart at least"
    )
    return (
        f"IRQ  {printable(one.vector)}",
        format_us(one.in_window_ns),
        f"{one.arrivals:,} seen, the longest {format_us(one.longest_ns)}{closest}",
    )


def _section(one: Longest) -> LongestSection:
    return LongestSection(
        section=one.section.value,
        duration_ns=one.duration_ns,
        own_ns=one.own_ns,
        name=printable(one.name),
        callers=tuple(map(printable, one.callers)),
        most_in=printable(one.most_in),
        note=one.note,
    )


def _interrupt(one: Interference) -> Interrupt:
    return Interrupt(
        vector=printable(one.vector),
        arrivals=one.arrivals,
        longest_ns=one.longest_ns,
        closest_ns=one.closest_ns,
        in_window_ns=one.in_window_ns,
    )
