"""`rtscope history check`: is the newest result worse than those before?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.console import Json, put, put_json, stdout_console
from rtscope.cli.options import DisplayOptions
from rtscope.host.errors import UsageError
from rtscope.host.escape import all_printable, printable
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.host.units import parse_duration
from rtscope.present.document import Detail
from rtscope.present.render.terminal import print_blocks
from rtscope.present.words import capital
from rtscope.verbs.history import database
from rtscope.verbs.history.checktext import (
    Check,
    check_blocks,
    check_json,
    check_junit,
    sentence_of,
)
from rtscope.verbs.history.indexing import IndexFile
from rtscope.verbs.history.judge import Question, judge
from rtscope.verbs.history.query import filters_of
from rtscope.verbs.history.questions import Asked, baseline_of, questions
from rtscope.verbs.history.shifts import shifts_of
from rtscope.verbs.history.tags import result_dirs
from rtscope.verbs.history.timeline import timelines

MOST_NEW = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """The arguments and options of `rtscope history check`."""

    record: Annotated[list[Path] | None, typer.Argument(metavar="RECORD")] = None
    """Indexed results to check (default: the newest), e.g. nights/2026-11-28."""
    latest: Annotated[int | None, typer.Option(min=1, max=MOST_NEW)] = None
    """
    Newest nights of each series to check together (default: 4, of a virtual board 1),
    e.g. 1.
    """
    baseline: str = "last:20"
    """Nights to compare with: last:N or tag:NAME (default: last:20), e.g. tag:good."""
    deadline: str | None = None
    """Deadline that no new run may miss (default: that of its campaign), e.g. 200us."""
    machine: str | None = None
    """Only this machine, e.g. ssh:board; * stands for any characters."""
    load: str | None = None
    """Only these loads, e.g. idle,memory."""
    index: IndexFile = Path(database.NAME)
    """File of the index (default: history.db), e.g. lab.db."""
    junit: Path | None = None
    """JUnit XML to write, a case for each series, e.g. history.xml."""
    json: Json = False
    display: DisplayOptions


def check(request: CheckRequest) -> int:
    """
    Check whether the newest results are worse than those before.

    A night is one result directory. All series, of every machine and load, are one
    family: if nothing changed, at most 5 % of checks alarm at all. Beside it stands
    since when a series is on another level, as in history show. The exit status is 1
    if a series is worse or missed a deadline, and 4 if nothing could be compared.
    """
    if request.record and request.latest is not None:
        raise UsageError("--latest chooses the newest results: name none, or leave it")
    asked = Asked(
        latest=request.latest,
        directories=frozenset(
            str(one) for path in request.record or [] for one in result_dirs(path)
        ),
        baseline=baseline_of(request.baseline),
        deadline_ns=parse_duration(request.deadline) if request.deadline else None,
    )
    if request.junit is not None:
        refuse_unwritable(request.junit)
    filters = filters_of(machine=request.machine, load=request.load)
    with database.opened(request.index) as opened:
        found = questions(opened, filters, asked)
        lines, _ = timelines(opened, filters)
    _require(found, request)
    shifts = dict(zip((one.name for one in lines), shifts_of(lines), strict=True))
    answered = Check(judge(found), asked.baseline.words, shifts)
    if request.junit is not None:
        write_atomically(request.junit, check_junit(answered).encode())
    _print(answered, request)
    return answered.status


def _require(found: tuple[Question, ...], request: CheckRequest) -> None:
    if found:
        return
    if request.record:
        raise UsageError(
            f"{request.record[0]}: not in the index {request.index}; index it first: "
            f"rtscope history index {request.record[0]} --index {request.index}"
        )
    raise UsageError(
        f"{request.index}: no run to check; leave out --machine and --load, or index "
        "results: rtscope history index DIR"
    )


def _print(answered: Check, request: CheckRequest) -> None:
    detail = request.display.detail
    if request.json:
        put_json(check_json(answered))
    elif detail is Detail.QUIET:
        alarms = [sentence_of(one, answered.since(one)) for one in answered.alarms]
        lines = [capital(answered.sentence), *alarms]
        put("".join(f"{printable(line)}\n" for line in lines))
    else:
        blocks = check_blocks(answered, everything=detail is Detail.ALL)
        with stdout_console() as console:
            print_blocks(all_printable(tuple(blocks)), console)
