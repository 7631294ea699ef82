"""
Whether an explanation of a design is right.

* right: the kind is one of the truth's, and the sentence has every word it has to have;
  or nothing was late where nothing was to be
* half: one of both only, or the words stand in the evidence instead of the sentence
* wrong: neither, or a wake-up was late that was not to be
* unknown: no dominant cause, or one called unknown
* not late: it was to be late, and was not: a fault of the design
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from culprits.strangers.truth import INTERVAL_NS, Design

VERDICTS = ("right", "half", "wrong", "unknown", "not late")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an explanation says of a design on a kernel."""

    design: str
    kernel: str
    verdict: str
    latency_us: float
    title: str = ""
    sentence: str = ""

    def as_row(self) -> dict[str, Any]:
        """Return it for a journal."""
        return asdict(self)


def judge(design: Design, document: Mapping[str, Any]) -> Judgement:
    """Judge the worst wake-up of a document of `rtscope explain --json`."""
    kernel = document["kernel"]
    wakeups = [
        one
        for one in document["wakeups"]
        if one["sequence"] * INTERVAL_NS < design.until_ns
    ]
    worst = max(wakeups, key=lambda one: one["latency_ns"], default=None)
    latency_us = worst["latency_ns"] / 1000 if worst else 0.0
    expected = design.expected(kernel)
    if worst is None or latency_us < design.late_us:
        verdict = "not late" if expected == "late" else "right"
        return Judgement(design.name, kernel, verdict, latency_us)
    title, verdict = "no dominant cause", "unknown"
    if worst["dominant_segment"] is not None:
        one = worst["segments"][worst["dominant_segment"]]
        title = f"{one['cause']}: {one['name']}"
        if one["task"]:
            title += f" ({one['task']})"
        if "unknown" not in one["cause"]:
            verdict = _verdict(design, kernel, worst, one)
    if expected == "quiet":
        verdict = "wrong"
    return Judgement(design.name, kernel, verdict, latency_us, title, worst["sentence"])


def _verdict(
    design: Design, kernel: str, worst: Mapping[str, Any], one: Mapping[str, Any]
) -> str:
    is_kind = one["cause"] in design.causes_on(kernel)
    is_named = all(re.search(word, worst["sentence"]) for word in design.must)
    if is_kind and is_named:
        return "right"
    evidence = " ".join((worst["sentence"], *one["evidence"]))
    in_evidence = all(re.search(word, evidence) for word in design.must)
    return "half" if is_kind or is_named or in_evidence else "wrong"
