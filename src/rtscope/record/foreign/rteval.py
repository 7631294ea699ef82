"""
Read the summary.xml of rteval: the histogram of each core that its cyclictest measured.

Source: cyclictest.py of rteval 3.8, and outputs of 3.6 and 3.8. Its samples are those
in its buckets: rteval writes no statistics of a run whose longest latency is beyond the
histogram, except if it is exactly the number of buckets, and then some are not counted.
Its own timerlat adds latencies to the interrupt, the thread and user space in one
histogram, so it is refused.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from rtscope.host.units import NS_PER_US
from rtscope.record.foreign.model import UNKNOWN, ForeignRun, ForeignThread
from rtscope.record.foreign.rttests import MEASURES, Options
from rtscope.record.foreign.source import Source

NAME = "rteval-xml"

LINE = re.compile(r"\s*(?:<\?xml|</?[A-Za-z_]\w*[\s>/])")
NEEDS = "the element <rteval> near its begin"

MAX_CORES = 4096


def recognises(head: str) -> bool:
    """Whether this is a summary of rteval."""
    return bool(re.search(r"<rteval[\s>]", head[:4000]))


def read(source: Source, *, unit_ns: int | None = None) -> list[ForeignRun]:
    """Return the run of the file; RecordError if it is damaged."""
    text = source.document("<", "</rteval>")
    if re.search(r"<!(?:DOCTYPE|ENTITY)", text, re.I):
        raise source.damaged("it defines entities, which rteval does not")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise source.damaged(f"damaged: {str(error)[:100]}") from error
    measured = root.find(".//cyclictest")
    if measured is None and root.find(".//timerlat") is not None:
        raise source.damaged(
            "rteval measured with timerlat, of which it adds three latencies of each "
            "activation in one histogram: import the output of rtla itself"
        )
    if measured is None:
        raise source.damaged("no measurement of cyclictest in it")
    if measured.find("core") is None:
        raise source.damaged(
            "rteval left all numbers out, as it does if the longest latency is beyond "
            "its histogram (--cyclictest-buckets)"
        )
    command = (measured.get("command_line") or "")[:4000]
    options = Options(command)
    interval_us = options.number("i", "--interval") or 0
    rows = options.number("h", "--histogram") or 0
    threads = tuple(_threads(source, measured, interval_us * NS_PER_US, rows))
    said = {
        "hostname": root.findtext(".//uname/node"),
        "kernel_release": root.findtext(".//uname/kernel"),
    }
    return [
        ForeignRun(
            tool="rteval cyclictest",
            format=NAME,
            verified=True,
            measures=MEASURES["cyclictest"],
            version=(root.get("version") or "")[:40],
            threads=threads,
            command=command,
            arch=(root.findtext(".//uname/arch") or UNKNOWN)[:80],
            facts={name: text[:200] for name, text in said.items() if text},
        )
    ]


def _threads(
    source: Source, measured: ElementTree.Element, interval_ns: int, rows: int
) -> Iterator[ForeignThread]:
    for core in measured.findall("core")[:MAX_CORES]:
        kept: dict[int, int] = {}
        last = 0
        for bucket in core.iter("bucket"):
            index = _count(source, bucket.get("index"))
            last = max(last, index)
            if number := _count(source, bucket.get("value")):
                kept[index * NS_PER_US] = number
        said = core.find("statistics")
        numbers = {} if said is None else {one.tag: one.text for one in said}
        counted = sum(kept.values())
        samples = _count(source, numbers.get("samples"), counted)
        lowest, highest = (
            _count(source, numbers.get(name), value // NS_PER_US)
            for name, value in (
                ("minimum", min(kept, default=0)),
                ("maximum", max(kept, default=0)),
            )
        )
        yield ForeignThread(
            samples=samples,
            min_ns=lowest * NS_PER_US if samples else None,
            max_ns=highest * NS_PER_US if samples else None,
            mean_ns=_mean_ns(source, numbers.get("mean")),
            step_ns=NS_PER_US,
            end_ns=max(last + 1, rows) * NS_PER_US,
            buckets=dict(sorted(kept.items())),
            overflow=max(samples - counted, 0),
            cpu=min(_count(source, core.get("id")), 2**16 - 1),
            priority=_count(source, core.get("priority"), 0),
            interval_ns=interval_ns,
        )


def _mean_ns(source: Source, text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,12}(?:\.\d{1,20})?", text):
        raise source.damaged(f"{text[:40]!a} is no average")
    return round(float(text) * NS_PER_US)


def _count(source: Source, text: str | None, default: int | None = None) -> int:
    if text is None and default is not None:
        return default
    match = re.fullmatch(r"\s*(\d{1,15})(?:\.0*)?\s*", text or "")
    if match is None:
        raise source.damaged(f"{str(text)[:40]!a} is no count")
    return int(match[1])
