"""The longest sections by name, and the interrupts, of a trace written by hand."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fakes.paths import Step, section, symbols
from rtscope.explain.bound import Section
from rtscope.explain.instructions.sections import bounds_of
from rtscope.record.explanation import LongestSection
from rtscope.record.instructions.section import (
    ExecTrace,
    RecordKind,
    SectionKind,
    TraceSection,
)
from rtscope.record.instructions.symbols import SymbolTable

TABLE = symbols("caller", "do_it", "helper", "asm_sysvec_tick")
WAY: list[Step] = [
    *((100, "caller"), (10, "do_it"), (500, "helper"), (200, "do_it+")),
    *((90, "caller", 1), (40, "helper"), (60, "do_it+"), (30, "caller+")),
]


def longest(
    kind: int, *, whole: int, interrupted: int = 0, until: int = 1000, cpu: int = 0
) -> TraceSection:
    """Return a section of the path that ends at a time."""
    return replace(
        section(WAY, TABLE, late=0),
        kind=SectionKind.LONGEST,
        cpu=cpu,
        latency_ns=whole - interrupted,
        sequence=interrupted << 8 | kind,
        last_ns=until,
    )


def interrupts(rows: Sequence[tuple[int, int, int]], *, cpu: int = 0) -> TraceSection:
    """Return begin, vector and duration of each interrupt of a CPU."""
    told = [
        entry
        for at, vector, length in rows
        for entry in (
            (at, RecordKind.INTERRUPT, vector),
            (at, RecordKind.DURATION, length),
        )
    ]
    at, kinds, values = zip(*told, strict=True) if told else ((), (), ())
    return replace(
        section([], TABLE, late=0),
        kind=SectionKind.INTERRUPTS,
        cpu=cpu,
        at_ns=np.array(at, np.int64),
        cpus=np.full(len(told), cpu, np.uint8),
        kinds=np.array(kinds, np.uint8),
        values=np.array(values, np.uint64),
    )


def trace(*sections: TraceSection, arch: str = "riscv64", cpus: int = 1) -> ExecTrace:
    return ExecTrace(arch, cpus, 1, 2500, sections)


def only(found: TraceSection, table: SymbolTable = TABLE) -> LongestSection:
    (bound,) = bounds_of(trace(found, interrupts([])), table)
    (one,) = bound.sections
    return one


def test_a_section_is_named_by_the_call_that_all_of_it_was_in() -> None:
    one = only(longest(1, whole=900, until=1000))

    assert (one.section, one.duration_ns) == (Section.POID, 900)
    assert one.callers == ("do_it", "caller")
    assert one.dominant_function == "helper"
    assert one.executed_ns == 10 + 500 + 200 + 40 + 60  # not what CPU 1 did
    assert one.note == ""


def test_interrupts_are_not_in_its_length_but_in_its_path() -> None:
    one = only(longest(3, whole=890, interrupted=390))
    assert (one.section, one.duration_ns) == (Section.PSD, 500)
    assert one.callers == ("do_it", "caller")


def test_a_path_that_begins_too_late_or_is_missing_is_said_to_be() -> None:
    cut = only(replace(longest(5, whole=990), first_ns=50, cut=True))
    assert cut.note == "begin not recorded: the ring was too short"
    gone = only(replace(longest(5, whole=990), left_out=True))
    assert (gone.section, gone.duration_ns, gone.callers) == (Section.BACK, 990, ())
    assert "no memory" in gone.note


def test_interrupts_have_the_names_of_their_causes_or_entries() -> None:
    timer, other, strange = ((1 << 63) | cause for cause in (5, 1, 77))
    rows = [(0, timer, 10), (100, other, 7), (300, timer, 20), (900, strange, 1)]
    (bound,) = bounds_of(trace(longest(3, whole=5), interrupts(rows)), TABLE)
    told = {
        i.vector: (i.arrivals, i.longest_ns, i.min_interarrival_ns)
        for i in bound.interrupts
    }
    assert told == {
        "the timer interrupt": (2, 20, 300),
        "interrupts of other CPUs": (1, 7, None),
        "interrupts of cause 77": (1, 1, None),
    }
    entry = int(TABLE.starts[3])
    x86 = trace(interrupts([(0, entry, 3), (50, 0x10, 4)]), arch="x86_64")
    (bound,) = bounds_of(x86, TABLE)
    assert {i.vector for i in bound.interrupts} == {"sysvec_tick", "0x10"}


def test_every_measured_cpu_has_its_own_bound() -> None:
    one, other = bounds_of(
        trace(
            *(longest(3, whole=100), interrupts([])),
            *(longest(3, whole=300, cpu=2), interrupts([], cpu=2)),
            cpus=4,
        ),
        TABLE,
    )
    assert (one.cpu, one.bound_ns) == (0, 100)
    assert (other.cpu, other.bound_ns) == (2, 300)


def test_interrupts_that_were_too_many_leave_the_bound_incomplete() -> None:
    (bound,) = bounds_of(trace(replace(interrupts([]), left_out=True)), TABLE)
    assert not bound.complete
