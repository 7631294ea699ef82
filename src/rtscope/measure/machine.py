"""
Run a campaign on a machine, local or over SSH: the only module that changes one.

Per run, in this order: audit, facts, load on, measurement, load off, facts. Settings of
--tuned are changed before the first run and restored after the last.
"""

import contextlib
import secrets
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib import resources

from rtscope.contract import AgentError, DiskLine
from rtscope.host.errors import MeasurementError, TargetError, UsageError
from rtscope.machine.cpulist import format_cpulist, parse_cpulist
from rtscope.machine.facts import FactValue, memory_available_bytes
from rtscope.machine.firmware import with_firmware
from rtscope.machine.gather import gather, os_release
from rtscope.machine.kernelidentity import RELEASE
from rtscope.machine.reader import Reader, read, text_of
from rtscope.machine.target import Target
from rtscope.machine.target.stream import collect
from rtscope.measure import settings
from rtscope.measure.assemble import Facts, LoadSeen, Measured
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.execute import (
    LineReceived,
    OnEvent,
    PendingRuns,
    SettingsChanged,
    Settling,
    put_off,
)
from rtscope.measure.loads import FreeStorage, LoadCommand, LoadPlace, Need, get_load
from rtscope.measure.observe import AgentCommands, Observation, observe
from rtscope.measure.plan import (
    Plan,
    load_args,
    load_command,
    measure_args,
    untraced_args,
)
from rtscope.measure.settings import CampaignTuning, tune
from rtscope.record.events.writer import TRACE, trace_of
from rtscope.record.model import HWLAT, Run

DISK_TIMEOUT_S = 30.0

# linux/magic.h; only the types that are not on a disk.
_FILE_SYSTEMS = {
    0x01021994: "tmpfs",
    0x858458F6: "ramfs",
    0x794C7630: "overlay",
}


@dataclass(frozen=True, slots=True)
class MachineRunner:
    """Measures the runs of a campaign on a machine, one after another."""

    target: Target
    campaign: Campaign
    command: tuple[str, ...]
    """The command line that repeats the campaign."""

    @contextlib.contextmanager
    def start(self, plan: Plan, on_event: OnEvent) -> Iterator[PendingRuns]:
        """Change settings for the campaign and let the machine settle; see `Runner`."""
        if plan.runs:
            _require_booted(self.target, plan.runs[0])
        cpus = usable_cpus(self.target)
        versions = load_programs(plan, self.target)
        measured = _all_measured(plan, cpus)
        with tune(self.target, self.campaign, cpus=measured) as settings:
            if self.campaign.tuned:
                on_event(SettingsChanged(settings))
            if plan.settle_ns:
                on_event(Settling(plan.settle_ns))
                time.sleep(plan.settle_ns / 1e9)
            shared = _Shared(self, cpus, versions, settings, on_event)
            yield _pending(shared, plan)


@dataclass(frozen=True, slots=True)
class _Shared:
    """Shared by all runs of a campaign."""

    runner: MachineRunner
    cpus: tuple[int, ...]
    versions: Mapping[str, str]
    tuned: CampaignTuning
    on_event: OnEvent


def _pending(shared: _Shared, plan: Plan) -> PendingRuns:
    for run in plan.runs:
        _require_booted(shared.runner.target, run)
        yield run, partial(_measure, shared, run)


def _require_booted(target: Target, run: Run) -> None:
    """Stop before a run that needs another kernel than the running one."""
    if run.kernel_release is None:
        return
    release = (text_of(read(target.reader, RELEASE)) or "an unknown kernel").strip()
    if not fnmatchcase(release, run.kernel_release):
        raise MeasurementError(
            f"{target.name}: the next run, {run.id}, needs kernel "
            f"{run.kernel_release}, and {release} is running; boot such a kernel, then "
            "continue with rtscope run --resume"
        )


def usable_cpus(target: Target) -> tuple[int, ...]:
    """Return the CPUs that a program may use on the target; TargetError if unknown."""
    status = text_of(read(target.reader, "/proc/self/status")) or ""
    for line in status.splitlines():
        if line.startswith("Cpus_allowed_list:"):
            allowed = parse_cpulist(line.split(":", 1)[1].strip())
            online = text_of(read(target.reader, "/sys/devices/system/cpu/online"))
            if not online:
                return allowed
            there = frozenset(parse_cpulist(online))
            return tuple(cpu for cpu in allowed if cpu in there)
    raise TargetError(f"{target.name}: /proc/self/status has no Cpus_allowed_list")


def load_programs(plan: Plan, target: Target) -> Mapping[str, str]:
    """
    Return the versions of programs for the loads.

    Raises TargetError if one is missing, UsageError for a load that no machine should
    have.
    """
    loads = [get_load(name) for name in dict.fromkeys(run.load for run in plan.runs)]
    if unsafe := [load for load in loads if not load.is_safe]:
        names = ", ".join(
            f"{one.name} ({one.why_unsafe})" if one.why_unsafe else one.name
            for one in unsafe
        )
        raise UsageError(
            f"{names}: may change or exhaust {target.name}; measure it on "
            "a virtual board (--target virtual:pc), or start it yourself with --load "
            "custom --command"
        )
    if named := [load.name for load in loads if Need.DEVICES in load.needs]:
        raise UsageError(
            f"{', '.join(named)}: needs devices that only virtual boards have; measure "
            "on one (--target virtual:pc), or choose --load network here"
        )
    needy = [load.name for load in loads if load.uses_stress_ng]
    if not needy:
        return {}
    version = target.first_line(["stress-ng", "--version"])
    if version is None:
        raise TargetError(
            f"{target.name}: the loads {', '.join(needy)} need stress-ng, which is not "
            f"installed; install it: {how_to_install(target.reader, 'stress-ng')}; or "
            "measure without it: --load idle"
        )
    return {"stress-ng": version}


def _all_measured(plan: Plan, usable: tuple[int, ...]) -> tuple[int, ...] | None:
    measured = {cpu for run in plan.runs for cpu in run.cpus or usable}
    return _some(tuple(sorted(measured)), usable)


def _some(
    cpus: tuple[int, ...] | None, usable: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the measured CPUs; None if they leave no other CPU."""
    return None if cpus is None or set(usable) <= set(cpus) else cpus


def _measure(shared: _Shared, run: Run) -> Measured:
    target, campaign = shared.runner.target, shared.runner.campaign
    target.begin_run()
    audited = settings.audit_before(
        target.reader,
        target=target.name,
        cpus=_some(run.cpus, shared.cpus),
        here=target.name == "local",
    )
    began = time.monotonic()
    before = with_firmware(target, gather(target.reader))
    loading = _prepare_load(shared, run, before)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    growth = () if run.event.startswith(HWLAT) else ("--growth",)
    try:
        seen = observe(
            target,
            AgentCommands(
                measure_args=(*measure_args(run, campaign), *growth),
                measure_privileged=True,
                load_args=loading.args,
                load_privileged=loading.command.memory_limit_bytes is not None,
                warmup_ns=campaign.warmup_ns,
                duration_ns=run.duration_ns,
                untraced_args=untraced_args(run, campaign),
            ),
            on_line=lambda line: shared.on_event(LineReceived(line)),
        )
    except MeasurementError as error:
        raise _with_place(error, target, run, loading) from error
    if seen.lost is not None:
        seen.lost = _with_place(seen.lost, target, run, loading)
    measured = None
    try:
        with put_off():
            after: Mapping[str, FactValue] = {}
            if not seen.lost:
                after = with_firmware(target, gather(target.reader))
                shared.tuned.check()
            measured = Measured(
                run=run,
                campaign=campaign,
                command=shared.runner.command,
                started=started,
                host_seconds=round(time.monotonic() - began, 3),
                facts_before=before,
                facts_after=after,
                seen=seen,
                load=_load_seen(shared, loading, lost=seen.lost is not None),
                cpus=shared.cpus,
                caveats=audited.caveats,
                tuned=shared.tuned.changed,
                attachments={TRACE: _trace(seen), settings.FILE: audited.document},
                untraced=tuple(seen.untraced),
                tuning=shared.tuned.document() if campaign.tuned else None,
            )
    except KeyboardInterrupt:
        if measured is None:
            raise
        seen.interrupted = True
    return measured


def _trace(seen: Observation) -> bytes | None:
    if seen.lost or not seen.result:
        return None
    return trace_of(seen.trace, seen.result.tracing)


def _with_place(
    error: MeasurementError, target: Target, run: Run, loading: "_Loading"
) -> MeasurementError:
    """Return the error with machine and run, and the last line of the load."""
    last = _last_line_of_load(target, loading)
    complete = type(error)(f"{target.name}, {run.id}: {error}{last}")
    complete.__cause__ = error
    return complete


@dataclass(frozen=True, slots=True)
class _Loading:
    """How the load of one run is started."""

    command: LoadCommand
    args: tuple[str, ...]
    """For the agent; empty for idle."""
    log_path: str
    yaml_path: str


def _prepare_load(shared: _Shared, run: Run, before: Facts) -> _Loading:
    target = shared.runner.target
    token = secrets.token_hex(4)
    log_path = target.work_path(f"load-{token}.log")
    yaml_path = target.work_path(f"load-{token}.yaml")
    storage, scratch = None, target.work_path(f"rtscope-scratch-{token}")
    if Need.STORAGE in get_load(run.load).needs:
        directory = shared.runner.campaign.storage_dir or target.default_storage_dir
        storage = _free_storage(target, directory)
        scratch = f"{directory.rstrip('/')}/rtscope-scratch-{token}"
    cpus = run.cpus or shared.cpus
    place = LoadPlace(
        workers=len(cpus),
        cpus=format_cpulist(cpus) if cpus != shared.cpus else None,
        scratch_dir=scratch,
        yaml_path=yaml_path,
        # Unknown free memory counts as none.
        memory_bytes=memory_available_bytes(before) or 0,
        storage=storage,
    )
    command = load_command(run, shared.runner.campaign, place)
    args: tuple[str, ...] = ()
    if command.argv:
        user = target.load_user()
        args = load_args(
            command,
            duration_ns=run.duration_ns,
            log=log_path,
            scratch_dir=scratch,
            user=user,
        )
    return _Loading(command, args, log_path, yaml_path)


def _free_storage(target: Target, directory: str) -> FreeStorage:
    """Return the free space of a directory; TargetError if it does not exist."""
    stream = target.start_agent(["disk", "--", directory])
    for line in collect(stream, timeout_s=DISK_TIMEOUT_S):
        if isinstance(line, AgentError):
            raise TargetError(f"{target.name}: {line.message}; {line.remedy}")
        if isinstance(line, DiskLine):
            return FreeStorage(
                directory=directory,
                file_systems=(_FILE_SYSTEMS.get(line.fs_magic, "disk"),),
                free_bytes=line.free_bytes,
                free_inodes=line.free_inodes or None,
            )
    raise TargetError(
        f"{target.name}: the agent did not report the free space of {directory}"
    )


def _load_seen(shared: _Shared, loading: _Loading, *, lost: bool) -> LoadSeen:
    if not loading.args or lost:
        return LoadSeen(loading.command, None, metrics="", log="")
    return LoadSeen(
        loading.command,
        version=shared.versions.get("stress-ng"),
        metrics=text_of(read(shared.runner.target.reader, loading.yaml_path)) or "",
        log=_load_log(shared.runner.target, loading),
    )


def _last_line_of_load(target: Target, loading: _Loading) -> str:
    try:
        lines = _load_log(target, loading).splitlines()
    except MeasurementError:  # the connection is lost too: the first cause counts
        return ""
    return f"; last line of the load: {lines[-1][:300]}" if lines else ""


def _load_log(target: Target, loading: _Loading) -> str:
    if not loading.args:
        return ""
    return text_of(read(target.reader, loading.log_path)) or ""


# --- programs that are missing -------------------------------------------------

_OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")


@cache
def _installers() -> Mapping[str, str]:
    """Return the rows of `installers.toml`, which explains them."""
    file = resources.files("rtscope.measure").joinpath("installers.toml")
    return tomllib.loads(file.read_text("utf-8"))


def how_to_install(reader: Reader, program: str) -> str:
    """Return the command to type on the machine; a guess for unknown systems."""
    files = reader.read_many(_OS_RELEASE)
    for path in _OS_RELEASE:
        release = os_release(text_of(files[path]) or "")
        # ID_LIKE lists relatives, nearest first.
        names = " ".join(release.get(key, "") for key in ("ID", "ID_LIKE"))
        for name in names.lower().split():
            if command := _installers().get(name):
                upper = program.upper().replace("-", "_")
                return command.format(program, upper=upper)
    return f"use its package manager, e.g. apt install {program}"
