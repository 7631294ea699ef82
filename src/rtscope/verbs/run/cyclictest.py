"""A command line of cyclictest, measured by rtscope, printed as cyclictest does."""

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.console import put, say
from rtscope.cli.options import DisplayOptions
from rtscope.cli.otherlines import (
    CYCLICTEST,
    OtherLine,
    Translation,
    read_line,
    translate,
)
from rtscope.cli.results import PAGE, model_of, question_in, write_page
from rtscope.host.errors import MeasurementError, UsageError
from rtscope.host.files import write_atomically
from rtscope.host.units import is_whole, plural
from rtscope.machine.target.address import Address, address_of
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.options import Options
from rtscope.present.formats import cyclictest as formats
from rtscope.record.caveats.catalogue import Effect
from rtscope.record.directory.records import ResultDir
from rtscope.record.model import RunRecord
from rtscope.verbs.run.run import RunRequest, carry_out

MAX_ROWS = 1_000_000
"""Of cyclictest: 1 s."""

_OWN = ("--out", "--target", "--load")
"""Options of rtscope that a line may have besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CyclictestRequest:
    """The command line of `rtscope cyclictest`."""

    words: Annotated[list[str] | None, typer.Argument(metavar="OPTION...")] = None
    """
    The options of cyclictest, e.g. -m -S -p 99 -i 200 -q -D 10m -H 200; and --out,
    --target and --load of rtscope run.
    """


@dataclass(frozen=True, slots=True)
class _Shape:
    """What is printed, and where."""

    rows: int | None
    """Of the histogram; None: no histogram."""
    summed: bool
    nanoseconds: bool
    json: Path | None
    histogram: Path | None
    """None: on standard output."""


def cyclictest(request: CyclictestRequest) -> int:
    """Measure by a command line of cyclictest, and print what cyclictest prints.

    The record is kept as that of rtscope run. An option that rtscope lacks is refused
    by name; a line says each difference in meaning.
    """
    own, words = _split(request.words or [])
    line = read_line(CYCLICTEST, words)
    if line.rest:
        raise UsageError(f"{line.rest[0]}: cyclictest takes options alone")
    shape = _shape(line)
    result = translate(line, online=_online(own))
    _refuse(result)
    for one in result.differs:
        say(f"differs from cyclictest: {one}")
    asked_of = {**result.options, **own}
    awake = asked_of.pop("hold-cpu-awake", None)
    out = asked_of.pop("out", None)
    options = Options(hold_cpu_awake=None if awake is None else True)
    options = replace(options, **asked_of)  # type: ignore[arg-type]
    asked = RunRequest(
        options=options,
        out=None if out is None else Path(out),
        display=DisplayOptions(),
    )
    command = shlex.join([CYCLICTEST, *words])

    def show(campaign: Campaign, store: ResultDir, so_far: bool) -> int:
        return _show(campaign, store, shape, command, so_far=so_far)

    return carry_out(asked, show)


def _split(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Separate what is rtscope's own."""
    own: dict[str, str] = {}
    rest: list[str] = []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        name, equals, value = word.partition("=")
        if name not in _OWN:
            rest.append(word)
        elif name[2:] in own:
            raise UsageError(f"{name} is given twice: leave one out")
        elif equals or queue:
            own[name[2:]] = value if equals else queue.pop(0)
        else:
            raise UsageError(f"{name} needs a value")
    if "," in own.get("load", ""):
        raise UsageError(
            f"--load {own['load']}: cyclictest prints one run; name one load"
        )
    return own, rest


def _online(own: dict[str, str]) -> list[int] | None:
    """Return the CPUs of this machine; None: another one is measured."""
    if address_of(own.get("target"), boards=True) == Address():
        return sorted(os.sched_getaffinity(0))
    return None


def _shape(line: OtherLine) -> _Shape:
    limit = line.value("-H") or line.value("-h")
    if limit is not None and not (is_whole(limit) and 0 < int(limit) <= MAX_ROWS):
        raise UsageError(f"a histogram of {limit} us: cyclictest takes 1 to {MAX_ROWS}")
    json, file = line.value("--json"), line.value("--histfile")
    if file and limit is None:
        raise UsageError("--histfile needs -h or -H with a number of microseconds")
    return _Shape(
        rows=None if limit is None else int(limit),
        summed=line.has("-H"),
        nanoseconds=line.has("-N"),
        json=Path(json) if json else None,
        histogram=Path(file) if file else None,
    )


def _refuse(result: Translation) -> None:
    if not result.refused:
        return
    listed = "".join(f"\n  {one}" for one in result.refused)
    raise UsageError(
        f"rtscope has nothing like this of cyclictest:{listed}\n"
        f"without it: {result.line}"
    )


def _show(
    campaign: Campaign, store: ResultDir, shape: _Shape, command: str, *, so_far: bool
) -> int:
    records = store.records()
    if not records:
        return 0
    (record,) = records
    model = model_of(records, question_in(campaign), paths=[store.path])
    page = store.path / PAGE
    write_page(model, page)
    if any(t.min_ns is None for t in record.result.threads):
        raise MeasurementError(
            f"a thread had no wake-up, which cyclictest cannot express: rtscope report "
            f"{shlex.quote(str(store.path))}"
        )
    _print(record, campaign, shape, command)
    for one in model.caveats:
        if one.effect is not Effect.NOTE:
            say(f"{one.label}: {one.says}")
    missed = sum(t.missed_periods or 0 for t in record.result.threads)
    if missed:
        say(f"{plural(missed, 'missed period')}, which cyclictest does not count")
    say(f"record: {shlex.quote(str(store.path))}; page: {page}")
    return model.exit_status


def _print(record: RunRecord, campaign: Campaign, shape: _Shape, command: str) -> None:
    threads = record.result.threads
    if shape.json is not None:
        text = formats.json_of(record, threads, command=command, rows=shape.rows)
        write_atomically(shape.json, text.encode())
    if campaign.hold_cpu_awake:
        put("# /dev/cpu_dma_latency set to 0us\n")
    if shape.rows is None:
        put(formats.table_text(record, nanoseconds=shape.nanoseconds))
        return
    text = formats.histogram_text(threads, rows=shape.rows, summed=shape.summed)
    if shape.histogram is not None:
        write_atomically(shape.histogram, text.encode())
    else:
        put(text)
