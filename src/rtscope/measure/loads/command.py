"""
From a load to its command, bounded by the free memory and space of the machine.

A load made smaller to fit carries the caveat `load_reduced`; one that cannot fit is a
UsageError before anything starts. Only options that stress-ng has had since
0.13 are used, so its version does not matter.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

import yaml
from pydantic import ConfigDict, TypeAdapter

from rtscope.host.errors import ContractError, UsageError, no_such, quote
from rtscope.host.units import NS_PER_S
from rtscope.machine.cpulist import parse_cpulist

# The loads by name: the rows of `loads.toml`, and each stressor of stress-ng by its
# own.


class Need(StrEnum):
    """A requirement of a load on the machine, besides stress-ng."""

    MEMORY = "memory"
    STORAGE = "storage"
    MEMORY_LIMIT = "memory_limit"
    COMMAND = "command"
    DEVICES = "devices"


@dataclass(frozen=True, slots=True)
class SignsOfLife:
    """
    What shows that a worker works: in each window any one of these is enough.

    `loads.toml` explains each field.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    cpu_percent: float
    preempted: bool
    switches_per_s: float | None = None
    disk_wait: bool = False
    short_lived: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """A row of the catalogue; `loads.toml` explains each field."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    title: str
    why: str
    argv: tuple[str, ...]
    needs: frozenset[Need]
    expects_progress: bool
    alive: SignsOfLife
    default_bytes: int = 0
    default_entries: int = 0
    event: str = ""
    """What the agent sends, where the agent is the load."""
    rate_per_s: int = 0
    """How many of these."""
    is_safe: bool = True
    """Whether a machine survives it; False: for virtual boards only."""
    why_unsafe: str = ""
    """What it does to a machine, if that is known."""

    @property
    def uses_stress_ng(self) -> bool:
        """Whether the load runs stress-ng on the target."""
        return bool(self.argv)

    @property
    def kind(self) -> str:
        """Its name without a rate."""
        return self.name.partition(":")[0]


STRESSOR = "stress-ng:"
"""Before the name of a stressor, which then is a load."""

STRESSOR_NAME = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
"""As stress-ng writes the names of stressors."""

_ANY_SIGN = SignsOfLife(
    cpu_percent=1,
    preempted=True,
    switches_per_s=10,
    disk_wait=True,
    short_lived=True,
)
"""Stressors differ: computing, waiting, or making children that do the work."""


def load_names() -> tuple[str, ...]:
    """Return the name of every load, in the order of the file."""
    return tuple(_catalogue())


def get_load(name: str) -> Load:
    """
    Return a load, a stressor of stress-ng (`stress-ng:fork`), or a load at a rate.

    UsageError names the nearest load if there is none of this name. Whether stress-ng
    has the stressor is known only where it runs.
    """
    if name.startswith(STRESSOR):
        return _stressor(name)
    kind, colon, rate = name.partition(":")
    load = _catalogue().get(kind)
    if load is None or (colon and not load.rate_per_s):
        raise UsageError(no_such("load", name, load_names()))
    return _at_rate(load, rate if colon else str(load.rate_per_s))


MAX_RATE = 100_000
"""A second: the agent takes no shorter interval than 10 us."""


def _at_rate(load: Load, rate: str) -> Load:
    if not load.rate_per_s:
        return load
    if not re.fullmatch("[1-9][0-9]{0,5}", rate) or int(rate) > MAX_RATE:
        raise UsageError(
            f"no load {quote(f'{load.name}:{rate}')}: write how many a second, 1 to "
            f"{MAX_RATE}, such as {load.name}:{load.rate_per_s}"
        )
    return replace(load, name=f"{load.name}:{rate}", rate_per_s=int(rate))


def _stressor(name: str) -> Load:
    stressor = name.removeprefix(STRESSOR)
    if not re.fullmatch(STRESSOR_NAME, stressor):
        raise UsageError(
            f"no load {name!r}: a stressor is named as stress-ng names it, such as "
            f"{STRESSOR}fork"
        )
    return Load(
        name=name,
        title=stressor,
        why=f"The stressor {stressor} of stress-ng, with its default options.",
        argv=(f"--{stressor}", "{workers}", "--oomable"),
        needs=frozenset(),
        expects_progress=False,
        alive=_ANY_SIGN,
        is_safe=stressor in safe_stressors(),
        why_unsafe=unsafe_stressors().get(stressor, ""),
    )


@cache
def safe_stressors() -> frozenset[str]:
    """Return the stressors that `stressors.toml` allows on a machine."""
    return frozenset(_rows("stressors.toml")["safe"])


@cache
def unsafe_stressors() -> Mapping[str, str]:
    """Return stressors that only look safe, with what they do to a machine."""
    reasons: Mapping[str, str] = _rows("stressors.toml")["left_out"]
    return reasons


@cache
def _catalogue() -> Mapping[str, Load]:
    load = TypeAdapter(Load)
    rows = _rows("loads.toml").items()
    return {name: load.validate_python({"name": name, **row}) for name, row in rows}


def _rows(file: str) -> dict[str, Any]:
    text = resources.files("rtscope.measure.loads").joinpath(file).read_text("utf-8")
    return tomllib.loads(text)


# --- from a load to its command, bounded by the free memory and space of the machine --

MIB = 1 << 20

MIN_WORKER_BYTES = 16 * MIB
"""Less per worker fits into the caches of a large processor: no memory load."""

MIN_WORKER_ENTRIES = 64
"""The fewest directories that stress-ng --dir takes."""

BYTES_PER_ENTRY = 8192
"""A directory takes a block of 4 KiB, and its inode and journal entry about another."""

MIN_OOM_BYTES = 64 * MIB
"""With less, stress-ng itself hardly starts."""

IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "rootfs", "hugetlbfs"})
"""File-system types that never reach a disk."""

Reduction = tuple[str, str]
"""A caveat as (id, detail)."""


@dataclass(frozen=True, slots=True)
class FreeStorage:
    """The directory of the storage load, with its free space."""

    directory: str
    file_systems: tuple[str, ...]
    """Its type, and for an overlay also the type of what its upper layer lies on."""
    free_bytes: int
    free_inodes: int | None
    """None where inodes are made as needed (btrfs, xfs may say 0 of 0)."""
    allow_in_memory: bool = False
    """True only where there is no disk by design, as on a virtual board."""


@dataclass(frozen=True, slots=True)
class LoadCommand:
    """The command of a load; empty for idle."""

    argv: tuple[str, ...]
    memory_limit_bytes: int | None
    """The bound of the memory cgroup to run it in; None: no cgroup."""
    caveats: tuple[Reduction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlace:
    """Where a load runs, and what is free there."""

    workers: int
    """One for each measured CPU."""
    cpus: str | None
    """A CPU list that confines the workers; None lets them run anywhere."""
    scratch_dir: str
    yaml_path: str
    memory_bytes: int
    """Free: MemAvailable of /proc/meminfo, or a cgroup's if less."""
    storage: FreeStorage | None
    event: str = ""
    """What a load of events sends here; empty: what it sends everywhere."""


Fit = tuple[tuple[str, ...], int | None, tuple[Reduction, ...]]
"""Options that make a load smaller, the limit of its memory, and the caveats."""


def make_command(
    load: Load,
    place: LoadPlace,
    *,
    duration_s: int,
    custom: tuple[str, ...],
    seed: int | None = None,
) -> LoadCommand:
    """
    Return the command for one run.

    The command ends by itself some time after `duration_s`, even if rtscope
    is gone. Another `seed` makes another sequence of work; None is the one
    sequence for all. Raises UsageError if the load does not fit the machine.
    """
    if place.workers < 1:
        raise UsageError(f"{load.name}: no CPU to load; write for example --cpus 0-3")
    if Need.COMMAND in load.needs:
        if not custom:
            raise UsageError("the custom load needs a command; add --command 'ARGV'")
        return LoadCommand(custom, None, ())
    if load.event:
        return LoadCommand(_stream_argv(load, place, duration_s=duration_s), None, ())
    if not load.uses_stress_ng:
        return LoadCommand((), None, ())

    options, limit, caveats = _fit(load, place)
    argv = (
        "stress-ng",
        *(part.format(workers=place.workers) for part in load.argv),
        *options,
        *_random_options(seed),
        *_common_options(duration_s, place),
        *(("--taskset", cpus) if (cpus := place.cpus) and parse_cpulist(cpus) else ()),
    )
    return LoadCommand(argv, limit, caveats)


def _stream_argv(load: Load, place: LoadPlace, *, duration_s: int) -> tuple[str, ...]:
    """Return the agent as a load: ordinary threads, of which nothing is explained."""
    first = parse_cpulist(place.cpus)[0] if place.cpus else 0
    return (
        *("rtscope-agent", "measure", "--name", load.kind, "--policy", "other"),
        *(
            "--event",
            place.event or load.event,
            "--interval-ns",
            str(NS_PER_S // load.rate_per_s),
        ),
        *("--duration-ns", str(_safety_net_s(duration_s) * NS_PER_S)),
        *("--worst", "0", "--cpus", str(first)),
    )


def _random_options(seed: int | None) -> tuple[str, ...]:
    """
    Return what fixes the sequence: two kernels that are compared get the same work.

    stress-ng refuses --seed beside --no-rand-seed (`mutually exclusive`, seen with
    0.15.06 and 0.19.02); either is exact. Its generator takes the seed as its state,
    of which a small one has hardly any bit set, so a seed is spread over 63 bits first.
    """
    if seed is None:
        return ("--no-rand-seed",)
    spread = hashlib.sha256(f"stress-ng {seed}".encode()).digest()
    return ("--seed", str(int.from_bytes(spread[:8], "big") >> 1))


def _common_options(duration_s: int, place: LoadPlace) -> tuple[str, ...]:
    return (
        *("--temp-path", place.scratch_dir),
        *("--timeout", f"{_safety_net_s(duration_s)}s"),
        "--metrics",
        *("--yaml", place.yaml_path),
    )


def _safety_net_s(duration_s: int) -> int:
    """Return after how long a load ends by itself, even if nobody ends it."""
    return duration_s + max(60, duration_s // 10)


def _fit(load: Load, place: LoadPlace) -> Fit:
    if Need.MEMORY in load.needs:
        return _fit_memory(load, place)
    if Need.STORAGE in load.needs:
        return _fit_storage(load, place)
    if Need.MEMORY_LIMIT in load.needs:
        return _fit_memory_limit(load, place)
    return (), None, ()


def _fit_memory(load: Load, place: LoadPlace) -> Fit:
    # stress-ng divides --vm-bytes among its workers (`vm_bytes /= num_instances` in
    # stress-vm.c; seen with 0.15.06), though its manual says "per vm worker".
    half, workers = place.memory_bytes // 2, place.workers
    if half >= load.default_bytes:
        return (), None, ()
    least = min(load.default_bytes, workers * MIN_WORKER_BYTES)
    if half < least:
        raise UsageError(
            f"{load.name}: half of the free memory is {half // MIB} MiB, but {workers} "
            f"workers need {least // MIB} MiB; free some memory, measure fewer CPUs "
            "with --cpus, or leave this load out with --load"
        )
    size_mib = half // MIB
    detail = (
        f"{size_mib} MiB instead of {load.default_bytes // MIB} MiB for all workers"
    )
    return ("--vm-bytes", f"{size_mib}m"), None, (("load_reduced", detail),)


def _fit_storage(load: Load, place: LoadPlace) -> Fit:
    free, workers = place.storage, place.workers
    if free is None:
        raise UsageError(f"{load.name}: no directory to work in; add --storage-dir DIR")
    in_memory = sorted(IN_MEMORY.intersection(free.file_systems))
    if in_memory and not free.allow_in_memory:
        raise UsageError(
            f"{load.name}: {free.directory} is in memory ({in_memory[0]}), not on a "
            "disk; name a directory on a disk with --storage-dir"
        )
    entries = free.free_bytes // BYTES_PER_ENTRY
    if free.free_inodes is not None:
        entries = min(entries, free.free_inodes)
    per_worker = entries // 2 // workers
    if per_worker >= load.default_entries:
        return (), None, ()
    if per_worker < MIN_WORKER_ENTRIES:
        need = 2 * workers * MIN_WORKER_ENTRIES
        raise UsageError(
            f"{load.name}: {free.directory} has free space for {entries} directories, "
            f"but {workers} workers need {need}; free some space or inodes there, or "
            "name another directory with --storage-dir"
        )
    detail = f"{per_worker} directories per worker instead of {load.default_entries}"
    return ("--dir-dirs", f"{per_worker}"), None, (("load_reduced", detail),)


def _fit_memory_limit(load: Load, place: LoadPlace) -> Fit:
    usual = (256 + 64 * place.workers) * MIB
    quarter = place.memory_bytes // 4
    if quarter >= usual:
        return (), usual, ()
    if quarter < MIN_OOM_BYTES:
        raise UsageError(
            f"{load.name}: a quarter of the free memory is {quarter // MIB} MiB, but "
            f"this load needs {MIN_OOM_BYTES // MIB} MiB; free some memory, or leave "
            "this load out with --load"
        )
    detail = f"memory limit {quarter // MIB} MiB instead of {usual // MIB} MiB"
    return (), quarter, (("load_reduced", detail),)


# --- operations and their rate, from the YAML file of stress-ng ---------------------

MAX_YAML_BYTES = 64 * 1024
"""stress-ng writes about 2 KiB; the parser is slow enough for more to matter."""

MAX_DEPTH = 16

_RATE = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")

_SECTION = re.compile(r"^metrics:\n(?:[ -].*\n?|\n)*", re.MULTILINE)

RATE = "bogo-ops-per-second-real-time"
OPERATIONS = "bogo-ops"

_COUNT = re.compile(r"[0-9]{1,18}")


def throughput_of(yaml_text: str) -> Mapping[str, float]:
    """
    Return operations per second of real time by stressor; empty if none are named.

    Raises ContractError if the text is not YAML as stress-ng writes it. It may come
    from a board or a record, so this trusts nothing in it.
    """
    figures = _figures(_document_of(yaml_text), RATE, _RATE)
    return {name: float(rate) for name, rate in figures}


def operations_of(yaml_text: str) -> Mapping[str, int]:
    """Return the operations completed, by stressor; as `throughput_of` otherwise."""
    figures = _figures(_document_of(yaml_text), OPERATIONS, _COUNT)
    return {name: int(count) for name, count in figures}


def _document_of(yaml_text: str) -> object:
    if len(yaml_text) > MAX_YAML_BYTES:
        raise ContractError(
            f"the metrics of stress-ng have {len(yaml_text):,} characters, more than "
            f"{MAX_YAML_BYTES:,}"
        )
    text = _metrics_section(yaml_text)
    try:
        _refuse_aliases_and_depth(text)
        # BaseLoader makes text of every scalar: no number, date or type is guessed.
        document = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise ContractError("the metrics of stress-ng are not valid YAML") from error
    return document


def _metrics_section(text: str) -> str:
    # As a whole it need not be YAML: 0.19.02 (Debian 13) writes build-info with
    # source-date-epoch at the margin and indented keys below it.
    match = _SECTION.search(text)
    return match[0] if match else text


def _refuse_aliases_and_depth(text: str) -> None:
    # A few merged aliases expand to gigabytes, and the loader recurses as deep as the
    # text goes; the events come from a loop, so they can be looked at first.
    depth = 0
    for event in yaml.parse(text, Loader=yaml.BaseLoader):
        if isinstance(event, yaml.AliasEvent):
            raise ContractError("the metrics of stress-ng contain a YAML alias")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise ContractError("the metrics of stress-ng are nested too deeply")


def _figures(
    document: object, key: str, form: re.Pattern[str]
) -> Iterator[tuple[str, str]]:
    metrics = document.get("metrics") if isinstance(document, dict) else None
    for row in metrics if isinstance(metrics, list) else ():
        if not isinstance(row, dict):
            continue
        name, figure = row.get("stressor"), row.get(key)
        if isinstance(name, str) and isinstance(figure, str) and form.fullmatch(figure):
            yield name[:64], figure
