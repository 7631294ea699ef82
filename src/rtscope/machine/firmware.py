"""
What the firmware of a Raspberry Pi says, which no file does: `vcgencmd` is asked.

Before and after a run alone: a program that starts each second would be measured too.
"""

import re
from collections.abc import Mapping

from rtscope.host.errors import TargetError
from rtscope.machine.facts import FactValue
from rtscope.machine.target import Target

GPU = "gpu_temperature"
QUESTION = ("vcgencmd", "measure_temp")

_ANSWER = re.compile(r"temp=(-?\d{1,3}(?:\.\d{1,3})?)'C")


def with_firmware(
    target: Target, facts: Mapping[str, FactValue]
) -> Mapping[str, FactValue]:
    """Return the facts with what the firmware of a Raspberry Pi adds to them."""
    model = facts["machine_model"].value
    if not str(model).startswith("Raspberry Pi"):
        return facts
    return {**facts, GPU: _temperature(target)}


def _temperature(target: Target) -> FactValue:
    source = " ".join(QUESTION)
    try:
        line = target.first_line(QUESTION)
    except TargetError as error:
        return FactValue(value=None, source=source, reason=str(error)[:200])
    if line is None:
        return FactValue(value=None, source=source, reason="vcgencmd is not installed")
    match = _ANSWER.fullmatch(line)
    if match is None:
        reason = f"it answered {line[:80]!a}" if line else "it did not answer"
        return FactValue(value=None, source=source, reason=reason)
    return FactValue(value=f"{float(match[1]):.1f} °C", source=source)
