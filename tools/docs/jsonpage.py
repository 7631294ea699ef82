"""The page of what sweeps, surveys and searches print as JSON."""

from collections.abc import Iterator, Mapping
from inspect import getdoc

from pydantic import TypeAdapter

from classpages import HEAD, class_node, field_rows
from prose import row, sentences
from rtscope.boards.runs.store import HostTime
from rtscope.record.directory.journal import Tried
from rtscope.verbs.bisect.outcome import Change, Located, Outcome, Side
from rtscope.verbs.sweep.doubts import Checks, Doubt
from rtscope.verbs.sweep.effects import FIGURES, CellEffect
from rtscope.verbs.sweep.file import Diagnosis
from rtscope.verbs.sweep.plan import KernelToBuild
from rtscope.verbs.sweep.ranking import Cause, RankedLoad, Ranking, Standing
from rtscope.verbs.sweep.result import CellResult, Costs, SweepResult, WorstRun

PAGE_HEAD = """\
# JSON of sweeps and searches

What `rtscope sweep`, `rtscope bisect` and a plan print with `--json`.
Latencies are in ns; a name with another unit ends in it.
New keys may come; none changes its meaning or goes.
Runs are compared if they have the same `key`: load, kernel, policy, priority, \
interval in ns, duration in ns, CPUs and variant.
How: [sweep settings](../how-to/sweep-settings.md)."""

Rows = tuple[tuple[str, str, str], ...]

ANSWER = ("answer", "text", "What the terminal prints first.")

PLAN: Rows = (
    ("name", "text", "Of the sweep."),
    ("target", "text", "The board, or the machine."),
    ("runs", "whole number", "Of all cells to measure now."),
    ("virtual_ns", "whole number", "On a virtual board: their virtual time."),
    ("duration_ns", "whole number", "On a machine: their time."),
    ("runs_done", "whole number", "Of these, how many are measured already."),
    (
        "host",
        "HostTime or null",
        "How long the rest takes on this machine; null: nothing was measured that "
        "could tell.",
    ),
    ("seeds", "list of: whole number", "Of each cell; empty: a machine."),
    ("effects", "whole number", "How many can be tested."),
    (
        "needed_seeds",
        "whole number or null",
        "With fewer, no effect can be found; null: none is tested.",
    ),
    ("kernels_from_source", "list of: KernelToBuild", "Each once."),
    ("cells", "list of: PlannedCell", "To measure now."),
    ("cells_left", "whole number", "Not to be measured now."),
)
PLANNED_CELL: Rows = (
    ("number", "whole number", "From 0, the base."),
    ("name", "text", "Its levels; those of the base: `base`."),
    ("levels", "table of: text", "By axis."),
    ("directory", "text", "Name of its directory in `cells` of the sweep's directory."),
    ("runs", "whole number", "How many it has."),
    ("loads", "list of: text", "Of its runs."),
    ("kernels", "list of: text", "Of its runs; empty: a machine."),
    ("virtual_ns", "whole number", "On a virtual board: the virtual time of its runs."),
    ("duration_ns", "whole number", "On a machine: their time."),
)
BOARDS: Rows = (("boards_at_once", "whole number", "How many run at the same time."),)
SURVEYED: Rows = (
    ANSWER,
    ("checks", "Checks", "Of runs that were computed twice."),
    (
        "worse_than_usual",
        "table of: list of: text",
        "By kernel: the stressors above all loads of the base.",
    ),
    (
        "fewest",
        "table of: list of: text",
        "By kernel: the fewest stressors that show each cause that the loads of the "
        "base do not show.",
    ),
)
SEARCHED: Rows = (
    ("schema", "whole number", "Version of this format."),
    ("unit", "text", "Of the figure."),
    ("differs", "`true` or `false`", "Whether there was anything to search for."),
    ("found", "`true` or `false`", "Whether the search ended with the change."),
    (
        "share",
        "number or null",
        "The part of the difference of the ends that the change makes; null: they do "
        "not differ.",
    ),
    (
        "share_without",
        "number or null",
        "The part of what Kconfig made change with it; null: nothing, or not measured.",
    ),
)

# What the doc strings of the classes leave to the name of the field.
WORDS: Mapping[str, str] = {
    "SweepResult.name": "Of the sweep.",
    "SweepResult.board": "The virtual board of all cells; empty: a machine.",
    "SweepResult.seeds": "How many each cell has.",
    "SweepResult.cells": "The base first.",
    "SweepResult.checks": "Of runs that were computed twice.",
    "CellResult.name": "Its levels; those of the base: `base`.",
    "CellResult.directory": "Its name in `cells` of the sweep's directory.",
    "CellResult.runs": "How many have a result.",
    "CellResult.planned": "How many are to have one.",
    "WorstRun.key": "Of the run.",
    "WorstRun.worst_ns": "Its worst latency.",
    "WorstRun.seed": "Null on a machine.",
    "WorstRun.run": "Name of the run.",
    "WorstRun.result_digest": "As its record has it.",
    "WorstRun.known": "Of the cause.",
    "WorstRun.cause": "What took longest; empty: not known.",
    "CellEffect.cell": "Its name; of a main effect, that of the level.",
    "CellEffect.key": "Of the runs that are compared.",
    "CellEffect.figure": f"One of {', '.join(f'`{name}`' for name in FIGURES)}.",
    "CellEffect.changed": "The same of the cell.",
    "CellEffect.high": "See `low`.",
    "Checks.equal": "With equal results.",
    "Doubt.caveat": "A name from [the caveats](caveats.md).",
    "Doubt.message": "What it says.",
    "Doubt.runs": "How many have it.",
    "Diagnosis.load": "Whose worst wake-up it is.",
    "Diagnosis.kernel": "On which it ran.",
    "Diagnosis.worst_ns": "The worst latency.",
    "Ranking.kernels": "That the loads ran on.",
    "Ranking.loads": "With their ranks.",
    "RankedLoad.name": "A name from [the loads](loads.md).",
    "Standing.worst_ns": "The worst latency.",
    "Cause.title": "As an explanation has it.",
    "Cause.length_ns": "How long it took.",
    "KernelToBuild.name": "A name from [the kernels](kernels.md), or a file.",
    "KernelToBuild.config": "Lines of configuration that the cell adds.",
    "HostTime.seconds": "Of this machine.",
    "HostTime.runs": "How many earlier boots under the same loads tell.",
    "Outcome.kind": "What was searched.",
    "Outcome.figure": "What is worse.",
    "Outcome.load": "Under which it was measured.",
    "Outcome.margin": "Least difference of the medians, in the unit of the figure.",
    "Outcome.candidates": "How many changes there were.",
    "Outcome.bad": "See `good`.",
    "Outcome.after": "See `before`.",
    "Outcome.builds": "How many kernels were built.",
    "Outcome.boots": "How many boots were measured.",
    "Outcome.skipped": "Kernels that could not be tested.",
    "Side.name": "A commit, the number of a patch, or the digest of some settings.",
    "Side.values": "The figure by seed.",
    "Located.after": "The kernel with them.",
    "Tried.kernel_digest": "Identity of the kernel; empty: none was built.",
}


def json_page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield PAGE_HEAD
    yield from _section("rtscope sweep --json", SweepResult, (ANSWER,))
    yield from _classes(CellResult, Costs, WorstRun, CellEffect, Checks, Doubt)
    yield from ("", "## rtscope sweep remedies --json", "")
    yield "The keys of a sweep, and:"
    found = ("diagnoses", "list of: Diagnosis", "Causes, and what is tried.")
    yield from ("", *HEAD, _row(found))
    yield from _classes(Diagnosis)
    yield from _section("rtscope sweep survey --json", Ranking, SURVEYED)
    yield from _classes(RankedLoad, Standing, Cause)
    yield from ("", "## rtscope sweep --dry-run --json", "", *HEAD, *map(_row, PLAN))
    yield from ("", "### PlannedCell", "", *HEAD, *map(_row, PLANNED_CELL))
    yield from (*_classes(KernelToBuild, HostTime), *map(_row, BOARDS))
    yield from _section("rtscope bisect --json", Outcome, SEARCHED)
    yield from _classes(Side, Located, Change, Tried)


def _section(title: str, of: type, more: Rows) -> Iterator[str]:
    yield from ("", f"## {title}", "", _said(of), "", *HEAD)
    yield from (*map(_row, more), *_fields(of))


def _classes(*inner: type) -> Iterator[str]:
    for of in inner:
        yield from ("", f"### {of.__name__}", "", _said(of), "", *HEAD)
        yield from _fields(of)


def _said(of: type) -> str:
    return sentences(getdoc(of) or "").replace("None", "null")


def _row(one: tuple[str, str, str]) -> str:
    name, kind, said = one
    return row((f"`{name}`", kind, said))


def _fields(of: type) -> Iterator[str]:
    schema = TypeAdapter(of).json_schema(mode="serialization")
    enums = {
        f"#/$defs/{name}": one
        for name, one in schema.get("$defs", {}).items()
        if "enum" in one
    }
    # the words of an enumeration where its name stands
    fields = {
        name: enums.get(one.get("$ref"), one)
        for name, one in schema["properties"].items()
    }
    for line in field_rows(class_node(of), fields, WORDS, _unsaid):
        yield line.replace("None", "null").replace("False:", "`false`:")


def _unsaid(name: str, kind: str) -> str:
    raise SystemExit(f"tools/docs/jsonpage.py: {name} ({kind}) has no words after it")
