"""A search for a change, on the terminal: the change, figures, two explanations."""

from collections.abc import Iterable, Iterator, Sequence

from rtscope.host.errors import first_of
from rtscope.host.units import plural
from rtscope.present.document import Block, Column, Span, Table, table
from rtscope.verbs.bisect.criterion import format_value, format_without_unit, heading
from rtscope.verbs.bisect.outcome import WHOLE, Change, Kind, Outcome, Side

SHORT = 12
MOST_NAMED = 8
_LEAST = 0.005


def answer(outcome: Outcome) -> str:
    """Return what a search came to, in one line."""
    if outcome.located is None:
        return (
            "good and bad do not differ by more than the margin: "
            f"{outcome.figure} under {outcome.load}, in virtual time, is "
            f"{_value(outcome, outcome.good)} and {_value(outcome, outcome.bad)}, the "
            "margin "
            f"{format_value(outcome.margin, outcome.figure)}: nothing to search for"
        )
    changes = outcome.located.changes
    if outcome.kind is Kind.SETTING and not outcome.located.narrowed:
        return (
            f"{_names(outcome, changes)} make the difference, and a part of them may "
            "do so alone: kernels with a part were skipped"
        )
    if not outcome.located.narrowed:
        return (
            f"the change is one of {plural(len(changes), outcome.kind.value)}, which "
            f"cannot be told apart: {_names(outcome, changes)}"
        )
    if outcome.kind is Kind.SETTING:
        verb = "makes" if len(changes) == 1 else "together make"
        along = ", with what Kconfig changes with " if outcome.located.along else ""
        return (
            f"{_names(outcome, changes)} {verb} the difference"
            f"{along}{_it(changes) if along else ''}"
        )
    (change,) = changes
    return f"{_short(outcome, change)} is the first bad {outcome.kind}: {change.title}"


def lines(outcome: Outcome, *, all_of_it: bool = False) -> Iterator[Block]:
    """Return what the terminal shows of a search."""
    yield (answer(outcome), "strong")
    if outcome.located is not None:
        yield from _notes(outcome)
    yield ""
    yield (heading(outcome.figure, outcome.load, virtual=True), "strong")
    yield _table(outcome)
    yield from _explained(outcome)
    yield ""
    yield (
        f"{plural(outcome.candidates, outcome.kind.value)} searched: "
        f"{plural(outcome.builds, 'kernel')} built, {plural(outcome.boots, 'boot')}, "
        f"{len(outcome.skipped)} skipped"
    )
    skipped = outcome.skipped if all_of_it else outcome.skipped[:2]
    for tried in skipped:
        name = tried.name if outcome.kind is Kind.SETTING else tried.name[:SHORT]
        yield (f"skipped {name}: {tried.why}", "limit")


def _notes(outcome: Outcome) -> Iterator[Block]:
    assert outcome.located is not None
    changes, along = outcome.located.changes, outcome.located.along
    if along:
        yield f"Kconfig changes with {_it(changes)}: {_names(outcome, along)}."
    whole = "of the difference between good and bad"
    if outcome.without is not None:
        own = "itself it makes" if len(along) == 1 else "themselves these make"
        yield (
            f"By {own} {_part(outcome.share_without)} {whole}, all together "
            f"{_part(outcome.share)}."
        )
    elif outcome.located.narrowed and outcome.share < WHOLE:
        it = "It makes" if len((*changes, *along)) == 1 else "All together make"
        yield f"{it} {_part(outcome.share)} {whole}."
    if outcome.located.narrowed and outcome.share < WHOLE:
        rest = "Other changes make the rest: search again from this kernel, as --good."
        yield (rest, "limit")


def _table(outcome: Outcome) -> Table:
    seeds = sorted(outcome.good.values)
    sides: list[tuple[str, Side | None]] = [
        ("good", outcome.good),
        ("bad", outcome.bad),
    ]
    if outcome.located is not None:
        sides += [("before the change", outcome.before), ("after it", outcome.after)]
        sides += [("without it", outcome.without)]
    rows: list[list[Span]] = []
    for word, side in sides:
        if side is not None:
            values = [*(side.values[seed] for seed in seeds), side.typical]
            numbers = [format_without_unit(one, outcome.figure) for one in values]
            rows.append([f"{word} ({side.name})", *numbers])
    heads = (*(f"seed {seed}" for seed in seeds), "median")
    return table(("kernel",), heads, rows, fit="wraps")


def _explained(outcome: Outcome) -> Iterator[Block]:
    """Return the two explanations side by side."""
    before, after = outcome.before, outcome.after
    if before is None or after is None or not (before.explanation or after.explanation):
        return
    heads = ("worst wake-up before", "worst wake-up after")
    columns = tuple(Column(heading, fit="folds", share=1) for heading in heads)
    sides = (before.explanation, after.explanation)
    yield ""
    yield Table(columns, [[side or "not explained" for side in sides]])


def _it(changes: Sequence[Change]) -> str:
    return "it" if len(changes) == 1 else "them"


def _part(share: float) -> str:
    return "nothing" if share < _LEAST else f"{share:.0%}"


def _value(outcome: Outcome, side: Side) -> str:
    return format_value(side.typical, outcome.figure)


def _names(outcome: Outcome, changes: Iterable[Change]) -> str:
    names = [_short(outcome, change) for change in changes]
    return first_of(MOST_NAMED, names)


def _short(outcome: Outcome, change: Change) -> str:
    if outcome.kind is Kind.COMMIT:
        return change.name[:SHORT]
    return (
        f"{change.name} (was {change.title})"
        if outcome.kind is Kind.SETTING
        else (change.name)
    )
