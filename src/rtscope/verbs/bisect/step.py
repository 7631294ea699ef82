"""
One step of a search on a machine: the ends first, then the verdict. Pure.

The unit is the run, never the sample. Each test is exact: it deals the labels of two
groups of runs in every way (see `rtscope.stats.comparison`). A kernel counts as bad if
its runs are worse than those of the good end and not better than those of the bad one,
and the other way round. So a kernel that has the distribution of an end is taken for
the other one with a chance of at most ALPHA: that takes a false difference from its own
end. A kernel between the two ends, and one that differs from neither, is like none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any

from rtscope.host.errors import MeasurementError, UsageError
from rtscope.host.units import format_number
from rtscope.stats.comparison.design import can_differ, least_runs
from rtscope.stats.comparison.effect import Effect, effect_of_groups
from rtscope.verbs.bisect.criterion import FIGURES, format_value, unit_of_values
from rtscope.verbs.bisect.machineruns import Sample, Samples
from rtscope.verbs.bisect.outcome import Verdict

# --- which end a kernel is like, by runs that a machine measured ----------------------

ALPHA = 0.01
"""Of each test, two-sided: a search makes one step after the other."""


class Why(StrEnum):
    """The reason of a verdict."""

    LIKE_BAD = "worse than the good end, and not better than the bad end"
    LIKE_GOOD = "better than the bad end, and not worse than the good end"
    BETWEEN = "between the two ends: worse than the good end, better than the bad end"
    UNDECIDED = "no evidence that it differs from the good end, nor from the bad end"
    TOO_FEW = "too few runs for a test at 1 %"


@dataclass(frozen=True, slots=True)
class Judged:
    """A kernel against the two ends."""

    verdict: Verdict
    why: Why
    from_good: Effect | None = None
    """None with too few runs."""
    from_bad: Effect | None = None


def difference(one: Sequence[float], other: Sequence[float], figure: str) -> Effect:
    """Test whether the runs of a group are worse or better than those of another."""
    kind = FIGURES[figure]
    first, second = (
        [math.log(max(value, kind.floor)) for value in group] for group in (one, other)
    )
    return effect_of_groups(
        first, second, figure=figure, alpha=ALPHA, more_is_better=kind.more_is_better
    )


def decides_steps(ends: Effect) -> bool:
    """
    Whether ends that are so far apart decide four steps of five.

    Ends that are shown to differ by luck alone are further apart in these runs than
    they are: then most kernels are skipped, and of each further step the chance adds up
    that it is wrong.
    """
    needed = ends.needed_runs(ends.times)
    return ends.is_worse and needed is not None and needed <= min(ends.runs)


def judge(
    good: Sequence[float], bad: Sequence[float], new: Sequence[float], *, figure: str
) -> Judged:
    """Return which end a kernel is like; the ends are known to differ."""
    if not all(can_differ(len(end), len(new), alpha=ALPHA) for end in (good, bad)):
        return Judged(Verdict.SKIPPED, Why.TOO_FEW)
    from_good, from_bad = (difference(end, new, figure) for end in (good, bad))
    verdict, why = _decide(worse=from_good.is_worse, better=from_bad.is_better)
    return Judged(verdict, why, from_good, from_bad)


def _decide(*, worse: bool, better: bool) -> tuple[Verdict, Why]:
    """Decide by what is shown: worse than the good end, better than the bad end."""
    if worse == better:
        return Verdict.SKIPPED, Why.BETWEEN if worse else Why.UNDECIDED
    if worse:
        return Verdict.BAD, Why.LIKE_BAD
    return Verdict.GOOD, Why.LIKE_GOOD


# --- one step of a search on a machine: the ends first, then the verdict --------------

SCHEMA = 1

STATUS = {Verdict.GOOD: 0, Verdict.BAD: 1, Verdict.SKIPPED: 125}
"""Exit status by verdict, as `git bisect run` reads it."""

WORDS = {Verdict.GOOD: "good", Verdict.BAD: "bad", Verdict.SKIPPED: "skip"}
"""The commands of `git bisect`."""


@dataclass(frozen=True, slots=True)
class Step:
    """The verdict on one kernel, with all that it follows from."""

    figure: str
    samples: Samples
    ends: Effect
    judged: Judged

    @property
    def needed_runs(self) -> int | None:
        """Runs of each kernel that decide with 80 %; None if nobody makes so many."""
        others = filter(None, (self.judged.from_good, self.judged.from_bad))
        widest = max((self.ends, *others), key=lambda one: one.spread)
        return widest.needed_runs(self.ends.times)


def judge_step(samples: Samples, figure: str) -> Step:
    """
    Return which end the new kernel is like.

    Raises UsageError if the ends are the wrong way round, MeasurementError if their
    runs do not show that they differ, and by enough to decide most steps.
    """
    good, bad, new = (one.values for one in (samples.good, samples.bad, samples.new))
    if not can_differ(len(good), len(bad), alpha=ALPHA):
        least = least_runs(ALPHA)
        raise MeasurementError(
            f"too few valid runs of the ends: {len(good)} of {samples.good.label} and "
            f"{len(bad)} of {samples.bad.label}, and a test at 1 % needs {least} of "
            f"each: measure both again, e.g. with --repetitions {2 * least}"
        )
    ends = difference(good, bad, figure)
    if ends.is_better:
        raise UsageError(
            f"{samples.good.label} is worse than {samples.bad.label}: "
            f"{_ends_in_words(samples, figure)}: swap them, or choose another --figure"
        )
    if not ends.is_worse:
        raise MeasurementError(_not_apart(samples, figure, ends))
    if not decides_steps(ends):
        raise MeasurementError(_too_near(samples, figure, ends))
    return Step(figure, samples, ends, judge(good, bad, new, figure=figure))


def _ends_in_words(samples: Samples, figure: str) -> str:
    one, two = (
        f"{format_value(median(end.values), figure)} of {len(end.values)} runs"
        for end in (samples.good, samples.bad)
    )
    return f"{figure} under {samples.load}, medians {one} and {two}"


def _not_apart(samples: Samples, figure: str, ends: Effect) -> str:
    needed = ends.needed_runs(ends.times)
    said = (
        f"no evidence at 1 % that {samples.bad.label} is worse than "
        f"{samples.good.label}: {_ends_in_words(samples, figure)}, "
        f"p = {format_number(ends.p, 2)}; "
    )
    if ends.detectable_ratio is None:
        said += "so many runs vary too much to find any difference"
    else:
        ratio = format_number(ends.detectable_ratio, 3)
        said += f"so many runs find one of {ratio} times with 80 % probability"
    if ends.statistic > 0 and needed is not None:
        said += (
            f", and {format_number(ends.times, 3)} times takes {needed} runs of each: "
            f"measure both with --repetitions {needed}"
        )
    return f"{said}; or choose another --figure or --load"


def _too_near(samples: Samples, figure: str, ends: Effect) -> str:
    needed = ends.needed_runs(ends.times)
    said = (
        f"{samples.bad.label} is worse than {samples.good.label}, and so little that "
        f"most kernels between them would be skipped: {_ends_in_words(samples, figure)}"
    )
    if needed is None:
        return f"{said}: choose another --figure or --load"
    return (
        f"{said}; {needed} runs of each decide four kernels of five: measure the ends "
        f"and each kernel with --repetitions {needed}"
    )


def effect_words(effect: Effect) -> str:
    """Return what a test has shown."""
    p = f"p = {format_number(effect.p, 2)}"
    if effect.found:
        word = "worse" if effect.is_worse else "better"
        return f"{word}, {format_number(effect.times, 3)} times ({p})"
    if effect.detectable_ratio is None:
        return f"no difference shown ({p})"
    could = f"{format_number(effect.detectable_ratio, 3)} times"
    return f"no difference shown ({p}); {could} would be found with 80 %"


def step_data(step: Step) -> dict[str, Any]:
    """Return a step for JSON."""
    return {
        "schema": SCHEMA,
        "verdict": WORDS[step.judged.verdict],
        "why": step.judged.why.value,
        "figure": step.figure,
        "unit": unit_of_values(step.figure),
        "alpha": ALPHA,
        "needed_runs": step.needed_runs,
        "load": step.samples.load,
        **{
            name: _sample_data(sample)
            for name, sample in (
                ("good", step.samples.good),
                ("bad", step.samples.bad),
                ("new", step.samples.new),
            )
        },
        "tests": {
            name: effect and _effect_data(effect)
            for name, effect in (
                ("ends", step.ends),
                ("from_good", step.judged.from_good),
                ("from_bad", step.judged.from_bad),
            )
        },
        "notes": list(step.samples.notes),
    }


def _effect_data(effect: Effect) -> dict[str, Any]:
    return {
        "statistic": effect.statistic,
        "p": effect.p,
        "critical": effect.critical,
        "spread": effect.spread,
        "ratio": effect.times,
        "runs": effect.runs,
    }


def _sample_data(sample: Sample) -> dict[str, Any]:
    values = list(sample.values)
    return {
        "values": values,
        "median": median(values) if values else None,
        "left_out": list(sample.left_out),
    }
