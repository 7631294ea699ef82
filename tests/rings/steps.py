"""Commands one after the other, each noted when it has ended, so that a run goes on."""

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType


@dataclass(frozen=True, slots=True)
class Step:
    """One command."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    """A command that runs as long as this one."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of a step."""

    name: str
    status: int
    cpu_s: float
    wall_s: float


def journal_in(path: Path) -> dict[str, Ended]:
    """Return the steps that have ended, by name; a last line without an end is none."""
    if not path.exists():
        return {}
    *lines, _cut = path.read_text().split("\n")
    rows = [Ended(**json.loads(line)) for line in lines]
    return {row.name: row for row in rows}


def run_steps(
    steps: Sequence[Step], journal: Path, log: Callable[[str], None] = print
) -> list[Ended]:
    """Run those that have not ended yet; return what came of all."""
    done = journal_in(journal)
    journal.parent.mkdir(parents=True, exist_ok=True)
    for step in steps:
        if step.name in done:
            continue
        log(f"--- {step.name}: {shlex.join(step.argv)}")
        ended = _run(step)
        done[step.name] = ended
        with journal.open("a") as file:
            file.write(json.dumps(asdict(ended)) + "\n")
    return [done[step.name] for step in steps]


@contextmanager
def beside(argv: Sequence[str]) -> Iterator[None]:
    """Keep a command running, if there is one; a SIGTERM ends it with the caller."""
    if not argv:
        yield
        return
    before = signal.signal(signal.SIGTERM, _leave)
    load = subprocess.Popen(argv, process_group=0, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        load.terminate()
        load.wait()
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _run(step: Step) -> Ended:
    begun, used = time.monotonic(), _children_s()
    with beside(step.beside):
        ran = subprocess.run(
            step.argv,
            env={**os.environ, **step.env},
            stdin=subprocess.DEVNULL,
            check=False,
        )
    wall_s = time.monotonic() - begun
    return Ended(
        step.name, ran.returncode, round(_children_s() - used, 1), round(wall_s, 1)
    )


def _children_s() -> float:
    used = os.times()
    return used.children_user + used.children_system


def table(done: Sequence[Ended]) -> Iterator[str]:
    """Write what came of the steps."""
    yield "| step | exit status | CPU s | wall s |"
    yield "|---|---:|---:|---:|"
    for one in done:
        yield f"| {one.name} | {one.status} | {one.cpu_s:.0f} | {one.wall_s:.0f} |"
