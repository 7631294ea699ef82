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

What `rtscope sweep`, `rtscope bisect`, `rtscope test` and a plan print with `--json`.
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
TESTED: Rows = (
    ("schema", "whole number", "Version of this format."),
    ("kind", "text", "`program`."),
    ("test", "text", "Name of the test file."),
    ("found", "`true` or `false`", "Whether the search ended with one commit."),
    ("candidates", "whole number", "How many commits there were."),
    ("tested", "whole number", "How many of them, and of the good end, were tested."),
    (
        "commits",
        "list of: TestedCommit",
        "The first bad one; several if those between could not be tested; empty: the "
        "bad end is not worse.",
    ),
    ("before", "text or null", "The last good commit."),
    (
        "answers",
        "table of: TestAnswer",
        "Of `good`, `bad`, `before` and `after`, the two commits beside the change.",
    ),
    (
        "differences",
        "list of: TestDifference",
        "Of the first bad commit from the one before; of each thread the first.",
    ),
    ("cause", "text or null", "Of its worst cycle."),
    ("skipped", "list of: SkippedCommit", "Commits that could not be tested."),
)
TESTED_COMMIT: Rows = (
    ("name", "text", "Its digest."),
    ("title", "text", "The subject of its message."),
    ("author", "text", "Name, address and day."),
)
SKIPPED_COMMIT: Rows = (
    ("name", "text", "Its digest."),
    ("why", "text", "Why it was skipped."),
)
TEST_ANSWER: Rows = (
    ("schema", "whole number", "Version of this format."),
    ("made_by", "text", "This rtscope."),
    ("name", "text", "Of the test."),
    ANSWER,
    ("exit_status", "whole number", "As the command ends with."),
    ("outcome", "one of `broken`, `not seen`, `kept`", "Of all budgets; the worst."),
    ("budgets", "list of: TestBudget", "Of each thread in each run."),
    ("baseline", "text or null", "The file that it was compared with."),
    ("differences", "list of: TestDifference", "From the baseline."),
    ("changed", "list of: text", "Inputs that are not as in the baseline."),
    (
        "cause",
        "text or null",
        "Of the worst cycle; null: not asked for, or not known.",
    ),
    (
        "functions",
        "list of: TestFunction",
        "What the worst cycle executed, most first; empty: as cause.",
    ),
    (
        "code",
        "TestCode or null",
        "What was executed of the program; null: with `--no-explain` or `--search`.",
    ),
    ("doubts", "list of: TestDoubt", "Why a load may not have run."),
    ("threads", "list of: TestThread", "Of each run."),
    ("runs", "list of: TestRun", "The boots."),
    (
        "search",
        "list of: TestSearch",
        "With `--search`, of each boot; all else is of the worst start.",
    ),
)
TEST_SEARCH: Rows = (
    ("thread", "text", "Whose worst response was searched."),
    ("first_ns", "whole number", "In the first start, as the test has it."),
    ("levers", "list of: TestLever", "What was varied."),
    ("trials", "list of: TestTrial", "All starts, in order."),
    ("growth", "list of: TestGrowth", "How the worst grew: the first, each worse one."),
    ("alone", "list of: TestAlone", "The worst, started again; the worst first."),
)
TEST_LEVER: Rows = (
    ("name", "text", "A parameter, or `phase` and the number of a thread; in µs."),
    ("low", "whole number", "Its lowest value."),
    ("high", "whole number", "Its highest value."),
    ("step", "whole number", "Between two values."),
)
TEST_TRIAL: Rows = (
    (
        "how",
        "one of `first`, `spread`, `meet`, `refine`",
        "Evenly spread, to let threads meet the worst cycle, or beside a bad start.",
    ),
    ("worst_ns", "whole number", "Its worst response; 0: no cycle was whole."),
    ("settings", "table of: whole number", "Values by the name of the lever."),
)
TEST_GROWTH: Rows = (
    ("trial", "whole number", "From 1."),
    ("worst_ns", "whole number", "Its worst response."),
)
TEST_ALONE: Rows = (
    ("trial", "whole number", "From 1."),
    ("in_search_ns", "whole number", "Its worst response among other starts."),
    ("worst_ns", "whole number", "Its worst response alone."),
    ("command", "text", "Repeats exactly it."),
)
TEST_BUDGET: Rows = (
    ("run", "text", "Board, kernel, load, seed and start."),
    ("thread", "text", "Its name, or the pattern that none has."),
    ("budget", "text", "A key of [the test file](test-file.md#budget)."),
    ("unit", "one of `ns`, `count`", "Of limit and value."),
    ("limit", "whole number", "What is allowed."),
    ("value", "whole number or null", "What was found; null: not seen."),
    ("outcome", "one of `broken`, `not seen`, `kept`", "What became of it."),
    ("why", "text", "Why it was not seen; empty: it was."),
    (
        "cycle",
        "whole number or null",
        "With the highest value; null: of no single one.",
    ),
    ("places", "list of: TestPlace", "Where it was, the most frequent first."),
)
TEST_PLACE: Rows = (
    (
        "what",
        "text",
        "A function of the allocator, a fault, a call.",
    ),
    ("times", "whole number", "How often."),
    ("function", "text", "The program's own, or what it called; empty: unknown."),
    ("file", "text", "Its source file; empty: unknown."),
    ("line", "whole number", "Its line; 0: unknown."),
    ("stack", "list of: text", "The callers, innermost first."),
    ("ends_early", "text or null", "Why the stack is not whole; null: it is."),
)
TEST_DIFFERENCE: Rows = (
    ("where", "text", "The run."),
    ("thread", "text", "Empty: of the whole run."),
    ("says", "text", "The first cycle that differs, and by what."),
    ("worse", "`true` or `false`", "Whether it counts with a tolerance."),
    (
        "cycle",
        "whole number or null",
        "The first; null: of no single one.",
    ),
    ("functions", "list of: FunctionGrowth or null", "Most first; null: not known."),
    ("functions_than", "text", "Compared with the `same` cycle, `any`, the `worst`."),
    ("calls", "list of: FunctionGrowth", "To the kernel: how often in a cycle."),
)
FUNCTION_GROWTH: Rows = (
    ("function", "text", "In brackets: not known."),
    ("file", "text", "Source or binary."),
    ("line", "whole number", "Where it grew; 0: unknown."),
    ("before", "whole number", "Own instructions then."),
    ("now", "whole number", "And now."),
)
TEST_DOUBT: Rows = (
    ("run", "text", "The run."),
    ("says", "text", "The doubt."),
)
TEST_THREAD: Rows = (
    ("run", "text", "The run."),
    ("thread", "text", "Its name."),
    ("tid", "whole number", "On the board."),
    ("priority", "text", "Of its real-time policy, `deadline` or `ordinary`."),
    ("cycles", "whole number", "Judged ones."),
    ("period_ns", "whole number or null", "null: it has none."),
    ("response_mean_ns", "number", "Average response."),
    ("lost_records", "whole number", "Then the last cycles are missing."),
    ("response", "whole number or null", "Worst one in ns."),
    ("latency", "whole number or null", "Worst wake-up latency in ns."),
    ("execution", "whole number or null", "Longest time on a CPU in a cycle, in ns."),
    ("instructions", "whole number or null", "Most own instructions in a cycle."),
    ("missed", "whole number or null", "Missed periods."),
    ("faults", "whole number or null", "Page faults in all cycles."),
    ("blocking", "whole number or null", "Waits within cycles."),
    ("inversions", "whole number or null", "Priority inversions."),
    ("allocations", "whole number or null", "Allocations of memory."),
    ("latency_parts", "LatencyParts", "Of the wake-ups with which its cycles began."),
    (
        "calls",
        "table of: CallCounts or null",
        "By the name of the system call; null: not seen.",
    ),
    ("worst", "WorstCycle", "The cycle with the worst response."),
)
CALL_COUNTS: Rows = (
    ("most", "whole number", "In one cycle."),
    ("all", "whole number", "In all cycles."),
)
TEST_FUNCTION: Rows = (
    ("function", "text", "Its name; `(unknown)`: it has none."),
    ("file", "text", "Its source or binary; `kernel`: of the kernel."),
    ("instructions", "whole number", "Its own, without those of what it calls."),
)
TEST_CODE: Rows = (
    ("threads", "list of: ThreadCode", "Of each judged thread in each run."),
    ("files", "list of: CodeFile", "The program's own file, of each board."),
)
THREAD_CODE: Rows = (
    ("run", "text", "The run."),
    ("thread", "text", "Its name."),
    ("tid", "whole number", "On the board."),
    ("cycles_left_out", "whole number", "Cycles whose code is not known."),
    ("functions", "list of: CodeUse", "The program's, most instructions first."),
)
CODE_USE: Rows = (
    ("function", "text", "Its name; `(unknown)`: it has none."),
    ("file", "text", "Its source or binary."),
    ("instructions", "whole number", "Its own, in the cycle in which it has most."),
    ("cycle", "whole number", "That cycle."),
    ("cycles", "whole number", "In how many it was executed."),
)
CODE_FILE: Rows = (
    ("board", "text", "The virtual board."),
    ("file", "text", "Its name; empty: unknown."),
    ("functions", "whole number or null", "How many it has of its own; null: unknown."),
    ("never", "list of: text", "Those that no thread entered."),
    ("other_threads", "list of: text", "Those that no judged thread entered."),
    ("why_unknown", "text", "Empty: all is known."),
)
LATENCY_PARTS: Rows = (
    (
        "interrupt",
        "PartTimes or null",
        "From when the timer was due to where it wakes the thread; null: no timer did.",
    ),
    ("scheduler", "PartTimes or null", "From there to where it has its CPU."),
    ("return", "PartTimes or null", "From there to its first own instruction."),
    (
        "unknown",
        "whole number",
        "Cycles that began late, without a sleep, or on two CPUs.",
    ),
)
PART_TIMES: Rows = (
    ("count", "whole number", "Wake-ups."),
    ("min_ns", "whole number", "Virtual time, as all of them."),
    ("mean_ns", "number", "Average."),
    ("p99_ns", "whole number or null", "null: too few wake-ups."),
    ("max_ns", "whole number", "The longest."),
)
WORST_CYCLE: Rows = (
    ("cycle", "whole number", "From 0 on."),
    ("begin_ns", "whole number", "Virtual time since the board was switched on."),
    ("says", "text", "What took its time."),
)
TEST_RUN: Rows = (
    ("load", "text", "Beside the program."),
    ("virtual", "Identity", "The board, as in [a record](record.md)."),
    ("inputs_digest", "text", "Of all that decides the result."),
    ("caveats", "list of: RunCaveat", "What casts doubt on the load."),
    ("starts", "list of: TestStart", "Of the program."),
)
TEST_START: Rows = (
    ("number", "whole number", "From 1 on."),
    ("stopped", "`true` or `false`", "Whether it ran until it was ended."),
    ("status", "whole number or null", "Its exit status; null: ended by a signal."),
    ("signal", "whole number or null", "That signal."),
    ("lasted_ns", "whole number", "Virtual time, to a hundredth of a second."),
    ("stdout", "TestOutput", "Standard output."),
    ("stderr", "TestOutput", "Standard error."),
)
TEST_OUTPUT: Rows = (
    ("text", "text", "Its begin and end."),
    ("bytes", "whole number", "Of all of it."),
    ("cut_bytes", "whole number", "Between begin and end, not kept."),
    ("refused", "`true` or `false`", "Whether it filled its room."),
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

OF_TESTS: Mapping[str, Rows] = {
    "TestAnswer": TEST_ANSWER,
    "TestBudget": TEST_BUDGET,
    "TestPlace": TEST_PLACE,
    "TestDifference": TEST_DIFFERENCE,
    "FunctionGrowth": FUNCTION_GROWTH,
    "TestDoubt": TEST_DOUBT,
    "TestThread": TEST_THREAD,
    "CallCounts": CALL_COUNTS,
    "TestFunction": TEST_FUNCTION,
    "TestCode": TEST_CODE,
    "ThreadCode": THREAD_CODE,
    "CodeUse": CODE_USE,
    "CodeFile": CODE_FILE,
    "LatencyParts": LATENCY_PARTS,
    "PartTimes": PART_TIMES,
    "WorstCycle": WORST_CYCLE,
    "TestRun": TEST_RUN,
    "TestStart": TEST_START,
    "TestOutput": TEST_OUTPUT,
    "TestSearch": TEST_SEARCH,
    "TestLever": TEST_LEVER,
    "TestTrial": TEST_TRIAL,
    "TestGrowth": TEST_GROWTH,
    "TestAlone": TEST_ALONE,
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
    yield from ("", "## rtscope bisect --test --json", "", *HEAD, *map(_row, TESTED))
    yield from ("", "### TestedCommit", "", *HEAD, *map(_row, TESTED_COMMIT))
    yield from ("", "### SkippedCommit", "", *HEAD, *map(_row, SKIPPED_COMMIT))
    yield from ("", "## rtscope test --json", "", "A TestAnswer.")
    for name, rows in OF_TESTS.items():
        yield from ("", f"### {name}", "", *HEAD, *map(_row, rows))


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
