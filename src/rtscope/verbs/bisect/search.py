"""One search from its ends to the change: good and bad, then what lies between."""

from collections.abc import Callable
from dataclasses import replace

from rtscope.host.errors import UsageError
from rtscope.verbs.bisect.criterion import Margin, is_reversed
from rtscope.verbs.bisect.figures import format_value
from rtscope.verbs.bisect.outcome import (
    Kind,
    Outcome,
    Side,
    ends_of,
    skipped_of,
)
from rtscope.verbs.bisect.subjects import Left, Subject
from rtscope.verbs.bisect.trials import Trials

Explain = Callable[[Side, Side], tuple[Side, Side]]
"""Adds the explanations of two kernels."""


def search(
    subject: Subject,
    trials: Trials,
    *,
    figure: str,
    load: str,
    margin: Margin,
    explain: Explain,
    progress: Left,
) -> Outcome:
    """
    Return the change that makes the difference between good and bad.

    Raises UsageError if good is the worse of the two, KernelError if one of them cannot
    be tested.
    """
    good = trials.required(subject.good, option="--good")
    bad = trials.required(subject.bad, option="--bad")
    one, two, threshold = ends_of(good, bad, margin)
    if is_reversed(threshold, figure):
        other = "swap them" if subject.kind is Kind.SETTING else "name other ends"
        raise UsageError(
            f"--good is bad already: its {figure} is "
            f"{format_value(threshold.first, figure)}, that of --bad "
            f"{format_value(threshold.second, figure)} (medians over seeds): "
            f"{other}, or another --figure"
        )
    located = before = after = without = None
    if threshold.differs:
        trials.threshold = threshold
        located = subject.locate(trials.verdict, progress)
        before, after = _side(located.before, trials), _side(located.after, trials)
        before, after = explain(before, after)
        without = _side(located.without, trials) if located.without else None
    steps = list(trials.journal.steps.values())
    return Outcome(
        kind=subject.kind,
        figure=figure,
        load=load,
        margin=threshold.margin,
        candidates=subject.candidates,
        good=replace(one, name=subject.title(one.name)),
        bad=replace(two, name=subject.title(two.name)),
        located=located,
        before=before and replace(before, name=subject.title(before.name)),
        after=after and replace(after, name=subject.title(after.name)),
        without=without and replace(without, name=subject.title(without.name)),
        builds=sum(step.built for step in steps),
        boots=sum(len(step.values) for step in steps if not step.like),
        skipped=tuple(
            replace(one, name=subject.title(one.name))
            if subject.kind is Kind.SETTING
            else one
            for one in skipped_of(steps)
        ),
    )


def _side(name: str, trials: Trials) -> Side:
    step = trials.measured(name)
    return Side(step.name, step.values)
