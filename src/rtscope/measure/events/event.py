"""
Events by name, with their options, and the list that `--event list` prints.

An event is written NAME[:OPTION=VALUE]...; the agent reads the same text.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from pydantic import ConfigDict, TypeAdapter

from rtscope.host.errors import UsageError, no_such, quote
from rtscope.record.model import HWLAT, POLL, TIMER, TIMERLAT

LIST = "list"
"""Instead of an event: print the events there are."""

CPU, PRIORITY = "cpu", "priority"
_OTHER = "other"
_END = "the name of an interface or a serial line, at most 15 characters"
_VALUES = {
    CPU: (r"same|other|\d{1,5}", "same, other or the number of a CPU"),
    PRIORITY: (r"[1-9]\d?", "1 to 99"),
    "threshold": (r"[1-9]\d{0,6}", "microseconds, 1 to 9999999"),
    "width": (r"[1-9]\d{0,6}", "microseconds, less than the interval"),
    "from": (r"[^\s:/=,]{1,15}", _END),
    "to": (r"[^\s:/=,]{1,15}", _END),
}
"""The options: the form of their values, and what to write."""


@dataclass(frozen=True, slots=True)
class Event:
    """A row of the catalogue; `events.toml` explains each field."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    title: str
    stimulus: str
    wait: str
    path: str
    needs: str
    places: str
    options: tuple[str, ...]

    @property
    def all_options(self) -> tuple[str, ...]:
        """The options that may be written behind its name."""
        has_stimulus = self.name not in {TIMER, POLL, HWLAT, TIMERLAT}
        return (CPU, PRIORITY, *self.options) if has_stimulus else self.options


def event_names() -> tuple[str, ...]:
    """Return the name of every event, in the order of the file."""
    return tuple(_catalogue())


def get_event(name: str) -> Event:
    """Return an event; UsageError names the nearest one."""
    event = _catalogue().get(name)
    if event is not None:
        return event
    raise UsageError(no_such("event", name, (*event_names(), LIST)))


def parse_event(text: str) -> str:
    """
    Return an event as it is recorded: its options in order, without defaults.

    Raises UsageError with what to write.
    """
    name, *options = text.split(":")
    event = get_event(name)
    values: dict[str, str] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if key not in event.all_options:
            raise UsageError(
                f"{quote(text)}: "
                + (
                    no_such("option", key, event.all_options)
                    if event.all_options
                    else f"the event {name} has no options; leave them out"
                )
            )
        form, wanted = _VALUES[key]
        if not equals or key in values or not re.fullmatch(form, value):
            raise UsageError(f"{quote(text)}: write {key}= once, with {wanted}")
        values[key] = value
    if ("from" in values) != ("to" in values):
        raise UsageError(f"{quote(text)}: write both from= and to=, or none of them")
    if values.get(CPU) == _OTHER:
        del values[CPU]
    kept = (f"{key}={values[key]}" for key in _VALUES if key in values)
    return ":".join((name, *kept))


def describe() -> Iterator[str]:
    """Yield the lines of `--event list`."""
    for name in event_names():
        event = get_event(name)
        yield f"{name}: {event.title}"
        yield f"  stimulus  {event.stimulus}"
        yield f"  wait      {event.wait}"
        yield f"  path      {event.path}"
        if event.needs:
            yield f"  needs     {event.needs}"
        yield f"  ran on    {event.places}; never on the hardware of a board"
        if event.all_options:
            yield f"  options   {', '.join(event.all_options)}"


@cache
def _catalogue() -> Mapping[str, Event]:
    event = TypeAdapter(Event)
    text = resources.files("rtscope.measure.events").joinpath("events.toml")
    return {
        name: event.validate_python({"name": name, **row})
        for name, row in tomllib.loads(text.read_text("utf-8")).items()
    }
