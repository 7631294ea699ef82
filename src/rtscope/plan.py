"""
From a campaign to the runs to do, in order. Pure: the same campaign, the same plan.

Interleaved order goes through everything once before repeating (A B A B), so that
what drifts, such as temperature, hits all alike; the price is a change of kernel for
each repetition.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from rtscope.campaign import Campaign, RunTable, duration_text
from rtscope.cpulist import format_cpulist
from rtscope.record import Run

MAX_CPUS_CHARACTERS = 30
"""A longer CPU list does not fit into a run's name."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run, first to last."""

    runs: tuple[Run, ...]
    settle_ns: int
    warmup_ns: int

    @property
    def total_ns(self) -> int:
        """The time of all runs, with settling and warm-up, without starting them."""
        if not self.runs:
            return 0
        measured_ns = sum(run.duration_ns for run in self.runs)
        return self.settle_ns + len(self.runs) * self.warmup_ns + measured_ns


def make_plan(campaign: Campaign) -> Plan:
    """Write out the product of every [[run]], in the campaign's order."""
    runs = tuple(_ordered(campaign))
    varies = _parts_that_vary(campaign, runs)
    width = max(3, len(str(len(runs))))
    return Plan(
        runs=tuple(
            replace(
                run, id="-".join([f"{n:0{width}}", *(part(run) for part in varies)])
            )
            for n, run in enumerate(runs, 1)
        ),
        settle_ns=campaign.settle_ns,
        warmup_ns=campaign.warmup_ns,
    )


def remaining(plan: Plan, done_ids: Collection[str]) -> Plan:
    """Return the plan without the runs that are done, for --resume."""
    done = frozenset(done_ids)
    return replace(plan, runs=tuple(run for run in plan.runs if run.id not in done))


def _ordered(campaign: Campaign) -> Iterator[Run]:
    kernels = campaign.kernels or (None,)
    if campaign.order == "blocked":
        for kernel, table in product(kernels, campaign.runs):
            for cell in _cells(campaign, table, kernel=kernel):
                for repetition in range(1, table.repetitions + 1):
                    yield replace(cell, repetition=repetition)
        return
    for repetition in range(1, max(t.repetitions for t in campaign.runs) + 1):
        for kernel, table in product(kernels, campaign.runs):
            if repetition <= table.repetitions:
                for cell in _cells(campaign, table, kernel=kernel):
                    yield replace(cell, repetition=repetition)


def _cells(campaign: Campaign, table: RunTable, *, kernel: str | None) -> Iterator[Run]:
    for load, (policy, priority), interval_ns, duration_ns in product(
        table.loads, table.policies, table.intervals_ns, table.durations_ns
    ):
        reserved_ns = campaign.deadline_runtime_ns or interval_ns // 2
        yield Run(
            id="",
            target=campaign.target,
            kernel=kernel,
            load=load,
            repetition=1,
            policy=policy,
            priority=priority,
            interval_ns=interval_ns,
            duration_ns=duration_ns,
            cpus=table.cpus,
            deadline_runtime_ns=reserved_ns if policy == "deadline" else None,
        )


def _parts_that_vary(
    campaign: Campaign, runs: Sequence[Run]
) -> list[Callable[[Run], str]]:
    """Return what goes into the name of a run: the load, and what tells runs apart."""
    parts: list[Callable[[Run], str]] = [lambda run: run.load]
    for part in (
        _kernel_part,
        _policy_part,
        _interval_part,
        _duration_part,
        _cpus_part,
    ):
        if len({part(run) for run in runs}) > 1:
            parts.append(part)
    if any(table.repetitions > 1 for table in campaign.runs):
        parts.append(lambda run: f"r{run.repetition}")
    return parts


def _kernel_part(run: Run) -> str:
    return run.kernel or "running"


def _policy_part(run: Run) -> str:
    return f"{run.policy}{run.priority or ''}"


def _interval_part(run: Run) -> str:
    return duration_text(run.interval_ns)


def _duration_part(run: Run) -> str:
    return duration_text(run.duration_ns)


def _cpus_part(run: Run) -> str:
    if run.cpus is None:
        return "allcpus"
    cpus = format_cpulist(run.cpus).replace(",", "+")
    return f"cpu{cpus}" if len(cpus) <= MAX_CPUS_CHARACTERS else f"{len(run.cpus)}cpus"
