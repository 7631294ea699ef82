"""
Records: what one run measured, complete enough to make any report again.

A record is never edited. One may come by mail: everything read here is checked, no
path in it is followed and no command in it is run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from rtscope.caveats.catalogue import Caveat
from rtscope.contract import (
    AgentResult,
    Count,
    Hello,
    KernelMessage,
    LoadEnd,
    LoadTick,
    Text,
    ThreadResult,
    Tick,
)
from rtscope.errors import RecordError
from rtscope.files import first_mistake
from rtscope.machine.facts import FactValue
from rtscope.record.virtual import VIRTUAL, VirtualRun, virtual_adapter

SCHEMA = 1

MAX_RECORD_BYTES = 256 * 1024 * 1024
"""A 24 h run on 64 CPUs has some 80 MB of ticks; more is not a record of ours."""

UNTRACED = "untraced"
"""
Key of `extra`: the same run without tracing, before and after, under the same load.

They are kept as they were, so that the cost of tracing can be worked out again. Before
and after: what drifts, such as temperature, then counts for both alike.
"""

UntracedRuns = tuple[tuple[ThreadResult, ...], ...]
Of = TypeVar("Of")

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
RunId = Annotated[str, Field(pattern=r"^[0-9]{3,6}-[a-z0-9][a-z0-9._+-]{0,150}$")]


@dataclass(frozen=True, slots=True)
class Run:
    """One cell of the matrix, as asked for."""

    id: RunId
    target: Text
    kernel: Text | None
    """The kernel asked for by name; None means the one that the target runs."""
    load: Text
    repetition: Annotated[int, Field(ge=1)]
    policy: Text
    priority: Count
    interval_ns: Annotated[int, Field(gt=0)]
    duration_ns: Annotated[int, Field(gt=0)]
    cpus: tuple[int, ...] | None
    """The CPUs to measure; None means all that the agent may use."""
    deadline_runtime_ns: Count | None = None
    """SCHED_DEADLINE only: the run time reserved in each interval."""
    seed: Count | None = None
    """Of a virtual board; None on a real machine."""


@dataclass(frozen=True, slots=True)
class LoadRecord:
    """What kept the machine busy, and the proof that it did."""

    name: Text
    argv: tuple[Text, ...]
    """Empty for the idle load."""
    version: Text | None
    ticks: tuple[LoadTick, ...]
    end: LoadEnd | None
    throughput: Mapping[str, float]
    """Operations per second of real time, by stressor (`bogo-ops` of stress-ng)."""
    log_tail: Text = ""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything known about one run."""

    schema: Literal[1]
    rtscope: Text
    run: Run
    command: tuple[Text, ...]
    """What to type to repeat the campaign."""
    campaign: Mapping[str, Any]
    started: Text
    """When the measurement began, ISO 8601, UTC, by the host's clock."""
    host_seconds: Annotated[float, Field(ge=0)]
    facts_before: Mapping[str, FactValue]
    facts_after: Mapping[str, FactValue]
    hello: Hello
    ticks: tuple[Tick, ...]
    result: AgentResult
    load: LoadRecord
    kernel_log: tuple[KernelMessage, ...]
    caveats: tuple[Caveat, ...]
    result_digest: Digest
    kernel_digest: Text | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def max_ns(self) -> int | None:
        """The latest wake-up of all threads; None without a sample."""
        highs = (thread.max_ns for thread in self.result.threads)
        return max((ns for ns in highs if ns is not None), default=None)

    @property
    def virtual(self) -> VirtualRun | None:
        """What booted, None if a machine was measured; RecordError if damaged."""
        return self._extra(VIRTUAL, virtual_adapter())

    @property
    def untraced(self) -> UntracedRuns:
        """The threads of each run without tracing; RecordError if damaged."""
        return self._extra(UNTRACED, _untraced_adapter()) or ()

    def _extra(self, key: str, adapter: TypeAdapter[Of]) -> Of | None:
        if key not in self.extra:
            return None
        try:
            return adapter.validate_python(self.extra[key])
        except ValidationError as error:
            raise RecordError(
                f"{self.run.id}: damaged record: extra.{key}: {first_mistake(error)}"
            ) from error


@cache
def _untraced_adapter() -> TypeAdapter[UntracedRuns]:
    return TypeAdapter(UntracedRuns)


def untraced_as_list(results: Sequence[AgentResult]) -> list[Any]:
    """Write the threads of the runs without tracing for a record's `extra`."""
    runs = tuple(result.threads for result in results)
    written = _untraced_adapter().dump_python(runs, mode="json")
    assert isinstance(written, list)
    return written


@cache
def _adapter() -> TypeAdapter[RunRecord]:
    return TypeAdapter(RunRecord)


def record_from_json(text: bytes, *, name: str) -> RunRecord:
    """Check and build a record; RecordError says what is wrong with `name`."""
    try:
        record = _adapter().validate_json(text)
    except ValidationError as error:
        mistake = first_mistake(error, whole="the file")
        if mistake.startswith("schema: "):
            raise RecordError(
                f"{name}: not a record of schema {SCHEMA}; it may be from a newer "
                "rtscope: read it with that version"
            ) from error
        raise RecordError(f"{name}: damaged record: {mistake}") from error
    try:
        _ = record.virtual, record.untraced
    except RecordError as error:
        raise RecordError(f"{name}: {error}") from error
    return record


def record_to_json(record: RunRecord) -> bytes:
    """Write a record out; `record_from_json` gives it back unchanged."""
    return _adapter().dump_json(record) + b"\n"
