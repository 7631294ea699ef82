"""
Other text than ftrace's own, written anew as ftrace writes it. Pure.

perf script, LTTng through babeltrace, times in ticks of a clock, and any of these with
something before each line. What cannot be read is refused with its line and the reason.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rtscope.host.errors import RecordError
from rtscope.host.files.archive import packed_with, unpacked
from rtscope.host.files.plaintext import MAX_PLAIN_BYTES, plain_bytes
from rtscope.host.files.prefixes import without_prefix
from rtscope.host.units import is_whole

# --- LTTng's events, as babeltrace prints them --------------------------------------

#   [15:04:08.123456789] (+0.000000123) host sched_switch: { cpu_id = 0 }, { prev_comm…
#
# LTTng does not write which task an event interrupts: it is the one that the last
# switch of the CPU names. Its priorities count from -100.

LTTNG = re.compile(
    rb"^[ \t]*\[(?:\d{4}-\d\d-\d\d )?(?:(?P<h>\d\d):(?P<m>\d\d):)?(?P<s>\d{1,10})\."
    rb"(?P<ns>\d{9})\][ \t]+(?:\(\+?[^)]{1,24}\)[ \t]+)?(?:(?P<host>\S{1,64})[ \t]+)?"
    rb"(?P<name>[A-Za-z_]\w*):[ \t]+\{ [^\n]*?cpu_id = (?P<cpu>\d{1,5})"
    rb"(?P<rest>[^\n]*)",
    re.MULTILINE,
)
_FIELD = re.compile(
    r'(\w+) = (?:"((?:[^"\\]|\\.)*)"|\( "[^"]*" : container = (-?\d+) \)|([^,{} ]+))'
)
_DAY_S = 86_400
_PRIORITIES = frozenset({"prio", "prev_prio", "next_prio", "oldprio", "newprio"})
_PIDS: Mapping[str, str] = {
    "tid": "pid",
    "prev_tid": "prev_pid",
    "next_tid": "next_pid",
    "parent_tid": "pid",
    "child_tid": "child_pid",
}
_STATES = {0: "R", 1: "S", 2: "D", 4: "T", 8: "t", 16: "X", 32: "Z"}
_PREFIXES = ("timer_hrtimer_", "irq_softirq_", "irq_tasklet_")
UNKNOWN_PID = 2_147_483_647
"""Of a task that no switch of its CPU names; 0 would be idle."""


@dataclass(slots=True)
class _Line:
    at_ns: int
    cpu: int
    name: str
    fields: dict[str, str]


def from_babeltrace(content: bytes, *, name: str) -> bytes:
    """Return the events as lines of ftrace; RecordError if there is none."""
    lines = list(_lines(content))
    if not lines:
        raise RecordError(f"{name}: no event of LTTng in it")
    current: dict[int, str] = {}
    for line in reversed(lines):
        if line.name == "sched_switch":
            current[line.cpu] = _task(line.fields, "prev")
    return "\n".join(_written(line, current) for line in lines).encode()


def _lines(content: bytes) -> Iterator[_Line]:
    day, last_s = 0, 0
    for match in LTTNG.finditer(content):
        hours, minutes = int(match["h"] or 0), int(match["m"] or 0)
        seconds = 3600 * hours + 60 * minutes + int(match["s"])
        if match["h"] is not None:
            if seconds + _DAY_S // 2 < last_s:  # past midnight
                day += _DAY_S
            last_s = seconds
            seconds += day
        yield _Line(
            seconds * 1_000_000_000 + int(match["ns"]),
            int(match["cpu"]),
            _name(match["name"].decode()),
            _fields(match["rest"].decode("utf-8", "replace")),
        )


def _name(name: str) -> str:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.split("_", 1)[1]
    return name


def _fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for key, quoted, container, plain in _FIELD.findall(text):
        value = quoted or container or plain
        if key in _PRIORITIES and re.fullmatch(r"-?\d{1,6}", value):
            value = str(int(value) + 100)
        if key == "prev_state" and is_whole(value):
            value = _STATES.get(int(value) & 0xFF, "S")
        fields[_PIDS.get(key, key)] = value
    return fields


def _task(fields: Mapping[str, str], side: str) -> str:
    return f"{fields.get(f'{side}_comm', '<...>')}-{fields.get(f'{side}_pid', '0')}"


def _written(line: _Line, current: dict[int, str]) -> str:
    fields = line.fields
    task = current.get(line.cpu, f"<...>-{UNKNOWN_PID}")
    seconds, ns = divmod(line.at_ns, 1_000_000_000)
    if line.name == "sched_switch":
        current[line.cpu] = _task(fields, "next")
        sides = (
            " ".join(f"{key}={value}" for key, value in fields.items() if side in key)
            for side in ("prev_", "next_")
        )
        body = " ==> ".join(sides)
    else:
        body = " ".join(f"{key}={value}" for key, value in fields.items())
    return f"{task} [{line.cpu:03}] {seconds}.{ns:09}: {line.name}: {body}"


# --- which form a text has ----------------------------------------------------------

_SAMPLE_BYTES = 256 * 1024
_SAMPLE_LINES = 1_000
_SHOWN = 60
_TASK = rb"[ \t]*\S.{0,15}?-\d{1,10}[ \t]+(?:\([ \d-]{1,9}\)[ \t]+)?"
_CPU = rb"(?:\[\d{1,5}\]|\d{1,5}(?=[.dDbX?]))[ \t]*"
_FLAGS = rb"(?:[.dDbX?][^\s\d:]{2}[^\s:]{1,6}[ \t]+)?"
_FTRACE = re.compile(
    rb"^"
    + _TASK
    + _CPU
    + _FLAGS
    + rb"(?:\d{1,10}[.,]\d{1,9}|\d{1,12}us[ +!#*@$]*)[ \t]*:"
)
_PERF = re.compile(
    rb"^[ \t]*(?P<comm>\S.{0,15}?)[ \t]+(?:\d{1,10}/)?(?P<tid>-?\d{1,10})[ \t]+"
    rb"\[(?P<cpu>\d{1,5})\][ \t]+(?:[.dDbX?]\S{2,7}[ \t]+)?(?P<time>\d{1,10}\.\d{1,9}):"
    rb"[ \t]+(?:\d{1,20}[ \t]+)?(?:[a-z_][\w-]*:)?(?P<name>[A-Za-z_]\w*):",
    re.MULTILINE,
)
_TICKS = re.compile(
    rb"^(?P<head>"
    + _TASK
    + _CPU
    + _FLAGS
    + rb")(?P<ticks>\d{1,20})(?P<rest>:[ \t]+.*)$",
    re.MULTILINE,
)
_NOW = re.compile(rb":[ \t]+hrtimer_expire_entry:[^\n]*[ \t]now=(\d{1,19})")
_CLOCK = re.compile(
    rb"^#?[ \t]{0,8}(?:trace_)?clock: *(?P<name>[\w-]{1,20})", re.MULTILINE
)
_OF_NS = frozenset(
    {b"local", b"global", b"mono", b"mono_raw", b"boot", b"tai", b"perf", b"ns"}
)
_CONTEXT = re.compile(
    rb"^(?P<head>[ \t]*(?P<comm>\S.{0,15}?)-\d{1,10}[ \t][^\n]*?us[ +!#*@$]*:[ \t]+)"
    rb"(?P<pid>\d{1,10}):[ \t]*(?P<prio>-?\d{1,3}):(?P<state>[A-Za-z+|]{1,8})[ \t]+"
    rb"(?P<how>\+|==>)[ \t]+\[(?P<cpu>\d{1,5})\][ \t]+(?P<to>\d{1,10}):[ \t]*"
    rb"(?P<to_prio>-?\d{1,3}):[A-Za-z+|]{1,8}[ \t]*(?P<to_comm>[^\n]*?)[ \t]*$",
    re.MULTILINE,
)
"""Wake-ups and switches as the tracers of latencies write them."""
_GAPS = re.compile(rb"# tracer: (hwlat|osnoise)\n")
_GRAPH = re.compile(
    rb"^# tracer: function_graph|"
    rb"^[ \t]*(?:\d+\)|.{0,60}\|)[^\n|]*\|[ \t]+[\w. ]+\(\)[;{ ]",
    re.MULTILINE,
)
_MOST_OFF_NS = 100_000
"""A callback is as much later than its `now`, and no more."""


@dataclass(frozen=True, slots=True)
class Text:
    """A trace as text of ftrace, and in words how it had to be changed for that."""

    content: bytes | memoryview
    told: tuple[str, ...] = ()


def ftrace_text(data: memoryview, *, name: str) -> Text:
    """
    Return the text of a trace as ftrace writes it; the same data if it is that.

    Raises RecordError, with line and reason, for text that is no trace of events.
    """
    content, told = _plain(data, name=name)
    form = _form_of(_lines_of(content))
    if form == "":
        text, prefix = without_prefix(bytes(content).decode("utf-8", "replace"), _known)
        if prefix:
            content, told = text.encode(), (*told, prefix)
            form = _form_of(_lines_of(content))
    if form == "":
        raise RecordError(f"{name}: {_why_not(bytes(content[:_SAMPLE_BYTES]))}")
    gaps = _GAPS.match(bytes(content[:_SAMPLE_BYTES]))
    if gaps is not None and b"sched_switch" not in bytes(content[:_SAMPLE_BYTES]):
        tracer = gaps[1].decode()
        raise RecordError(
            f"{name}: line 1 is of the tracer {tracer}: it tells gaps of CPUs, and no "
            "thread that waits; record the events sched_switch and sched_waking, too"
        )
    if form == "ftrace" and b"latency trace v" in bytes(content[:_SAMPLE_BYTES]):
        content = _CONTEXT.sub(_as_event, bytes(content))
    if form == "ftrace":
        return Text(content, told)
    written, how = _WRITERS[form](bytes(content), name)
    return Text(written, (*told, how))


def unpacked_trace(data: memoryview, *, name: str) -> memoryview:
    """Return the content of a compressed file; RecordError if it is damaged."""
    if not packed_with(bytes(data[:16]), name=name):
        return data
    whole = unpacked([bytes(data)], name=name, limit=MAX_PLAIN_BYTES)
    return memoryview(b"".join(whole))


def _plain(
    data: memoryview, *, name: str
) -> tuple[bytes | memoryview, tuple[str, ...]]:
    """Undo encodings; of a big file that begins plain nothing is copied."""
    sample = bytes(data[:_SAMPLE_BYTES])
    if plain_bytes(sample, name=name).content is sample and len(data) > len(sample):
        return data, ()
    plain = plain_bytes(bytes(data), name=name)
    return plain.content, plain.told


def _lines_of(content: bytes | memoryview) -> list[bytes]:
    return bytes(content[:_SAMPLE_BYTES]).split(b"\n")


def _form_of(lines: Sequence[bytes]) -> str:
    """Return the form of most of the first lines; empty if none is known."""
    counts = dict.fromkeys(_FORMS, 0)
    events = [line for line in lines if line.strip() and not line.startswith(b"#")]
    for line in events[:_SAMPLE_LINES]:
        for form, pattern in _FORMS.items():
            if pattern.match(line):
                counts[form] += 1
                break
    best = max(counts, key=lambda form: counts[form])
    return best if counts[best] else ""


def _known(line: str) -> bool:
    return any(pattern.match(line.encode()) for pattern in _FORMS.values())


def _as_event(match: re.Match[bytes]) -> bytes:
    """Write a wake-up or a switch as its event."""
    head, to, to_prio = match["head"], match["to"], match["to_prio"]
    comm = match["to_comm"] or b"<...>"
    if match["how"] == b"+":
        told = (head, comm, to, to_prio, match["cpu"])
        return b"%ssched_waking: comm=%s pid=%s prio=%s target_cpu=%s" % told
    told = (head, match["comm"], match["pid"], match["prio"], match["state"])
    return (
        b"%ssched_switch: prev_comm=%s prev_pid=%s prev_prio=%s prev_state=%s ==> "
        % told
        + b"next_comm=%s next_pid=%s next_prio=%s" % (comm, to, to_prio)
    )


def _from_perf(content: bytes, _name: str) -> tuple[bytes, str]:
    written = _PERF.sub(rb"\g<comm>-\g<tid> [\g<cpu>] \g<time>: \g<name>:", content)
    return written.replace(b"\n:-1--1 ", b"\n<...>-0 "), "text of perf script"


def _from_lttng(content: bytes, name: str) -> tuple[bytes, str]:
    return from_babeltrace(content, name=name), "text of babeltrace, events of LTTng"


def _from_ticks(content: bytes, name: str) -> tuple[bytes, str]:
    """Write times in seconds, by the `now=` of timers or the name of the clock."""
    matches = list(_TICKS.finditer(content))
    pairs: dict[int, int] = {}
    for match in matches:
        now = _NOW.match(match["rest"])
        if now is not None:
            pairs.setdefault(int(now[1]), int(match["ticks"]))
    clock = _CLOCK.search(content)
    named = b"" if clock is None else clock["name"]
    if named in _OF_NS:
        per_ns, tick_0, ns_0 = 1.0, 0, 0
        how = f"times in ns without a point, of the clock {named.decode()}"
    else:
        line = content.count(b"\n", 0, matches[0].start()) + 1
        per_ns, tick_0, ns_0 = _calibrated(
            pairs, f"{name}: line {line}", named.decode()
        )
        how = (
            f"times in ticks of a clock: {per_ns:.4f} of them in a ns, by the now= of "
            f"{len(pairs)} timers"
        )

    def written(match: re.Match[bytes]) -> bytes:
        at_ns = ns_0 + round((int(match["ticks"]) - tick_0) / per_ns)
        seconds, ns = divmod(max(0, at_ns), 1_000_000_000)
        return b"%s%d.%09d%s" % (match["head"], seconds, ns, match["rest"])

    return _TICKS.sub(written, content), how


def _calibrated(
    pairs: Mapping[int, int], where: str, clock: str
) -> tuple[float, int, int]:
    """Return ticks of a ns, and a tick and the ns that belong together."""
    of = f" of the clock {clock}" if clock else ", as of the clocks x86-tsc and counter"
    refused = (
        f"{where}: its times have no point: they are ticks{of}, and nothing in the "
        "file says how long one takes; record with trace-cmd record -C mono, or with "
        "the event hrtimer_expire_entry"
    )
    nows = sorted(pairs)
    if len(nows) < 3 or nows[-1] - nows[0] < 1_000_000:
        raise RecordError(refused)
    first, last = nows[0], nows[-1]
    per_ns = (pairs[last] - pairs[first]) / (last - first)
    if per_ns <= 0:
        raise RecordError(refused)
    off = [abs((pairs[now] - pairs[first]) / per_ns - (now - first)) for now in nows]
    if max(off) > _MOST_OFF_NS:
        raise RecordError(
            f"{where}: its times have no point and do not go on as time does: they "
            f"count events, as the clock counter does; record with trace-cmd record -C "
            "mono"
        )
    return per_ns, pairs[first], first


def _why_not(sample: bytes) -> str:
    """Say which line is none of a trace, and what it lacks."""
    graph = _GRAPH.search(sample)
    if graph is not None:
        line = sample.count(b"\n", 0, graph.start()) + 1
        return (
            f"line {line} is of the tracer function_graph: durations of functions, "
            "and no task that waits; record the events sched_switch and sched_waking "
            "with the tracer nop"
        )
    lines = sample.decode("utf-8", "replace").split("\n")
    for number, whole in enumerate(lines, 1):
        text = whole.strip()
        if text and not text.startswith("#"):
            shown = text[:_SHOWN] + "…" * (len(text) > _SHOWN)
            return (
                "neither a trace.dat file nor text of ftrace, perf script or "
                f"babeltrace: line {number} ({shown!r}) has {_lacks(text)}"
            )
    return "neither a trace.dat file nor text of a trace: no event in it"


def _lacks(line: str) -> str:
    """Return the first thing of an event's line that this one has not."""
    if not re.search(r"\[\d{1,5}\]|-\d+ +\d+[.dDX]", line):
        return "no CPU in brackets (perf script: add -F +cpu)"
    if not re.search(r"\d[.,]\d{1,9} *:|\dus", line):
        return "no time before a colon"
    if not re.search(r"\S-\d+ ", line):
        return "no task with its number, as bash-1234"
    return "no event after its time"


_FORMS: Mapping[str, re.Pattern[bytes]] = {
    "ftrace": _FTRACE,
    "lttng": LTTNG,
    "perf": _PERF,
    "ticks": _TICKS,
}
_WRITERS: Mapping[str, Callable[[bytes, str], tuple[bytes, str]]] = {
    "lttng": _from_lttng,
    "perf": _from_perf,
    "ticks": _from_ticks,
}
