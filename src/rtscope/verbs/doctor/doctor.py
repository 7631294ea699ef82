"""Show the abilities of a machine with rtscope, and the commands for the rest."""

import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from rtscope.boards.runs.readiness import computer_abilities
from rtscope.cli.console import Json, put, put_json, stdout_console
from rtscope.cli.options import DisplayOptions
from rtscope.host.errors import RtscopeError, TargetError
from rtscope.host.escape import printable
from rtscope.machine.facts import FactValue
from rtscope.machine.gather import gather
from rtscope.machine.target.address import Address, address_of, open_target
from rtscope.measure.campaign.messages import WHERE
from rtscope.measure.preflight import (
    THREADS,
    Ability,
    State,
    machine_abilities,
    refused,
)
from rtscope.present.document import Block, Column, Detail, Span, Table, Weight, Words
from rtscope.present.render.fitted import MOST_SENTENCES, Room, print_fitted
from rtscope.present.render.terminal import print_blocks

TONES: Mapping[State, Weight] = {
    State.WORKS: "good",
    State.LIMITED: "limit",
    State.MISSING: "alarm",
}

NEEDED = (THREADS, "results", "agent")
"""Abilities without which `rtscope run` measures nothing; the others widen it."""

LINE = 52
"""Characters of a reason or remedy that one line of a terminal has room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRequest:
    """The options of `rtscope doctor`."""

    target: Annotated[str | None, typer.Option(rich_help_panel=WHERE)] = None
    """Machine to ask: local, ssh:HOST or lab:PLACE (default: local), e.g. ssh:board."""
    json: Json = False
    display: DisplayOptions


@dataclass(frozen=True, slots=True)
class _Diagnosis:
    """What a machine can do, with this computer."""

    machine: str
    abilities: Sequence[Ability]

    @property
    def measures(self) -> bool:
        """Whether `rtscope run` works there."""
        return not any(
            one.state is State.MISSING and one.name in NEEDED for one in self.abilities
        )

    @property
    def answer(self) -> str:
        """The answer in a sentence."""
        counts = {s: sum(a.state is s for a in self.abilities) for s in State}
        tally = ", ".join(f"{n} {state}" for state, n in counts.items() if n)
        can = "can" if self.measures else "cannot"
        return f"{self.machine}: {can} be measured ({tally})"


def doctor(request: DoctorRequest) -> int:
    """Show the abilities of this machine with rtscope, and the commands for the rest.

    The agent tries for milliseconds what a measurement would ask of the machine; no
    setting is changed, nothing is fetched. The exit status is 1 if rtscope run cannot
    measure the machine.
    """
    diagnosis = _examine(address_of(request.target))
    if request.json:
        rows = [asdict(one) for one in diagnosis.abilities]
        put_json(
            {
                "machine": diagnosis.machine,
                "can_measure": diagnosis.measures,
                "abilities": rows,
            }
        )
    elif request.display.detail is Detail.QUIET:
        put(f"{printable(diagnosis.answer)}\n")
    else:
        _print(diagnosis, request)
    return 0 if diagnosis.measures else 1


def _examine(address: Address) -> _Diagnosis:
    name = address.text
    machine = name
    abilities: list[Ability] = []
    try:
        with open_target(address, alone=_refuse_to_wait) as target:
            known = gather(target.reader)
            machine = f"{name}, {_kernel(known)}"
            abilities += machine_abilities(target, known)
    except RtscopeError as error:
        abilities.append(refused("agent", error, of=name))
    return _Diagnosis(machine, (*abilities, *computer_abilities(Path.cwd())))


def _refuse_to_wait(who: str) -> None:
    """Trials would disturb the measurement of another."""
    reason = who.removeprefix("waiting: ").partition(";")[0]
    raise TargetError(f"{reason}; ask again when that has ended")


def _kernel(known: Mapping[str, FactValue]) -> str:
    release = known["kernel_release"].value or "an unknown kernel"
    return f"Linux {release}{', PREEMPT_RT' * (known['preempt_rt'].value is True)}"


def _print(diagnosis: _Diagnosis, request: DoctorRequest) -> None:
    again = "rtscope doctor -v" + (f" -t {request.target}" if request.target else "")

    def compose(room: Room) -> Iterator[Block]:
        yield (printable(diagnosis.answer), "strong")
        yield ""
        rows = _fitting(diagnosis.abilities, room)
        yield _table(rows, limit=LINE * max(1, room.sentences))
        works = [a.name for a in diagnosis.abilities if a.state is State.WORKS]
        if names := [name for name in works if name not in {a.name for a in rows}]:
            yield f"These work: {', '.join(names)}."
        yield ""
        yield Words((_next(diagnosis, again),), fit="whole")

    with stdout_console() as console:
        if request.display.detail is not Detail.ALL:
            print_fitted(compose, console)
            return
        rows = _table(diagnosis.abilities, limit=sys.maxsize)
        print_blocks(((printable(diagnosis.answer), "strong"), "", rows), console)


def _fitting(abilities: Sequence[Ability], room: Room) -> Sequence[Ability]:
    """Return those with a row of their own: at first all, then what does not work."""
    if room.sentences == MOST_SENTENCES:
        return abilities
    return [one for one in abilities if one.state is not State.WORKS][: room.rows]


def _table(rows: Iterable[Ability], *, limit: int) -> Table:
    cells: list[tuple[Span, ...]] = []
    advised: set[str] = set()
    for one in rows:
        what = printable(f"{one.cause}: {one.what}" if one.cause else one.what)
        state: Span = (one.state, TONES[one.state])
        cells.append((one.name, state, _shortened(what, limit)))
        if one.remedy and one.remedy not in advised:
            advised.add(one.remedy)
            remedy = _shortened(printable(one.remedy), limit)
            cells.append(("", "", f"→ {remedy}"))
    return Table((Column(""), Column(""), Column("", fit="wraps")), cells)


def _shortened(text: str, limit: int) -> str:
    return textwrap.shorten(text, limit, placeholder=" …")


def _next(diagnosis: _Diagnosis, again: str) -> str:
    wanting = [one for one in diagnosis.abilities if one.state is not State.WORKS]
    if not diagnosis.measures:
        return f"Next: the arrows' commands, then rtscope doctor; all reasons: {again}"
    return "Next: rtscope run -l idle -d 10s" + (
        f"; all reasons: {again}" if wanting else ""
    )
