"""
The longest critical sections that a virtual board's replay recorded, by name. Pure.

The plugin finds them while the board runs (see `plugin/sections.h`): here they get the
names of functions, and the bound is composed of them.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from rtscope.explain.bound import Arrivals, Section, compose
from rtscope.explain.instructions.calls import main_frame, plain, runs_of, spent_in
from rtscope.record.explanation import CpuBound, LongestSection
from rtscope.record.instructions.section import (
    ExecTrace,
    RecordKind,
    SectionKind,
    TraceSection,
    blocks_of,
    held_by,
)
from rtscope.record.instructions.symbols import SymbolTable

_KINDS = (Section.POID, Section.PAIE, Section.PSD, Section.ST, Section.BACK)
"""In the order of `plugin/longest.h`, which counts from 1."""

CHAIN_KEPT = 8
_CUT = "begin not recorded: the ring was too short"
_LEFT_OUT = "path not recorded: no memory left"

# scause without its top bit: The RISC-V Instruction Set Manual, volume II, 4.1.8.
_RISCV_CAUSES = {
    1: "interrupts of other CPUs",
    5: "the timer interrupt",
    9: "interrupts of devices",
}


def bounds_of(trace: ExecTrace, symbols: SymbolTable) -> tuple[CpuBound, ...]:
    """Return the bound of each measured CPU, in their order; times in virtual ns."""
    longest = [s for s in trace.sections if s.kind is SectionKind.LONGEST]
    interrupts = [s for s in trace.sections if s.kind is SectionKind.INTERRUPTS]
    return tuple(
        compose(
            one.cpu,
            [_longest(s, trace, symbols) for s in longest if s.cpu == one.cpu],
            arrivals=_arrivals(one, trace, symbols),
            not_recorded=_lost(one),
        )
        for one in interrupts
    )


def _lost(interrupts: TraceSection) -> Sequence[str]:
    return ("interrupts, because they were too many",) if interrupts.left_out else ()


def _longest(
    section: TraceSection, trace: ExecTrace, symbols: SymbolTable
) -> LongestSection:
    held = held_by(section)
    kind = _KINDS[held.kind - 1]
    if section.left_out:
        return LongestSection(kind, held.net_ns, note=_LEFT_OUT)
    runs = [
        run
        for run in runs_of(blocks_of(section, section.cpu), symbols, arch=trace.arch)
        if run.end_ns > held.begin_ns and run.begin_ns < held.end_ns
    ]
    frame = main_frame(runs, share=1.0)
    callers = tuple(plain(f.name) for f in frame.chain())[:CHAIN_KEPT] if frame else ()
    most = plain(spent_in(runs)[0][0]) if runs else ""
    return LongestSection(
        kind,
        held.net_ns,
        name=callers[0] if callers else most,
        callers=callers,
        executed_ns=sum(run.executed_ns for run in runs),
        dominant_function=most,
        note=_CUT if section.first_ns > held.begin_ns else "",
    )


def _arrivals(
    section: TraceSection, trace: ExecTrace, symbols: SymbolTable
) -> dict[str, Arrivals]:
    """Return the interrupts by their names, in the order of these."""
    is_begin = section.kinds == RecordKind.INTERRUPT
    begins_ns = section.at_ns[is_begin]
    is_length = section.kinds == RecordKind.DURATION
    durations_ns = section.values[is_length].astype(np.int64)
    vectors, which = np.unique(section.values[is_begin], return_inverse=True)
    names = np.array(list(_vector_names(vectors.tolist(), trace.arch, symbols)))
    arrivals = {}
    for name in sorted(set(names.tolist())):
        mine = names[which] == name
        arrivals[name] = Arrivals(begins_ns[mine], durations_ns[mine])
    return arrivals


def _vector_names(
    vectors: Sequence[int], arch: str, symbols: SymbolTable
) -> Iterator[str]:
    if arch == "riscv64":
        for cause in vectors:
            number = cause & 0xFF
            yield _RISCV_CAUSES.get(number, f"interrupts of cause {number}")
        return
    named = symbols.names_of(np.array(vectors, np.uint64))
    for address, name in zip(vectors, named, strict=True):
        yield plain(name).removeprefix("asm_") if name else f"{address:#x}"
