"""What values of a campaign mean together: refused here, each with its reason."""

from collections.abc import Callable
from itertools import product

from rtscope.campaign.model import REALTIME_POLICIES, Campaign, RunTable
from rtscope.errors import UsageError
from rtscope.units import exact_duration, format_duration

MAX_RUNS = 100_000
"""At a second each that is more than a day of nothing but starting runs."""


At = Callable[[str, str, int], str]
"""From table, key and number of the [[run]] (0: none) to the words for that place."""


def check(campaign: Campaign, at: At) -> None:
    """Raise UsageError, beginning with the place, at the first contradiction."""
    for number, run in enumerate(campaign.runs, 1):
        _check_policies(run, at, number)
        _check_times(run, at, number)
    _check_custom(campaign, at)
    _check_board(campaign, at)
    _check_deadlines(campaign, at)
    _check_directory(campaign, at)
    _check_size(campaign, at)
    _check_repeats(campaign, at)


def _check_policies(run: RunTable, at: At, number: int) -> None:
    if run.priorities and not set(run.policy_names) & set(REALTIME_POLICIES):
        raise UsageError(
            f"{at('run', 'priority', number)}: policy {run.policy_names[0]} has none; "
            "leave priority out, or write policy fifo or rr"
        )
    if "deadline" in run.policy_names and run.cpus is not None:
        raise UsageError(
            f"{at('run', 'cpus', number)}: the kernel lets no thread of policy "
            "deadline be pinned to a CPU; leave cpus out, or write another policy"
        )


def _check_times(run: RunTable, at: At, number: int) -> None:
    shortest, longest = min(run.durations_ns), max(run.intervals_ns)
    if shortest < 2 * longest:
        raise UsageError(
            f"{at('run', 'duration', number)}: {exact_duration(shortest)} has no "
            f"room for two intervals of {exact_duration(longest)}; write a duration of "
            f"{exact_duration(2 * longest)} or more"
        )


def _check_custom(campaign: Campaign, at: At) -> None:
    if "custom" in campaign.loads and not campaign.command:
        raise UsageError(
            f"{at('campaign', 'command', 0)}: the custom load needs one; write for "
            'example command = ["iperf3", "-c", "host"]'
        )
    if campaign.command and "custom" not in campaign.loads:
        raise UsageError(
            f"{at('campaign', 'command', 0)}: no run has the custom load; write load = "
            '["custom"], or leave the command out'
        )


def _check_board(campaign: Campaign, at: At) -> None:
    if campaign.board is None:
        for (table, key), reason in BOARDS_ONLY.items():
            if getattr(campaign, key) not in (None, (), False):
                raise UsageError(
                    f"{at(table, key, 0)}: for virtual boards only: {reason}"
                )
    if campaign.board is not None and campaign.tuned:
        raise UsageError(
            f"{at('target', 'tuned', 0)}: a virtual board is what its kernel and its "
            "command line make it; leave it out"
        )
    if campaign.seeds and campaign.seed is not None:
        raise UsageError(
            f"{at('campaign', 'seeds', 0)}: seed is there too; write one of them"
        )
    if campaign.require_identical and any(r.repetitions < 2 for r in campaign.runs):
        raise UsageError(
            f"{at('campaign', 'require_identical', 0)}: a run that is done once has "
            "nothing to be identical with; write --repeat 2, or repetitions = 2"
        )


_NO_SEED = (
    "nothing chooses what a real machine does, and no two runs of it are alike; "
    "write repetitions for more runs"
)
BOARDS_ONLY = {
    ("campaign", "seed"): _NO_SEED,
    ("campaign", "seeds"): _NO_SEED,
    ("campaign", "require_identical"): (
        "no two runs of a real machine have the same result; compare them with "
        "rtscope compare"
    ),
    ("campaign", "files"): (
        "a real machine has its files: write their paths into the command"
    ),
    ("target", "qemu"): "a real machine needs none",
    ("target", "locked"): "a real machine has the packages that it has",
}
"""Table and key, and why it means nothing on a real machine."""


def _check_deadlines(campaign: Campaign, at: At) -> None:
    if campaign.claim is not None and campaign.deadline_ns is None:
        raise UsageError(
            f"{at('campaign', 'claim', 0)}: a claim is about misses of a deadline; "
            "write deadline too, for example 200us"
        )
    runtime_ns = campaign.deadline_runtime_ns
    if runtime_ns is None:
        return
    reserved = [run for run in campaign.runs if "deadline" in run.policy_names]
    if not reserved:
        raise UsageError(
            f"{at('campaign', 'deadline_runtime', 0)}: no run has policy deadline; "
            "leave it out (the latency that must not be exceeded is deadline)"
        )
    shortest = min(min(run.intervals_ns) for run in reserved)
    if runtime_ns > shortest:
        raise UsageError(
            f"{at('campaign', 'deadline_runtime', 0)}: {exact_duration(runtime_ns)} "
            f"does not fit an interval of {exact_duration(shortest)}; write less"
        )


def _check_directory(campaign: Campaign, at: At) -> None:
    storage_dir = campaign.storage_dir
    if campaign.target == "local" or storage_dir is None:
        return
    if not storage_dir.startswith("/"):
        raise UsageError(
            f"{at('target', 'storage_dir', 0)}: {storage_dir!r} is relative, and on "
            "another machine nobody knows to what; write it from / on"
        )


def _check_size(campaign: Campaign, at: At) -> None:
    runs = total_ns = 0
    for run in campaign.runs:
        each = len(run.loads) * len(run.policies) * len(run.intervals_ns)
        times = each * run.repetitions * max(1, len(campaign.kernels))
        times *= len(campaign.run_seeds)
        runs += times * len(run.durations_ns)
        total_ns += times * sum(run.durations_ns)
    if runs > MAX_RUNS:
        raise UsageError(
            f"{at('run', 'repetitions', 0)}: {runs:,} runs that take "
            f"{format_duration(total_ns)}; write at most {MAX_RUNS:,}: fewer values "
            "or repetitions"
        )


def _check_repeats(campaign: Campaign, at: At) -> None:
    seen: set[tuple[object, ...]] = set()
    for number, run in enumerate(campaign.runs, 1):
        cells = set(
            product(
                run.loads, run.policies, run.intervals_ns, run.durations_ns, (run.cpus,)
            )
        )
        if seen & cells:
            load = min(str(cell[0]) for cell in seen & cells)
            raise UsageError(
                f"{at('run', 'load', number)}: an earlier [[run]] has the same "
                f"run of load {load}; write it once, and repetitions for more of it"
            )
        seen |= cells
