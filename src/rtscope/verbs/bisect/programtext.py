"""A search for the commit of a program: for a terminal, and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rtscope.host.errors import first_of
from rtscope.host.escape import printable
from rtscope.host.units import count, format_us, plural
from rtscope.present.document import Block, Span, table
from rtscope.present.words import NOTHING
from rtscope.verbs.bisect.history import SHORT
from rtscope.verbs.bisect.program import Commit, Found

SCHEMA = 1
MOST_ROWS, MOST_SKIPPED, MOST_NAMED = 5, 2, 8
_NS = "ns"


def program_answer(found: Found) -> str:
    """Return what a search came to, in one line."""
    if not found.culprits:
        said = found.answers["bad"].get("answer", "")
        return f"--bad is not worse: nothing to search for: {printable(str(said))}"
    if not found.is_found:
        names = [one.name[:SHORT] for one in found.culprits]
        return (
            f"the change is one of {plural(len(names), 'commit')}, which cannot be "
            f"told apart: {first_of(MOST_NAMED, names)}"
        )
    (one,) = found.culprits
    return f"{one.name[:SHORT]} is the first bad commit: {printable(one.title)}"


def program_lines(found: Found, *, all_of_it: bool = False) -> Iterator[Block]:
    """Return what the terminal shows of a search."""
    yield (program_answer(found), "strong")
    if found.is_found:
        (one,) = found.culprits
        yield printable(one.author)
        yield ""
        yield from _figures(found, all_of_it=all_of_it)
        yield from _why(found)
    yield ""
    yield (
        f"{plural(found.candidates, 'commit')} searched by {found.test}: "
        f"{found.tested} tested, {len(found.skipped)} skipped"
    )
    skipped = found.skipped if all_of_it else found.skipped[:MOST_SKIPPED]
    for tried in skipped:
        yield (f"skipped {tried.name[:SHORT]}: {tried.why}", "limit")


def _figures(found: Found, *, all_of_it: bool) -> Iterator[Block]:
    before, after = (_budgets(found.answers[side]) for side in ("before", "after"))
    rows: list[list[Span]] = []
    for key, row in after.items():
        earlier = before.get(key, {})
        value, limit, unit = row["value"], row["limit"], row["unit"]
        if value == earlier.get("value") and not all_of_it:
            continue
        broken = row.get("outcome") == "broken"
        now = _shown(value, unit)
        rows.append(
            [
                printable(f"{row['thread']}: {row['budget']}"),
                _shown(earlier.get("value"), unit),
                (now, "bad") if broken else now,
                _shown(limit, unit),
            ]
        )
    if not rows:
        rows = _worst(found)
    shown = rows if all_of_it else rows[:MOST_ROWS]
    heads = ("before", "after", "allowed")
    yield table(("virtual µs, or a number",), heads, shown, fit="wraps")
    if len(rows) > len(shown):
        yield (f"and {plural(len(rows) - len(shown), 'more')}: -v", "muted")


def _worst(found: Found) -> list[list[Span]]:
    """Return the worst responses of a test without budgets that differ."""
    before = {_of(one): one for one in found.answers["before"].get("threads", ())}
    return [
        [
            printable(f"{one['thread']}: response"),
            _shown(before.get(_of(one), {}).get("response"), _NS),
            _shown(one.get("response"), _NS),
            NOTHING,
        ]
        for one in found.answers["after"].get("threads", ())
    ]


def _of(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row.get("run")), str(row.get("thread"))


def _budgets(answer: Mapping[str, Any]) -> dict[tuple[str, ...], Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = answer.get("budgets", ())
    return {(*_of(row), str(row.get("budget"))): row for row in rows}


def _shown(value: int | None, unit: str) -> str:
    if value is None:
        return NOTHING
    return format_us(value) if unit == _NS else count(value)


def _why(found: Found) -> Iterator[Block]:
    first = next(iter(found.compared.get("differences", ())), None)
    if first is not None:
        who = f"{first['thread']}: " if first["thread"] else ""
        yield f"{printable(who + first['says'], limit=400)}."
    if cause := found.compared.get("cause"):
        yield printable(str(cause), limit=1000)


def program_data(found: Found) -> dict[str, Any]:
    """Return an outcome for JSON."""
    return {
        "schema": SCHEMA,
        "kind": "program",
        "test": found.test,
        "found": found.is_found,
        "candidates": found.candidates,
        "tested": found.tested,
        "commits": [_commit(one) for one in found.culprits],
        "before": found.before or None,
        "answers": dict(found.answers),
        "differences": list(found.compared.get("differences", ())),
        "cause": found.compared.get("cause"),
        "skipped": [{"name": one.name, "why": one.why} for one in found.skipped],
    }


def _commit(one: Commit) -> dict[str, str]:
    return {"name": one.name, "title": one.title, "author": one.author}
