"""The traits of a machine that events do not show, from its facts. Pure."""

import re
from collections.abc import Mapping

from rtscope.explain.events.threadstates import MachineTraits
from rtscope.machine.facts import FactValue
from rtscope.machine.kernelidentity import turned_off
from rtscope.record.model import RunRecord

_RELEASE = re.compile(r"\b([2-9])\.([0-9]{1,3})(?=[.\-+\s]|$)")
_MODEL = re.compile(r"\bPREEMPT(?:_RT)?\b(?!_)|\b(?:server|desktop)\b", re.IGNORECASE)
"""PREEMPT_DYNAMIC does not tell: it was chosen when the kernel booted."""
_PREEMPTIBLE = {
    "PREEMPT_RT": True,
    "full": True,
    "lazy": True,  # a real-time thread preempts at once
    "voluntary": False,
    "none": False,
}


def machine_of(record: RunRecord) -> MachineTraits:
    """Return the traits of a run's machine that events do not show."""
    return traits_of(record.facts_before)


def traits_told(kernel: str) -> MachineTraits:
    """Return the traits of a kernel by `uname -a` or the head of a trace."""
    release = _RELEASE.search(kernel)
    model = _MODEL.search(kernel)
    return MachineTraits(
        preemptible=None if model is None else model[0].lower().startswith("preempt"),
        release=(int(release[1]), int(release[2])) if release else None,
    )


def traits_of(facts: Mapping[str, FactValue]) -> MachineTraits:
    """Return the traits of a machine that events do not show, from its facts."""
    known = {name: fact.value for name, fact in facts.items()}
    guest, words = known.get("guest"), str(known.get("kernel_cmdline"))
    numbers = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", str(known.get("kernel_release")))
    return MachineTraits(
        guest=guest if isinstance(guest, bool) else None,
        preemptible=_PREEMPTIBLE.get(str(known.get("preemption_model"))),
        release=(int(numbers[1]), int(numbers[2])) if numbers else None,
        high_resolution=False if turned_off(words, "highres") else None,
    )
