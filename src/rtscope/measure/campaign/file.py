"""
A campaign as tables of plain values: in a TOML file, in a bundle, in a record.

A document has the tables of `Campaign`'s aliases. Values are written as in a file, so
one reader reads files and records.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from rtscope.host.errors import UsageError, no_such, quote
from rtscope.host.files.documents import toml_tables
from rtscope.host.files.opening import read_named
from rtscope.host.units import NS_PER_S, NS_PER_US, exact_duration, format_duration
from rtscope.measure.campaign.messages import table_at, wanted
from rtscope.measure.campaign.model import Campaign, RunTable
from rtscope.measure.campaign.values import MAX_ITEMS, REALTIME_POLICIES
from rtscope.record.model import HWLAT, TIMER, TIMERLAT
from rtscope.record.samples import MAX_PERIODS

# --- contradictions between values of a campaign, each with its reason ----------------

HWLAT_LEAST_NS = 100_000_000
TIMERLAT_NS = range(100_000, NS_PER_S + 1)
"""The kernel's tracer sleeps some milliseconds more than it should in each window."""
HWLAT_USUAL_NS = NS_PER_S
"""As the tracer itself has it."""
MAX_RUNS = 100_000
"""At a second each, starting the runs alone takes more than a day."""

_NO_SEED = (
    "a real machine has no random seed, and no two of its runs are identical; write "
    "repetitions for more runs"
)
BOARDS_ONLY = {
    "campaign.seed": _NO_SEED,
    "campaign.seeds": _NO_SEED,
    "campaign.require_identical": (
        "no two runs of a real machine have identical results; to compare them: "
        "rtscope compare"
    ),
    "campaign.guest_files": (
        "a real machine has its own files; write their paths into the command"
    ),
    "campaign.parts": (
        "of a real machine, rtscope explain divides the worst wake-ups of a run with "
        "--explain"
    ),
    "campaign.host_limit": "a real machine measures in its own time",
    "kernel.append": (
        "to set parameters of a real machine, change its boot loader and boot it again"
    ),
    "kernel.config": (
        "a real machine boots its own kernel; to build one for it: rtscope kernel build"
    ),
    "target.qemu": "a real machine needs no QEMU",
    "target.lockfile": "a real machine uses its installed packages",
}
"""Key, and why a real machine has no use for it."""


def field_of(key: str) -> str:
    """Return the field of a key such as `campaign.seed`: times have their unit."""
    name = key.partition(".")[2]
    return name if name in Campaign.__dataclass_fields__ else f"{name}_ns"


Wrong = tuple[str, str]
"""The key, and the message about its value."""


def contradictions(campaign: Campaign) -> Iterator[tuple[str, int, str]]:
    """Yield key, number of the [[run]] (0: none) and message."""
    for number, run in enumerate(campaign.runs, 1):
        for key, message in _of_run(run):
            yield key, number, message
    for key, message in chain(
        _of_command(campaign), _of_target(campaign), _of_deadlines(campaign)
    ):
        yield key, 0, message
    # The size first: the search for repeats takes all runs.
    yield from _of_size(campaign)
    yield from _of_repeats(campaign)


def is_hwlat(event: str) -> bool:
    """Tell whether an event, with its options, is of the kernel's own tracer."""
    return event.partition(":")[0] == HWLAT


def is_timerlat(event: str) -> bool:
    """Tell whether an event is of the kernel's own thread."""
    return event == TIMERLAT


def _of_run(run: RunTable) -> Iterator[Wrong]:
    if run.priorities and not set(run.policy_names) & set(REALTIME_POLICIES):
        yield (
            "run.priority",
            f"policy {run.policy_names[0]} has no priority; leave it out, or write "
            "policy fifo or rr",
        )
    if "deadline" in run.policy_names and run.cpus is not None:
        yield (
            "run.cpus",
            "the kernel pins no thread of policy deadline to a CPU; leave cpus out, or "
            "write another policy",
        )
    if set(run.event_texts) != {TIMER} and "deadline" in run.policy_names:
        yield (
            "run.event",
            "a thread of policy deadline runs in periods of its own timer; write "
            "another policy, or leave event out",
        )
    if any(map(is_hwlat, run.event_texts)) and min(run.intervals_ns) < HWLAT_LEAST_NS:
        yield (
            "run.interval",
            "hwlat looks once in each interval, which must have 100 ms; write 1s",
        )
    if any(map(is_timerlat, run.event_texts)) and not all(
        ns in TIMERLAT_NS and ns % NS_PER_US == 0 for ns in run.intervals_ns
    ):
        yield (
            "run.interval",
            "timerlat wakes its thread once in each interval, which must have whole "
            "us from 100us to 1s; write 1ms",
        )
    if any(map(is_timerlat, run.event_texts)) and set(run.policy_names) != {"other"}:
        yield (
            "run.policy",
            "timerlat measures a thread of the kernel, and one that only reads must "
            "not hold it up; write policy other, in a run of its own",
        )
    shortest, longest = min(run.durations_ns), max(run.intervals_ns)
    if shortest < 2 * longest:
        yield (
            "run.duration",
            f"{exact_duration(shortest)} is shorter than two intervals of "
            f"{exact_duration(longest)}; write a duration of "
            f"{exact_duration(2 * longest)} or more",
        )


def _of_tracers(campaign: Campaign) -> Iterator[Wrong]:
    """Yield what is asked for and is of threads of ours."""
    events = [e for run in campaign.runs for e in run.event_texts]
    for is_asked, why, tracer in (
        (is_hwlat, "no event of the kernel is in a hole that hwlat finds", HWLAT),
        (is_timerlat, "timerlat measures a thread of the kernel itself", TIMERLAT),
    ):
        if not any(map(is_asked, events)):
            continue
        for asked, name in ((campaign.explain, "explain"), (campaign.parts, "parts")):
            if asked:
                yield f"campaign.{name}", f"{why}; leave {name} or {tracer} out"


def _of_command(campaign: Campaign) -> Iterator[Wrong]:
    if "custom" in campaign.loads and not campaign.command:
        yield (
            "campaign.command",
            "the custom load needs a command; write for example command = "
            '["iperf3", "-c", "host"]',
        )
    if campaign.command and "custom" not in campaign.loads:
        yield (
            "campaign.command",
            'no run has the custom load; write load = ["custom"], or leave the command '
            "out",
        )


def _of_target(campaign: Campaign) -> Iterator[Wrong]:
    yield from _of_samples(campaign)
    yield from _of_tracers(campaign)
    storage_dir = campaign.storage_dir or "/"
    if campaign.target != "local" and not storage_dir.startswith("/"):
        yield (
            "target.storage_dir",
            f"{storage_dir!r} is relative, but another machine has no current "
            "directory; write an absolute path",
        )
    if campaign.board is None:
        for key, reason in BOARDS_ONLY.items():
            if getattr(campaign, field_of(key)) not in (None, (), False):
                yield key, f"for virtual boards only: {reason}"
    elif any(run.kernel_release for run in campaign.runs):
        yield (
            "run.kernel_release",
            "for machines only: a virtual board boots its kernels by itself; write "
            "kernel.names",
        )
    if campaign.seeds and campaign.seed is not None:
        yield "campaign.seeds", "excludes seed; write one of them"
    if campaign.require_identical and any(r.repetitions < 2 for r in campaign.runs):
        yield (
            "campaign.require_identical",
            "one repetition has no other to be identical with; write repetitions = 2, "
            "or --repetitions 2",
        )


def _of_samples(campaign: Campaign) -> Iterator[Wrong]:
    if not campaign.keep_samples:
        return
    if any(set(run.event_texts) != {TIMER} for run in campaign.runs):
        yield (
            "campaign.keep_samples",
            "wake-ups by timers alone are kept, so far; leave keep_samples or event "
            "out",
        )
    if any("deadline" in run.policy_names for run in campaign.runs):
        yield (
            "campaign.keep_samples",
            "threads of policy deadline have no CPU to keep them by; write another "
            "policy, or leave keep_samples out",
        )
    for run in campaign.runs:
        duration_ns, interval_ns = max(run.durations_ns), min(run.intervals_ns)
        if duration_ns // interval_ns > MAX_PERIODS:
            yield (
                "campaign.keep_samples",
                f"{exact_duration(duration_ns)} has {duration_ns // interval_ns:,} "
                f"intervals of {exact_duration(interval_ns)}, and {MAX_PERIODS:,} of "
                "each CPU are kept; write a duration of "
                f"{MAX_PERIODS * interval_ns // NS_PER_S}s or less, or a longer "
                "interval",
            )


def _of_deadlines(campaign: Campaign) -> Iterator[Wrong]:
    if campaign.claim is not None and campaign.deadline_ns is None:
        yield (
            "campaign.claim",
            "a claim needs a deadline; write deadline too, for example 200us",
        )
    runtime_ns = campaign.deadline_runtime_ns
    if runtime_ns is None:
        return
    intervals_ns = [
        min(run.intervals_ns) for run in campaign.runs if "deadline" in run.policy_names
    ]
    if not intervals_ns:
        yield (
            "campaign.deadline_runtime",
            "no run has policy deadline; leave it out (the latency that must not be "
            "exceeded is deadline)",
        )
    elif runtime_ns > min(intervals_ns):
        yield (
            "campaign.deadline_runtime",
            f"{exact_duration(runtime_ns)} is longer than the interval of "
            f"{exact_duration(min(intervals_ns))}; write less",
        )


def _of_size(campaign: Campaign) -> Iterator[tuple[str, int, str]]:
    runs = total_ns = 0
    for run in campaign.runs:
        each = len(run.loads) * len(run.policies) * len(run.intervals_ns)
        each *= len(run.event_texts)
        times = each * run.repetitions * max(1, len(campaign.kernels))
        times *= len(campaign.run_seeds)
        runs += times * len(run.durations_ns)
        total_ns += times * sum(run.durations_ns)
    if runs > MAX_RUNS:
        message = (
            f"{runs:,} runs that take {format_duration(total_ns)}; write at most "
            f"{MAX_RUNS:,}: fewer values or repetitions"
        )
        yield "run.repetitions", 0, message


def _of_repeats(campaign: Campaign) -> Iterator[tuple[str, int, str]]:
    seen: set[tuple[object, ...]] = set()
    for number, run in enumerate(campaign.runs, 1):
        axes = (
            *(run.loads, run.policies, run.intervals_ns, run.durations_ns),
            run.event_texts,
        )
        cells = set(product(*axes, (run.cpus,), (run.variant,)))
        if seen & cells:
            load = min(str(cell[0]) for cell in seen & cells)
            message = (
                f"an earlier [[run]] has the same run of load {load}; write it once; "
                "for more runs, write repetitions; to compare runs of equal settings, "
                "give each its own variant"
            )
            yield "run.load", number, message
        seen |= cells


# --- A campaign as tables of plain values: in a TOML file, in a bundle, in a record ---

MAX_FILE_BYTES = 1 << 20

At = Callable[[str, int], str]
"""From key and number of the [[run]] (0: none) to the name of that place."""


def load_campaign(path: Path) -> Campaign:
    """Read a campaign file; UsageError names file, table, key and remedy."""
    return from_dict(read_toml(path, kind="campaign"), source=str(path))


def read_toml(path: Path, *, kind: str) -> dict[str, Any]:
    """Read the tables of a file of a `kind`; UsageError names file and mistake."""
    content = read_named(
        path, limit=MAX_FILE_BYTES, kind=f"{kind} file", error=UsageError
    )
    return toml_tables(content, name=str(path))


def from_dict(document: object, *, source: str) -> Campaign:
    """
    Build a campaign from tables and check it; `source` begins every message.

    The document may come from anywhere; any mistake in it is a UsageError.
    """

    def at(key: str, number: int) -> str:
        table, _, name = key.partition(".")
        head = f"[[{table}]] number {number}" if number else f"[{table}]"
        return f"{source}: {head} {name}".rstrip()

    values: dict[str, object] = {}
    for name, table in table_at(document, source).items():
        if name not in _tables():
            raise UsageError(f"{source}: {no_such('table', name, _tables())}")
        if name == "run":
            values[name] = table
        else:
            keys = table_at(table, at(name, 0))
            values |= {f"{name}.{key}": value for key, value in keys.items()}
    return checked(validated(values, at), at)


def to_dict(campaign: Campaign) -> dict[str, Any]:
    """Write a campaign as JSON-able tables; `from_dict` gives it back unchanged."""
    document: dict[str, Any] = {table: {} for table in _tables()}
    for key, value in written(campaign).items():
        table, _, name = key.partition(".")
        if name:
            document[table][name] = value
        else:
            document[table] = value
    return document


def with_places(campaign: Campaign, base: Path) -> Campaign:
    """Return the campaign with its paths of this machine absolute, taken from base."""

    def place(path: str) -> str:
        return str((base / path).absolute())

    return replace(
        campaign,
        kernels=tuple(
            place(name) if "/" in name else name for name in campaign.kernels
        ),
        guest_files=tuple(map(place, campaign.guest_files)),
        qemu=campaign.qemu and place(campaign.qemu),
        lockfile=campaign.lockfile and place(campaign.lockfile),
    )


def validated(values: Mapping[str, object], at: At) -> Campaign:
    """Read the values of keys such as `target.address`; UsageError for the first."""
    try:
        return _adapter().validate_python(values)
    except ValidationError as error:
        raise UsageError(_message(error.errors(include_url=False)[0], at)) from error


def written(campaign: Campaign) -> dict[str, Any]:
    """Return the values of keys, and those of each [[run]], as in a file."""
    values: dict[str, Any] = _adapter().dump_python(
        campaign, mode="json", by_alias=True, exclude_none=True
    )
    values["run"] = [_without_empty(run) for run in values["run"]]
    return _without_empty(values)


def _without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value != []}


def checked(campaign: Campaign, at: At) -> Campaign:
    """Return the campaign; UsageError for contradicting values."""
    for key, number, message in contradictions(campaign):
        raise UsageError(f"{at(key, number)}: {message}")
    return campaign


@cache
def _adapter() -> TypeAdapter[Campaign]:
    return TypeAdapter(Campaign)


@cache
def key_schemas() -> Mapping[str, Mapping[str, Any]]:
    """Return each key, such as `run.load`, with the JSON schema of its value."""
    schema = _adapter().json_schema()
    properties: dict[str, Any] = schema["properties"]
    runs = schema["$defs"]["RunTable"]["properties"]
    del properties["run"]
    return properties | {f"run.{key}": value for key, value in runs.items()}


def description(key: str) -> str:
    """
    Return the help of a key: a phrase without a full stop.

    Empty where pydantic finds none: 2.10 of Debian 13 does not, with Python 3.13.
    """
    first = str(key_schemas()[key].get("description", "")).partition("\n\n")[0]
    return " ".join(first.split()).removesuffix(".")


@cache
def _tables() -> Sequence[str]:
    return tuple(dict.fromkeys(key.partition(".")[0] for key in key_schemas()))


# --- messages for the errors of pydantic -----------------------------------------


def _message(error: ErrorDetails, at: At) -> str:
    """Write the message of an error: the place, the wrong value, the remedy."""
    first, *rest = error["loc"]
    key, number = str(first), 0
    if rest and first == "run":
        number = int(rest[0]) + 1
        key = f"run.{rest[1]}" if len(rest) > 1 else "run."
    kind, value = error["type"], error["input"]
    if kind == "unexpected_keyword_argument":
        table, _, name = key.partition(".")
        known = [
            k.partition(".")[2] for k in key_schemas() if k.startswith(f"{table}.")
        ]
        return f"{at(f'{table}.', number)}: {no_such('key', name, known)}"
    if kind == "dataclass_type":
        return f"{at(key, number)}: {quote(value)}: write a table"
    if key == "run":
        return (
            f"{at('run', 0)}: {quote(value)}: write 1 to {MAX_ITEMS} tables, each "
            "headed [[run]]"
        )
    return f"{at(key, number)}: {wanted(error, key_schemas()[key])}"
