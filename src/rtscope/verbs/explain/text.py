"""Explained wake-ups on a terminal: 80 columns are enough, 100 are used."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from statistics import median_high

from rich.cells import cell_len, set_cell_size
from rich.console import Console

from rtscope.explain.bound import bound_rows, sentence_of_tail
from rtscope.explain.model import Explanation, Segment
from rtscope.explain.runs import (
    NO_PROOF,
    Causes,
    ExplainedRun,
    bound_sentence,
    merged_causes,
    title_of,
)
from rtscope.explain.words import where
from rtscope.host.units import format_share, format_us, plural
from rtscope.present.document import (
    Block,
    Column,
    Span,
    Table,
    Weight,
    Words,
)
from rtscope.present.render.fitted import (
    COLUMNS,
    Room,
    command_to_type,
    print_fitted,
    rows_left_out,
)
from rtscope.present.render.terminal import print_blocks
from rtscope.present.words import NOTHING, cut
from rtscope.record.explanation import Wakeup

WIDTH = 100
SHORT_SHARE = 0.01
"""Shorter segments are counted, not listed."""
CAUSES_SHOWN = 8
MOST_OF_A_KERNEL = 18
"""Characters of its name in a table of several runs."""

Cells = tuple[str | int | None, ...]
"""A row of a table: numbers are ns, to be written as microseconds."""


def print_explanations(
    runs: Sequence[ExplainedRun], console: Console, *, worst: int
) -> None:
    """Print `worst` wake-ups of each run, then the causes of all of them."""
    width = min(WIDTH, console.width)
    causes, differences = merged_causes(runs)
    blocks = chain(
        *(_run(run, worst=worst, width=width) for run in runs),
        *(_causes(one, width=width) for one in causes),
        *(("", difference) for difference in differences),
    )
    print_blocks(blocks, console, width=width)


def print_brief_explanations(
    runs: Sequence[ExplainedRun], console: Console, *, command: str, page: str = ""
) -> None:
    """Print the worst wake-up of all, and the causes; `command` explains again."""

    _, differences = merged_causes(runs) if len(runs) > 1 else ((), ())

    def compose(room: Room) -> Iterator[Block]:
        yield from _brief(runs, room)
        yield from differences[: room.sentences]
        said = (
            f"Page: {page}; parts, times and evidence:"
            if page
            else ("Parts, times and evidence:")
        )
        yield from command_to_type(said, f"{command} -v", room)

    print_fitted(compose, console)


def worst_sentence(runs: Sequence[ExplainedRun]) -> str:
    """Return the explanation of the worst wake-up of all, in one sentence."""
    run = _worst_run(runs)
    if run is None:
        return "No worst wake-up has a recorded path: nothing to explain."
    return run.document.wakeups[0].sentence


def _worst_run(runs: Sequence[ExplainedRun]) -> ExplainedRun | None:
    explained = [run for run in runs if run.document.wakeups]
    return max(explained, key=lambda run: run.explanations[0].latency_ns, default=None)


def _brief(runs: Sequence[ExplainedRun], room: Room) -> Iterator[Block]:
    width = COLUMNS
    worst = _worst_run(runs)
    if len(runs) == 1:
        yield (_head_of(runs[0]), "strong")
    else:
        yield f"{len(runs):,} runs explained; the worst wake-up of all:"
    yield worst_sentence(runs)
    if worst is not None:
        for caveat in worst.document.wakeups[0].notes:
            yield (f"caveat: {caveat}", "limit")
    yield ""
    if len(runs) > 1:
        yield from _runs_table(runs, room, width=width)
        yield ""
    else:
        most = min(CAUSES_SHOWN, room.rows)
        yield from list(_causes(runs[0].causes, width=width, most=most))[1:]
        yield ""
        if runs[0].tail is not None and room.sentences:
            yield sentence_of_tail(runs[0].tail, virtual=runs[0].unit)
    for run in runs:
        if run.bounds:
            yield (bound_sentence(run), "strong")
            yield (f"  ({NO_PROOF})", "muted")


def _runs_table(
    runs: Sequence[ExplainedRun], room: Room, *, width: int
) -> Iterator[Block]:
    unit = runs[0].unit
    rows: list[Cells] = []
    for run in runs:
        first = run.explanations[0] if run.explanations else None
        dominant = first.dominant if first else None
        cause = f"{dominant.cause}: {dominant.name}" if dominant else "unknown"
        share = _floored(run.causes.attributed_share) if first else NOTHING
        worst = first.latency_ns if first else NOTHING
        rows.append((run.load, cut(run.kernel, MOST_OF_A_KERNEL), worst, share, cause))
    titles = ("load", "kernel", f"{unit}µs", "explained")
    yield from _figures(titles, rows[: room.rows], width=width, last="dominant cause")
    yield from rows_left_out(len(rows) - room.rows)


def _run(run: ExplainedRun, *, worst: int, width: int) -> Iterator[Block]:
    yield (_head_of(run), "strong")
    explained = zip(run.explanations, run.document.wakeups, strict=True)
    for number, (one, said) in enumerate(islice(explained, worst), 1):
        yield from _wakeup(one, said, number=number, unit=run.unit, width=width)
    yield ""
    if run.tail is not None:
        yield sentence_of_tail(run.tail, virtual=run.unit)
        yield ""
    if run.bounds:
        yield from _bound(run, width=width)
        yield ""


def _head_of(run: ExplainedRun) -> str:
    causes = run.causes
    head = (
        f"{run.run_id} on {run.place}: "
        f"{plural(causes.wakeups, 'worst wake-up')} explained, at least "
        f"{_floored(causes.attributed_share)} of each"
    )
    shares = [e.attributed_share for e in run.explanations if e.segments]
    if shares and _floored(half := median_high(shares)) != _floored(min(shares)):
        head += f", half of them {_floored(half)} or more"
    if without := len(run.explanations) - causes.wakeups:
        kept = "path" if run.virtual else "events"
        head += f"; {without} more without recorded {kept}"
    return head


def _floored(share_of_latency: float) -> str:
    """Write a share, rounded down: at least so much is explained."""
    return f"{math.floor(1000 * share_of_latency) / 10:.1f} %"


def _bound(run: ExplainedRun, *, width: int) -> Iterator[Block]:
    text = bound_sentence(run)
    yield (text, "strong")
    yield (f"  ({NO_PROOF})", "muted")
    worst = run.document.worst_bound
    if worst is None:
        return
    rows = [(us, f"{what}: {where}") for what, us, where in bound_rows(worst)]
    rows.append((format_us(worst.bound_ns), "=  max(ST, POID) + all others"))
    yield from _figures(("µs",), rows, width=width, last="longest observed")


def _wakeup(
    wakeup: Explanation, words: Wakeup, *, number: int, unit: str, width: int
) -> Iterator[Block]:
    yield ""
    # A trace without a record has no numbers of wake-ups.
    of = f", sequence {wakeup.sequence:,}" if wakeup.sequence >= 0 else ""
    yield (
        f"Worst wake-up {number}: {format_us(wakeup.latency_ns)} {unit}µs "
        f"late, CPU {wakeup.cpu}{of}",
        "strong",
    )
    yield Words((words.sentence,), indent=2)
    for caveat in words.notes:
        yield Words(((f"caveat: {caveat}", "limit"),), indent=2)
    if not wakeup.segments:
        return
    yield ""
    yield _parts(wakeup, unit=unit)
    yield ""
    yield from _segments(wakeup, width=width)
    dominant = words.dominant
    if dominant is not None and dominant.evidence:
        yield ""
        yield f"  Evidence for {dominant.cause}:"
        for line in dominant.evidence:
            yield Words(((f"- {line}", "muted"),), indent=4)


def _parts(wakeup: Explanation, *, unit: str) -> Table:
    rows = [
        *(
            (f"{part}  {wakeup.titles[part]}", ns)
            for part, ns in wakeup.parts_ns.items()
        ),
        ("   residual", wakeup.residual_ns),
        ("=  latency", wakeup.latency_ns),
    ]
    cells: list[list[Span]] = [
        [title, format_us(ns), format_share(ns, wakeup.latency_ns)]
        for title, ns in rows
    ]
    cells[-1] = [(str(text), "strong") for text in cells[-1]]
    heads = Column(f"{unit}µs", right=True), Column("share", right=True)
    return Table((Column("part"), *heads), cells, indent=2)


def _segments(wakeup: Explanation, *, width: int) -> Iterator[Block]:
    least = SHORT_SHARE * wakeup.latency_ns
    long = [s for s in wakeup.segments if s.duration_ns >= least]
    short = [s for s in wakeup.segments if s.duration_ns < least]
    rows = [_row(segment) for segment in long]
    dominant = wakeup.dominant
    weights: list[Weight] = ["strong" if one is dominant else "" for one in long]
    if short:
        ns = sum(s.duration_ns for s in short)
        number = plural(len(short), "segment")
        rows.append(("", ns, "", "", f"{number} of less than 1 % each"))
        weights.append("muted")
    titles: tuple[str, ...] = ("from µs", "took µs", "executed µs", "")
    if not wakeup.is_counted:
        titles = ("from µs", "took µs", "")  # events count no instructions
        rows = [(row[0], row[1], *row[3:]) for row in rows]
    return _figures(titles, rows, weights, width=width)


def _figures(
    titles: Sequence[str],
    rows: Sequence[Cells],
    weights: Sequence[Weight] = (),
    *,
    width: int,
    last: str = "cause",
) -> Iterator[Block]:
    """Return a table with whole numbers: only the last column is cut short."""
    table = [(*titles, last)]
    for cells in rows:
        table.append(tuple(c if isinstance(c, str) else format_us(c) for c in cells))
    widths = [max(len(row[at]) for row in table) for at in range(len(titles))]
    for at, row in enumerate(table):
        figures = (cell.rjust(w) for cell, w in zip(row, widths, strict=False))
        text = "  " + "  ".join((*figures, row[-1]))
        if cell_len(text) > width:
            text = set_cell_size(text, width - 1) + "…"
        yield Words(
            ((text, "muted" if at == 0 else weights[at - 1] if weights else ""),),
            fit="whole",
        )


def _row(segment: Segment) -> Cells:
    at = f"+{segment.begin_ns / 1000:,.3f}"
    cause = f"{segment.cause}: {where(segment)}"
    return at, segment.duration_ns, segment.executed_ns, segment.part, cause


def _causes(causes: Causes, *, width: int, most: int = CAUSES_SHOWN) -> Iterator[Block]:
    yield ""
    title = (
        f"Causes of {plural(causes.wakeups, 'worst wake-up')} under {causes.load}, "
        f"{causes.kernel}"
    )
    yield (title, "strong")
    rows = [
        (
            str(one.dominant_in),
            str(one.wakeups),
            one.sum_ns,
            one.worst_ns,
            title_of(one),
        )
        for one in causes.sums[:most]
    ]
    titles = ("dominant in", "occurs in", "sum µs", "worst µs")
    yield from _figures(titles, rows, width=width)
    left = len(causes.sums) - most
    if left > 0:
        ns = sum(one.sum_ns for one in causes.sums[most:])
        text = f"  and {left} more, {format_us(ns)} µs together: --json lists all"
        yield (text, "muted")
