"""A page about a running program: findings, cycles, longest cycle, histograms."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from rtscope.explain.activity import ExplainedWindow
from rtscope.explain.model import TITLES, Explanation
from rtscope.explain.timeline import Timeline, timeline_of
from rtscope.explain.words import where
from rtscope.host.escape import all_printable, printable
from rtscope.host.units import count, format_us, plural
from rtscope.host.version import __version__
from rtscope.present.charts.bars import colour_of, path_bar
from rtscope.present.charts.cyclepath import cycle_path
from rtscope.present.charts.flame import flame_chart, note_of_timeline
from rtscope.present.document import (
    Block,
    Chart,
    Column,
    Document,
    Folded,
    Item,
    Key,
    Phrase,
    Section,
    Table,
    Words,
)
from rtscope.present.words import NOTHING, as_sentence, capital
from rtscope.programs.stackwords import stack_words
from rtscope.verbs.app.checktext import (
    disturbance,
    headline,
    kernel_waits,
)
from rtscope.verbs.app.cycletables import (
    WIDE,
    JudgedCycles,
    caveats,
    cycle_words,
    spreads,
    times_table,
)
from rtscope.verbs.app.eventstacks import told_apart
from rtscope.verbs.app.executed import execution_words
from rtscope.verbs.app.model import BoardLabel, Examined, Finding
from rtscope.verbs.app.response import Response, verdict_phrases
from rtscope.verbs.app.spread import spread_chart

if TYPE_CHECKING:  # emulator, packages and plugin: only virtual boards need them
    from rtscope.explain.outsidecycle import RecordedCycle


def examined_document(
    examined: Examined,
    cycles: JudgedCycles,
    longest: Mapping[int, ExplainedWindow],
    *,
    drawn: "Mapping[int, RecordedCycle] | None" = None,
    board: BoardLabel | None = None,
    kept: Sequence[Block] = (),
    verdict: Response | None = None,
) -> Document:
    """
    Return the page; `longest` are the longest cycles by TID, with their events.

    Those that are `drawn` are of a board, with what all CPUs executed.
    """
    label = "" if board is None else as_sentence(printable(board.words, limit=400))
    threads = [tid for tid in cycles.names if tid in cycles.threads]
    said = tuple(verdict_phrases(verdict, everything=True))
    waits = tuple(_items(kernel_waits(examined)))
    seen = examined.observation
    executed = execution_words(seen.executed, seen.pid, most=len(seen.executed))
    return Document(
        f"Check of {printable(examined.observation.name)}",
        (
            *((Section("Response time", said),) if said else ()),
            Section("Findings", tuple(_findings(examined))),
            *(
                (Section("Not seen", tuple(_unseen(examined))),)
                if examined.unseen
                else ()
            ),
            *(
                Section(
                    f"Cycles of {printable(cycles.names[tid])} ({tid})",
                    tuple(_cycles(cycles, tid, longest.get(tid), drawn or {})),
                )
                for tid in threads
            ),
            *((Section("Waits inside the kernel", waits),) if waits else ()),
            *((Section("Statistics of its tasks", tuple(kept)),) if kept else ()),
            Section("What the watching cost", tuple(_items(disturbance(examined)))),
            *((f"Caveat: {one}.", "muted") for one in caveats(cycles.end)),
        ),
        f"rtscope {__version__} from what was seen from outside",
        tuple(filter(None, (headline(examined), *map(as_sentence, executed), label))),
    )


def _items(phrases: Iterator[tuple[str, ...]]) -> Iterator[Item]:
    for lines in phrases:
        yield Item(as_sentence(" ".join(lines)))


def _findings(examined: Examined) -> Iterator[Block]:
    if not examined.findings:
        unsure = ", but not everything could be checked" if examined.unseen else ""
        yield f"Nothing was found{unsure}."
        return
    numbers = Column("count", right=True), Column("a second", right=True)
    names = Column("finding"), Column("weight"), Column("thread")
    what = Column("what", fit="wraps")
    rows = [_row(one) for one in examined.findings]
    yield Table((*names, *numbers, what), rows, label="Findings")
    for id_, variant in dict.fromkeys((x.id, x.variant) for x in examined.findings):
        found = [x for x in examined.findings if (x.id, x.variant) == (id_, variant)]
        yield Section(f"{id_} {found[0].kind.title}", tuple(_kind(found)))


def _row(one: Finding) -> tuple[str, ...]:
    return (
        f"{one.id} {one.kind.title}",
        one.weight.value,
        printable(f"{one.tid} {one.thread}") if one.tid else "all",
        NOTHING if one.count is None else f"{one.count:,}",
        NOTHING if one.rate_per_s is None else count(one.rate_per_s),
        printable(one.detail, limit=WIDE) or NOTHING,
    )


def _kind(found: list[Finding]) -> Iterator[Block]:
    """Say why a kind of finding costs time and what to do, with the stacks of it."""
    kind = found[0].kind
    remedies = dict.fromkeys(one.remedy for one in found)
    todo = " ".join(f"→\N{NO-BREAK SPACE}{as_sentence(one)}" for one in remedies)
    yield Words((f"{kind.why} ", (todo, "muted")))
    stacks = [one for each in found for one in told_apart(each.stacks)]
    if stacks:
        said = (f"{one.times}x {stack_words(one.stack)}" for one in stacks)
        items = tuple(Item((one, "muted")) for one in said)
        yield Folded(plural(len(stacks), "stack"), items)


def _unseen(examined: Examined) -> Iterator[Item]:
    for one in map(all_printable, examined.unseen):
        said = f"{', '.join(one.ids)}: {one.cause}"
        then = (as_sentence(one.remedy),) if one.remedy else ()
        yield Item(Words((("NOT SEEN", "unseen"), f" {said}")), then)


def _cycles(
    cycles: JudgedCycles,
    tid: int,
    longest: ExplainedWindow | None,
    drawn: "Mapping[int, RecordedCycle]",
) -> Iterator[Block]:
    thread = cycles.threads[tid]
    yield as_sentence(cycle_words(thread))
    yield times_table(thread, "cycles_page")
    for number, (name, spread) in enumerate(spreads(thread)):
        chart = spread_chart(
            spread, name=f"spread{tid}-{number}", title=name, colour=number
        )
        yield Chart(
            chart,
            f"{capital(name)}: cycles by length, both axes logarithmic. A percentile "
            "that the number of cycles does not support is left out.",
            beside=True,
        )
    said = printable(cycles.longest.get(tid, ""), limit=1000)
    if tid in drawn:
        one = drawn[tid]
        blocks = cycle_path(
            *(one.timeline, one.explanation),
            name=f"cycle{tid}",
            marks=one.marks,
            unit="virtual ",
            label="Segments of the longest cycle",
        )
        yield Section("Longest cycle", (as_sentence(said), one.says, *blocks))
    elif longest is None and said:
        yield Section("Longest cycle", (as_sentence(said),))
    if longest is not None:
        path = all_printable(longest.explanation)
        timeline = all_printable(timeline_of(longest))
        blocks = _path(path, timeline, name=f"cycle{tid}", words=said)
        yield Section("Longest cycle", (said, *blocks))


# --- the path of the longest cycle ------------------------------------------------


def _path(
    path: Explanation, timeline: Timeline, *, name: str, words: str
) -> Iterator[Block]:
    """Yield its bar, its timeline and its segments; `name` is its own in a page."""
    parts = ", ".join(f"{letter.value} {about}" for letter, about in TITLES.items())
    yield Chart(
        Markup(path_bar(path, name=name, description=words, unit="")),
        f"Letters mark the parts: {parts}; here E is the cycle itself.",
    )
    yield Chart(
        Markup(flame_chart(timeline, path, name=name, unit="")),
        "What each CPU did, in µs since the cycle was due: the task, and below it "
        f"interrupts. {note_of_timeline(timeline, unit='')}",
    )
    yield Folded(f"All {plural(len(path.segments), 'segment')}", (_segments(path),))


def _segments(path: Explanation) -> Table:
    heads = ("no.", "from (µs)", "length (µs)", "part", "cause", "where")
    columns = (
        Column(head, right=number < 3, fit="wraps" if head == "where" else "cut")
        for number, head in enumerate(heads)
    )
    rows: list[Sequence[Phrase]] = [
        (
            str(number),
            format_us(one.begin_ns),
            format_us(one.duration_ns),
            Words((Key(colour_of(one)), one.part.value)),
            one.cause.value,
            (where(one), "strong" if one is path.dominant else ""),
        )
        for number, one in enumerate(path.segments, 1)
    ]
    return Table(tuple(columns), rows, label="Segments of the longest cycle")
