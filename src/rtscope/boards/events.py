"""
What an event, or a load of events, needs on a virtual board: `events.toml`, checked.

An event without a row needs nothing. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from rtscope.boards.catalogue import Board, read_table, tuples
from rtscope.host.errors import UsageError
from rtscope.measure.loads import get_load

_DEVICES = "devices"
_BESIDE = "beside"
_ENDS = ("from=", "to=")


@dataclass(frozen=True, slots=True)
class EventNeeds:
    """A row of `events.toml`, which explains the fields."""

    modules: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    device: str = ""


def needs_of(*events: str) -> EventNeeds:
    """Return what events need, as a run has them: `can:from=can0:to=can1`."""
    rows = [_rows().get(_way(event), EventNeeds()) for event in events]
    return EventNeeds(
        modules=tuple(dict.fromkeys(name for row in rows for name in row.modules)),
        before=tuple(dict.fromkeys(line for row in rows for line in row.before)),
        device=next((row.device for row in rows if row.device), ""),
    )


def with_devices_for(board: Board, event: str, load: str = "idle") -> Board:
    """
    Return a board with the devices that an event and a load need.

    UsageError if it has none of them, or none with these names, or not enough.
    """
    measured = _with_devices(board, event, f"--event {event}")
    sent = get_load(load).event
    if not sent:
        return measured
    loaded = _with_devices(board, sent, f"--load {load}")
    if _are_shared(event, load):
        beside = _beside(event)
        if beside is None:
            raise UsageError(
                f"--load {load}, --event {event}: the board {board.name} has devices "
                "for one of them; choose another load, or another event"
            )
        options = read_table("events")[_DEVICES][beside["device"]]["options"]
        loaded = replace(loaded, event_devices=tuple(options))
    both = (*measured.event_devices, *loaded.event_devices)
    return replace(loaded, event_devices=both)


def event_of_load(event: str, load: str) -> str:
    """Return what a load sends beside an event, whose devices are not its own."""
    beside = _beside(event) if _are_shared(event, load) else None
    return get_load(load).event if beside is None else str(beside["event"])


def _are_shared(event: str, load: str) -> bool:
    """Tell whether an event and a load would have the same devices."""
    device = needs_of(get_load(load).event).device
    return bool(device) and device == needs_of(event).device


def _beside(event: str) -> Mapping[str, str] | None:
    table: Mapping[str, Mapping[str, str]] = read_table("events")[_BESIDE]
    return table.get(needs_of(event).device)


def _with_devices(board: Board, event: str, option: str) -> Board:
    way = _way(event)
    name = way.partition(":")[0]
    known = [key for key in _rows() if key.partition(":")[0] == name]
    if known and way not in known:
        raise UsageError(
            f"{option}: virtual boards have no such ends; write {', '.join(known)}"
        )
    device = needs_of(event).device
    if not device:
        return board
    row = read_table("events")[_DEVICES][device]
    if board.name not in row["boards"]:
        others = ", ".join(row["boards"])
        raise UsageError(
            f"{option}: the virtual board {board.name} has not {row['title']}; choose "
            f"something else, or a board that has them: {others}"
        )
    return replace(board, event_devices=tuple(row["options"]))


def device_events(board: Board) -> tuple[str, ...]:
    """Return the events that go through devices of a board, as one writes them."""
    devices = read_table("events")[_DEVICES]
    return tuple(
        event
        for event, needs in _rows().items()
        if needs.device and board.name in devices[needs.device]["boards"]
    )


def _way(event: str) -> str:
    """Return the name of an event with its ends, without its stimulus."""
    name, *options = event.split(":")
    return ":".join((name, *(one for one in options if one.startswith(_ENDS))))


@cache
def _rows() -> Mapping[str, EventNeeds]:
    table: dict[str, Any] = read_table("events")
    del table[_DEVICES], table[_BESIDE]
    return {key: EventNeeds(**tuples(row)) for key, row in table.items()}
