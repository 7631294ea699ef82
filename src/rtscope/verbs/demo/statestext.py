"""The states of a thread for a terminal, for a page and as data."""

from collections.abc import Iterator
from typing import Any

from rtscope.host.escape import printable
from rtscope.host.version import __version__
from rtscope.present.document import (
    Block,
    Column,
    Document,
    Section,
    Span,
    Table,
    Words,
)
from rtscope.verbs.demo.model import Scenario
from rtscope.verbs.demo.states import Outcome, Shown, StatesResult

TITLE = "Each state of a thread, made and seen"
ABOUT = (
    "A process of rtscope's own brings a thread into each state, and its letter is "
    "read from outside, in /proc/PID/task/TID/stat. The commands show it of your "
    "program, whose process ID (PID) you write."
)
_LIMIT = 400


def states_document(result: StatesResult) -> Document:
    """Return the page, which has all that a terminal shows."""
    return Document(
        TITLE,
        (
            ABOUT,
            _answer(result),
            _overview(result),
            *(
                Section(
                    f"{one.state.letter}: {one.state.title}",
                    (Words(_seen(one)), *_about(one)),
                )
                for one in result.shown
            ),
        ),
        made_by=f"rtscope {__version__}",
        subtitle=(_where(result),),
    )


def states_blocks(result: StatesResult) -> Iterator[Block]:
    """Yield title, states and the answer, for a terminal."""
    yield (TITLE, "strong")
    yield _where(result)
    yield ABOUT
    for one in result.shown:
        yield ""
        yield Words(
            ((f"{one.state.letter}  {one.state.title}", "strong"), ": ", *_seen(one))
        )
        for block in _about(one):
            yield Words(block.spans, indent=3, fit=block.fit)
    yield ""
    yield _answer(result)


def states_json(result: StatesResult) -> dict[str, Any]:
    """Return all of it for JSON."""
    return {
        "scenario": Scenario.STATES.value,
        "target": "local",
        "kernel": result.kernel,
        "held": result.held,
        "states": [
            {
                "name": one.state.name,
                "letter": one.state.letter,
                "title": one.state.title,
                "outcome": one.outcome.value,
                "reason": one.reason,
                "seen": one.look.letter,
                "pid": one.pid,
                "tid": one.tid,
                "wchan": one.look.wchan,
                "syscall": None if one.look.syscall is None else one.look.syscall[0],
                "wait_known": one.wait_known,
                "made": one.state.made,
                "means": one.state.means,
                "does": one.state.does,
                "command": one.state.command,
            }
            for one in result.shown
        ],
    }


def _where(result: StatesResult) -> str:
    return f"local, Linux {printable(result.kernel)}"


def _answer(result: StatesResult) -> Block:
    seen = sum(one.outcome is Outcome.SEEN for one in result.shown)
    left = [one for one in result.shown if one.outcome is Outcome.NOT_SHOWN]
    if not result.held:
        failed = len(result.shown) - seen - len(left)
        return (f"{failed} of {len(result.shown)} states were not seen.", "alarm")
    if left:
        return (
            f"{seen} of {len(result.shown)} states seen; not shown: {_names(left)}.",
            "strong",
        )
    return (f"All {seen} states seen.", "strong")


def _names(some: list[Shown]) -> str:
    return ", ".join(one.state.title for one in some)


def _overview(result: StatesResult) -> Table:
    rows = [
        (one.state.letter, Words(_seen(one)[:1]), one.state.title)
        for one in result.shown
    ]
    columns = (Column("letter"), Column("outcome"), Column("state", fit="wraps"))
    return Table(columns, rows, label="States")


def _seen(one: Shown) -> tuple[Span, ...]:
    """Return the outcome, and what /proc said."""
    reason = printable(one.reason, limit=_LIMIT)
    match one.outcome:
        case Outcome.SEEN:
            return (("seen", "good"), printable(_evidence(one)))
        case Outcome.NOT_SHOWN:
            return (("not shown", "limit"), f", because {reason}")
        case Outcome.UNKNOWN:
            return (("unknown", "alarm"), f": {reason}")
        case Outcome.OTHER:
            return (("NOT seen", "alarm"), f": {reason}")


def _evidence(one: Shown) -> str:
    if one.state.name == "gone":
        return f", TID {one.tid} is not in /proc any more"
    place = f", waits in {one.look.wchan}" if one.look.wchan else ""
    unknown = "" if one.wait_known else ", its wait is unknown: /proc does not say"
    return f", TID {one.tid}{place}{unknown}"


def _about(one: Shown) -> Iterator[Words]:
    state = one.state
    yield Words((("Made by ", "muted"), f"{state.made}."))
    yield Words((state.means,))
    yield Words((("In a real-time program, ", "muted"), state.does))
    yield Words(((state.command, "note"),), fit="whole")
