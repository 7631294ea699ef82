"""
The command line as data: what pages of the manual and completions of shells are of.

Verbs, options and help come from the program; VALUES has what else may follow a name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import typer

from rtscope.boards.catalogue import board_names
from rtscope.boards.kernels.catalogue import kernel_names
from rtscope.boards.kernels.recipe import recipe_names
from rtscope.cli import app as cli
from rtscope.cli.app import LISTS
from rtscope.machine.settings.remedies import tunable
from rtscope.measure.campaign.file import key_schemas
from rtscope.measure.campaign.messages import element
from rtscope.measure.campaign.options import option_of
from rtscope.measure.events import LIST, event_names
from rtscope.measure.loads import load_names
from rtscope.record.published import published_names
from rtscope.verbs.history.canned import query_names

FILES, DIRECTORIES = "files", "directories"
"""What follows a name where there is no closed set; empty: nothing that is known."""


@dataclass(frozen=True, slots=True)
class Param:
    """An option, or an argument, whose names are then empty."""

    name: str
    """As in the usage: LOAD."""
    names: tuple[str, ...]
    help: str
    panel: str
    values: tuple[str, ...]
    """The closed set, if there is one."""
    places: str
    """FILES, DIRECTORIES or empty."""
    flag: bool = False
    many: bool = False
    """Several of them: an argument with dots, an option with a list."""
    required: bool = False


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb with all that its help has."""

    words: tuple[str, ...]
    """What is typed after `rtscope`."""
    brief: str
    """One line, of the list of verbs."""
    text: str
    arguments: tuple[Param, ...]
    options: tuple[Param, ...]
    examples: tuple[str, ...]

    @property
    def name(self) -> str:
        """The words as one text."""
        return " ".join(self.words)


@cache
def verbs() -> tuple[Verb, ...]:
    """Return every verb, in the order of the help."""
    return tuple(_verb(words, found) for words, found in _commands(_app()))


def groups() -> Mapping[str, str]:
    """Return the verbs that have verbs of their own, with their help."""
    found = {name: row["help"] for name, row in cli.tables()["groups"].items()}
    return dict(found)


def about() -> str:
    """Return what the program is for, in a sentence."""
    return str(_app().help)


def short(text: str) -> str:
    """Return of a help what a line of a menu has room for."""
    for end in (" (default", ", e.g.", ". ", "; "):
        text = text.partition(end)[0]
    return " ".join(text.split()).rstrip(".")


@cache
def _app() -> Any:
    return typer.main.get_command(cli.make_app())


def _commands(
    group: Any, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*above, name))
        else:
            yield (*above, name), command


def _verb(words: tuple[str, ...], command: Any) -> Verb:
    params = [_param(words, param) for param in command.params]
    row: Any = cli.tables()["verbs"].get(words[0])
    if row is None:
        row = cli.tables()["groups"][words[0]]["verbs"][words[1]]
    help_option = Param("HELP", ("--help", "-h"), "Show this help.", "", (), "", True)
    return Verb(
        words=words,
        brief=row["help"],
        text=command.help or "",
        arguments=tuple(one for one in params if not one.names),
        options=(*(one for one in params if one.names), help_option),
        examples=tuple(row["examples"]),
    )


def _param(words: tuple[str, ...], param: Any) -> Param:
    is_option = param.param_type_name == "option"
    names = (*param.opts, *param.secondary_opts) if is_option else ()
    flag = bool(getattr(param, "is_flag", False))
    values = () if flag else _values(words, param)
    return Param(
        name=(param.metavar or param.name.upper()).rstrip("."),
        names=names,
        help=" ".join((param.help or "").split()),
        panel=param.rich_help_panel or "",
        values=values,
        places="" if flag or values else _places(param),
        flag=flag,
        many=param.nargs != 1 or bool({*names} & {*LISTS, "--apply", "--tuned"}),
        required=bool(param.required),
    )


def _places(param: Any) -> str:
    if param.name in ("storage_dir", "directory", "resume", "root"):
        return DIRECTORIES
    return FILES if param.type_descriptor.is_path or param.name in _FILES else ""


def _values(words: tuple[str, ...], param: Any) -> tuple[str, ...]:
    kind = param.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(str(one.value) for one in kind)
    if (words[0], param.name) in _OF_VERB:
        return _OF_VERB[words[0], param.name]
    return _BY_NAME.get(param.name, ())


def _targets(*, boards: bool) -> tuple[str, ...]:
    found = tuple(f"virtual:{name}" for name in board_names()) if boards else ()
    return ("local", "ssh:", *found)


def _of_campaign() -> Mapping[str, tuple[str, ...]]:
    """Return what the keys of a campaign admit, by the names of their options."""
    found = {key: element(schema).get("enum") for key, schema in key_schemas().items()}
    return {option_of(key): tuple(words) for key, words in found.items() if words}


_FILES = (
    *("record", "qemu", "lockfile", "guest_files", "against", "measured"),
    *("stdin", "program"),
)
"""Names of files whose type is text: some admit more than a path."""

_CHANGES = ("safe", *(kind.id for kind in tunable()))

_BY_NAME: Mapping[str, tuple[str, ...]] = {
    **_of_campaign(),
    "load": load_names(),
    "event": (*event_names(), LIST),
    "kernel": kernel_names(),
    "target": _targets(boards=True),
    "published": published_names(),
    "apply": _CHANGES,
    "tuned": _CHANGES,
}

_OF_VERB: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("board", "name"): board_names(),
    ("test", "board"): board_names(),
    ("app", "program"): (),
    ("board", "names"): board_names(),
    ("kernel", "name"): recipe_names(),
    ("kernel", "names"): recipe_names(),
    ("kernel", "diff"): recipe_names(),
    ("doctor", "target"): _targets(boards=False),
    ("tasks", "target"): _targets(boards=False),
    ("kernel", "target"): _targets(boards=False),
    ("history", "query"): query_names(),
}
