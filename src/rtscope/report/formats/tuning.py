"""What is to be changed on a machine, what was, and what was put back."""

import json
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rtscope.audit.catalogue import catalogue
from rtscope.audit.model import Check
from rtscope.contract import Refused
from rtscope.report.escape import printable
from rtscope.tuning.outcome import PutBack, Tuning
from rtscope.tuning.remedies import Plan, Wish

PLACES_SHOWN = 4


def print_plan(plan: Plan, console: Console) -> None:
    """Show what would be written, and of which checks nothing is."""
    if plan.wishes:
        console.print(Text("To be changed, and put back by --restore:", style="bold"))
        console.print(_table(plan.wishes))
        for name in dict.fromkeys(wish.check for wish in plan.wishes):
            if risk := catalogue()[name].risk:
                console.print(Text(f"{name} costs: {risk}", style="yellow"))
    for name, says in plan.good.items():
        console.print(
            Text(printable(f"{name}: nothing to do, {says}"), style="dim"),
            soft_wrap=True,
        )
    for name, why in plan.impossible.items():
        console.print(_not_done(name, why), soft_wrap=True)


def print_tuning(
    tuning: Tuning, console: Console, *, after: Iterable[Check] = ()
) -> None:
    """Show what was changed and what was refused, and how its checks come out now."""
    for line in tuning.left_by_others:
        says = f"put back what a killed run had left: {line.knob} to {line.value}"
        console.print(Text(printable(says)), soft_wrap=True)
    changed = [done.wish for done in tuning.done if done.changed]
    console.print(Text(f"changed and read back: {_files(len(changed))}"))
    for refused in tuning.refused:
        why = f"{refused.wish.path}: {refused.reason} ({refused.cause})"
        console.print(_not_done(refused.wish.check, why), soft_wrap=True)
    for check in after:
        says = f"{check.kind.id}: now {check.outcome.value}: {check.says}"
        style = "bold red" if check.failed else "green"
        console.print(Text(printable(says), style=style), soft_wrap=True)


def restored_lines(lines: Sequence[PutBack]) -> Iterable[str]:
    """Yield what was put back, one line for places with the same knob and value."""
    seen: dict[tuple[str, str], int] = {}
    for line in lines:
        seen[line.knob, line.value] = seen.get((line.knob, line.value), 0) + 1
    for (knob, value), count in seen.items():
        places = "" if count == 1 else f" ({_files(count)})"
        yield printable(f"put back: {knob} to {value}{places}")


def tuning_document(
    plan: Plan, tuning: Tuning | None, after: Iterable[Check] = ()
) -> Mapping[str, object]:
    """Return plan and outcome for a JSON document; without outcome: a dry run."""
    document: dict[str, object] = {
        "planned": [wish_row(wish) for wish in plan.wishes],
        "nothing_to_do": dict(plan.good),
        "impossible": dict(plan.impossible),
    }
    if tuning is not None:
        document["applied"] = [wish_row(d.wish) for d in tuning.done if d.changed]
        document["refused"] = [
            {**wish_row(r.wish), "cause": r.cause, "reason": r.reason}
            for r in tuning.refused
        ]
        document["now"] = {c.kind.id: c.outcome.value for c in after}
    return document


def restored_document(
    back: Iterable[PutBack], refused: Iterable[Refused]
) -> Mapping[str, object]:
    """Return what was put back, and what was not, for a JSON document."""
    return {
        "put_back": [{"knob": line.knob, "value": line.value} for line in back],
        "not_put_back": [
            {"knob": r.knob, "value": r.value, "cause": r.cause, "reason": r.reason}
            for r in refused
        ],
    }


def render_json(document: Mapping[str, object]) -> str:
    """Return a document as text."""
    return json.dumps(document, indent=2) + "\n"


def wish_row(wish: Wish) -> dict[str, object]:
    """Return one change for a JSON document."""
    return {
        "check": wish.check,
        "knob": wish.knob,
        "path": wish.path,
        "before": wish.old,
        "value": wish.value,
    }


def _table(wishes: Sequence[Wish]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    groups: dict[tuple[str, str, str], list[str]] = {}
    for wish in wishes:
        groups.setdefault((wish.check, wish.old, wish.value), []).append(wish.path)
    for (check, old, value), paths in groups.items():
        more = len(paths) - PLACES_SHOWN
        where = "\n".join(map(printable, paths[:PLACES_SHOWN]))
        where += f"\nand {more} more" if more > 0 else ""
        change = printable(f"{old} -> {value}")
        table.add_row(Text(f"  {check}"), Text(where), Text(change))
    return table


def _not_done(name: str, why: str) -> Text:
    text = Text("NOT DONE ", style="bold red")
    return text.append(printable(f"{name}: {why}"), style="not bold default")


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
