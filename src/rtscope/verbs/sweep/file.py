"""
A sweep file: a base campaign, and axes whose levels change it.

`[base]` has the tables of a campaign file. Each `[[axis]]` has a name and levels; a
level has a name and, of the same tables, the keys that it changes.

A survey has no axes: with `[survey]`, the base is measured under stressors of stress-ng
besides its own loads, and all are ranked.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from rtscope.host.errors import UsageError
from rtscope.host.files import first_mistake
from rtscope.measure.campaign.file import from_dict, read_toml
from rtscope.measure.loads import STRESSOR, STRESSOR_NAME

MAX_LEVELS = 1000
SHIPPED = "shipped"
"""The folder of the sweeps that come with rtscope."""

Name = Annotated[str, Field(pattern=r"^[\w][\w .,:=+/@()-]*$", max_length=80)]
Table = dict[str, Any]

Design = Literal["one", "pairs", "full"]
"""Each level alone, each pair of levels besides, or all combinations."""

_PATHS: Mapping[str, Mapping[str, bool]] = {
    "kernel": {"names": False},
    "campaign": {"guest_files": True},
    "target": {"qemu": True, "lockfile": True},
}
"""Keys that hold paths; False: only values with a slash are."""

_STRICT = ConfigDict(extra="forbid")


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Level:
    """A value of an axis: the keys of the campaign that it changes, by table."""

    name: Name
    campaign: Table = Field(default_factory=dict)
    target: Table = Field(default_factory=dict)
    kernel: Table = Field(default_factory=dict)
    run: Table = Field(default_factory=dict)
    """Changes every [[run]]."""


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Axis:
    """A thing that is varied."""

    name: Name
    level: Annotated[tuple[Level, ...], Field(min_length=1, max_length=MAX_LEVELS)]


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Heading:
    """The table [sweep]."""

    name: Name = "sweep"
    design: Design = "one"


Stressor = Annotated[str, Field(pattern=STRESSOR_NAME)]


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Survey:
    """The table [survey]: what is ranked beside the loads of the base."""

    stressors: tuple[Stressor, ...] | None = None
    """As stress-ng names them; None: all that the stress-ng of the board lists."""
    leave_out: tuple[Stressor, ...] = ()


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Diagnosis:
    """A table [[diagnosis]]: why a load's worst wake-up was late, and what is tried."""

    load: str
    kernel: str
    worst_ns: int
    cause: str = ""
    """Empty: it is not known."""
    remedies: tuple[str, ...] = ()
    """Names of levels."""
    why: str = ""
    """Why there are none."""
    not_tried: dict[str, str] = Field(default_factory=dict)
    """Other remedies for this cause, each with why it is not tried."""
    key: tuple[str, ...] = ()
    """Of the run with the worst wake-up, as `sweep.keys` has it."""


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class _Document:
    base: Table
    axis: Annotated[tuple[Axis, ...], Field(max_length=100)] = ()
    sweep: Heading = Field(default_factory=Heading)
    survey: Survey | None = None
    diagnosis: tuple[Diagnosis, ...] = ()


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is varied, around what, and in which combinations."""

    name: str
    design: Design
    base: Mapping[str, Any]
    axes: tuple[Axis, ...]
    source: str
    """Begins every message about it."""
    survey: Survey | None = None
    diagnoses: tuple[Diagnosis, ...] = ()
    """Of a sweep of remedies: what they are tried against."""


def load_sweep(path: Path) -> Sweep:
    """Read a sweep file; UsageError names the file, the place and the mistake."""
    return sweep_of(read_toml(path, kind="sweep"), source=str(path))


def shipped_sweeps() -> tuple[str, ...]:
    """Return the names of the sweeps that come with rtscope."""
    files = resources.files("rtscope.verbs.sweep").joinpath(SHIPPED).iterdir()
    return tuple(
        sorted(
            file.name.removesuffix(".toml")
            for file in files
            if file.name.endswith(".toml")
        )
    )


def load_shipped(name: str) -> Sweep:
    """Read a sweep that comes with rtscope."""
    file = resources.files("rtscope.verbs.sweep").joinpath(SHIPPED, f"{name}.toml")
    return sweep_of(tomllib.loads(file.read_text("utf-8")), source=name)


def sweep_of(document: object, *, source: str) -> Sweep:
    """Read a sweep from the tables of its file; UsageError as `load_sweep`."""
    try:
        read = TypeAdapter(_Document).validate_python(document)
    except ValidationError as error:
        raise UsageError(f"{source}: {first_mistake(error)}") from error
    for axis in read.axis:
        _refuse_twice([level.name for level in axis.level], f"{source}: {axis.name}")
    _refuse_twice([axis.name for axis in read.axis], source)
    if bool(read.axis) == bool(read.survey):
        raise UsageError(
            f"{source}: write [[axis]] with the levels to compare with the base, or "
            "[survey] to rank stressors"
        )
    return Sweep(
        name=read.sweep.name,
        design=read.sweep.design,
        base=read.base,
        axes=read.axis,
        source=source,
        survey=read.survey,
        diagnoses=read.diagnosis,
    )


def placed(sweep: Sweep, directory: Path) -> Sweep:
    """Return the sweep with the paths of base and levels taken from a directory."""
    base = {name: _placed(name, table, directory) for name, table in sweep.base.items()}
    axes = tuple(
        replace(
            axis, level=tuple(_level_placed(level, directory) for level in axis.level)
        )
        for axis in sweep.axes
    )
    return replace(sweep, base=base, axes=axes)


def _level_placed(level: Level, directory: Path) -> Level:
    tables = {name: _placed(name, getattr(level, name), directory) for name in _PATHS}
    return replace(level, **tables)


def _placed(table: str, values: Any, directory: Path) -> Any:
    """Return a table of a campaign; what is no path or no table stays as it is."""
    if table not in _PATHS or not isinstance(values, Mapping):
        return values
    return {
        key: _place(value, directory, always=_PATHS[table][key])
        if key in _PATHS[table]
        else value
        for key, value in values.items()
    }


def _place(value: object, directory: Path, *, always: bool) -> object:
    if isinstance(value, list):
        return [_place(one, directory, always=always) for one in value]
    if isinstance(value, str) and value and (always or "/" in value):
        return str((directory / value).absolute())
    return value


def on_board(
    sweep: Sweep, *, target: str | None, kernels: Sequence[str] | None
) -> Sweep:
    """Return the sweep with the base of another board, or of other kernels."""
    base = dict(sweep.base)
    if target is not None:
        base["target"] = {**_table(base, "target"), "address": target}
    if kernels is not None:
        base["kernel"] = {**_table(base, "kernel"), "names": list(kernels)}
    return replace(sweep, base=base)


def with_seeds(sweep: Sweep, seeds: Sequence[int]) -> Sweep:
    """Return the sweep with other seeds of its base."""
    table = {
        key: v for key, v in _table(sweep.base, "campaign").items() if key != "seed"
    }
    campaign = {**table, "seeds": list(seeds)}
    return replace(sweep, base={**sweep.base, "campaign": campaign})


def _table(base: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = base.get(name)
    return table if isinstance(table, Mapping) else {}


def document_of(sweep: Sweep) -> Table:
    """Return the tables of a sweep, which `sweep_of` reads."""
    document: Table = {
        "sweep": {"name": sweep.name, "design": sweep.design},
        "base": dict(sweep.base),
    }
    if sweep.survey is not None:
        return {**document, "survey": asdict(sweep.survey)}
    if sweep.diagnoses:
        document["diagnosis"] = [asdict(one) for one in sweep.diagnoses]
    return {**document, "axis": [asdict(axis) for axis in sweep.axes]}


def with_stressors(sweep: Sweep, listed: Sequence[str]) -> Sweep:
    """
    Return a survey with each of its stressors as a load of the base.

    `listed` are those that the board's stress-ng has; what the file names besides is
    measured too, and fails with stress-ng's own words. UsageError if none is left, or
    if the base is no valid campaign.
    """
    from_dict(dict(sweep.base), source=sweep.source)
    survey = sweep.survey or Survey()
    chosen = [
        name
        for name in survey.stressors or sorted(listed)
        if name not in survey.leave_out
    ]
    if not chosen:
        raise UsageError(
            f"{sweep.source}: [survey] leaves no stressor; name one in stressors, or "
            "fewer in leave_out"
        )
    tables = sweep.base.get("run", [{}])
    stressed = {**tables[0], "load": [f"{STRESSOR}{name}" for name in chosen]}
    return replace(
        sweep,
        base={**sweep.base, "run": [*tables, stressed]},
        survey=Survey(tuple(chosen)),
    )


def _refuse_twice(names: list[str], where: str) -> None:
    for n, name in enumerate(names):
        if name in names[:n]:
            raise UsageError(f"{where}: {name!r} occurs twice; give each its own name")
