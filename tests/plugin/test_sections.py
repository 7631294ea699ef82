"""Sections that the plugin tells apart, of a guest that has them by the instruction."""

from collections.abc import Mapping, Sequence

import pytest
from bare import Board, build
from test_plugin import NS_PER_INSTRUCTION, board, qemu

from rtscope.explain.bound import Section
from rtscope.explain.instructions.sections import bounds_of
from rtscope.record.instructions.section import (
    ExecTrace,
    RecordKind,
    SectionKind,
    held_by,
)
from rtscope.record.instructions.symbols import NO_SYMBOLS

__all__ = ["board", "qemu"]

UPPER = 0xFFFFFFFF80000000
SPIN_NS = 2 * NS_PER_INSTRUCTION
SPINS = {"POID": 100, "PAIE": 100, "PSD": 100, "ST": 100, "BACK": 100, "IRQ": 100}


def traced(board: Board, **spins: int) -> ExecTrace:
    return board.record(
        build("sections.S", **{**SPINS, **spins}),
        cpus=1,
        task="tp",
        preempt="tp@8:4",
        schedule=UPPER + 0xA00,
        idle=UPPER + 0x800,
        sleep=UPPER + 0x880,
        exit=UPPER + 0x900,
        due=3,
    )


def longest(trace: ExecTrace) -> Mapping[Section, int]:
    (bound,) = bounds_of(trace, NO_SYMBOLS)
    return {Section(one.section): one.duration_ns for one in bound.sections}


def interrupts_ns(trace: ExecTrace) -> list[int]:
    (section,) = [s for s in trace.sections if s.kind is SectionKind.INTERRUPTS]
    durations = section.values[section.kinds == RecordKind.DURATION]
    return [int(n) for n in durations]


@pytest.fixture(scope="module")
def short(qemu: Sequence[str], tmp_path_factory: pytest.TempPathFactory) -> ExecTrace:
    """Return the trace of a guest with 100 spins of everything."""
    return traced(Board(qemu, tmp_path_factory.mktemp("short")))


def test_every_kind_of_section_is_there_and_as_long_as_its_spins(
    short: ExecTrace,
) -> None:
    found = longest(short)

    assert set(found) == set(Section)
    # PSD holds the spins of ST; around all of them are some instructions more.
    spinning = {**dict.fromkeys(Section, 100), Section.PSD: 200}
    for section, times in spinning.items():
        assert times * SPIN_NS < found[section] < times * SPIN_NS + 100


@pytest.mark.parametrize(
    ("spun", "longer"),
    [
        ("POID", {Section.POID}),
        ("PAIE", {Section.PAIE}),
        ("PSD", {Section.PSD}),
        ("ST", {Section.PSD, Section.ST}),
        ("BACK", {Section.BACK}),
        ("IRQ", set()),
    ],
)
def test_what_is_executed_longer_is_longer_and_nothing_else(
    board: Board, short: ExecTrace, spun: str, longer: set[Section]
) -> None:
    before, after = longest(short), longest(traced(board, **{spun: 1100}))

    grown = {kind: after[kind] - before[kind] for kind in Section}
    assert grown == {kind: 1000 * SPIN_NS if kind in longer else 0 for kind in Section}


def test_interrupts_are_kept_with_their_durations(
    board: Board, short: ExecTrace
) -> None:
    (before,) = interrupts_ns(short)
    (after,) = interrupts_ns(traced(board, IRQ=1100))

    assert after - before == 1000 * SPIN_NS
    assert 100 * SPIN_NS < before < 100 * SPIN_NS + 40


def test_a_section_has_the_path_from_before_its_begin_to_its_end(board: Board) -> None:
    trace = traced(board, POID=1100)
    held = {held_by(s).kind: s for s in trace.sections if s.kind is SectionKind.LONGEST}
    section = held[1]
    told = held_by(section)

    assert section.first_ns < told.begin_ns < told.end_ns == section.last_ns
    assert told.end_ns - told.begin_ns > told.net_ns
    assert int(section.at_ns[0]) <= told.begin_ns
    assert int(section.at_ns[-1]) >= told.end_ns - 2 * NS_PER_INSTRUCTION


def test_sections_change_nothing_in_the_guest(board: Board) -> None:
    guest = build("sections.S", **SPINS)
    silent = board.count(guest, cpus=1)

    summary = board.work / "told.json"
    trace = board.record(
        guest,
        cpus=1,
        summary=summary,
        task="tp",
        preempt="tp@8:4",
        schedule=UPPER + 0xA00,
        idle=UPPER + 0x800,
        sleep=UPPER + 0x880,
        exit=UPPER + 0x900,
        due=3,
    )

    assert trace.sections
    assert f'"last_mark": {silent["last_mark"]},' in summary.read_text()
