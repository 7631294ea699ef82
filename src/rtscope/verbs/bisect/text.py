"""A search for a change, on the terminal: the change, figures, two explanations."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rtscope.host.errors import first_of
from rtscope.host.units import plural
from rtscope.verbs.bisect.figures import format_value, format_without_unit, heading
from rtscope.verbs.bisect.outcome import WHOLE, Change, Kind, Outcome, Side

SHORT = 12
MOST_NAMED = 8
_LEAST = 0.005


def answer(found: Outcome) -> str:
    """Return what a search came to, in one line."""
    if found.located is None:
        return (
            f"good and bad do not differ by more than the margin: {found.figure} under "
            f"{found.load}, in virtual time, is {_value(found, found.good)} and "
            f"{_value(found, found.bad)}, the margin "
            f"{format_value(found.margin, found.figure)}: nothing to search for"
        )
    changes = found.located.changes
    if found.kind is Kind.SETTING and not found.located.narrowed:
        return (
            f"{_names(found, changes)} make the difference, and a part of them may do "
            "so alone: kernels with a part were skipped"
        )
    if not found.located.narrowed:
        return (
            f"the change is one of {plural(len(changes), found.kind.value)}, which "
            f"cannot be told apart: {_names(found, changes)}"
        )
    if found.kind is Kind.SETTING:
        verb = "makes" if len(changes) == 1 else "together make"
        along = ", with what Kconfig changes with " if found.located.along else ""
        return (
            f"{_names(found, changes)} {verb} the difference"
            f"{along}{_it(changes) if along else ''}"
        )
    (change,) = changes
    return f"{_short(found, change)} is the first bad {found.kind}: {change.title}"


def lines(found: Outcome, *, all_of_it: bool = False) -> Iterator[RenderableType]:
    """Return what the terminal shows of a search."""
    yield Text(answer(found), style="bold")
    if found.located is not None:
        yield from _notes(found)
    yield ""
    yield Text(heading(found.figure, found.load, virtual=True), style="bold")
    yield _table(found)
    yield from _explained(found)
    yield ""
    yield Text(
        f"{plural(found.candidates, found.kind.value)} searched: "
        f"{plural(found.builds, 'kernel')} built, {plural(found.boots, 'boot')}, "
        f"{len(found.skipped)} skipped"
    )
    shown = found.skipped if all_of_it else found.skipped[:2]
    for tried in shown:
        name = tried.name if found.kind is Kind.SETTING else tried.name[:SHORT]
        yield Text(f"skipped {name}: {tried.why}", style="yellow")


def _notes(found: Outcome) -> Iterator[Text]:
    assert found.located is not None
    changes, along = found.located.changes, found.located.along
    if along:
        yield Text(f"Kconfig changes with {_it(changes)}: {_names(found, along)}.")
    whole = "of the difference between good and bad"
    if found.without is not None:
        own = "itself it makes" if len(along) == 1 else "themselves these make"
        yield Text(
            f"By {own} {_part(found.share_without)} {whole}, all together "
            f"{_part(found.share)}."
        )
    elif found.located.narrowed and found.share < WHOLE:
        it = "It makes" if len((*changes, *along)) == 1 else "All together make"
        yield Text(f"{it} {_part(found.share)} {whole}.")
    if found.located.narrowed and found.share < WHOLE:
        yield Text(
            "Other changes make the rest: search again from this kernel, as --good.",
            style="yellow",
        )


def _table(found: Outcome) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("kernel")
    seeds = sorted(found.good.values)
    for seed in seeds:
        table.add_column(f"seed {seed}", justify="right")
    table.add_column("median", justify="right")
    rows: list[tuple[str, Side | None]] = [("good", found.good), ("bad", found.bad)]
    if found.located is not None:
        rows += [("before the change", found.before), ("after it", found.after)]
        rows += [("without it", found.without)]
    for word, side in rows:
        if side is not None:
            values = [*(side.values[seed] for seed in seeds), side.typical]
            numbers = [format_without_unit(one, found.figure) for one in values]
            table.add_row(f"{word} ({side.name})", *numbers)
    return table


def _explained(found: Outcome) -> Iterator[RenderableType]:
    """Return the two explanations side by side."""
    before, after = found.before, found.after
    if before is None or after is None or not (before.explanation or after.explanation):
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("worst wake-up before", ratio=1, overflow="fold")
    table.add_column("worst wake-up after", ratio=1, overflow="fold")
    table.add_row(
        Text(before.explanation or "not explained"),
        Text(after.explanation or "not explained"),
    )
    yield ""
    yield table


def _it(changes: Sequence[Change]) -> str:
    return "it" if len(changes) == 1 else "them"


def _part(share: float) -> str:
    return "nothing" if share < _LEAST else f"{share:.0%}"


def _value(found: Outcome, side: Side) -> str:
    return format_value(side.typical, found.figure)


def _names(found: Outcome, changes: Iterable[Change]) -> str:
    names = [_short(found, change) for change in changes]
    return first_of(MOST_NAMED, names)


def _short(found: Outcome, change: Change) -> str:
    if found.kind is Kind.COMMIT:
        return change.name[:SHORT]
    return (
        f"{change.name} (was {change.title})"
        if found.kind is Kind.SETTING
        else (change.name)
    )
