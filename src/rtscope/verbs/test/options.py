"""Options of `rtscope test` that stand for keys of a test file."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from rtscope.measure.campaign.messages import help_text
from rtscope.verbs.test.file import ProgramTest, schemas, written

PROGRAM, WHERE, TIMES = "The program", "Where", "Times"
BUDGETS = "Budgets of real-time threads"

KEYS = {
    **{"build": "program.build", "root": "program.root", "files": "program.files"},
    **{"package": "program.packages", "environment": "program.environment"},
    **{"value": "program.values", "phase": "program.phase"},
    **{"stdin": "program.stdin", "directory": "program.directory"},
    **{"policy": "program.policy", "priority": "program.priority"},
    **{"user": "program.user", "board": "board.board", "kernel": "board.kernel"},
    **{"seed": "board.seed", "cpus": "board.cpus", "append": "board.append"},
    **{"qemu": "board.qemu", "lockfile": "board.lockfile", "load": "load.names"},
    **{"warmup": "time.warmup", "duration": "time.duration"},
    **{"cycles": "time.cycles", "settle": "time.settle", "starts": "time.starts"},
    **{"period": "budget.period", "response": "budget.response"},
    **{"latency": "budget.latency", "execution": "budget.execution"},
    **{"instructions": "budget.instructions", "missed": "budget.missed"},
    **{"allocations": "budget.allocations", "faults": "budget.faults"},
    **{"blocking": "budget.blocking", "inversions": "budget.inversions"},
}
"""The key of each option."""

OPTION_OF: Mapping[str, str] = {key: name for name, key in KEYS.items()}


def _option(name: str, panel: str) -> Any:
    key = KEYS[name]
    schema = schemas()[key]
    text = " ".join(str(schema.get("description", "")).split()).removesuffix(".")
    default = written(ProgramTest()).get(key)
    shown = default if default != {} else None
    return typer.Option(help=help_text(text, schema, shown), rich_help_panel=panel)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTestOptions:
    """The options that set keys of a test, as typed; None: not given."""

    build: Annotated[str | None, _option("build", PROGRAM)] = None
    root: Annotated[str | None, _option("root", PROGRAM)] = None
    files: Annotated[str | None, _option("files", PROGRAM)] = None
    package: Annotated[str | None, _option("package", PROGRAM)] = None
    environment: Annotated[str | None, _option("environment", PROGRAM)] = None
    value: Annotated[str | None, _option("value", PROGRAM)] = None
    phase: Annotated[str | None, _option("phase", PROGRAM)] = None
    stdin: Annotated[str | None, _option("stdin", PROGRAM)] = None
    directory: Annotated[str | None, _option("directory", PROGRAM)] = None
    user: Annotated[str | None, _option("user", PROGRAM)] = None
    policy: Annotated[str | None, _option("policy", PROGRAM)] = None
    priority: Annotated[str | None, _option("priority", PROGRAM)] = None
    board: Annotated[str | None, _option("board", WHERE)] = None
    kernel: Annotated[str | None, _option("kernel", WHERE)] = None
    load: Annotated[str | None, _option("load", WHERE)] = None
    cpus: Annotated[str | None, _option("cpus", WHERE)] = None
    seed: Annotated[str | None, _option("seed", WHERE)] = None
    append: Annotated[str | None, _option("append", WHERE)] = None
    qemu: Annotated[str | None, _option("qemu", WHERE)] = None
    lockfile: Annotated[str | None, _option("lockfile", WHERE)] = None
    warmup: Annotated[str | None, _option("warmup", TIMES)] = None
    duration: Annotated[str | None, _option("duration", TIMES)] = None
    cycles: Annotated[str | None, _option("cycles", TIMES)] = None
    settle: Annotated[str | None, _option("settle", TIMES)] = None
    starts: Annotated[str | None, _option("starts", TIMES)] = None
    period: Annotated[str | None, _option("period", BUDGETS)] = None
    response: Annotated[str | None, _option("response", BUDGETS)] = None
    latency: Annotated[str | None, _option("latency", BUDGETS)] = None
    execution: Annotated[str | None, _option("execution", BUDGETS)] = None
    instructions: Annotated[str | None, _option("instructions", BUDGETS)] = None
    missed: Annotated[str | None, _option("missed", BUDGETS)] = None
    allocations: Annotated[str | None, _option("allocations", BUDGETS)] = None
    faults: Annotated[str | None, _option("faults", BUDGETS)] = None
    blocking: Annotated[str | None, _option("blocking", BUDGETS)] = None
    inversions: Annotated[str | None, _option("inversions", BUDGETS)] = None

    @property
    def given(self) -> Mapping[str, str]:
        """The options that were typed, by the keys that they set."""
        values = {KEYS[one.name]: getattr(self, one.name) for one in fields(self)}
        return {key: value for key, value in values.items() if value is not None}
