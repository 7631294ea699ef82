"""The worst runs of a sweep in words: their causes, and the commands that tell more."""

import shlex
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from rtscope.host.escape import printable
from rtscope.host.units import format_us
from rtscope.verbs.sweep.keys import Key
from rtscope.verbs.sweep.result import SweepResult
from rtscope.verbs.sweep.worstruns import Known, WorstRun

IN_WORDS: Mapping[Known, str] = {
    Known.NO_CAUSE: "no dominant cause",
    Known.WITHDRAWN: "explanation withdrawn: it contradicts the recording",
    Known.OTHER: "only another wake-up is explained",
    Known.NOT_EXPLAINED: "not explained yet",
    Known.NOT_RECORDED: "no path recorded",
}


def cause_of(run: WorstRun) -> str:
    """Return the dominant cause, or why none is named."""
    return IN_WORDS.get(run.known, run.cause)


def command_for(run: WorstRun) -> str:
    """Return the command that explains a run, typed in the directory of the sweep."""
    cell = run.directory.partition("/runs/")[0]
    return shlex.join(["rtscope", "explain", cell, "--run", run.run])


def recording_command_for(run: WorstRun) -> str:
    """Return the command that records the paths of a run, typed there too."""
    cell = run.directory.partition("/runs/")[0]
    return shlex.join(["rtscope", "board", "trace", cell, "--run", run.run, "--replay"])


def link_to(file: str) -> str:
    """Return the address of a file, from the page that lies beside `cells`."""
    return quote(file)


def unrecorded(result: SweepResult) -> WorstRun | None:
    """Return the worst run of the top effect, or of all, if no run has a path."""
    runs = result.worst_runs
    if any(run.known is not Known.NOT_RECORDED for run in runs.values()):
        return None
    top = result.top
    of_top = runs.get((top.cell, top.key)) if top else None
    return of_top or max(runs.values(), key=lambda run: run.worst_ns, default=None)


def sentences_on_causes(result: SweepResult) -> Iterator[str]:
    """Yield what made base and cell of the top effect late, or how to learn it."""
    top, runs = result.top, result.worst_runs
    if top is not None:
        both = {
            name: runs.get((name, top.key)) for name in (result.cells[0].name, top.cell)
        }
        causes = [
            f"of {printable(name)} {_in_words(run)}"
            for name, run in both.items()
            if run
        ]
        if any(run and run.explanation for run in both.values()):
            load = printable(result.label(top.key))
            yield f"Worst wake-up under {load} (virtual µs): {'; '.join(causes)}."
    if unrecorded(result) is not None:
        yield "No cause is known: no path was recorded; the page has commands for it."


def _in_words(run: WorstRun) -> str:
    worst = format_us(run.worst_ns)
    if run.known is Known.CAUSE:
        return f"{worst}, {format_us(run.cause_ns)} by {printable(run.cause)}"
    return f"{worst}, {cause_of(run)}"


def anchors_of(result: SweepResult) -> Mapping[tuple[str, Key], str]:
    """Return the name of the row of each worst run, by cell and key."""
    return {
        (cell.name, run.key): f"worst-{number}-{place}"
        for number, cell in enumerate(result.cells)
        for place, run in enumerate(cell.worst_runs)
    }
