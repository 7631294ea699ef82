"""
The boards of one campaign: of a file such as `lab.toml`, or the addresses of --target.

    [[board]]
    name = "vf2-1"                  # of its directory and its row
    target = "ssh:root@192.0.2.7"
    tags = ["riscv", "nightly"]     # for --tag
    settings = { cpus = "1-3", deadline = "200us" }

Settings are options of `rtscope run` by their names; they replace values of the
campaign file, and options of the command line replace them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from rtscope.host.errors import UsageError, no_such, quote
from rtscope.host.escape import printable
from rtscope.machine.target.address import parse_address
from rtscope.measure.campaign.file import (
    BOARDS_ONLY,
    load_campaign,
    read_toml,
    with_places,
)
from rtscope.measure.campaign.messages import table_at
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.options import Options, at_option, option_of, with_options

MAX_BOARDS = 64
MAX_TAGS = 32

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PORT = re.compile(r"(.*[^:]|\[.*\]):([0-9]{1,5})")
_LOOPBACK = re.compile(r"localhost|::1|127(?:\.[0-9]{1,3}){3}")
_HERE = "this machine"
_SSH_PORT = 22

_FORM = "small letters, digits, - and _, 64 at most"
_KEYS = ("name", "target", "tags", "settings")
_SETTINGS = tuple(one.name for one in fields(Options) if one.name != "target")

OF_BOARDS = frozenset(map(option_of, (*BOARDS_ONLY, "kernel.names")))
"""Options that a machine has no use for: of several boards, the virtual ones get it."""


@dataclass(frozen=True, slots=True)
class LabBoard:
    """A machine or a virtual board of a lab."""

    name: str
    target: str
    tags: tuple[str, ...] = ()
    settings: Options = Options()  # noqa: RUF009 -- frozen
    place: Path = Path()
    """Paths of its settings are taken from here."""
    file: str = ""
    """Of the lab; empty: --target names it."""

    @property
    def title(self) -> str:
        """Return what messages call it: its name, behind the file."""
        return f"{self.file}: board {self.name}" if self.file else f"board {self.name}"


def load_lab(path: Path, *, tags: str | None = None) -> tuple[LabBoard, ...]:
    """
    Read the boards of a file, with `tags` those that have all of these, with commas.

    Raises UsageError for any mistake, with the place in the file.
    """
    tables = read_toml(path, kind="lab")
    for key in tables:
        if key != "board":
            raise UsageError(f"{path}: {no_such('table', key, ['board'])}")
    rows = tables.get("board")
    if not isinstance(rows, list) or not 0 < len(rows) <= MAX_BOARDS:
        raise UsageError(f"{path}: [[board]]: write 1 to {MAX_BOARDS} tables")
    boards = [
        replace(
            read_board(row, f"{path}: [[board]] number {number}", path.parent),
            file=str(path),
        )
        for number, row in enumerate(rows, 1)
    ]
    refuse_twice(boards, str(path))
    return _tagged(boards, tags, path)


def boards_of(option: str) -> tuple[LabBoard, ...]:
    """Return the boards that --target names, with commas between; UsageError if not."""
    targets = [word.strip() for word in option.split(",")]
    if len(targets) > MAX_BOARDS:
        raise UsageError(f"--target: {len(targets)} boards; name at most {MAX_BOARDS}")
    for target in targets:
        _address(target, "--target")
    names = list(_names(targets))
    boards = [LabBoard(*pair) for pair in zip(names, targets, strict=True)]
    refuse_twice(boards, "--target")
    return tuple(boards)


def campaigns_of(
    boards: Sequence[LabBoard], file: Path | None, options: Options
) -> list[Campaign]:
    """
    Return the campaign of each board: of the file, its settings, then the options.

    With a virtual board among others, options that a machine has no use for are for
    the virtual ones. Raises UsageError as for a single board, with the board's name.
    """
    written = Campaign()
    if file is not None:
        written = with_places(load_campaign(file), file.parent)
    mixed = any(one.target.startswith("virtual:") for one in boards)
    return [_campaign(one, written, options, mixed=mixed) for one in boards]


def _campaign(
    board: LabBoard, written: Campaign, options: Options, *, mixed: bool
) -> Campaign:
    typed = options
    if mixed and not board.target.startswith("virtual:"):
        kept = {k: v for k, v in options.values.items() if k not in OF_BOARDS}
        typed, written = Options(**_any(kept)), replace(written, kernels=())

    def at(key: str, _: int) -> str:
        name = option_of(key)
        is_set = name in board.settings.values and name not in typed.values
        return f"settings {name}" if is_set else at_option(key)

    def at_setting(key: str, _: int) -> str:
        name = option_of(key)
        return f"settings {name}" if name in board.settings.values else at_option(key)

    try:
        options = replace(board.settings, target=board.target)
        own = with_places(with_options(written, options, at_setting), board.place)
        options = replace(typed, target=None)
        return with_places(with_options(own, options, at), Path.cwd())
    except UsageError as error:
        raise UsageError(f"{board.title}: {error}") from error


def _any(values: Mapping[str, object]) -> dict[str, Any]:
    """Return values as typed; the campaign checks them."""
    return dict(values)


def checked_name(name: object, where: str) -> str:
    """Return the name of a board, which is one of a directory; UsageError if not."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{where} name: {quote(name)}: write {_FORM}")
    return name


def refuse_twice(boards: Iterable[LabBoard], where: str) -> None:
    """Raise UsageError for a name or a machine that two boards have."""
    names: set[str] = set()
    machines: dict[str, str] = {}
    for one in boards:
        if one.name in names:
            raise UsageError(f"{where}: two boards are called {one.name}; rename one")
        names.add(one.name)
        machine = _machine(one.target)
        if machine in machines:
            raise UsageError(
                f"{where}: {machines[machine]} and {one.name} are the same machine, "
                f"{printable(machine)}: two measurements would disturb each other; "
                "leave one out"
            )
        if machine:
            machines[machine] = one.name


def _machine(target: str) -> str:
    """
    Return a machine by its host, without the user; empty for a virtual board.

    Other ports of a host may lead to others: to guests, or through a gateway.
    """
    address = parse_address(target)
    if address.board is not None:
        return ""
    if address.is_here:
        return _HERE
    if address.host is None:
        return address.text
    is_url = address.host.startswith("ssh://")
    host = address.host.removeprefix("ssh://").rpartition("@")[2].lower()
    port = ""
    if is_url and (found := _PORT.fullmatch(host)):
        host, port = found.groups()
    host = host.strip("[]")
    if port and int(port) != _SSH_PORT:
        return f"{host}:{port}"
    return _HERE if _LOOPBACK.fullmatch(host) else host


def read_board(row: object, where: str, place: Path) -> LabBoard:
    """Return a board of a file; `where` begins every message of a UsageError."""
    table = table_at(row, where)
    for key in table:
        if key not in _KEYS:
            raise UsageError(f"{where}: {no_such('key', key, _KEYS)}")
    if "target" not in table:
        raise UsageError(
            f"{where}: no target; write local, ssh:HOST, lab:PLACE or virtual:BOARD"
        )
    target = _address(table["target"], f"{where} target")
    (derived,) = _names([target])
    return LabBoard(
        name=checked_name(table.get("name", derived), where),
        target=target,
        tags=_tags(table.get("tags", []), where),
        settings=_settings(table.get("settings", {}), where),
        place=place,
    )


def _address(text: object, where: str) -> str:
    if not isinstance(text, str):
        raise UsageError(f"{where}: {quote(text)} is no text; write it in quotes")
    try:
        parse_address(text)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    return text


def _tags(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_TAGS:
        raise UsageError(f"{where} tags: write a list of {MAX_TAGS} texts at most")
    for one in value:
        if not isinstance(one, str) or not _NAME.fullmatch(one):
            raise UsageError(f"{where} tags: {quote(one)}: write {_FORM}")
    return tuple(dict.fromkeys(value))


def _settings(value: object, where: str) -> Options:
    table = table_at(value, f"{where} settings")
    for key in table:
        if key not in _SETTINGS:
            raise UsageError(f"{where} settings: {no_such('option', key, _SETTINGS)}")
    return Options(**_any(table))


def _names(targets: Iterable[str]) -> Iterator[str]:
    """Make a name of each address that a directory can have; no two are the same."""
    used: set[str] = set()
    for target in targets:
        words = re.sub(r"[^a-z0-9]+", "-", target.lower()).strip("-")[:56]
        name, number = words, 1
        while name in used:
            number += 1
            name = f"{words}-{number}"
        used.add(name)
        yield name


def _tagged(
    boards: Sequence[LabBoard], tags: str | None, path: Path
) -> tuple[LabBoard, ...]:
    if tags is None:
        return tuple(boards)
    known = tuple(dict.fromkeys(tag for one in boards for tag in one.tags))
    wanted = [word.strip() for word in tags.split(",")]
    for word in wanted:
        if word not in known:
            raise UsageError(f"--tag: {path}: {no_such('tag', word, known)}")
    chosen = tuple(one for one in boards if set(wanted) <= set(one.tags))
    if not chosen:
        raise UsageError(f"--tag {tags}: no board of {path} has all of these tags")
    return chosen
