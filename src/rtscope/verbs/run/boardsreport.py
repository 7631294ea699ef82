"""
The report of a campaign over several boards: each board under each load.

The table is that of the scheduler talk, Fig. 11.14: minimum, average and maximum of
each machine under each load. Below it is what differs between the machines' facts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rtscope.cli.console import put_blocks, stdout_console
from rtscope.cli.results import model_of, question_in
from rtscope.host.errors import first_of
from rtscope.host.escape import printable
from rtscope.host.units import format_us, plural
from rtscope.host.version import __version__
from rtscope.machine.facts import catalogue
from rtscope.measure.campaign.model import Campaign
from rtscope.present.charts.drawings import svg_of
from rtscope.present.document import (
    Block,
    Chart,
    Column,
    Detail,
    Document,
    Item,
    Phrase,
    Section,
    Table,
    Words,
    table,
)
from rtscope.present.documents.report import report_answer
from rtscope.present.documents.shared import More, foot
from rtscope.present.model import charts
from rtscope.present.model.rows import (
    Row,
    anchor_of,
    in_order,
    machines_of,
    rows_of,
)
from rtscope.present.render.fitted import Room, print_fitted
from rtscope.present.words import NOTHING
from rtscope.record.model import RunRecord
from rtscope.stats.conditions import volatile_facts
from rtscope.verbs.run.boardprocess import INTERRUPTED, Ended
from rtscope.verbs.run.labfile import LabBoard

MOST_DRAWN = 8
"""Boards in a chart, those with the highest maxima: a reader tells no more apart."""

UNKNOWN = "unknown"

SCHEMA = 1
"""Of the report for programs; new keys may come within it."""


@dataclass(frozen=True, slots=True)
class BoardResult:
    """One board, and what it has measured."""

    board: LabBoard
    directory: Path
    records: tuple[RunRecord, ...]
    planned: int
    done: int
    ended: Ended | None
    """How its process ended; None: nothing was left to do, or it never began."""
    status: int
    answer: str
    """In a line; empty without a record."""
    is_damaged: bool = False
    """Whether to go on is no use until the user has mended its directory."""

    @property
    def why(self) -> str:
        """Why it is not complete; empty if it is."""
        if self.ended is not None and self.ended.why:
            return self.ended.why
        return "not measured yet" if self.done < self.planned else ""

    @property
    def state(self) -> str:
        """The same in a word: done, interrupted, failed or waiting."""
        if not self.why:
            return "done"
        if self.ended is None:
            return "waiting"
        return "interrupted" if self.ended.status == INTERRUPTED else "failed"


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that the machines do not share."""

    name: str
    title: str
    values: Mapping[str, str]
    """By the label of a machine."""


@dataclass(frozen=True, slots=True)
class LabReport:
    """The report, in the order in which it is read."""

    results: tuple[BoardResult, ...]
    loads: tuple[str, ...]
    rows: Mapping[str, Sequence[Row]]
    """By load; the variant of a row is its board, with the kernel if there are two."""
    labels: tuple[str, ...]
    differences: tuple[Difference, ...]
    deadline_ns: int | None
    """That all boards share; None: there is none."""

    @property
    def is_to_continue(self) -> bool:
        """Whether to go on would measure what is missing."""
        return any(one.why and not one.is_damaged for one in self.results)

    def row(self, load: str, label: str) -> Row | None:
        """Return the row of a board under a load; None if it has none."""
        return next((r for r in self.rows.get(load, ()) if r.variant == label), None)


def result_of(
    board: LabBoard,
    campaign: Campaign,
    directory: Path,
    *,
    records: Sequence[RunRecord],
    planned: int,
    done: int,
    ended: Ended | None,
    is_damaged: bool = False,
) -> BoardResult:
    """Judge what a board has measured by the question of its campaign."""
    answer, status = "", 3
    if records:
        model = model_of(records, question_in(campaign), paths=[directory])
        said = report_answer(model)
        answer = said.plain if isinstance(said, Words) else str(said)
        status = model.exit_status
    is_whole = done == planned and not is_damaged
    if ended is not None and ended.status == INTERRUPTED and is_whole:
        ended = None  # all that it lacked was an end in peace
    if ended is not None and ended.why:
        status = ended.status
    return BoardResult(
        *(board, directory, tuple(records), planned, done),
        *(ended, status, answer),
        is_damaged=is_damaged,
    )


def boards_report(
    results: Sequence[BoardResult], deadlines_ns: Iterable[int | None]
) -> LabReport:
    """Return the report of these boards."""
    rows: dict[str, list[Row]] = {}
    labels: list[str] = []
    facts: dict[str, Mapping[str, str]] = {}
    for one in results:
        if not one.records:
            continue
        for row in rows_of(one.records):
            label = _label(one.board.name, row.variant)
            if label not in labels:
                labels.append(label)
            rows.setdefault(row.load, []).append(_named(row, label))
        facts |= _facts(one)
    asked = set(deadlines_ns)
    return LabReport(
        results=tuple(results),
        loads=tuple(in_order(rows)),
        rows=rows,
        labels=tuple(labels),
        differences=tuple(_differences(facts)),
        deadline_ns=asked.pop() if len(asked) == 1 else None,
    )


def _label(name: str, variant: str) -> str:
    return printable(f"{name} · {variant}" if variant else name)


def _named(row: Row, label: str) -> Row:
    name, anchor = f"{row.load} · {label}", anchor_of(row.load, label)
    return replace(row, variant=label, name=name, anchor=anchor)


# --- what differs between the machines ------------------------------------------------


def _facts(result: BoardResult) -> Mapping[str, Mapping[str, str]]:
    """Return the facts of a board's machines, by their labels."""
    machines = machines_of(result.records)
    several = len(machines) > 1
    return {
        _label(result.board.name, one.kernel if several else ""): {
            fact.name: fact.value or UNKNOWN for fact in one.facts
        }
        for one in machines
    }


def _differences(facts: Mapping[str, Mapping[str, str]]) -> Iterator[Difference]:
    """Yield facts whose values differ, but for readings and the name of a machine."""
    if len(facts) < 2:
        return
    kinds = catalogue()
    left_out = volatile_facts() | {"hostname"}
    for name in dict.fromkeys(name for one in facts.values() for name in one):
        values = {label: one.get(name, UNKNOWN) for label, one in facts.items()}
        known = set(values.values()) - {UNKNOWN}
        if name in left_out or len(known) < 2:
            continue
        title = kinds[name].title if name in kinds else printable(name)
        shown = {label: printable(text) for label, text in values.items()}
        yield Difference(name, title, shown)


# --- in a terminal, and as a page -----------------------------------------------------


def print_boards(report: LabReport, *, detail: Detail, page: str) -> None:
    """Print as much of the report as is asked for."""
    if detail is Detail.QUIET:
        put_blocks(_answer(report))
        return
    if detail is Detail.ALL:
        put_blocks(*_all(report), foot(More("", page)))
        return

    def compose(room: Room) -> Iterator[Block]:
        yield _answer(report)
        yield ""
        if report.labels:
            yield from _grid(report)
            yield ""
        yield from _failures(report)
        if report.differences and room.sentences:
            yield _differing(report)
        yield foot(More("", page))

    with stdout_console() as console:
        print_fitted(compose, console)


def report_page(report: LabReport) -> Document:
    """Return the page of the report."""
    names = ", ".join(one.board.name for one in report.results)
    return Document(
        title=f"{plural(len(report.results), 'board')} in one campaign",
        blocks=(*_all(report), *_drawn(report)),
        made_by=f"rtscope {__version__}",
        subtitle=(names,),
    )


def _all(report: LabReport) -> Iterator[Block]:
    yield _answer(report)
    if report.labels:
        yield from _grid(report)
    yield from _failures(report)
    said = [one for one in report.results if one.answer]
    items = tuple(
        Item(Words(((f"{one.board.name}: ", "strong"), one.answer))) for one in said
    )
    if items:
        yield Section("Each board", items)
    if report.differences:
        yield Section("What differs between the machines", tuple(_facts_table(report)))


def _answer(report: LabReport) -> Phrase:
    complete = sum(not one.why for one in report.results)
    of = f"{complete} of {plural(len(report.results), 'board')} measured"
    worst = [
        text
        for virtual in ("", "virtual ")
        if (text := _longest(report, virtual)) is not None
    ]
    if not worst:
        return (f"{of}; no run has a result.", "strong")
    return (f"{of}; longest wake-up: {'; '.join(worst)}.", "strong")


def _longest(report: LabReport, virtual: str) -> str | None:
    """Name the worst of all machines, or of all virtual boards: not of both at once."""
    rows = [row for rows in report.rows.values() for row in rows]
    own = [row for row in rows if row.virtual == virtual and row.summary]
    if not own:
        return None
    row = max(own, key=lambda one: one.summary.max_ns if one.summary else 0)
    return f"{row.maximum} ({row.variant}, {row.load})"


def _grid(report: LabReport) -> Iterator[Block]:
    cells = [
        [label, *(_cell(report.row(load, label)) for load in report.loads)]
        for label in report.labels
    ]
    first = Column("board", fit="folds")
    yield Table((first, *(Column(load, True) for load in report.loads)), cells)
    yield (_unit(report), "muted")


def _cell(row: Row | None) -> Phrase:
    if row is None or row.summary is None:
        return NOTHING
    one = row.summary
    figures = (one.min_ns, one.mean_ns, one.max_ns)
    text = "/".join(format_us(None if ns is None else round(ns)) for ns in figures)
    return (text, "") if row.counts else (f"{text} !", "open")


def _unit(report: LabReport) -> str:
    rows = [row for rows in report.rows.values() for row in rows]
    virtual = [row.variant for row in rows if row.virtual]
    said = "Minimum/average/maximum in µs"
    if virtual:
        names = ", ".join(dict.fromkeys(virtual))
        said += f"; of {names} in virtual µs, which are no board's"
    counts = all(row.counts for row in rows)
    return f"{said}.{'' if counts else ' !: no run counts, see its report.'}"


def _failures(report: LabReport) -> Iterator[Block]:
    for one in report.results:
        if one.why:
            done = f"{one.done} of {plural(one.planned, 'run')} done"
            said = printable(f"{one.why} ({done})", limit=600)
            yield Words(((f"{one.board.name}: ", "alarm"), said))


def _differing(report: LabReport) -> Phrase:
    titles = first_of(6, [one.title for one in report.differences])
    return f"Facts that differ between the machines: {titles}."


def _facts_table(report: LabReport) -> Iterator[Block]:
    labels = list(report.differences[0].values)
    rows = [
        [one.title, *(one.values[label] for label in labels)]
        for one in report.differences
    ]
    yield table(("fact", *labels), (), rows, fit="wraps")


def _drawn(report: LabReport) -> Iterator[Block]:
    """Yield the charts of the page: those of machines, then those of virtual boards."""
    for virtual in ("", "virtual "):
        rows = {
            load: [row for row in report.rows[load] if row.virtual == virtual]
            for load in report.loads
        }
        drawn = _worst_labels(row for some in rows.values() for row in some)
        kept = {
            load: [row for row in some if row.variant in drawn and row.summary]
            for load, some in rows.items()
        }
        blocks = tuple(_charts(report, kept, drawn, virtual))
        if blocks:
            what = "virtual boards" if virtual else "machines"
            yield Section(f"Charts of the {what}", blocks)


def _worst_labels(rows: Iterable[Row]) -> list[str]:
    highest: dict[str, int] = {}
    for row in rows:
        if row.summary is not None:
            label = row.variant
            highest[label] = max(highest.get(label, 0), row.summary.max_ns)
    worst = sorted(highest, key=lambda label: -highest[label])[:MOST_DRAWN]
    return [label for label in highest if label in worst]


def _charts(
    report: LabReport,
    rows: Mapping[str, Sequence[Row]],
    labels: Sequence[str],
    virtual: str,
) -> Iterator[Block]:
    flat = [row for load in report.loads for row in rows[load]]
    if not flat:
        return
    ranges = charts.ranges_chart(
        flat,
        labels,
        title="Boards under each load",
        of="board under each load, on a logarithmic axis; the table has the numbers",
        deadline_ns=report.deadline_ns,
        virtual=virtual,
    )
    if ranges is not None:
        named = replace(ranges, name=f"boards-{virtual.strip() or 'machines'}")
        yield Chart(Markup(svg_of(named)), named.description)
    for load in report.loads:
        if len(rows[load]) < 2:
            continue
        colours = [labels.index(row.variant) for row in rows[load]]
        pair = charts.overlay_charts(
            rows[load], colours, deadline_ns=report.deadline_ns
        )
        for one in pair[1:]:  # the tails; the counts would hide each other
            named = replace(one, name=f"{one.name}-{virtual.strip() or 'machines'}")
            yield Chart(Markup(svg_of(named)), named.description)


# --- for programs ---------------------------------------------------------------------


def report_json(report: LabReport) -> dict[str, Any]:
    """
    Return the report for programs: latencies in ns, null where nothing was measured.

    A board's `why` is empty if it is complete; `exit_status` is that of its verdict or
    of its error. `differing_facts` are by the labels of `table`.
    """
    return {
        "schema": SCHEMA,
        "boards": [
            {
                "board": one.board.name,
                "target": one.board.target,
                "tags": list(one.board.tags),
                "directory": str(one.directory),
                "state": one.state,
                "why": one.why,
                "runs": one.done,
                "planned": one.planned,
                "exit_status": one.status,
                "answer": one.answer,
            }
            for one in report.results
        ],
        "table": [
            {
                "load": load,
                "board": row.variant,
                "virtual": bool(row.virtual),
                "counts": row.counts,
                "min_ns": row.summary.min_ns if row.summary else None,
                "avg_ns": row.summary.mean_ns if row.summary else None,
                "max_ns": row.summary.max_ns if row.summary else None,
                "samples": row.summary.samples if row.summary else None,
            }
            for load in report.loads
            for row in report.rows[load]
        ],
        "differing_facts": [
            {"fact": one.name, "values": dict(one.values)} for one in report.differences
        ],
    }
