"""
Whether an explanation of a design is right.

* right: the kind is one of the truth's, and title and sentence have every word they
  must have; or nothing was late where nothing was to be
* half: one of both only, or the words stand in the evidence, or the sentence leaves
  more than half of the latency to its rest
* wrong: neither, or a wake-up was late that was not to be
* unknown: no dominant cause, or one called unknown
* not late: it was to be late, and was not: a fault of the design
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from culprits.strangers.boots import INTERVAL_NS
from culprits.strangers.truth import Design

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
    at_first: str = ""
    """The verdict by the truth as it was first written; "" where that is the same."""

    def as_row(self) -> dict[str, Any]:
        """Return it for a journal."""
        return asdict(self)


def judge(
    design: Design, document: Mapping[str, Any], window_ns: tuple[int, int]
) -> Judgement:
    """Judge the worst wake-up of a slot in a document of `rtscope explain --json`."""
    begin_ns, end_ns = window_ns
    kernel = document["kernel"]
    wakeups = [
        one
        for one in document["wakeups"]
        if begin_ns <= one["sequence"] * INTERVAL_NS < end_ns
    ]
    worst = max(wakeups, key=lambda one: one["latency_ns"], default=None)
    latency_us = worst["latency_ns"] / 1000 if worst else 0.0
    expected = design.expected(kernel)
    if worst is None or latency_us < design.late_us:
        verdict = "not late" if expected == "late" else "right"
        return Judgement(design.name, kernel, verdict, latency_us)
    title = _title(worst)
    verdict = _verdict_of(design, worst, title)
    at_first = _verdict_of(design.at_first(), worst, title)
    return Judgement(
        design.name,
        kernel,
        verdict if expected != "quiet" else "wrong",
        latency_us,
        title,
        worst["sentence"],
        at_first if at_first != verdict else "",
    )


def _title(worst: Mapping[str, Any]) -> str:
    one = _dominant(worst)
    if one is None:
        return "no dominant cause"
    task = f" ({one['task']})" if one["task"] else ""
    return f"{one['cause']}: {one['name']}{task}"


def _dominant(worst: Mapping[str, Any]) -> Mapping[str, Any] | None:
    index = worst["dominant_segment"]
    found: Mapping[str, Any] | None = (
        None if index is None else worst["segments"][index]
    )
    return found


def _verdict_of(design: Design, worst: Mapping[str, Any], title: str) -> str:
    one = _dominant(worst)
    if one is None or "unknown" in one["cause"]:
        return "unknown"
    latency_us = worst["latency_ns"] / 1000
    return _verdict(design, latency_us, f"{title}. {worst['sentence']}", one)


def _verdict(
    design: Design, latency_us: float, told: str, one: Mapping[str, Any]
) -> str:
    is_kind = one["cause"] in design.causes
    is_named = all(re.search(word, told) for word in design.must)
    if is_kind and is_named:
        return "half" if _rest_us(told) > latency_us / 2 else "right"
    evidence = " ".join((told, *one["evidence"]))
    in_evidence = all(re.search(word, evidence) for word in design.must)
    return "half" if is_kind or is_named or in_evidence else "wrong"


def _rest_us(told: str) -> float:
    rest = re.search(r"Rest \(([\d.,]+) µs\)", told)
    return float(rest[1].replace(",", "")) if rest else 0.0
