"""
Refuse what a board cannot do, before anything is fetched, built or booted.

From campaigns and the catalogue alone: what kbuild or a kernel refuses comes later.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from pathlib import Path

from rtscope.boards.catalogue import Board, get_arch, get_board, with_append
from rtscope.boards.parts.aptroot import read_lock
from rtscope.boards.parts.initrd import read_files
from rtscope.boards.parts.prepare import check_kernel
from rtscope.boards.runs.prepare import request_for
from rtscope.host.errors import UsageError, first_of
from rtscope.host.units import NS_PER_US, exact_duration
from rtscope.machine.cpulist import format_cpulist
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.plan import make_plan
from rtscope.measure.settings import checks_for
from rtscope.record.model import Run
from rtscope.verbs.sweep.design import BASE

LINES = 5
"""Of a message with several mistakes."""
NAMES = 3
"""Of cells with one mistake."""

DEADLINE_INTERVAL_NS = (100 * NS_PER_US, 4_194_304 * NS_PER_US)
"""sched_deadline_period_min_us and _max_us (kernel/sched/deadline.c)."""
DEADLINE_RUNTIME_NS = 1024
"""The least run time that the kernel counts (DL_SCALE, kernel/sched/sched.h)."""
GRANTED_PCT = 95
"""sched_rt_runtime_us of sched_rt_period_us, as every kernel starts."""

Mistakes = dict[Hashable, str]
"""What a check raised, by what it looked at; empty for nothing."""
Check = tuple[Hashable, Callable[[], object]]


def refuse_impossible(cells: Mapping[str, Campaign], *, source: str) -> None:
    """
    Raise one UsageError with all that cells ask for and their board cannot do.

    By the names of the cells. Where the base has a mistake, it is named alone: the
    others have it from there.
    """
    mistakes: dict[str, list[str]] = {}
    known: Mistakes = {}
    for name, campaign in cells.items():
        for message in _mistakes(campaign, known):
            mistakes.setdefault(message, []).append(name)
    if not mistakes:
        return
    lines = [f"{_names(names)}: {why}" for why, names in mistakes.items()]
    if len(lines) == 1:
        raise UsageError(f"{source}: {lines[0]}")
    more = [f"and {len(lines) - LINES} more"] if len(lines) > LINES else []
    listed = "".join(f"\n  {line}" for line in [*lines[:LINES], *more])
    raise UsageError(f"{source}: the board cannot measure these cells:{listed}")


def _names(cells: list[str]) -> str:
    return BASE if BASE in cells else first_of(NAMES, cells)


def _mistakes(campaign: Campaign, known: Mistakes) -> Iterator[str]:
    """Yield what is wrong, each once; equal values are looked at once."""
    try:
        board = get_board(campaign.board or "")
    except UsageError as error:
        yield str(error)
        return
    checks = [
        *_of_kernels(campaign, board),
        *_of_campaign(campaign, board),
        *_of_runs(campaign, board),
    ]
    for key, check in checks:
        if key not in known:
            known[key] = _raised(check)
    yield from dict.fromkeys(known[key] for key, _ in checks if known[key])


def _raised(check: Callable[[], object]) -> str:
    try:
        check()
    except UsageError as error:
        return str(error)
    return ""


def _of_kernels(campaign: Campaign, board: Board) -> Iterator[Check]:
    for name in campaign.kernels or board.kernels[:1]:
        key = "kernel", board.name, name, campaign.config
        yield key, partial(check_kernel, board, name, campaign.config)
    yield ("append", campaign.append), partial(with_append, board, campaign.append)


def _of_campaign(campaign: Campaign, board: Board) -> Iterator[Check]:
    tuned = campaign.tuned, campaign.governor, campaign.rt_throttling
    yield ("tuned", *tuned), partial(checks_for, campaign)
    files = tuple(map(Path, campaign.guest_files))
    yield ("files", files), partial(read_files, files)
    yield ("governor", campaign.governor), partial(_check_governor, campaign)
    if campaign.lockfile:
        yield ("lock", campaign.lockfile), partial(read_lock, Path(campaign.lockfile))
    if campaign.qemu:
        yield ("qemu", campaign.qemu), partial(_check_qemu, Path(campaign.qemu), board)


def _of_runs(campaign: Campaign, board: Board) -> Iterator[Check]:
    throttled = campaign.rt_throttling != "off"
    for run in make_plan(campaign).runs:
        yield ("cpus", board.name, run.cpus), partial(_check_cpus, run, board)
        load = "load", board.name, run.load, run.cpus, campaign.command
        yield load, partial(request_for, run, campaign, board, ())
        if run.policy == "deadline":
            times = run.interval_ns, run.deadline_runtime_ns, throttled
            yield ("deadline", *times), partial(_check_deadline, run, throttled)


def _check_governor(campaign: Campaign) -> None:
    if campaign.governor is not None:
        raise UsageError(
            "target.governor: no virtual board has CPU frequencies: leave it out"
        )


def _check_qemu(program: Path, board: Board) -> None:
    if not program.is_file():
        need = get_arch(board.arch).qemu
        raise UsageError(
            f"target.qemu {program}: no such file; name the program {need}"
        )


def _check_cpus(run: Run, board: Board) -> None:
    beyond = [cpu for cpu in run.cpus or () if cpu >= board.cpus]
    if beyond:
        there = format_cpulist(tuple(range(board.cpus)))
        raise UsageError(
            f"run.cpus: {board.name} has CPUs {there}, not {format_cpulist(beyond)}; "
            f"choose from {there}"
        )


def _check_deadline(run: Run, throttled: bool) -> None:
    """Refuse what sched_setattr does (sched_dl_overflow, __checkparam_dl)."""
    low_ns, high_ns = DEADLINE_INTERVAL_NS
    if not low_ns <= run.interval_ns <= high_ns:
        raise UsageError(
            f"run.interval: under policy deadline the kernel accepts "
            f"{exact_duration(low_ns)} to {exact_duration(high_ns)}, not "
            f"{exact_duration(run.interval_ns)}"
        )
    runtime_ns = run.deadline_runtime_ns or 0
    if runtime_ns < DEADLINE_RUNTIME_NS:
        raise UsageError(
            f"campaign.deadline_runtime: the kernel accepts {DEADLINE_RUNTIME_NS} ns "
            f"or more, not {runtime_ns} ns"
        )
    if throttled and runtime_ns * 100 > GRANTED_PCT * run.interval_ns:
        raise UsageError(
            f"campaign.deadline_runtime: the kernel grants at most {GRANTED_PCT} % of "
            f"an interval of {exact_duration(run.interval_ns)}, not "
            f"{exact_duration(runtime_ns)}; write less, or target.rt_throttling = "
            '"off"'
        )
