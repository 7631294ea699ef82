"""Test a program on virtual boards: exact times, judged by budgets."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from rtscope.boards.parts.aptroot import lock_text
from rtscope.cli.console import Json, note, put, put_json, stderr_console
from rtscope.cli.options import DisplayOptions
from rtscope.cli.progress import Waiting
from rtscope.host.errors import UsageError
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.host.units import NS_PER_S
from rtscope.measure.campaign.options import OUTPUT
from rtscope.present.document import Detail
from rtscope.verbs.test.file import ProgramTest, load_test, with_values
from rtscope.verbs.test.options import OPTION_OF, ProgramTestOptions
from rtscope.verbs.test.plan import boots_of, lock_of
from rtscope.verbs.test.running import Ran, run_boots
from rtscope.verbs.test.runs import run_row


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTestRequest:
    """The arguments of `rtscope test`."""

    program: Annotated[list[str], typer.Argument()]
    """Test file, or -- and a command to run on the board."""
    options: ProgramTestOptions
    display: DisplayOptions
    jobs: Annotated[int | None, typer.Option(min=1, rich_help_panel=OUTPUT)] = None
    """Boots at the same time (default: one for each CPU), e.g. 1."""
    save_lock: Annotated[Path | None, typer.Option(rich_help_panel=OUTPUT)] = None
    """Lock file to write with the exact packages used, e.g. test.lock."""
    json: Json = False


def test(request: ProgramTestRequest) -> int:
    """Test a program on virtual boards: exact times, judged by budgets.

    Nothing watches inside the board, so the times are those of the program alone. Equal
    inputs give equal times on every computer.
    """
    for file in filter(None, (request.save_lock,)):
        refuse_unwritable(file)
    asked = test_asked(request.program, request.options)
    with Waiting(stderr_console()) as waiting:
        boots = boots_of(asked, log=waiting.over(note), progress=waiting)
        if request.save_lock is not None:
            used = lock_text(lock_of(asked, boots))
            write_atomically(request.save_lock, used.encode())
        ran = list(run_boots(boots, jobs=request.jobs, progress=waiting))
    if request.json:
        put_json({"name": asked.title, "runs": [run_row(one) for one in ran]})
    else:
        put("".join(_lines(ran, request.display.detail)))
    return 0


def test_asked(words: Sequence[str], options: ProgramTestOptions) -> ProgramTest:
    """Return the test of a file or a command, with its options; UsageError."""
    given: Mapping[str, object] = options.given
    if "--" in sys.argv:
        test = ProgramTest()
        given = {**given, "program.command": list(words)}
    elif len(words) > 1:
        raise UsageError(
            f"{words[1]}: name one test file; before a command write --: rtscope test "
            f"-- {' '.join(words)}"
        )
    else:
        test = load_test(Path(words[0]))
    return with_values(test, given, OPTION_OF)


def _lines(ran: Sequence[Ran], detail: Detail) -> Iterator[str]:
    for one in ran:
        for start in one.run.starts:
            end = "ran until it was ended" if start.stopped else "ended by itself"
            lasted = f"{start.lasted_ns / NS_PER_S:.2f} virtual s"
            yield f"{one.run.identity.words}: {end} after {lasted}\n"
            if detail is Detail.ALL:
                yield start.stdout.text + start.stderr.text
