"""
What a worker is asked and answers: a bundle by its digests and a run; or a result.

Both are plain values, so that a worker with another rtscope can say so. A task names
the digest of all inputs: a worker that would boot others refuses.
"""

import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from rtscope.boards.catalogue import Board
from rtscope.boards.parts.bundle import find_pinned
from rtscope.boards.parts.cache import part_key, read_part, verify
from rtscope.boards.parts.prepared import Prepared, assemble
from rtscope.boards.parts.qemu import Recording
from rtscope.boards.runs.assemble import inputs_before
from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.outcome import pack_booted, read_booted
from rtscope.boards.runs.prepare import RunRequest, request_for
from rtscope.boards.runs.readiness import HOSTS
from rtscope.boards.runs.runner import boot_run
from rtscope.host.errors import BoardError, RtscopeError
from rtscope.host.escape import printable
from rtscope.host.version import __version__
from rtscope.measure.campaign.file import from_dict, to_dict
from rtscope.record.model import InputDigests, Run

_BOARD = TypeAdapter(Board)
_RUN = TypeAdapter(Run)
_RECORDING = TypeAdapter(Recording | None)


@dataclass(frozen=True, slots=True)
class Task:
    """A run on a bundle."""

    rtscope: str
    """The version that asks; another one could boot other inputs."""
    board: Mapping[str, Any]
    kernel: str
    pins: Mapping[str, str]
    """The bundle: digests of its parts' manifests, by name."""
    run: Mapping[str, Any]
    campaign: Mapping[str, Any]
    recording: Mapping[str, Any] | None
    inputs: str
    """The digest of all inputs of the boot."""
    settings: tuple[str, ...] = ()
    """Of --tuned, as options of the agent."""

    @property
    def bundle(self) -> str:
        """The digest of the bundle."""
        return part_key(dict(self.pins))


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a task."""

    kind: Literal["booted", "lacks", "failed", "unfit"]
    """
    `lacks`: parts of the bundle are not there; `failed`: the boot gave no result;
    `unfit`: this worker cannot compute it at all.
    """
    worker: str
    content: bytes = b""
    """The packed results of a boot."""
    lacking: tuple[str, ...] = ()
    why: str = ""

    def booted(self) -> Booted:
        """Return the results of the boot; BoardError if they are damaged."""
        return read_booted(self.content, source="its answer")


_ANSWER = TypeAdapter(Answer)
MAX_LACKING = 100


def answer_of(said: object) -> Answer:
    """Return what a worker said, in visible characters; ValueError if it is none."""
    answer = _ANSWER.validate_python(said)
    if len(answer.lacking) > MAX_LACKING:
        raise ValueError(f"it lacks {len(answer.lacking):,} parts")
    return replace(answer, worker=printable(answer.worker), why=printable(answer.why))


def task_of(
    request: RunRequest,
    prepared: Prepared,
    recording: Recording | None,
    inputs: InputDigests,
) -> Task:
    """Return what a worker must know of a run."""
    return Task(
        rtscope=__version__,
        board=asdict(prepared.board),
        kernel=prepared.kernel.name,
        pins={part.name: part_key(part.manifest) for part in prepared.parts},
        run={**asdict(request.run), "id": RUN_ID},
        campaign=to_dict(request.campaign),
        recording=None if recording is None else asdict(recording),
        inputs=inputs.digest,
        settings=request.settings,
    )


RUN_ID = "001-run"
"""A worker need not know which run of which cell it computes."""


def answer_to(
    task: Task, *, worker: str, cache: Path, stopped: Callable[[], bool]
) -> Answer:
    """Boot what a task asks for; never raises for what a worker or a boot lacks."""
    if task.rtscope != __version__:
        return Answer(
            "unfit", worker, why=f"it has rtscope {__version__}, not {task.rtscope}"
        )
    if (machine := platform.machine()) not in HOSTS:
        why = f"it is a machine of {machine}; boards run on {', '.join(HOSTS)}"
        return Answer("unfit", worker, why=why)
    try:
        parts = find_pinned(cache, task.pins)
        if missing := sorted(task.pins.keys() - parts.keys()):
            return Answer("lacks", worker, lacking=tuple(missing))
        for part in parts.values():
            _verified(part.path, task.pins[part.name])
        board = _BOARD.validate_python(task.board)
        ordered = [parts[name] for name in task.pins]
        prepared = assemble(board, task.kernel, parts=ordered)
        campaign = from_dict(dict(task.campaign), source="task")
        run = _RUN.validate_python(task.run)
        request = request_for(run, campaign, board, (), settings=tuple(task.settings))
        if inputs_before(request, prepared).digest != task.inputs:
            why = "it would boot other inputs; install the same rtscope there"
            return Answer("unfit", worker, why=why)
        recording = _RECORDING.validate_python(task.recording)
    except (RtscopeError, OSError, ValidationError) as error:
        return Answer("unfit", worker, why=str(error))
    try:
        booted = boot_run(
            request,
            prepared,
            recording,
            stopped=stopped,
            on_progress=lambda _board: None,
        )
        return Answer("booted", worker, content=pack_booted(booted))
    except (RtscopeError, ValueError) as error:
        return Answer("failed", worker, why=str(error))
    except MemoryError:
        return Answer("failed", worker, why="it has too little memory for the result")
    except OSError as error:
        return Answer("failed", worker, why=f"{error.filename}: {error.strerror}")


@lru_cache(maxsize=256)
def _verified(path: Path, pin: str) -> None:
    """Check a part once, by the content of its files."""
    part = read_part(path)
    if part_key(part.manifest) != pin:
        raise BoardError(f"{path}: was changed: delete it")
    verify(part)
