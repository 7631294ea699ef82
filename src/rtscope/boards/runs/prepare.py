"""
Prepare a campaign on virtual boards: check it, fetch all parts before the first run.

Everything wrong is refused here, before a result directory exists.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rtscope.boards.catalogue import Board, get_board, with_append
from rtscope.boards.events import event_of_load, with_devices_for
from rtscope.boards.kernels.catalogue import event_modules_of
from rtscope.boards.parts.aptroot import read_lock
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.bundle import Bundle, prepare_bundle
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import check_configurations, is_built, prepare_all
from rtscope.boards.parts.prepared import Prepared, has_files
from rtscope.boards.recording.programplaces import parts_view
from rtscope.boards.recording.symbols import require_symbols
from rtscope.boards.runs.capacity import Capacity, free_memory_bytes, host_capacity
from rtscope.boards.runs.inspect import GuestInspections, settings_for
from rtscope.boards.runs.script import DISK, METRICS, SCRATCH, job_of
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.host.errors import UsageError
from rtscope.host.process import Progress
from rtscope.host.units import NS_PER_S, parse_size
from rtscope.machine.audit.model import CheckKind
from rtscope.machine.filetree import FileReader
from rtscope.machine.gather import paths as fact_paths
from rtscope.machine.settings.change import agent_options
from rtscope.machine.settings.remedies import TuningPlan
from rtscope.machine.target import agent_file
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.loads import FreeStorage, LoadCommand, LoadPlace
from rtscope.measure.plan import Plan, kernels_by_label, load_command
from rtscope.measure.settings import checks_for
from rtscope.record.model import Run

DISK_BYTES = 128 << 20
"""Space for the storage load; the disk in memory is larger."""

DIGITS = 12
"""Shown of a digest."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run with everything that its boot depends on."""

    run: Run
    campaign: Campaign
    command: tuple[str, ...]
    load: LoadCommand
    seed: int
    started: str
    settings: tuple[str, ...] = ()
    """Of --tuned, as options of the agent."""
    tuning: TuningPlan | None = None
    """From which they come; None: nothing is tuned, or another machine knows it."""

    @property
    def timeout(self) -> BootTimeout:
        """The limits of its boot."""
        waits_ns = self.campaign.settling_ns + self.campaign.warmup_ns
        limit_ns = self.campaign.host_limit_ns
        return BootTimeout(
            self.run.duration_ns,
            waits_ns,
            host_s=None if limit_ns is None else limit_ns / NS_PER_S,
        )


@dataclass(frozen=True, slots=True)
class PreparedCampaign:
    """All runs of a plan, each with its bootable board."""

    runs: tuple[tuple[RunRequest, Prepared], ...]
    at_once: int = 1
    """Number of boots at the same time."""


def prepare_campaign(
    plan: Plan,
    campaign: Campaign,
    *,
    command: tuple[str, ...],
    log: Callable[[str], None],
    progress: Progress,
    jobs: int | None = None,
    bundle: Bundle | None = None,
    inspections: GuestInspections | None = None,
) -> PreparedCampaign:
    """
    Return the runs of a plan, ready to boot; with a bundle, from its parts alone.

    For settings of --tuned each kernel boots once, unless `inspections` has its files
    from a campaign before.

    At most `jobs` boards run at once; None: one per CPU, as far as memory allows.
    Raises UsageError for mistakes in the campaign or its files, BoardError if a part
    cannot be fetched or built, TargetError if a named check cannot be remedied.
    """
    if not plan.runs:
        return PreparedCampaign(())
    board = bundle.board if bundle else get_board(campaign.board or "")
    capacity = capacity_for(board, jobs=jobs, runs=len(plan.runs))
    requests = [request_for(run, campaign, board, command) for run in plan.runs]
    kinds = checks_for(campaign)
    labels = _labels(plan, board)
    prepared = (
        _of_bundle(bundle, labels)
        if bundle
        else _made(campaign, board, labels, log=log, progress=progress)
    )
    prepared = {
        label: replace(one, board=with_append(one.board, campaign.append))
        for label, one in prepared.items()
    }
    if capacity.message:
        log(capacity.message)
    if campaign.record:
        for one in prepared.values():
            require_symbols(one, cache=cache_dir(), log=log, progress=progress)
    if campaign.parts:
        for one in prepared.values():
            parts_view(one, cache=cache_dir(), log=log, progress=progress)
    runs = tuple(
        (one, _with_devices(prepared[_label(one.run, board)], one.run))
        for one in requests
    )
    if kinds:
        inspections = GuestInspections(progress) if inspections is None else inspections
        runs = tuple(
            (_tuned(one, made, kinds, inspections), made) for one, made in runs
        )
        for text in dict.fromkeys(_without_effect(one) for one, _ in runs):
            if text:
                log(text)
    return PreparedCampaign(runs, at_once=capacity.boards)


def check_kernels(
    cells: Mapping[str, tuple[Plan, Campaign]],
    *,
    log: Callable[[str], None],
    progress: Progress,
) -> None:
    """
    Check the kernels of several campaigns on one board, before the first is built.

    By the names of the campaigns. Raises KernelError with all settings that kbuild does
    not accept, UsageError for settings of a kernel that is not built here.
    """
    cells = {name: (plan, one) for name, (plan, one) in cells.items() if plan.runs}
    if not cells:
        return
    (_, campaign), *_ = cells.values()
    board = get_board(campaign.board or "")
    check_configurations(
        board,
        {
            name: (_kernels(one, _labels(plan, board)), one.config)
            for name, (plan, one) in cells.items()
        },
        context=_context(campaign, log=log, progress=progress),
    )


def is_built_for(campaign: Campaign, label: str) -> bool | None:
    """Tell whether a kernel of a campaign is in the cache; None: not known so fast."""
    board = get_board(campaign.board or "")
    (name,) = _kernels(campaign, [label])
    context = _context(campaign, log=_nothing, progress=_nothing)
    return is_built(board, name, campaign.config, context=context)


def _nothing(_told: object) -> None:
    """Say nothing: nothing is done."""


def _tuned(
    request: RunRequest,
    prepared: Prepared,
    kinds: Sequence[CheckKind],
    inspections: GuestInspections,
) -> RunRequest:
    plan = settings_for(
        prepared,
        kinds,
        inspections,
        named=request.campaign.tuned,
        cpus=request.run.cpus,
    )
    return replace(request, settings=tuple(agent_options(plan.changes)), tuning=plan)


def _without_effect(request: RunRequest) -> str:
    """Return a line on the named checks that need no change; empty without one."""
    good = request.tuning.good if request.tuning else {}
    whys = [f"{name}: {good[name]}" for name in request.campaign.tuned if name in good]
    return f"--tuned changes nothing for {'; '.join(whys)}" if whys else ""


def capacity_for(board: Board, *, jobs: int | None, runs: int) -> Capacity:
    """Return how many of these runs this machine can boot at once."""
    return host_capacity(
        board,
        cpus=len(os.sched_getaffinity(0)),
        free_bytes=free_memory_bytes(FileReader()),
        jobs=jobs,
        runs=runs,
    )


def _of_bundle(bundle: Bundle, labels: Sequence[str]) -> Mapping[str, Prepared]:
    prepared = prepare_bundle(bundle, cache=cache_dir())
    if missing := [label for label in labels if label not in prepared]:
        raise UsageError(
            f"the bundle has no kernel {', '.join(missing)}, but {', '.join(prepared)}"
        )
    return prepared


def _made(
    campaign: Campaign,
    board: Board,
    labels: Sequence[str],
    *,
    log: Callable[[str], None],
    progress: Progress,
) -> Mapping[str, Prepared]:
    made = prepare_all(
        board,
        _kernels(campaign, labels),
        context=_context(campaign, log=log, progress=progress),
        own_qemu=Path(campaign.qemu) if campaign.qemu else None,
        files=[Path(path) for path in campaign.guest_files],
        config=campaign.config,
    )
    return dict(zip(labels, made, strict=True))


def _kernels(campaign: Campaign, labels: Sequence[str]) -> list[str]:
    paths = kernels_by_label(campaign.kernels)
    return [paths.get(label, label) for label in labels]


def _context(
    campaign: Campaign, *, log: Callable[[str], None], progress: Progress
) -> BuildContext:
    return BuildContext(
        cache=cache_dir(),
        agent=agent_file,
        lock=read_lock(Path(campaign.lockfile)) if campaign.lockfile else None,
        log=log,
        progress=progress,
    )


def _labels(plan: Plan, board: Board) -> list[str]:
    return list(dict.fromkeys(_label(run, board) for run in plan.runs))


def _with_devices(prepared: Prepared, run: Run) -> Prepared:
    board = with_devices_for(prepared.board, run.event, run.load)
    return replace(prepared, board=board)


def _label(run: Run, board: Board) -> str:
    return run.kernel or board.kernels[0]


def request_for(
    run: Run,
    campaign: Campaign,
    board: Board,
    command: tuple[str, ...],
    *,
    settings: tuple[str, ...] = (),
) -> RunRequest:
    """
    Return the request for a run, with its load as a command for this board.

    `settings` are those that were chosen before, as options of the agent.
    """
    return RunRequest(
        run=run,
        campaign=campaign,
        command=command,
        load=_load(run, campaign, board),
        seed=run.seed or 0,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        settings=settings,
    )


def job_for(request: RunRequest, prepared: Prepared) -> Job:
    """Return the job of the board in a run."""
    return job_of(
        request.run,
        request.campaign,
        request.load,
        facts=fact_paths(),
        seed=request.seed,
        own_modules=has_files(prepared),
        event_modules=event_modules_of(prepared.kernel),
        settings=request.settings,
    )


def _load(run: Run, campaign: Campaign, board: Board) -> LoadCommand:
    place = load_place(board, run.cpus)
    sent = event_of_load(run.event, run.load)
    return load_command(run, campaign, replace(place, event=sent))


def load_place(board: Board, cpus: Sequence[int] | None) -> LoadPlace:
    """Return where a load runs on a board: on these CPUs, or on all of them."""
    used = cpus or tuple(range(board.cpus))
    return LoadPlace(
        workers=len(used),
        cpus=",".join(map(str, used)) if len(used) < board.cpus else None,
        scratch_dir=SCRATCH,
        yaml_path=METRICS,
        memory_bytes=parse_size(board.memory),
        storage=FreeStorage(
            directory=DISK,
            file_systems=("ext4",),
            free_bytes=DISK_BYTES,
            free_inodes=None,
            allow_in_memory=True,
        ),
    )
