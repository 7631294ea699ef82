"""
A test file: the program, the boards, the load, the times and the budgets.

This module defines every key: the alias of a field is its table and key, its type reads
the value, and the text below it is the help of the key and of its option. File and
options are read by this one model, so a wrong value gets the same message in both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path, PurePath
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails

from rtscope.boards.catalogue import get_board
from rtscope.host.errors import UsageError, no_such, quote
from rtscope.host.units import (
    NS_PER_H,
    NS_PER_MS,
    NS_PER_S,
)
from rtscope.machine.cpulist import format_cpulist
from rtscope.measure.campaign import values
from rtscope.measure.campaign.file import read_toml
from rtscope.measure.campaign.messages import table_at, wanted
from rtscope.measure.campaign.model import BOARD_SETTLE_NS
from rtscope.measure.campaign.values import MAX_ITEMS, Many
from rtscope.verbs.test.kinds import (
    Board,
    Cpus,
    Cycles,
    Limit,
    Number,
    Package,
    Period,
    Phase,
    Place,
    Policy,
    Range,
    Starts,
    ThreadNumber,
    Time,
    User,
    Value,
    Variable,
    Wait,
    pairs,
)

SCHEMA = 1

At = Callable[[str, str], str]
"""From table and key to the name of that place; an empty key: of the table itself."""


DEFAULT_DURATION_NS = 2 * NS_PER_S


@dataclass(frozen=True, slots=True)
class BudgetTable:
    """The limits of a thread; None: not judged."""

    __pydantic_config__ = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    period_ns: Annotated[Period | None, Field(alias="period")] = None
    """Period of the cycles (default: found by what wakes the thread)."""
    response_ns: Annotated[Limit | None, Field(alias="response")] = None
    """Longest time from the begin of a cycle, its due time, to its end."""
    latency_ns: Annotated[Limit | None, Field(alias="latency")] = None
    """Longest time from the begin of a cycle to the first instruction of the thread."""
    execution_ns: Annotated[Limit | None, Field(alias="execution")] = None
    """Longest time on a CPU in a cycle."""
    instructions: Annotated[
        Number | None, Field(alias="instructions", examples=["100000"])
    ] = None
    """Most instructions of the program itself in a cycle."""
    missed: Annotated[Number | None, Field(alias="missed", examples=["0"])] = None
    """Most periods skipped, or not done when the next was due."""
    allocations: Annotated[
        Number | None, Field(alias="allocations", examples=["0"])
    ] = None
    """Most calls that allocate or free memory, in all cycles."""
    faults: Annotated[Number | None, Field(alias="faults", examples=["0"])] = None
    """Most page faults in all cycles."""
    blocking: Annotated[Number | None, Field(alias="blocking", examples=["0"])] = None
    """Most waits in all cycles, but for those for the next cycle."""
    inversions: Annotated[Number | None, Field(alias="inversions", examples=["0"])] = (
        None
    )
    """Most waits for a lock that a less urgent thread of the program held."""


@dataclass(frozen=True, slots=True)
class ProgramTest:
    """Everything that decides a test: program, boards, load, times, budgets."""

    __pydantic_config__ = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    schema: Annotated[int, Field(strict=True, ge=1, le=SCHEMA, alias=".schema")] = (
        SCHEMA
    )
    """Version of the format of the file."""
    name: Annotated[values.Text | None, Field(alias=".name", examples=["control"])] = (
        None
    )
    """Name of the test in its answer (default: that of the program)."""
    command: Annotated[
        values.Command, Field(alias="program.command", examples=["'./control --fast'"])
    ] = ()
    """Program and its arguments."""
    build: Annotated[
        values.Command, Field(alias="program.build", examples=["'make control'"])
    ] = ()
    """Command to run on this computer first (default: none)."""
    root: Annotated[
        values.FilePath | None, Field(alias="program.root", examples=["./install"])
    ] = None
    """Directory whose files the program finds at its root (default: none)."""
    files: Annotated[
        Mapping[Place, values.FilePath],
        BeforeValidator(pairs),
        Field(
            alias="program.files",
            max_length=MAX_ITEMS,
            examples=["etc/control.toml=conf/test.toml"],
        ),
    ] = field(default_factory=dict)
    """Additional files: paths on the board and files or directories here."""
    packages: Annotated[
        Many[Package], Field(alias="program.packages", examples=["libfoo2,dash"])
    ] = ()
    """Debian packages, with all that they depend on; their scripts never run."""
    environment: Annotated[
        Mapping[Variable, Value],
        BeforeValidator(pairs),
        Field(alias="program.environment", max_length=MAX_ITEMS, examples=["A=B"]),
    ] = field(default_factory=dict)
    """Environment variables."""
    value_of: Annotated[
        Mapping[Variable, Value],
        BeforeValidator(pairs),
        Field(alias="program.values", max_length=MAX_ITEMS, examples=["PHASE_US=120"]),
    ] = field(default_factory=dict)
    """Values of {NAME} in command and environment."""
    phases: Annotated[
        Mapping[ThreadNumber, Phase],
        BeforeValidator(pairs),
        Field(alias="program.phase", max_length=MAX_ITEMS, examples=["2=120us/1ms"]),
    ] = field(default_factory=dict)
    """
    Times after a multiple of a period at which threads begin, by their number in the
    order in which they are made; the first one is 1.
    """
    stdin: Annotated[
        values.FilePath | None, Field(alias="program.stdin", examples=["input.txt"])
    ] = None
    """File for the standard input (default: empty)."""
    directory: Annotated[Value, Field(alias="program.directory", examples=["/tmp"])] = (
        "/"
    )
    """Working directory on the board."""
    user: Annotated[User, Field(alias="program.user")] = "root"
    """User on the board: a name, UID or UID:GID."""
    policy: Annotated[Policy | None, Field(alias="program.policy")] = None
    """Scheduling policy that the program begins with (default: ordinary)."""
    priority: Annotated[
        values.Priority | None, Field(alias="program.priority", examples=["80"])
    ] = None
    """Priority that it begins with, 1 to 99."""
    boards: Annotated[Many[Board], Field(alias="board.board")] = ("pc",)
    """Virtual boards."""
    kernels: Annotated[Many[values.Kernel], Field(alias="board.kernel")] = ()
    """Kernels, by name or path of an image (default: the first one of the board)."""
    seeds: Annotated[
        Many[values.Seed], Field(alias="board.seed", examples=["1,2,3"])
    ] = (1,)
    """Random seeds, one boot for each."""
    cpus: Annotated[Cpus, Field(alias="board.cpus")] = ()
    """CPUs that the program may use."""
    append: Annotated[
        values.Words, Field(alias="board.append", examples=["'nohz_full=1'"])
    ] = ()
    """Additional kernel parameters (default: none)."""
    qemu: Annotated[values.FilePath | None, Field(alias="board.qemu")] = None
    """Path of your own QEMU (default: the QEMU of the board)."""
    lockfile: Annotated[
        values.FilePath | None, Field(alias="board.lockfile", examples=["test.lock"])
    ] = None
    """Lock file with the exact packages of board and program (default: none)."""
    loads: Annotated[Many[values.Load], Field(alias="load.names")] = ("idle",)
    """Loads beside the program, one boot under each."""
    warmup_ns: Annotated[Wait, Field(alias="time.warmup")] = 100 * NS_PER_MS
    """Time of the program that is not judged, from its start."""
    duration_ns: Annotated[Time, Field(alias="time.duration")] = DEFAULT_DURATION_NS
    """Longest time that is judged; less if the program ends."""
    cycles: Annotated[Cycles | None, Field(alias="time.cycles", examples=["1000"])] = (
        None
    )
    """Cycles of each thread to judge (default: all in the duration)."""
    settle_ns: Annotated[Wait, Field(alias="time.settle", examples=["10s"])] = (
        BOARD_SETTLE_NS
    )
    """Idle time after the boot."""
    starts: Annotated[Starts, Field(alias="time.starts", examples=["4"])] = 1
    """Starts of the program in one boot, at different times in a timer tick."""
    budget: Annotated[BudgetTable, Field(alias="budget")] = BudgetTable()
    """Limits of all real-time threads of the program."""
    threads: Annotated[
        Mapping[values.Text, BudgetTable], Field(alias="thread", max_length=MAX_ITEMS)
    ] = field(default_factory=dict)
    """Limits by the name of a thread, with * for any text."""
    vary: Annotated[
        Mapping[Variable, Range],
        Field(alias="search.vary", max_length=MAX_ITEMS, examples=["PHASE_US"]),
    ] = field(default_factory=dict)
    """Values of {NAME} that --search tries, such as "0..2000"."""
    base: Annotated[str, Field(alias=".base", exclude=True)] = ""
    """The directory at which relative paths begin; not of the file."""

    @property
    def title(self) -> str:
        """The name of the test, or of its program."""
        return self.name or PurePath(self.command[0] if self.command else "test").name

    @property
    def longest_ns(self) -> int:
        """How long a start runs after its warm-up, for its cycles if it has periods."""
        periods = [one.period_ns for one in (self.budget, *self.threads.values())]
        known = [one for one in periods if one is not None]
        if self.cycles is None or not known:
            return self.duration_ns
        return min(NS_PER_H, (self.cycles + 2) * max(known))

    def path(self, text: str) -> Path:
        """Return a path of this computer."""
        return Path(self.base) / text


_TABLES = ("program", "board", "load", "time", "budget", "thread", "search")
_NESTED = ("budget", "thread")


def load_test(path: Path) -> ProgramTest:
    """Read a test file; UsageError names file, table, key and remedy."""
    test = program_test_of(read_toml(path, kind="test"), source=str(path))
    return replace(test, base=str(path.parent))


def program_test_of(document: Mapping[str, object], *, source: str) -> ProgramTest:
    """Return a test from the tables of its file; UsageError as `load_test`."""

    def at(table: str, key: str) -> str:
        head = f" [{table}]" if table else ""
        return f"{source}:{head} {key}".rstrip()

    keys = [name for name in _keys("") if name != "base"]
    read: dict[str, object] = {}
    for name, value in document.items():
        if name in keys:
            read[f".{name}"] = value
        elif name in _NESTED:
            read[name] = table_at(value, at(name, ""))
        elif name in _TABLES:
            table = table_at(value, at(name, ""))
            read |= {f"{name}.{key}": one for key, one in table.items()}
        else:
            known = (*keys, *_TABLES)
            raise UsageError(f"{source}: {no_such('table or key', name, known)}")
    return _checked(_validated(read, at), at)


def with_values(
    test: ProgramTest, given: Mapping[str, object], option_of: Mapping[str, str]
) -> ProgramTest:
    """
    Return the test with the values of options in place of its own.

    By their keys, such as `program.stdin` or `budget.response`; `option_of` has the
    names of the options. Raises UsageError as the file would, naming the option.
    """

    def at(table: str, key: str) -> str:
        return f"--{option_of.get(f'{table}.{key}', key)}"

    plain = {
        key: _from_here(key, one)
        for key, one in given.items()
        if not key.startswith("budget.")
    }
    budget = {
        key.removeprefix("budget."): one
        for key, one in given.items()
        if key.startswith("budget.")
    }
    read = _validated({**plain, **({"budget": budget} if budget else {})}, at)
    fields = {
        name: getattr(read, name)
        for name, alias in _aliases(ProgramTest).items()
        if alias in plain
    }
    limits = {
        name: getattr(read.budget, name)
        for name, alias in _aliases(BudgetTable).items()
        if alias in budget
    }
    return _checked(replace(test, **fields, budget=replace(test.budget, **limits)), at)


_PATHS = ("program.root", "program.stdin", "board.qemu", "board.lockfile")


def _from_here(key: str, value: object) -> object:
    """Return an option's value with paths from the current directory."""
    if not isinstance(value, str) or not value or value.startswith("-"):
        return value
    if key in _PATHS:
        return str(Path(value).absolute())
    if key == "program.files":
        read = pairs(value) if "=" in value else value
        return (
            {name: str(Path(one).absolute()) for name, one in read.items()}
            if isinstance(read, dict)
            else value
        )
    if key == "board.kernel":
        names = value.split(",")
        return [str(Path(one).absolute()) if "/" in one else one for one in names]
    return value


def _checked(test: ProgramTest, at: At) -> ProgramTest:
    for board in map(get_board, test.boards):
        if any(cpu >= board.cpus for cpu in test.cpus):
            raise UsageError(
                f"{at('board', 'cpus')}: {format_cpulist(test.cpus)}: {board.name} has "
                f"the CPUs 0-{board.cpus - 1}"
            )
    if test.policy and test.priority is None:
        raise UsageError(
            f"{at('program', 'policy')}: {test.policy} needs a priority: add "
            f"{at('program', 'priority')} 80 (1 to 99)"
        )
    if test.priority is not None and not test.policy:
        raise UsageError(
            f"{at('program', 'priority')}: {test.priority} is of no policy: add "
            f"{at('program', 'policy')} fifo"
        )
    if "custom" in test.loads:
        raise UsageError(
            f"{at('load', 'names')}: custom: a test has no command for it; name a load "
            "of rtscope, or of stress-ng, such as stress-ng:fork"
        )
    filled = (*test.command, *test.environment.values())
    for key, names in (("program", test.value_of), ("search", test.vary)):
        for name in names if test.command else ():
            if not any(f"{{{name}}}" in one for one in filled):
                where = at(key, "values" if key == "program" else "vary")
                raise UsageError(
                    f"{where}: {name}: neither the command nor a variable of its "
                    f"environment has {{{name}}}: write it where the value is to be"
                )
    return test


def written(test: ProgramTest) -> dict[str, Any]:
    """Return the test as JSON-able values by their keys, without those not set."""
    document: dict[str, Any] = _adapter().dump_python(
        test, mode="json", by_alias=True, exclude_none=True
    )
    return {key.removeprefix("."): one for key, one in document.items() if one != []}


# --- reading ----------------------------------------------------------------------


@cache
def _adapter() -> TypeAdapter[ProgramTest]:
    return TypeAdapter(ProgramTest)


@cache
def schemas() -> Mapping[str, Mapping[str, Any]]:
    """Return each key, such as `time.warmup`, with the JSON schema of its value."""
    schema = _adapter().json_schema()
    keys: dict[str, Mapping[str, Any]] = dict(schema["properties"])
    limits = schema["$defs"]["BudgetTable"]["properties"]
    return keys | {f"budget.{name}": one for name, one in limits.items()}


def _keys(table: str) -> list[str]:
    begin = f"{table}."
    return [key.removeprefix(begin) for key in schemas() if key.startswith(begin)]


def _aliases(kind: type) -> Mapping[str, str]:
    hints = kind.__annotations__
    return {
        name: next(
            one.alias for one in hint.__metadata__ if getattr(one, "alias", None)
        )
        for name, hint in hints.items()
    }


def _validated(read: Mapping[str, object], at: At) -> ProgramTest:
    try:
        return _adapter().validate_python(read)
    except ValidationError as error:
        raise UsageError(_message(error.errors(include_url=False)[0], at)) from error


def _message(error: ErrorDetails, at: At) -> str:
    """Write the message of an error: the place, the wrong value, the remedy."""
    first, *rest = (str(part) for part in error["loc"])
    table, _, key = first.partition(".")
    if table in _NESTED and rest and rest[-1] == "[key]":
        name = quote(error["input"])
        return f"{at(table, '')}: {name}: write a name in which each character shows"
    if table in _NESTED and rest:
        named = rest.pop(0) if table == "thread" else ""
        head = f'thread."{named}"' if named else table
        if not rest or error["type"] == "dataclass_type":
            return f"{at(head, '')}: {quote(error['input'])}: write a table"
        table, key = head, rest.pop(0)
    if error["type"] == "unexpected_keyword_argument":
        known = _keys("budget" if table.startswith("thread") else table)
        return f"{at(table, '')}: {no_such('key', key, known)}"
    if error["type"] in ("mapping_type", "dict_type"):
        return f"{at(table, key)}: {quote(error['input'])}: write a table"
    schema = schemas()["budget." + key if head_of(table) in _NESTED else first]
    return f"{at(table, key)}: {wanted(error, _leaf(schema))}"


def head_of(table: str) -> str:
    """Return the first word of the name of a table."""
    return table.partition(".")[0]


def _leaf(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a value of a table."""
    inside = schema.get("additionalProperties")
    return inside if isinstance(inside, Mapping) else schema
