"""
Explain many runs that are already measured, one after the other.

Each explanation is written beside its record before the next run begins: Ctrl-C costs
the one that is being made.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rtscope.boards.parts.cache import cache_dir
from rtscope.cli.console import log, note, stderr_console
from rtscope.cli.progress import Waiting
from rtscope.host.errors import RecordError, RtscopeError
from rtscope.host.files import is_disk_full
from rtscope.host.process import Progress, Step
from rtscope.host.units import plural

if TYPE_CHECKING:
    from rtscope.explain.directory import Explained

Keep = Callable[[Path, str, "Explained"], None]
"""Takes the directory of a campaign, a run, and what explains it."""


def explain_each(runs: Iterable[tuple[Path, str]], *, keep: Keep | None = None) -> None:
    """
    Explain runs, each by the directory of its campaign; log those that fail.

    Raises RecordError if `keep` finds the disk full: no other run would fare better.

    On a terminal a bar counts them, elsewhere a line every half minute.
    """
    chosen = list(runs)
    if not chosen:
        return
    # Symbols and paths take memory and time to load.
    from rtscope.explain.directory import explained_runs

    note(f"explaining the worst wake-ups of {plural(len(chosen), 'run')}")
    said: set[str] = set()

    def once(text: str) -> None:
        if text not in said:
            said.add(text)
            log(text)

    with Waiting(stderr_console()) as waiting:
        for number, (path, run) in enumerate(chosen, 1):
            try:
                explained = explained_runs(
                    path,
                    run,
                    worst=0 if keep is None else 1,
                    bound=False,
                    cache=cache_dir(),
                    log=waiting.over(once),
                    progress=_counting(waiting, f"{number} of {len(chosen)}"),
                )
                if keep is not None:
                    keep(path, run, explained)
            except RtscopeError as error:
                is_record = keep is not None and isinstance(error, RecordError)
                if is_record and is_disk_full(error):
                    raise
                waiting.over(once)(f"{path.name}: {error}")


def _counting(progress: Progress, place: str) -> Progress:
    def report(step: Step) -> None:
        progress(replace(step, what=f"{place}: {step.what}"))

    return report
