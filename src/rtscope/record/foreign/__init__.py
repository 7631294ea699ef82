"""
The formats of other tools: recognise one by its content, and read it.

Each module of a format has NAME, LINE (the begin of its lines), NEEDS, `recognises` (of
64 KiB) and `read`, which returns the runs of a file. The name of the file does not
matter. Text before each line is removed if more lines then are those of a format.

    model.py           what importers return; threads left out
    source.py          a foreign file, by lines, also broken ones
    unit.py            microseconds or nanoseconds: who says so, what denies it
    cyclictest.py      output of cyclictest
    rttests.py         JSON of cyclictest and other rt-tests
    rttexts.py         output of signaltest, cyclicdeadline, oslat and others
    rteval.py          summary.xml of rteval
    rtla.py            output of rtla: timerlat, osnoise, hwnoise
    tracers.py         traces of osnoise, hwlat and timerlat
    jitterdebugger.py  results.json of jitterdebugger
    jittertexts.py     output of jitterdebugger -v and jittersamples
    hwlatdetect.py     output of hwlatdetect
    xenomai.py         output of Xenomai's latency
    stressng.py        output of stress-ng --cyclic
    summaries.py       a table of extremes and averages
    column.py          latencies or time stamps in a table of any program
    table.py           its separators, headings, units and numbers
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import ModuleType

from rtscope.host.files.prefixes import prefix_of
from rtscope.record.caveats.catalogue import make
from rtscope.record.foreign import (
    column,
    cyclictest,
    hwlatdetect,
    jitterdebugger,
    jittertexts,
    rteval,
    rtla,
    rttests,
    rttexts,
    stressng,
    summaries,
    tracers,
    xenomai,
)
from rtscope.record.foreign.model import Asked, ForeignRun
from rtscope.record.foreign.source import ENDLESS, Source, unwrapped

_FORMATS: Sequence[ModuleType] = (
    *(jitterdebugger, jittertexts, rttests, rteval, rtla),
    *(tracers, stressng, xenomai, hwlatdetect, cyclictest, rttexts),
)
"""In the order in which they are tried: the more special ones first."""

_TABLES: Sequence[ModuleType] = (summaries, column)
"""Of any program: tried last, and by the begin of the file alone."""

_LINE = re.compile("|".join(f"(?:{module.LINE.pattern})" for module in _FORMATS))

_DOCUMENT = re.compile(
    r'^[ \t]*(?:\{\s*$|\{\s*"\w*version"|<\?xml|<rteval[\s>])', re.MULTILINE
)
"""Where JSON or XML begins in a log."""


def names() -> tuple[str, ...]:
    """Return the names of all formats."""
    return tuple(str(module.NAME) for module in (*_FORMATS, *_TABLES))


def format_of(source: Source) -> str:
    """Return the name of a file's format; empty if it is none of these."""
    module, _ = _found(source)
    return "" if module is None else str(module.NAME)


def read(
    source: Source, *, unit_ns: int | None = None, asked: Asked | None = None
) -> list[ForeignRun]:
    """
    Return the runs of a file; RecordError if it is of no format, or damaged.

    `asked` names columns, of a table only.
    """
    module, freed = _found(source)
    if module is column or (asked is not None and asked.is_table):
        return _with_told(column.read(source, unit_ns=unit_ns, asked=asked), source)
    if module is None:
        raise source.damaged(
            f"no format that rtscope knows ({', '.join(names())}){_nearest(source)}; "
            "import the output of the tool itself"
        )
    bounded = replace(freed, form=module.LINE)
    return _with_told(module.read(bounded, unit_ns=unit_ns), freed)


def _with_told(runs: list[ForeignRun], source: Source) -> list[ForeignRun]:
    """Add a caveat for what was undone to read the file."""
    if told := "; ".join(source.told):
        caveat = make("import_text_removed", told)
        runs = [replace(run, caveats=(*run.caveats, caveat)) for run in runs]
    return runs


def _found(source: Source) -> tuple[ModuleType | None, Source]:
    """Return the module of the format, and the source without its lines' prefix."""
    for lines in source.heads():
        prefix = prefix_of(lines, _match_line)
        freed = lines if prefix is None else prefix.freed(lines)
        for head in _beginnings("\n".join(unwrapped(iter(freed))) + "\n"):
            for module in _FORMATS:
                if module.recognises(head):
                    return module, replace(source, prefix=prefix)
    first = "\n".join(next(source.heads(), []))
    return next((one for one in _TABLES if one.recognises(first)), None), source


def _match_line(line: str) -> re.Match[str] | None:
    """Match a line of any format, also one of which a number is too long."""
    return _LINE.match(ENDLESS.sub("1", line))


def _beginnings(head: str) -> Iterator[str]:
    """Yield a head, then what of it begins with a document."""
    yield head
    if (match := _DOCUMENT.search(head)) and match.start():
        yield head[match.start() :]


def _nearest(source: Source) -> str:
    """Return which line looks like one of a format, for a refusal."""
    lines = next(source.heads(), [])
    prefix = prefix_of(lines, _match_line)
    for number, line in enumerate(lines, 1):
        text = line if prefix is None else prefix.removed_from(line)
        module = next((one for one in _FORMATS if one.LINE.match(text)), None)
        if module is not None:
            return (
                f"; line {number} ({text.strip()[:60]!a}) looks like {module.NAME}, "
                f"of which there must be {module.NEEDS}"
            )
    return ""
