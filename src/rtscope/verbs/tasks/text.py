"""
A list of threads: for a terminal with as many columns as fit, coloured by meaning, with
what is to note of them; and the same as JSON.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

from rich.cells import cell_len, set_cell_size

from rtscope.host.escape import printable
from rtscope.host.files.jsontext import json_text
from rtscope.host.units import format_duration, plural
from rtscope.machine.capabilities import capability_names
from rtscope.machine.tasks.listing import notes_of
from rtscope.machine.tasks.marks import mark_kinds
from rtscope.machine.tasks.model import Listing, Order, Thread, ThreadKind
from rtscope.present.document import Block, Lines, Span, Weight, Words
from rtscope.present.words import NOTHING, capital, duration, enumeration
from rtscope.verbs.tasks.details import with_details

SCHEMA = 1
MAX_MARKED = 8

_POLICIES = ("deadline", "fifo", "rr", "ext", "batch", "idle", "other")
MIN_NAME = 15
"""Of a thread that is none of the kernel's: TASK_COMM_LEN less the final NUL."""

MAX_CPUS = 14
MAX_MARKS = 24

_WEIGHTS: Mapping[str, Weight] = {
    "fifo": "open",
    "rr": "open",
    "deadline": "unseen",
    "ext": "note",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, what stands in it, and whether it may be left out."""

    title: str
    text: Callable[[Thread], str]
    optional: bool = False
    left: bool = False
    most: int = 40


def tasks_blocks(
    listing: Listing,
    threads: Sequence[Thread],
    *,
    order: Order,
    width: int,
    whole: bool = False,
) -> Iterator[Block]:
    """
    Yield the threads that were chosen, what is to note of them, and a summary.

    With `whole` control groups and capabilities stand below the thread.
    """
    window = listing.end.window_ns is not None
    lines = _lines(threads, width, order=order, window=window, whole=whole)
    if whole:
        lines = with_details(lines, threads, width)
    yield Lines(list(lines))
    yield ""
    yield from _marked(threads, most=None if whole else MAX_MARKED)
    yield from ((printable(note), "muted") for note in notes_of(listing))
    yield (summary(listing, threads), "strong")


LIVE_LINES = 7
"""Of a live list, beside its threads: head, blank line, what is left out, summary, and
where the cursor is."""


def live_blocks(
    listing: Listing,
    threads: Sequence[Thread],
    *,
    order: Order,
    width: int,
    rows: int,
) -> Iterator[Block]:
    """Yield the first threads, which fit on a screen, and a summary of all."""
    first = threads[:rows]
    yield Lines(list(_lines(first, width, order=order, window=True, whole=False)))
    yield ""
    more = f"and {len(threads) - len(first):,} more: --rt, --sort share, --cpu N or -v"
    yield (more, "muted")
    yield (summary(listing, threads), "strong")


def summary(listing: Listing, threads: Sequence[Thread]) -> str:
    """Return how many threads there are, of which policies and kinds."""
    policies = Counter(thread.line.policy for thread in threads)
    order = [*_POLICIES, *sorted(set(policies) - set(_POLICIES))]
    kinds = Counter(thread.kind for thread in threads)
    said = ", ".join(f"{policies[p]:,} {p}" for p in order if policies[p])
    text = f"{plural(len(threads), 'thread')}"
    if len(threads) != len(listing.threads):
        text += f" of {len(listing.threads):,}"
    if said:
        text += (
            f": {said}; {kinds[ThreadKind.USER]:,} user, "
            f"{kinds[ThreadKind.KERNEL]:,} kernel, {kinds[ThreadKind.IRQ]:,} interrupt"
        )
    if listing.end.window_ns is not None:
        text += f"; CPU% over {format_duration(listing.end.window_ns)}"
    return text


def render_tasks_json(
    listing: Listing,
    threads: Sequence[Thread],
    *,
    target: str,
    programs: Sequence[Mapping[str, object]] = (),
) -> str:
    """Return the threads as JSON, one a line: stable keys, times in ns."""
    around = listing.around
    isolated = None if around.isolated is None else sorted(around.isolated)
    head = {
        "schema": SCHEMA,
        "target": target,
        "isolated": isolated,
        "sched_ext": around.sched_ext,
        "processes": listing.end.processes,
        "threads_seen": len(listing.threads),
        "vanished": listing.end.vanished,
        "missed": listing.end.not_read,
        "window_ns": listing.end.window_ns,
        "notes": notes_of(listing),
        "programs": programs,
    }
    opening = json_text(head, indent=1)[:-3]
    rows = ",\n".join(
        f"  {json_text(task_row(thread), indent=None)[:-1]}" for thread in threads
    )
    return f'{opening},\n "threads": [\n{rows}\n ]\n}}\n'


def task_row(thread: Thread) -> dict[str, object]:
    """Return a thread for a JSON document."""
    line = asdict(thread.line)
    for key in ("type", "name_hex", "kind", "name"):
        del line[key]
    irq, bits = thread.irq, thread.capability_bits
    return {
        "pid": line.pop("pid"),
        "tid": line.pop("tid"),
        "name": thread.name,
        "process": thread.process,
        "kind": thread.kind.value,
        "irq": None if irq is None else {"number": irq.number, "device": irq.device},
        **line,
        "capabilities": None if bits is None else list(capability_names(bits)),
        "share": thread.share,
        "boosted": thread.boosted,
        "marks": [{"id": mark.id, "detail": mark.detail} for mark in thread.marks],
    }


def _marked(threads: Sequence[Thread], *, most: int | None) -> Iterator[Block]:
    for id_, kind in mark_kinds().items():
        marked = [
            (thread, mark.detail)
            for thread in threads
            for mark in thread.marks
            if mark.id == id_
        ]
        if not marked:
            continue
        said = f"{capital(kind.title)}: {len(marked):,}. "
        weight: Weight = "alarm" if kind.grave else "note"
        yield Words(((f"{kind.word:5} ", weight), (said, "strong"), kind.why))
        for thread, detail in marked[:most]:
            said = f"{thread.line.tid} {_display_name(thread)}: {printable(detail)}"
            yield Words((said + _parameters(thread, id_),), indent=6)
        if left := len(marked[most:]) if most else 0:
            yield Words(((f"and {left:,} more: see -v", "muted"),), indent=6)
        yield ""


def _parameters(thread: Thread, mark: str) -> str:
    deadline = thread.line.deadline
    if mark != "deadline" or deadline is None:
        return ""
    flags = [
        word
        for word, there in (
            ("reclaims", deadline.reclaim),
            ("is signalled at an overrun", deadline.overrun_signal),
        )
        if there
    ]
    return (
        f" ({duration(deadline.runtime_ns)} in each "
        f"{duration(deadline.period_ns)}, within {duration(deadline.deadline_ns)}"
        f"{'; ' if flags else ''}{enumeration(flags)})"
    )


# --- the table ------------------------------------------------------------------------


def _lines(
    threads: Sequence[Thread], room: int, *, order: Order, window: bool, whole: bool
) -> Iterator[Sequence[Span]]:
    """Yield the table; nothing but its head if there are no threads."""
    heads = _heads(threads) if order is Order.PROCESS else None
    columns = _columns(heads, window=window, whole=whole)
    cells = [[column.text(t) for t in threads] for column in columns]
    widths = [
        min(column.most, max(map(len, (column.title, *texts))))
        for column, texts in zip(columns, cells, strict=True)
    ]
    names = [_name(thread, heads) for thread in threads]
    marks = [_marks(thread) for thread in threads]
    end = _ends(names, marks)
    kept = _fitting(columns, widths, room - sum(end) - 2)
    room -= sum(widths[i] + 1 for i in kept)
    name_width = max(min(end[0], room - end[1] - 1), min(MIN_NAME, end[0]))
    if not end[1]:
        name_width = min(end[0], room)
    table = _Table([columns[i] for i in kept], [widths[i] for i in kept], name_width)
    yield [table.head(marks=bool(end[1]))]
    rows = zip(*(table.cut(n, cells[i]) for n, i in enumerate(kept)), strict=True)
    for thread, row, name, mark in zip(threads, rows, names, marks, strict=True):
        yield table.line(thread, row, name, mark)


def _display_name(thread: Thread) -> str:
    """Return the name of a thread; an interrupt thread's with its whole device."""
    name = _safe(thread.name)
    if thread.irq is not None and thread.irq.device not in thread.name:
        # Before Linux 5.17 the name is cut to 15 characters.
        return f"irq/{thread.irq.number}-{_safe(thread.irq.device)}"
    return name


@lru_cache(maxsize=65536)
def _safe(text: str) -> str:
    return printable(text, limit=80)


def _heads(threads: Sequence[Thread]) -> frozenset[int]:
    """Return the first thread that is shown of each process: it names the process."""
    first: dict[int, int] = {}
    for thread in threads:
        first.setdefault(thread.line.pid, thread.line.tid)
    return frozenset(first.values())


def _name(thread: Thread, heads: frozenset[int] | None) -> str:
    name = _display_name(thread)
    if thread.is_leader:
        return name
    process = _safe(thread.process)
    of_process = f" [{process}]" if process != name else ""
    if heads is None:
        return f"{name}{of_process}"
    if thread.line.tid in heads:
        return f"  {name}{of_process}"
    return f"  {name}"


def _columns(
    heads: frozenset[int] | None, *, window: bool, whole: bool
) -> list[Column]:
    def pid(thread: Thread) -> str:
        is_first = heads is None or thread.line.tid in heads
        return str(thread.line.pid) if is_first else ""

    return [
        Column("PID", pid),
        Column("TID", lambda t: str(t.line.tid)),
        Column("POLICY", lambda t: t.line.policy, left=True, most=10),
        Column("PRIO", _priority),
        Column("NI", lambda t: str(t.line.nice)),
        Column("CPUS", lambda t: t.line.cpus or NOTHING, left=True, most=MAX_CPUS),
        Column("S", lambda t: printable(t.line.state), most=4),
        Column("ON", lambda t: str(t.line.last_cpu)),
        *([Column("CPU%", _share)] if window else []),
        Column("TIME", _cpu_time, optional=not whole),
        Column("INVOL", lambda t: _number(t.line.involuntary_switches), optional=True),
        Column("VOL", lambda t: _number(t.line.voluntary_switches), optional=True),
        Column("MAJFL", lambda t: _number(t.line.major_faults), optional=True),
        Column("MINFL", lambda t: _number(t.line.minor_faults), optional=True),
        Column("SLACK", _slack, optional=True),
    ]


def _ends(names: Iterable[str], marks: Iterable[str]) -> tuple[int, int]:
    """Return how wide the names and the marks want to be."""
    name = max((min(cell_len(n), 32) for n in names), default=4)
    mark = max((min(cell_len(m), MAX_MARKS) for m in marks), default=0)
    return max(name, 4), max(mark, 5) if mark else 0


def _fitting(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    kept = [i for i, column in enumerate(columns) if not column.optional]
    room -= sum(widths[i] + 1 for i in kept)
    for i, column in enumerate(columns):
        if column.optional and widths[i] + 1 <= room:
            kept.append(i)
            room -= widths[i] + 1
    return sorted(kept)


@dataclass(frozen=True, slots=True)
class _Table:
    columns: Sequence[Column]
    widths: Sequence[int]
    name_width: int

    def head(self, *, marks: bool) -> Span:
        said = [
            cut(column.title, width, left=column.left)
            for column, width in zip(self.columns, self.widths, strict=True)
        ]
        name = cut("NAME", self.name_width, left=True)
        end = f" {name} MARKS" if marks else " NAME"
        return " ".join(said) + end, "strong"

    def cut(self, number: int, texts: Sequence[str]) -> list[str]:
        """Bring the cells of a column to its width."""
        width, left = self.widths[number], self.columns[number].left
        # The same few texts again and again.
        known = {text: cut(text, width, left=left) for text in set(texts)}
        return [known[text] for text in texts]

    def line(
        self, thread: Thread, row: Sequence[str], name: str, marks: str
    ) -> list[Span]:
        """Return a row, its cells cut already."""
        plain: Weight = "" if thread.kind is ThreadKind.USER else "muted"
        policy = _WEIGHTS.get(thread.line.policy, plain)
        cells: list[Span] = [
            (" ".join(row[:2]) + " ", plain),
            (" ".join(row[2:4]) + " ", policy),
            (" ".join(row[4:]) + " ", plain),
        ]
        if not marks:
            return [*cells, (_shortened(name, self.name_width), plain)]
        grave = any(mark_kinds()[mark.id].grave for mark in thread.marks)
        return [
            *cells,
            (cut(name, self.name_width, left=True) + " ", plain),
            (marks, "alarm" if grave else "note"),
        ]


def cut(text: str, width: int, *, left: bool) -> str:
    """Bring a text to so many columns, with `…` where it is cut."""
    if text.isascii() and len(text) <= width:
        return text.ljust(width) if left else text.rjust(width)
    text = _shortened(text, width)
    space = " " * (width - cell_len(text))
    return text + space if left else space + text


def _shortened(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


def _priority(thread: Thread) -> str:
    line = thread.line
    return str(line.priority) if line.policy in ("fifo", "rr") else NOTHING


def _share(thread: Thread) -> str:
    return NOTHING if thread.share is None else f"{100 * thread.share:.1f}"


def _cpu_time(thread: Thread) -> str:
    return format_duration(thread.line.cpu_time_ns).replace(" ", "")


def _number(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def _slack(thread: Thread) -> str:
    slack = thread.line.timer_slack_ns
    return NOTHING if slack is None else format_duration(slack).replace(" ", "")


def _marks(thread: Thread) -> str:
    words = [mark_kinds()[mark.id].word for mark in thread.marks]
    return _shortened(" ".join(words), MAX_MARKS)
