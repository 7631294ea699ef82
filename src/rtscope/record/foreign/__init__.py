"""
The formats of other tools: recognise one by its content, and read it.

Each module of a format has NAME, `recognises` (of the first 64 KiB) and `read`, which
returns the runs of a file. The name of the file does not matter.

    model.py           a run of another tool: its numbers and doubts
    source.py          a foreign file, by lines or as a whole
    cyclictest.py      output of cyclictest
    rttests.py         JSON of cyclictest and other rt-tests
    rttexts.py         output of signaltest, cyclicdeadline, oslat and others
    rteval.py          summary.xml of rteval
    rtla.py            output of rtla: timerlat, osnoise, hwnoise
    jitterdebugger.py  results.json of jitterdebugger
    hwlatdetect.py     output of hwlatdetect
    xenomai.py         output of Xenomai's latency
"""

from collections.abc import Sequence
from types import ModuleType

from rtscope.record.foreign import (
    cyclictest,
    hwlatdetect,
    jitterdebugger,
    rteval,
    rtla,
    rttests,
    rttexts,
    xenomai,
)
from rtscope.record.foreign.model import ForeignRun
from rtscope.record.foreign.source import Source

_FORMATS: Sequence[ModuleType] = (
    *(jitterdebugger, rttests, rteval, rtla, xenomai, hwlatdetect, cyclictest, rttexts),
)
"""In the order in which they are tried: the more special ones first."""


def names() -> tuple[str, ...]:
    """Return the names of all formats."""
    return tuple(str(module.NAME) for module in _FORMATS)


def format_of(source: Source) -> str:
    """Return the name of a file's format; empty if it is none of these."""
    module = _module_of(source)
    return "" if module is None else str(module.NAME)


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return the runs of a file; RecordError if it is of no format, or damaged."""
    module = _module_of(source)
    if module is None:
        raise source.damaged(
            f"no format that rtscope knows ({', '.join(names())}); import the output "
            "of the tool itself"
        )
    runs: list[ForeignRun] = module.read(source, unit_ns=unit_ns)
    return runs


def _module_of(source: Source) -> ModuleType | None:
    head = source.head
    return next((one for one in _FORMATS if one.recognises(head)), None)
