"""
The boards that there are: one TOML file each in `boards/`, read and checked here.

No code knows a board by name. A board whose results would mean nothing (several CPUs
and an unbounded quantum) is refused with the reason.
"""

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from rtscope.host.errors import UsageError
from rtscope.host.files import first_mistake
from rtscope.host.files.documents import toml_tables
from rtscope.host.units import parse_size

NO_QUANTUM = (
    "a board of several CPUs needs quantum_instructions, of 50 us at most: without it "
    "QEMU runs each CPU until the guest's next timer, and a busy CPU delays the "
    "interrupts of the others by up to half a tick (measured: 2 to 76 ms, which no "
    "real machine has)"
)

LONGEST_QUANTUM_NS = 50_000
"""Longer ones show in every latency: docs/explanation/quantum-length.md."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.,=+-]*$", max_length=200)]
Word = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.,:=+/@-]*$", max_length=200)
]
"""Of a kernel's command line."""
Prose = Annotated[str, Field(min_length=1, max_length=500)]


@checked_dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Board:
    """A virtual board; the files in `boards/` give the reason for each value."""

    name: Name
    title: Prose
    arch: Name
    """As `uname -m` prints it."""
    machine: Name
    """QEMU's -M."""
    cpu: Name
    cpus: Annotated[int, Field(ge=1, le=8)]
    memory: Annotated[str, Field(pattern=r"^[0-9]+[MG]$")]
    shift: Annotated[int, Field(ge=0, le=10)]
    """An instruction takes 2^shift ns of virtual time."""
    console: Name
    """The device of the kernel's messages, below /dev."""
    results: Name
    """The device by which results leave, below /dev; nothing else is written to it."""
    results_devices: tuple[str, ...]
    """What gives the machine that device, connected to the chardev `results`."""
    kernels: tuple[Name, ...]
    """What is measured if no kernel is named."""
    append: tuple[Word, ...]
    """For the kernel's command line, besides what all boards get."""
    models: tuple[Prose, ...]
    leaves_out: tuple[Prose, ...]
    quantum_instructions: Annotated[int, Field(ge=100, le=10_000_000)] | None = None
    """Instructions that a CPU may be ahead of another one that executes."""
    revision: Annotated[int, Field(ge=1)] = 1
    """Of the model: results of different revisions are of different machines."""
    event_devices: tuple[str, ...] = ()
    """What the event of a run needs: options of QEMU; no board's file has any."""

    @property
    def instruction_ns(self) -> int:
        """Virtual time per instruction."""
        return int(1 << self.shift)

    @property
    def mips(self) -> float:
        """Millions of instructions per virtual second, of each CPU."""
        return 1000 / self.instruction_ns

    @property
    def quantum_ns(self) -> int | None:
        """Virtual time of a quantum; None with one CPU."""
        if self.quantum_instructions is None:
            return None
        return self.quantum_instructions * self.instruction_ns

    @property
    def memory_bytes(self) -> int:
        """How much memory the guest has."""
        return parse_size(self.memory)


@dataclass(frozen=True, slots=True)
class Arch:
    """A row of `arches.toml`, which explains the fields."""

    name: str
    debian: str
    libs: str
    elf: str
    elf32: str
    triplet: str
    qemu: str
    qemu_packages: tuple[str, ...]
    firmware: tuple[str, ...]


def board_names() -> tuple[str, ...]:
    """Return the names of all boards, sorted."""
    return tuple(sorted(_boards()))


def get_board(name: str) -> Board:
    """Return a board; UsageError names the nearest one if there is none."""
    board = _boards().get(name)
    if board is None:
        near = difflib.get_close_matches(name[:64], board_names(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"no such board: {name[:64]!r}{hint} (boards: {', '.join(board_names())})"
        )
    return board


def parse_board(name: str, text: str) -> Board:
    """Read a board's file; UsageError names the wrong key and the reason."""
    try:
        tables = toml_tables(text, name=f"{name}.toml")
        board = _BOARD.validate_python({**tables, "name": name})
    except ValidationError as error:
        raise UsageError(f"{name}.toml: {first_mistake(error)}") from error
    if board.arch not in _arches():
        raise UsageError(f"{name}.toml: arch: one of {', '.join(_arches())}")
    if board.cpus > 1 and (
        board.quantum_ns is None or board.quantum_ns > LONGEST_QUANTUM_NS
    ):
        raise UsageError(f"{name}.toml: {NO_QUANTUM}")
    return board


def with_append(board: Board, words: Sequence[str]) -> Board:
    """Return the board with more on its kernel's command line; UsageError."""
    try:
        return replace(board, append=(*board.append, *words))
    except ValidationError as error:
        number = error.errors()[0]["loc"][-1]
        word = (*board.append, *words)[int(number)]
        raise UsageError(
            f"--append: {word[:80]!r}: letters, digits and _.,:=+/@- only, 200 at most"
        ) from error


def appended(board: Board) -> tuple[str, ...]:
    """Return the words that with_append() has put on its kernel's command line."""
    return board.append[len(get_board(board.name).append) :]


def get_arch(name: str) -> Arch:
    """Return the row of an architecture that a board names."""
    return _arches()[name]


_BOARD = TypeAdapter(Board)


@cache
def _boards() -> Mapping[str, Board]:
    files = resources.files("rtscope.boards").joinpath("boards").iterdir()
    names = {f.name.removesuffix(".toml"): f for f in files if f.name.endswith(".toml")}
    return {name: parse_board(name, f.read_text("utf-8")) for name, f in names.items()}


@cache
def _arches() -> Mapping[str, Arch]:
    return {
        name: Arch(name, **tuples(row)) for name, row in read_table("arches").items()
    }


def read_table(name: str) -> dict[str, Any]:
    """Read a table that lies beside this module."""
    file = resources.files("rtscope.boards").joinpath(f"{name}.toml")
    return tomllib.loads(file.read_text("utf-8"))


def tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a table with its lists made immutable."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
