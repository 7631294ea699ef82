"""
The fields of an event that was printed: by the kernel, or by trace-cmd's plugins. Pure.

Most events print `name=value`; trace-cmd prints those of the scheduler in its own way.
"""

import re
from collections.abc import Mapping

_PAIR = re.compile(r"(\w+)=(.*?)(?=,? \[?\w+=| ==> |\]?$)")
_SWITCH = re.compile(
    r"(?P<prev_comm>.*):(?P<prev_pid>\d+) \[(?P<prev_prio>-?\d+)\] "
    r"(?P<prev_state>\S+) ==> "
    r"(?P<next_comm>.*):(?P<next_pid>\d+) \[(?P<next_prio>-?\d+)\]"
)
_WAKEUP = re.compile(
    r"(?P<comm>.*):(?P<pid>\d+) \[(?P<prio>-?\d+)\](?: success=\d+)?"
    r"(?: CPU:(?P<target_cpu>\d+))?"
)
_TIMERLAT = re.compile(
    r"#(?P<seqnum>\d+)\s+context\s+(?P<context>\w+)\s+timer_latency\s+"
    r"(?P<timer_latency>\d+)\s*ns"
)
_DECIMAL = re.compile(r"-?[0-9]{1,19}")
_HEX = re.compile(r"0x[0-9a-f]{1,16}")
_CALLER = re.compile(r"\+0x[0-9a-f]+(/0x[0-9a-f]+)?$|/0x[0-9a-f]+$")
_FUNCTIONS = ("function", "func", "caller", "parent")
_STATES = {"0": "R", "1": "S", "2": "D", "4": "T", "8": "t"}
"""trace-cmd writes a state that it does not know as a number."""


def fields_of(name: str, body: str) -> Mapping[str, int | str]:
    """Return the fields that the text after an event's name tells."""
    if name == "timerlat":
        return _matched(_TIMERLAT, body)
    if name == "print":
        return {"buf": body.partition("tracing_mark_write: ")[2] or body}
    if name == "kernel_stack":
        return {"stack": _stack(body)}
    if name.startswith("ipi_") and body.startswith("("):
        return {"reason": body.strip("() ")}
    if name == "sched_switch" and "prev_pid=" not in body:
        return _matched(_SWITCH, body)
    if name.startswith("sched_wak") and "pid=" not in body:
        return _matched(_WAKEUP, body)
    found = {key: _value(text.strip()) for key, text in _PAIR.findall(body)}
    for key in _FUNCTIONS:
        if isinstance(found.get(key), str):
            found[key] = _CALLER.sub("", str(found[key]))
    return found


def _matched(pattern: re.Pattern[str], body: str) -> Mapping[str, int | str]:
    match = pattern.search(body)
    if match is None:
        return {}
    found = {
        key: _value(text) for key, text in match.groupdict().items() if text is not None
    }
    if "prev_state" in found:
        state = str(found["prev_state"])
        found["prev_state"] = _STATES.get(state, state)
    return found


def _value(text: str) -> int | str:
    if _DECIMAL.fullmatch(text):
        return int(text)
    return int(text, 16) if _HEX.fullmatch(text) else text


def _stack(body: str) -> str:
    """Return the functions of a stack, innermost first."""
    lines = (line.strip() for line in body.split("\n"))
    names = (line[2:].split() for line in lines if line.startswith("=>"))
    return " < ".join(_CALLER.sub("", words[0]) for words in names if words)
