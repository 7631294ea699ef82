"""
A campaign as a document: tables of plain values, as in TOML and as in a record.

`to_dict` writes the values as a person would, so one reader serves the campaign
file, the record and, table by table, the options of the command line.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rtscope.campaign.check import BOARDS_ONLY, At, check
from rtscope.campaign.keys import TABLES, Key
from rtscope.campaign.model import REALTIME_POLICIES, VIRTUAL, Campaign, RunTable
from rtscope.campaign.values import MAX_ITEMS, no_such, shown
from rtscope.errors import UsageError

MAX_FILE_BYTES = 1 << 20

Table = Mapping[str, object]

_OPTIONS: Mapping[str, tuple[str, str]] = {
    {"address": "target", "names": "kernel"}.get(key, key): (table, key)
    for table, keys in TABLES.items()
    for key in keys
}


def default_campaign() -> Campaign:
    """Return what `rtscope run` measures without a file: this machine, five loads."""
    return Campaign()


def load_campaign(path: Path) -> Campaign:
    """Read a campaign file; UsageError names file, table, key and what to write."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read campaign {path}: {error.strerror}") from error
    if len(content) > MAX_FILE_BYTES:
        raise UsageError(f"{path}: larger than 1 MiB; this is not a campaign file")
    try:
        document = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not valid TOML: {str(error)[:200]}") from error
    return from_dict(document, source=str(path))


def to_dict(campaign: Campaign) -> dict[str, Any]:
    """Write a campaign as JSON-able tables; `from_dict` gives it back unchanged."""
    document: dict[str, Any] = {
        table: _write_table(TABLES[table], campaign)
        for table in ("campaign", "target", "kernel")
    }
    document["run"] = [_write_table(TABLES["run"], run) for run in campaign.runs]
    return document


def from_dict(document: object, *, source: str) -> Campaign:
    """
    Build a campaign from tables and check it; `source` begins every message.

    The document may come from anywhere: whatever is wrong with it is a UsageError.
    """

    def at(table: str, key: str, number: int) -> str:
        head = f"[[{table}]] number {number}" if number else f"[{table}]"
        return f"{source}: {head} {key}".rstrip()

    tables = _table(document, source)
    for name in tables:
        if name not in TABLES:
            raise UsageError(f"{source}: {no_such('table', name, tuple(TABLES))}")
    return _build(tables, at)


def with_places(campaign: Campaign, base: Path) -> Campaign:
    """Return the campaign with its paths of this machine absolute, taken from base."""

    def place(path: str | None) -> str | None:
        return None if path is None else str((base / path).absolute())

    return replace(
        campaign,
        kernels=tuple(
            str((base / name).absolute()) if "/" in name else name
            for name in campaign.kernels
        ),
        files=tuple(str((base / path).absolute()) for path in campaign.files),
        qemu=place(campaign.qemu),
        locked=place(campaign.locked),
    )


def with_options(campaign: Campaign, **given: object) -> Campaign:
    """
    Return the campaign with options of the command line in place of its own values.

    Each option is a key of the campaign file (`target` is [target] address, `kernel`
    is [kernel] names); None means not given. An option of [[run]] holds for every
    run. Raises UsageError as the file would, naming the option.
    """
    options = {name: value for name, value in given.items() if value is not None}
    if not options:
        return campaign

    document = to_dict(campaign)
    for name, value in options.items():
        table, key = _OPTIONS[name]
        TABLES[table][key].read(value, _option(table, key, 0))
        for place in document["run"] if table == "run" else (document[table],):
            place[key] = value
    _drop_what_options_displace(document, options)
    return _build(document, _option)


def _option(table: str, key: str, _number: int) -> str:
    names = {place: name for name, place in _OPTIONS.items()}
    return f"--{names.get((table, key), table).replace('_', '-')}"


def _build(tables: Table, at: At) -> Campaign:
    values: dict[str, Any] = {}
    for name in ("campaign", "target", "kernel"):
        values |= _read_table(name, tables.get(name, {}), at)
    if "run" in tables:
        values["runs"] = _read_runs(tables["run"], at)
    campaign = Campaign(**values)
    check(campaign, at)
    return campaign


def _drop_what_options_displace(
    document: dict[str, Any], options: Mapping[str, object]
) -> None:
    runs: list[dict[str, Any]] = document["run"]
    loads = {load for run in runs for load in _read(run, "load")}
    if "load" in options and "command" not in options and "custom" not in loads:
        document["campaign"].pop("command", None)
    policies = {policy for run in runs for policy in _read(run, "policy")}
    if "policy" in options and "priority" not in options:
        for run in runs:
            if not policies & set(REALTIME_POLICIES):
                run.pop("priority", None)
    if "policy" in options and "deadline" not in policies:
        document["campaign"].pop("deadline_runtime", None)
    _drop_what_boards_have(document, options)
    # Two [[run]] that differed in nothing but the option are now one.
    document["run"] = [run for n, run in enumerate(runs) if run not in runs[:n]]


def _drop_what_boards_have(
    document: dict[str, Any], options: Mapping[str, object]
) -> None:
    for name, other in (("seed", "seeds"), ("seeds", "seed")):
        if name in options and other not in options:
            document["campaign"].pop(other, None)
    if not str(options.get("target", VIRTUAL)).startswith(VIRTUAL):
        for table, key in BOARDS_ONLY:
            if key not in options:
                document[table].pop(key, None)


def _read(run: Table, key: str) -> tuple[str, ...]:
    values: tuple[str, ...] = TABLES["run"][key].read(run[key], key)
    return values


def _read_runs(found: object, at: At) -> tuple[RunTable, ...]:
    if not isinstance(found, list | tuple) or not 0 < len(found) <= MAX_ITEMS:
        raise UsageError(
            f"{at('run', '', 0)}: {shown(found)}: write 1 to {MAX_ITEMS} tables, each "
            "headed [[run]]"
        )
    return tuple(
        RunTable(**_read_table("run", item, at, number))
        for number, item in enumerate(found, 1)
    )


def _read_table(name: str, found: object, at: At, number: int = 0) -> dict[str, Any]:
    keys, where = TABLES[name], at(name, "", number)
    table = _table(found, where)
    for key in table:
        if key not in keys:
            raise UsageError(f"{where}: {no_such('key', key, tuple(keys))}")
    return {
        keys[key].field: keys[key].read(value, at(name, key, number))
        for key, value in table.items()
    }


def _write_table(keys: Mapping[str, Key], values: Campaign | RunTable) -> Table:
    written: dict[str, object] = {}
    for key in keys.values():
        value = getattr(values, key.field)
        if value is not None and value != ():
            written[key.name] = key.write(value)
    return written


def _table(found: object, where: str) -> Table:
    if not isinstance(found, Mapping) or not all(isinstance(k, str) for k in found):
        raise UsageError(f"{where}: {shown(found)} where a table is expected")
    return found
