"""Explained wake-ups on a terminal: 80 columns are enough, 100 are used."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rtscope.explain.bound import worst_of
from rtscope.explain.causes import Causes, differences, paragraph
from rtscope.explain.model import Explanation, Segment
from rtscope.explain.words import caveats_of, evidence, sentence, share, where
from rtscope.report.model.explanations import (
    NO_PROOF,
    ExplainedRun,
    bound_rows,
    bound_sentence,
    merged_causes,
    parts_of,
    sentence_of_tail,
    unit_of,
)
from rtscope.report.words import NOTHING, plural
from rtscope.units import format_us

WIDTH = 100
SHORT_SHARE = 0.01
"""Shorter segments are counted, not listed."""
CAUSES_SHOWN = 8


def print_explanations(
    runs: Sequence[ExplainedRun], console: Console, *, worst: int
) -> None:
    """Print `worst` wake-ups of each run, then the causes of all of them."""
    width = min(WIDTH, console.width)
    for run in runs:
        _print_run(run, console, worst=worst, width=width)
    causes = merged_causes(runs)
    for one in causes:
        _print_causes(one, console, width=width)
    for difference in differences(causes):
        console.print()
        text = paragraph(difference, virtual=unit_of(runs))
        console.print(Text(text), width=width)


def _print_run(run: ExplainedRun, console: Console, *, worst: int, width: int) -> None:
    causes = run.causes
    head = (
        f"{run.run_id} on {run.place}: "
        f"{plural(causes.wakeups, 'worst wake-up')} explained, at least "
        f"{math.floor(1000 * causes.attributed_share) / 10:.1f} % of each"
    )
    if without := len(run.explanations) - causes.wakeups:
        kept = "path" if run.virtual else "events"
        head += f"; {without} more without recorded {kept}"
    console.print(Text(head, style="bold"), width=width)
    for number, explanation in enumerate(run.explanations[:worst], 1):
        _print_wakeup(explanation, console, number=number, unit=run.unit, width=width)
    console.print()
    if run.tail is not None:
        text = sentence_of_tail(run.tail, virtual=run.unit)
        console.print(Text(text), width=width)
        console.print()
    if run.bounds:
        _print_bound(run, console, width=width)
        console.print()


def _print_bound(run: ExplainedRun, console: Console, *, width: int) -> None:
    text = bound_sentence(run.bounds, run.observed_ns, virtual=run.unit)
    console.print(Text(text, style="bold"), width=width)
    console.print(Text(f"  ({NO_PROOF})", style="dim"), width=width)
    worst = worst_of(run.bounds)
    if worst is None:
        return
    rows = [(us, f"{what}: {where}") for what, us, where in bound_rows(worst)]
    rows.append((format_us(worst.bound_ns), "=  max(ST, POID) + all others"))
    console.print(
        _figures(("µs",), rows, width=width, last="longest observed"), width=width
    )


def _print_wakeup(
    explanation: Explanation,
    console: Console,
    *,
    number: int,
    unit: str,
    width: int,
) -> None:
    console.print()
    # A trace without a record has no numbers of wake-ups.
    of = f", sequence {explanation.sequence:,}" if explanation.sequence >= 0 else ""
    console.print(
        Text(
            f"Worst wake-up {number}: {format_us(explanation.latency_ns)} {unit}µs "
            f"late, CPU {explanation.cpu}{of}",
            style="bold",
        ),
        width=width,
    )
    console.print(
        Padding(Text(sentence(explanation, virtual=unit)), (0, 0, 0, 2), expand=False),
        width=width,
    )
    for caveat in caveats_of(explanation):
        text = Text(f"caveat: {caveat}", style="yellow")
        console.print(Padding(text, (0, 0, 0, 2), expand=False), width=width)
    if not explanation.segments:
        return
    console.print()
    console.print(_parts(explanation, unit=unit), width=width)
    console.print()
    console.print(_segments(explanation, width=width), width=width)
    dominant = explanation.dominant
    if dominant is not None:
        _print_evidence(dominant, console, width=width)


def _parts(explanation: Explanation, *, unit: str) -> Padding:
    whole = explanation.latency_ns
    rows = [
        (f"{letter}  {title}", format_us(ns), share(ns, whole))
        for letter, title, ns in parts_of(explanation)
    ]
    residual = explanation.residual_ns
    rows.append(("   residual", format_us(residual), share(residual, whole)))
    rows.append(("=  latency", format_us(whole), share(whole, whole)))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("part", no_wrap=True)
    table.add_column(f"{unit}µs", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row, style="bold" if row is rows[-1] else "")
    return Padding(table, (0, 0, 0, 2), expand=False)


def _segments(explanation: Explanation, *, width: int) -> Text:
    least = SHORT_SHARE * explanation.latency_ns
    shown = [s for s in explanation.segments if s.duration_ns >= least]
    short = [s for s in explanation.segments if s.duration_ns < least]
    rows: list[tuple[str, ...]] = [_row(segment) for segment in shown]
    dominant = explanation.dominant
    styles = ["bold" if segment is dominant else "" for segment in shown]
    if short:
        ns = sum(s.duration_ns for s in short)
        number = plural(len(short), "segment")
        rows.append(("", format_us(ns), "", "", f"{number} of less than 1 % each"))
        styles.append("dim")
    titles: tuple[str, ...] = ("from µs", "took µs", "executed µs", "")
    if not explanation.is_counted:
        titles = ("from µs", "took µs", "")  # events count no instructions
        rows = [(row[0], row[1], *row[3:]) for row in rows]
    return _figures(titles, rows, styles, width=width)


def _figures(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    styles: Sequence[str] = (),
    *,
    width: int,
    last: str = "cause",
) -> Text:
    """Return a table with whole numbers: only the last column is cut short."""
    table = [(*titles, last), *rows]
    widths = [max(len(row[at]) for row in table) for at in range(len(titles))]
    text = Text(no_wrap=True)
    for at, row in enumerate(table):
        cells = (cell.rjust(w) for cell, w in zip(row, widths, strict=False))
        line = Text("  " + "  ".join((*cells, row[-1])))
        line.truncate(width, overflow="ellipsis")
        line.stylize("dim" if at == 0 else styles[at - 1] if styles else "")
        text.append_text(line)
        text.append("" if at == len(table) - 1 else "\n")
    return text


def _row(segment: Segment) -> tuple[str, ...]:
    own = NOTHING if segment.executed_ns is None else format_us(segment.executed_ns)
    at = f"+{segment.begin_ns / 1000:,.3f}"
    cause = f"{segment.cause}: {where(segment)}"
    return at, format_us(segment.duration_ns), own, segment.part.value, cause


def _print_evidence(dominant: Segment, console: Console, *, width: int) -> None:
    lines = evidence(dominant)
    if not lines:
        return
    console.print()
    console.print(Text(f"  Evidence for {dominant.cause}:"), width=width)
    for line in lines:
        text = Text(f"- {line}", style="dim")
        console.print(Padding(text, (0, 0, 0, 4), expand=False), width=width)


def _print_causes(causes: Causes, console: Console, *, width: int) -> None:
    console.print()
    title = (
        f"Causes of {plural(causes.wakeups, 'worst wake-up')} under {causes.load}, "
        f"{causes.kernel}"
    )
    console.print(Text(title, style="bold"), width=width)
    rows = [
        (
            str(one.times_dominant),
            str(one.wakeups),
            format_us(one.sum_ns),
            format_us(one.worst_ns),
            one.title,
        )
        for one in causes.sums[:CAUSES_SHOWN]
    ]
    titles = ("dominant in", "occurs in", "sum µs", "worst µs")
    console.print(_figures(titles, rows, width=width), width=width)
    left = len(causes.sums) - CAUSES_SHOWN
    if left > 0:
        ns = sum(one.sum_ns for one in causes.sums[CAUSES_SHOWN:])
        text = f"  and {left} more, {format_us(ns)} µs together: --json lists all"
        console.print(Text(text, style="dim"), width=width)
