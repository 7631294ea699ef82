"""
Read the trace of the kernel's tracers osnoise, hwlat and timerlat, as text.

Source: trace_osnoise.c, trace_hwlat.c and trace_output.c of Linux 6.12, and traces of
Debian's 6.12 with PREEMPT_RT. osnoise writes a line for each period of a CPU, with its
longest single noise; hwlat one for each window with a gap above its threshold; timerlat
the latency of each activation, to the interrupt and to the thread. The buffer keeps
the last lines only: what was before them is unknown.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rtscope.host.units import NS_PER_S, NS_PER_US
from rtscope.record.caveats.catalogue import Caveat, make
from rtscope.record.foreign.model import (
    MAX_BUCKETS,
    NO_END_NS,
    ForeignRun,
    ForeignThread,
    ForeignTimes,
    Longest,
)
from rtscope.record.foreign.source import Source

NAME = "kernel-tracer"

_HEAD = r"[ \t]*\S.{0,40}-\d{1,8}[ \t]+(?:\([ \d-]{1,12}\)[ \t]*)?\[(\d{1,5})\][ \t]+\S{3,8}[ \t]+(\d{1,12})\.(\d{6,9}):[ \t]*"

_OSNOISE = re.compile(
    _HEAD + r"(?P<runtime>\d{1,18})[ \t]+(?P<noise>\d{1,18})[ \t]+\d{1,3}\.\d{5}[ \t]+"
    r"(?P<single>\d{1,18})(?P<counts>(?:[ \t]+\d{1,10}){5})\s*$",
    re.MULTILINE,
)
_HWLAT = re.compile(
    _HEAD + r"#\d{1,10}[ \t]+inner/outer\(us\):[ \t]*(?P<inner>\d{1,18})/(?P<outer>\d{1,18})"
    r"[ \t]+ts:[ \t]*(?P<s>\d{1,12})\.(?P<ns>\d{1,9})(?:[ \t]+count:(?P<count>\d{1,10}))?",
    re.MULTILINE,
)
_TIMERLAT = re.compile(
    _HEAD + r"#(?P<id>\d{1,12})[ \t]+context[ \t]+(?P<context>irq|thread|user-ret)"
    r"[ \t]+timer_latency[ \t]+(?P<ns>\d{1,18}) ns",
    re.MULTILINE,
)
_ENTRIES = re.compile(r"#\s*entries-in-buffer/entries-written:\s*(\d{1,18})/(\d{1,18})")
_LOST = re.compile(r"CPU:\d{1,5} \[LOST (\d{1,18}) EVENTS\]")

LINE = re.compile(
    r"# tracer: (?:osnoise|hwlat|timerlat)\b|"
    + "|".join(f"(?:{one.pattern})" for one in (_OSNOISE, _HWLAT, _TIMERLAT))
    .replace("(?P<", "(?:(?#")
)
NEEDS = "a line of the tracer osnoise, hwlat or timerlat"
