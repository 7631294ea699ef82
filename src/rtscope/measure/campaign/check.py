"""Contradictions between values of a campaign, each with its reason."""

from collections.abc import Iterator
from itertools import chain, product

from rtscope.host.units import exact_duration, format_duration
from rtscope.measure.campaign.model import Campaign, RunTable
from rtscope.measure.campaign.values import REALTIME_POLICIES

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
    shortest, longest = min(run.durations_ns), max(run.intervals_ns)
    if shortest < 2 * longest:
        yield (
            "run.duration",
            f"{exact_duration(shortest)} is shorter than two intervals of "
            f"{exact_duration(longest)}; write a duration of "
            f"{exact_duration(2 * longest)} or more",
        )


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
        axes = (run.loads, run.policies, run.intervals_ns, run.durations_ns)
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
