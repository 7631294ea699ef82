"""
LTTng's events of the kernel, printed by babeltrace, as text of ftrace. Pure.

    [15:04:08.123456789] (+0.000000123) host sched_switch: { cpu_id = 0 }, { prev_comm…

LTTng does not write which task an event interrupts: it is the one that the last switch
of the CPU names. Its priorities count from -100.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rtscope.host.errors import RecordError

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
        if key == "prev_state" and value.isdigit():
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
