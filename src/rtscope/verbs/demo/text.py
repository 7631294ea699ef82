"""A demonstration on a terminal: a lane for each thread, and what had to happen."""

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from rtscope.host.escape import printable
from rtscope.host.units import NS_PER_MS
from rtscope.present.document import (
    Block,
    Column,
    Table,
    Weight,
    Words,
)
from rtscope.present.render.terminal import print_blocks
from rtscope.verbs.demo.model import CaseResult, Judged, Lane, State

MAX_WIDTH = 100
LEGEND = "█ runs  ▄ runs part of the time  · could run  ░ waits for a mutex"
_LANES: tuple[Weight, ...] = ("note", "limit", "unseen", "good", "strong", "bad")

_FULL, _SOME = 0.5, 0.02
"""Shares of a column from which on a thread runs in it."""


def print_demo(judgement: Judged, console: Console) -> None:
    """Print title, timelines and checks."""
    width = min(console.width, MAX_WIDTH)
    print_blocks(_demo(judgement, width), console, width=width)


def _demo(judgement: Judged, width: int) -> Iterator[Block]:
    begin = judgement.results[0].begin
    yield (judgement.demo.title, "strong")
    kernel = f"Linux {printable(begin.kernel)}"
    yield f"{printable(judgement.target)}, {kernel}, CPU {begin.cpu}"
    yield judgement.demo.about
    for one in judgement.results:
        yield ""
        if len(judgement.results) > 1:
            yield (one.case.title, "strong")
        yield from timeline_lines(one, width)
    yield (LEGEND, "muted")
    yield ""
    yield Table(
        (Column(""), Column("", fit="wraps")),
        [
            (
                ("yes", "good") if check.held else ("NO", "alarm"),
                Words(
                    (check.says, (f" ({printable(check.seen, limit=200)})", "muted"))
                ),
            )
            for check in judgement.checks
            for seen in (printable(check.seen, limit=200),)
        ],
    )
    yield from (printable(note, limit=400) for note in judgement.notes)
    yield ""
    failed = sum(not check.held for check in judgement.checks)
    if failed:
        said = f"{failed} of {len(judgement.checks)} checks do not hold."
        yield (said, "alarm")
    else:
        yield (f"All {len(judgement.checks)} checks hold.", "strong")


def timeline_lines(one: CaseResult, width: int) -> Iterator[Words]:
    """Yield a line for each thread, and one for the time."""
    labels = [_label(lane) for lane in one.lanes]
    head = max(map(len, labels)) + 1
    columns = max(width - head, 10)
    for number, (label, lane) in enumerate(zip(labels, one.lanes, strict=True)):
        cells = lane_cells(lane, one.end_ns, columns)
        yield Words((f"{label:<{head}}", (cells, _LANES[number])), fit="whole")
    times = " " * head + axis(one.end_ns, columns)
    yield Words(((times, "muted"),), fit="whole")


def _label(lane: Lane) -> str:
    priority = f" {lane.got.priority}" if lane.got.priority else ""
    return f"{printable(lane.name)} {printable(lane.got.policy)}{priority}"


def lane_cells(lane: Lane, end_ns: int, columns: int) -> str:
    """Return a character for each of so many equal times."""
    shares = [dict.fromkeys(State, 0.0) for _ in range(columns)]
    width_ns = end_ns / columns
    for span in lane.spans:
        first = int(span.from_ns / width_ns)
        for column in range(first, min(columns, int(span.to_ns / width_ns) + 1)):
            from_ns = max(span.from_ns, column * width_ns)
            to_ns = min(span.to_ns, (column + 1) * width_ns)
            shares[column][span.state] += max(0.0, to_ns - from_ns) / width_ns
    return "".join(map(_cell, shares))


def _cell(share: dict[State, float]) -> str:
    if share[State.RUNNING] >= _FULL:
        return "█"
    if share[State.RUNNING] >= _SOME:
        return "▄"
    if share[State.BLOCKED] >= _FULL:
        return "░"
    return "·" if share[State.READY] >= _FULL else " "


def axis(end_ns: int, columns: int) -> str:
    """Return a line of times in ms, each where it begins."""
    cells = [" "] * columns
    step = _step_ms(end_ns / NS_PER_MS)
    at_ms = 0.0
    while at_ms * NS_PER_MS <= end_ns:
        word = f"|{at_ms:g}" + (" ms" if at_ms == 0 else "")
        place = int(at_ms * NS_PER_MS / end_ns * columns)
        if place + len(word) <= columns:
            cells[place : place + len(word)] = word
        at_ms += step
    return "".join(cells)


def _step_ms(span_ms: float) -> float:
    step = 1.0
    while span_ms / step > 6:
        step *= 2.5 if str(step)[0] == "2" else 2
    return step


# --- a character for each millisecond ---------------------------------------------


def print_chars(judgement: Judged, console: Console) -> None:
    """Print a character for each ms of CPU time of each thread, in their order."""
    width = min(console.width, MAX_WIDTH)
    for one in judgement.results:
        blocks: list[Block] = [chars_of(one), ""]
        if len(judgement.results) > 1:
            blocks.insert(0, (one.case.title, "strong"))
        print_blocks(blocks, console, width=width)


def chars_of(one: CaseResult) -> str:
    """Return the first letters of the threads, for each ms that they ran."""
    units = sorted(
        (at_ns, lane.name[0]) for lane in one.lanes for at_ns, _ in lane.times("unit")
    )
    return "".join(letter for _, letter in units)


# --- data -------------------------------------------------------------------------


def demo_document(judgement: Judged) -> dict[str, Any]:
    """Return all of it for JSON; times in ns since the start of each case."""
    return {
        "scenario": judgement.demo.scenario.value,
        "target": judgement.target,
        "held": judgement.held,
        "digest": judgement.digest,
        "checks": [
            {"says": one.says, "held": one.held, "seen": one.seen}
            for one in judgement.checks
        ],
        "notes": list(judgement.notes),
        "settings": dict(judgement.settings),
        "settings_after": dict(judgement.settings_after),
        "not_tried": dict(judgement.not_tried),
        "cases": [_case_document(one) for one in judgement.results],
    }


def _case_document(one: CaseResult) -> dict[str, Any]:
    return {
        "name": one.case.name,
        "title": one.case.title,
        "kernel": one.begin.kernel,
        "arch": one.begin.arch,
        "cpu": one.begin.cpu,
        "memory_locked": one.begin.memory_locked,
        "chars": chars_of(one),
        "threads": [
            {
                "name": lane.name,
                "script": lane.script,
                "tid": lane.got.tid,
                "policy": lane.got.policy,
                "priority": lane.got.priority,
                "runtime_ns": lane.got.runtime_ns,
                "period_ns": lane.got.period_ns,
                "slice_ns": lane.got.slice_ns,
                "affinity": lane.got.affinity,
                "cpu_time_ns": lane.end.cpu_time_ns,
                "minor_faults": lane.end.minor_faults,
                "major_faults": lane.end.major_faults,
                "voluntary_switches": lane.end.voluntary_switches,
                "involuntary_switches": lane.end.involuntary_switches,
                "events_lost": lane.end.events_lost,
                "spans": [
                    [span.state.value, span.from_ns, span.to_ns] for span in lane.spans
                ],
            }
            for lane in one.lanes
        ],
    }
