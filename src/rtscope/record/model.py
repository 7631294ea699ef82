"""
Records: what one run measured, complete enough to make any report again.

A record is never edited. One may come by mail: everything read here is checked, no
path in it is followed and no command in it is run.

The board's results follow from its inputs: runs with equal inputs are the same run,
and must have the same result on every host. `VirtualRun.inputs_by_label` is the only
list of them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
)
from pydantic_core import from_json

from rtscope.contract import (
    AgentResult,
    Count,
    Finite,
    Flag,
    Hello,
    KernelMessage,
    LoadEnd,
    LoadTick,
    LoadWindow,
    Text,
    ThreadResult,
    Tick,
    Whole,
    sha256_of_json,
)
from rtscope.contract.values import without_default
from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files import first_mistake
from rtscope.host.files.documents import JsonShape, holds_too_much
from rtscope.machine.facts import FactValue
from rtscope.record.caveats.catalogue import Caveat
from rtscope.record.wakeparts import WakeupParts

# --- versions of what lies in a result directory: 2 was the first, and 1 is never used


def refused(
    text: bytes, error: ValidationError, *, name: str, kind: str, known: int, again: str
) -> RecordError:
    """Return the error for a text that is of another version, or is damaged."""
    document = _document_of(text)
    if document is None or document.get("schema") == known:
        mistake = first_mistake(error, whole="the file")
        return RecordError(f"{name}: damaged {kind}: {mistake}")
    return wrong_schema(name, document.get("schema"), known, again=again)


def _document_of(text: bytes) -> Mapping[str, object] | None:
    """Return the object in a text, whatever its version; None if there is none."""
    if holds_too_much(text):
        return None
    try:
        document = from_json(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def wrong_schema(place: str, schema: object, known: int, *, again: str) -> RecordError:
    """Return the error for another version than the known one; `again` makes it new."""
    newer = isinstance(schema, int) and schema > known
    remedy = "read it with the newer rtscope that wrote it" if newer else again
    return RecordError(
        f"{place}: schema {schema!a:.40}, and this rtscope reads {known}: {remedy}"
    )


# --- A run of a virtual board: what booted, and all that its result depends on --------


@dataclass(frozen=True, slots=True)
class InputDigests:
    """SHA-256 of each input; the seed as it is."""

    kernel: Text
    initrd: Text
    """User space, agent, modules and the job, which follows from campaign and seed."""
    qemu: Text
    plugin: Text
    board: Text
    """All of QEMU's command line but files and seed, and the board's revision."""
    campaign: Text
    """What of the campaign concerns this run."""
    seed: Count

    @property
    def digest(self) -> str:
        """One digest over all of them."""
        return sha256_of_json(asdict(self))


@dataclass(frozen=True, slots=True)
class VirtualRun:
    """Everything that the result of a virtual board depends on, and what it cost."""

    board: Text
    cpus: Count
    mips: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Million instructions per virtual second, of each CPU since revision 2."""
    quantum_instructions: Count | None
    seed: Count
    kernel: Text
    kernel_digest: Text
    initrd_digest: Text
    qemu_digest: Text
    plugin_digest: Text
    qemu_version: Text = ""
    """Its version."""
    board_revision: Count = 1
    """Of the board's model: in the first one all CPUs shared one clock."""
    settle_ns: Count = 0
    input_digests: InputDigests | None = None
    """None in a record of an older rtscope."""
    inputs_digest: Text | None = None
    part_digests: Mapping[str, Text] = field(default_factory=dict)
    """Digests by name: what to boot it with again."""
    kernel_bytes: Count | None = None
    """Size of the kernel's image, as it is on the disk; None in an older record."""
    disk_filesystem: Text = ""
    """File system of the disk in memory."""
    module_addresses: Mapping[str, Text] = field(default_factory=dict)
    """Addresses by name, as in /proc/modules."""
    module_symbols: str = ""
    """Of modules that the load has inserted; no others know them."""
    plugin_counters: Mapping[str, Any] = field(default_factory=dict)
    """What the plugin has counted up to the agent's last mark."""
    not_modelled: tuple[Text, ...] = ()
    trace: Mapping[str, Any] | None = None
    """The file of recorded paths, or why there is none."""
    reused: Flag = False
    """
    Whether this is a stored result of equal inputs, not a new measurement; `started_at`
    is when it was computed.
    """
    worker: Text = ""
    """The worker of a cluster that booted it; empty: the host of rtscope itself."""

    @property
    def inputs_by_label(self) -> Mapping[str, object]:
        """All that must be equal in two runs to be the same run."""
        known = self.input_digests
        return {
            "kernel": self.kernel_digest,
            "initrd": self.initrd_digest,
            "qemu": self.qemu_digest,
            "plugin": self.plugin_digest,
            "board": (
                *(self.board, self.cpus, self.mips, self.quantum_instructions),
                known and known.board,
            ),
            "model": f"revision {self.board_revision}",
            "campaign": known and known.campaign,
            "seed": self.seed,
        }


# --- records: what one run measured, complete enough to make any report again ---------

SCHEMA = 2

TIMER = "timer"
"""The event that wakes a thread where no other is named: its own timer."""
HWLAT = "hwlat"
"""No event: the kernel's tracer of that name, which looks for holes of its own."""
TIMERLAT = "timerlat"
"""No event: the kernel's tracer of that name, with a thread of its own on each CPU."""
POLL = "poll"
"""No event: the thread never sleeps, and its latency is a gap in what it does."""

UNKNOWN = "unknown"
"""The load or policy of an imported run whose file does not name it."""

FILE_LOST = "file_not_kept"
"""The caveat that names a file beside the record, and why it could not be written."""

MAX_RECORD_BYTES = 256 * 1024 * 1024
"""A 24 h run on 64 CPUs has some 80 MB of ticks; more is not a record of ours."""

UntracedRuns = tuple[tuple[ThreadResult, ...], ...]

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
    repetition: Annotated[int, Field(ge=1, le=2**31)]
    policy: Text
    priority: Count
    interval_ns: Annotated[int, Field(ge=0, le=2**63 - 1)]
    """0: unknown, only of an imported run."""
    duration_ns: Annotated[int, Field(ge=0, le=2**63 - 1)]
    """0: unknown, only of an imported run."""
    cpus: tuple[Annotated[int, Field(ge=0, lt=2**16)], ...] | None
    """The CPUs to measure; None means all that the agent may use."""
    deadline_runtime_ns: Count | None = None
    """SCHED_DEADLINE only: the run time reserved in each interval."""
    seed: Count | None = None
    """Of a virtual board; None on a real machine."""
    variant: Text | None = None
    """What this run is called in a comparison; None if it has no name of its own."""
    kernel_release: Text | None = None
    """Pattern of the kernel release that had to be booted; None: any."""
    block: Annotated[int, Field(ge=1, le=2**31)] | None = None
    """The block of the plan in which the order of the variants was drawn at random."""
    event: Text = TIMER
    """What wakes the measuring threads, with its options: `futex:cpu=same`."""

    @property
    def event_words(self) -> str:
        """The event as a part of the run's name; empty for the thread's own timer."""
        return "" if self.event == TIMER else f"event {self.event}"

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_default(write(self), "event", TIMER)


@dataclass(frozen=True, slots=True)
class WorkerLapse:
    """A time in which a process of the load did not work; from the run's start."""

    what: Literal["died", "stopped", "idle"]
    after_ns: Whole
    """When it was last seen well; negative before the start."""
    by_ns: Whole
    """When it was first seen so."""
    until_ns: Whole | None
    """When it was seen well again; None: not before the end."""

    @property
    def in_words(self) -> str:
        """What was so when, in seconds."""
        by, after = (f"{max(ns, 0) / 1e9:.1f}" for ns in (self.by_ns, self.after_ns))
        until = "" if self.until_ns is None else f"{self.until_ns / 1e9:.1f} s"
        if self.by_ns <= 0:
            said = f"{self.what} before the start"
        elif self.what == "idle":
            return f"idle from {after} s to {until or 'the end'}"
        else:
            said = f"{self.what} between {after} and {by} s"
        return f"{said}, until {until}" if until and self.what != "died" else said


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """What a process of the load did while samples were taken."""

    name: Text
    pid: Count | None
    """None: short-lived processes of this name, taken together."""
    processes: Count
    """How many were seen: 1, but for short-lived ones."""
    waits: Flag
    """It has children that work, and is not expected to work itself."""
    cpu_ns: Count
    least_share: Finite | None
    """The least CPU time of a window, of one CPU; None if no window was judged."""
    most_share: Finite | None
    voluntary_switches: Count
    involuntary_switches: Count
    lapses: tuple[WorkerLapse, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadRecord:
    """What kept the machine busy, and the proof that it did."""

    name: Text
    argv: tuple[Text, ...]
    """Empty for the idle load."""
    version: Text | None
    ticks: tuple[LoadTick, ...]
    end: LoadEnd | None
    throughput: Mapping[str, Finite]
    """Operations per second of real time, by stressor (`bogo-ops` of stress-ng)."""
    log_tail: Text = ""
    operations: Mapping[str, Count] = field(default_factory=dict)
    """Operations until the load was stopped, by stressor (`bogo-ops` of stress-ng)."""
    windows: tuple[LoadWindow, ...] = ()
    """What each process did, each k-th window if there are many; empty: unwatched."""
    workers: tuple[WorkerRecord, ...] = ()
    """The same for the whole measurement; empty: not watched."""


@dataclass(frozen=True, slots=True)
class Imported:
    """Where an imported run comes from: a file of another tool, and who says what."""

    tool: Text
    version: Text
    """Empty: the file does not name it."""
    format: Text
    verified: Flag
    """Whether outputs of the tool itself were tried; else its format's description."""
    file: Text
    """The name of the file, without its directory."""
    sha256: Digest
    measures: Text
    """What the tool calls a latency: from where to where."""
    command: Text = ""
    """Empty: the file does not have it."""
    stated: Mapping[str, Text] = field(default_factory=dict)
    """What the user said of the run when importing it, by option."""
    told: Mapping[str, Text] = field(default_factory=dict)
    """What else the file says, by its own words."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything known about one run."""

    schema: Literal[2]
    rtscope: Text
    run: Run
    command: tuple[Text, ...]
    """What to type to repeat the campaign."""
    campaign: Mapping[str, Any]
    started_at: Text
    """When the measurement began, ISO 8601, UTC, by the host's clock."""
    host_duration_s: Annotated[Finite, Field(ge=0)] | None
    """None if imported."""
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
    virtual: VirtualRun | None = None
    """What booted; None if a machine was measured."""
    untraced_runs: UntracedRuns = ()
    """
    Threads of the same run without tracing, before and after, under the same load.

    They are kept as they were, so that the cost of tracing can be worked out again.
    Before and after: drift, such as temperature, then affects both alike.
    """
    imported: Imported | None = None
    """None if rtscope measured."""
    tuning: Mapping[str, Any] | None = None
    """Settings that `--tuned` changed for the campaign, or could not change."""
    parts: WakeupParts | None = None
    """Duration of each part of all wake-ups on a virtual board; None: not asked for."""

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_default(write(self), "parts", None)

    def __post_init__(self) -> None:
        """Refuse a run of our own that lacks what only an imported one may lack."""
        if self.imported is not None and self.virtual is not None:
            raise ValueError("imported: a run of another tool on a board of rtscope")
        if self.imported is None:
            runs = (self.result.threads, *self.untraced_runs)
            if any(thread.foreign for threads in runs for thread in threads):
                raise ValueError("imported: missing, and a thread is of another tool")
            for name in ("interval_ns", "duration_ns"):
                if not getattr(self.run, name):
                    raise ValueError(f"run.{name}: 0, which only an imported run has")

    @property
    def max_ns(self) -> int | None:
        """The latest wake-up of all threads; None without a sample."""
        highs = (thread.max_ns for thread in self.result.threads)
        return max((ns for ns in highs if ns is not None), default=None)

    @property
    def load_unknown(self) -> bool:
        """Whether neither its file nor whoever imported it named the load."""
        return (
            self.imported is not None
            and self.run.load == UNKNOWN
            and "load" not in self.imported.stated
        )

    @property
    def kernel_name(self) -> str:
        """The kernel that was asked for, else the release that ran."""
        return self.run.kernel or self.release or "unknown kernel"

    @property
    def release(self) -> str:
        """The release of Linux that ran, as `uname -r` prints it; empty: not known."""
        fact = self.facts_before.get("kernel_release")
        return str(fact.value or "") if fact else ""

    def require_virtual(self) -> VirtualRun:
        """Return what booted; UsageError for a run of a machine."""
        if self.virtual is None:
            raise UsageError(
                f"{self.run.id}: measured on {self.run.target}: only a virtual board "
                "records what it executed"
            )
        return self.virtual

    def why_lost(self, name: str) -> str:
        """Return why a file could not be kept; empty if it is missing otherwise."""
        mark = f"{name}: "
        details = (one.detail for one in self.caveats if one.id == FILE_LOST)
        reasons = (one.removeprefix(mark) for one in details if one.startswith(mark))
        return next(reasons, "")


@cache
def _shape() -> JsonShape[RunRecord]:
    return JsonShape(TypeAdapter(RunRecord))


def record_from_json(text: bytes, *, name: str) -> RunRecord:
    """Check and build a record; RecordError names the file and its first mistake."""
    try:
        return _shape().read(text)
    except ValidationError as error:
        again = "measure again: rtscope run"
        raise refused(
            text, error, name=name, kind="record", known=SCHEMA, again=again
        ) from error


def record_to_json(record: RunRecord) -> bytes:
    """Write a record out; `record_from_json` gives it back unchanged."""
    return _shape().write(record) + b"\n"
