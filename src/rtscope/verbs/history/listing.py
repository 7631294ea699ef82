"""`rtscope history list`: the runs of the index, newest first, by filters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from rtscope.cli.console import Json, put_json, stdout_console
from rtscope.host.escape import all_printable
from rtscope.host.units import format_duration, parse_duration, plural
from rtscope.present.document import Block, Column, Span, Table
from rtscope.present.documents.shared import WIDE
from rtscope.present.render.terminal import print_blocks
from rtscope.present.words import NOTHING
from rtscope.stats.figures import columns
from rtscope.verbs.history import database
from rtscope.verbs.history.entries import indexed_figures
from rtscope.verbs.history.histograms import later_than, unpacked
from rtscope.verbs.history.indexing import IndexFile
from rtscope.verbs.history.query import Filters, filters_of, select_runs
from rtscope.verbs.history.series import unit_words

DAY_AND_MINUTE = 16
"""Characters of a time, as `2026-11-28T03:00`."""


ROOM_OF_SERIES = 24
"""Characters of a terminal that a long name gets at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """Options that choose runs of the index."""

    machine: str | None = None
    """Only this machine, e.g. ssh:board; * stands for any characters."""
    kernel: str | None = None
    """Only this kernel or release, e.g. '6.12*'."""
    load: str | None = None
    """Only these loads, e.g. idle,memory."""
    since: str | None = None
    """Only runs from this day on, e.g. 2026-11-01, or so long ago, e.g. 30d."""
    tag: str | None = None
    """Only results with this tag, e.g. good."""

    def chosen(self) -> Filters:
        """Return them checked; raise UsageError for one that is wrong."""
        return filters_of(
            machine=self.machine,
            kernel=self.kernel,
            load=self.load,
            since=self.since,
            tag=self.tag,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """The options of `rtscope history list`."""

    index: IndexFile = Path(database.NAME)
    """File of the index (default: history.db), e.g. lab.db."""
    filters: FilterOptions
    later_than: str | None = None
    """Latency beyond which each run's wake-ups are counted, e.g. 200us."""
    limit: Annotated[int, typer.Option(min=0)] = 40
    """Most runs to list, the newest first (default: 40; 0: all)."""
    json: Json = False


def list_runs(request: ListRequest) -> int:
    """List runs of the index with their figures, the newest first."""
    filters = request.filters.chosen()
    limit_ns = parse_duration(request.later_than) if request.later_than else None
    with database.opened(request.index) as opened:
        runs, total = select_runs(opened, filters, limit=request.limit)
        tags = database.known_tags(opened, Path("/"))
        damaged = database.count_damaged(opened)
    listed = Listed(runs, tags, total, damaged, limit_ns)
    if request.json:
        put_json(
            {
                "runs": [_as_json(run, listed) for run in runs],
                "total": total,
                "damaged": damaged,
            }
        )
        return 0
    with stdout_console() as console:
        print_blocks(all_printable(tuple(_blocks(listed, console.width))), console)
    return 0


@dataclass(frozen=True, slots=True)
class Listed:
    """Runs to list, with the words below them."""

    runs: Sequence[database.Row]
    tags: Mapping[str, frozenset[str]]
    """By directory."""
    total: int
    damaged: int
    limit_ns: int | None
    """Wake-ups beyond it are counted; None: none are."""

    def tags_of(self, run: database.Row) -> list[str]:
        """Return the tags of a run's directory."""
        return sorted(self.tags.get(run["directory"], ()))

    def later(self, run: database.Row) -> int | None:
        """Return its wake-ups later than the limit, and those that may be."""
        if self.limit_ns is None or run["histogram"] is None:
            return None
        return later_than(unpacked(run["histogram"]), self.limit_ns)


def _as_json(run: database.Row, listed: Listed) -> dict[str, Any]:
    """
    Return a run for programs: times in ns; null for a figure that it has not.

    `counts` says whether it counts in comparisons, `why` why not; `vanished` is when
    its record was first missed; `cause` is that of the worst wake-up, if it was
    explained; `later` is there with --later-than alone.
    """
    names = (
        *("path", "run", "series", "started", "machine", "board_revision", "kernel"),
        *("kernel_release", "load", "variant", "event", "policy", "priority"),
        *("interval_ns", "observed_ns", "seed", "agent", "rtscope", "digest"),
        *("why", "cause", "deadline_ns", "misses", "celsius", "vanished"),
    )
    return {
        **{name: run[name] for name in names},
        "virtual": bool(run["virtual"]),
        "counts": bool(run["counts"]),
        "tags": listed.tags_of(run),
        "caveats": run["caveats"].split() if run["caveats"] else [],
        "figures": {name: run[name] for name in indexed_figures()},
        **({} if listed.limit_ns is None else {"later": listed.later(run)}),
    }


def _blocks(listed: Listed, width: int) -> Iterator[Block]:
    is_wide, runs = width >= WIDE, listed.runs
    shown = columns("history", wide=is_wide)
    by_key = {figure.key: name for name, figure in indexed_figures().items()}
    longest = max((len(run["series"]) for run in runs), default=0)
    limit_ns = listed.limit_ns
    later = () if limit_ns is None else (f"> {format_duration(limit_ns)}",)
    head = (
        Column("started (UTC)"),
        Column("series", fit="wraps", least=min(longest, ROOM_OF_SERIES)),
        *(Column(one.name_in("history"), right=True) for one in shown),
        *(Column(one, right=True) for one in later),
        *((Column("kernel"),) if is_wide else ()),
        Column("", fit="wraps"),
    )
    rows: list[list[Span]] = [
        [
            run["started"][:DAY_AND_MINUTE].replace("T", " "),
            run["series"],
            *(one.show(run[by_key[one.key]]) for one in shown),
            *(_number(listed.later(run)) for _ in later),
            *((run["kernel_release"] or run["kernel"],) if is_wide else ()),
            _remarks(run, listed),
        ]
        for run in runs
    ]
    if rows:
        yield Table(head, rows)
        yield (unit_words(run["virtual"] for run in runs), "muted")
    said = plural(listed.total, "run")
    if len(runs) < listed.total:
        said += f", of which the newest {len(runs):,} are shown; --limit 0 shows all"
    if listed.damaged:
        said += f"; {plural(listed.damaged, 'damaged record')} not indexed"
    yield f"{said}."


def _number(count: int | None) -> str:
    return NOTHING if count is None else f"{count:,}"


def _remarks(run: database.Row, listed: Listed) -> str:
    words = listed.tags_of(run)
    if not run["counts"]:
        words.append("does not count")
    if run["vanished"]:
        words.append("record gone")
    return ", ".join(words)
