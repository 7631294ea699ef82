"""Check the real-time setup of a machine or of a unit of systemd, and remedy it."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtscope.cli.checks import (
    Checked,
    FailOn,
    fails,
    not_shown,
    read_config,
    refuse_two,
    show_checks,
)
from rtscope.cli.console import (
    Json,
    note,
    put_blocks,
    put_json,
    say,
    stderr_console,
    stdout_console,
)
from rtscope.cli.options import DisplayOptions, refuse_board_options
from rtscope.host.errors import RecordError, TargetError, UsageError
from rtscope.host.escape import printable
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.host.files.heldfolders import temporary_folder
from rtscope.host.units import NS_PER_S
from rtscope.machine.audit.context import AuditContext, Observed, refuse_absent
from rtscope.machine.audit.examine import (
    auditing,
    auditing_a_unit,
    catalogue,
    context_of_config,
    examine,
    paths,
    read_context,
)
from rtscope.machine.audit.model import Check, CheckKind, CheckOutcome, Profile
from rtscope.machine.audit.observe import (
    TRIAL_ARGS,
    observe_settings,
    read_trial,
    watch,
    watch_here,
)
from rtscope.machine.audit.unit import Unit, UnitThread
from rtscope.machine.audit.unitfiles import load_unit, processes_of
from rtscope.machine.cpulist import parse_cpulist
from rtscope.machine.filetree import FileReader
from rtscope.machine.reader import Reader, read, text_of
from rtscope.machine.redaction import NO_PROMISE
from rtscope.machine.settings import change as settings
from rtscope.machine.settings.remedies import (
    TuningPlan,
    choose,
    plan,
    undone_by,
    with_settings,
)
from rtscope.machine.target import Target
from rtscope.machine.target.address import address_of, open_target
from rtscope.machine.target.stream import collect
from rtscope.machine.tasks.agentlist import list_threads
from rtscope.present.document import Words
from rtscope.present.formats.audit import (
    print_plan,
    print_tuning,
    restored_document,
    restored_lines,
    tuning_document,
)
from rtscope.verbs.audit import capture as capturing

MAX_WINDOW_S = 60.0
TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """The options of `rtscope audit`."""

    profile: Profile = Profile.CONTROL
    """Purpose of the machine (default: control)."""
    cpus: str | None = None
    """CPUs for real-time threads (default: the isolated CPUs), e.g. 2-3."""
    target: str | None = None
    """
    Machine to check: local, ssh:HOST, lab:PLACE or virtual:BOARD (default: local), e.g.
    ssh:board.
    """
    kernel: str | None = None
    """
    Kernel of a virtual board, by name or path of an image (default: the first kernel of
    the board), e.g. debian-6.12-rt.
    """
    append: str | None = None
    """Additional kernel command line of a virtual board, e.g. isolcpus=1."""
    config: Path | None = None
    """Kernel configuration to check instead of a machine, e.g. .config."""
    root: Path | None = None
    """
    Captured file tree, or archive of --capture, to check instead of a machine, e.g.
    board.tar.gz.
    """
    observe: float = 1.0
    """Seconds to observe the machine, 0 to 60 (default: 1), e.g. 10."""
    capture: Path | None = None
    """
    Archive to write with the files that were read, to send to others, e.g.
    board.tar.gz.
    """
    unit: str | None = None
    """Systemd unit to check instead, by name or file, e.g. motor.service."""
    user: bool = False
    """The unit is one of a user's manager (systemctl --user)."""
    apply: str | None = None
    """
    Checks whose remedies to apply: safe, their IDs, or
    interrupt_threads:DEVICE=PRIORITY, e.g. rt_throttling,interrupt_threads:eth0=90.
    """
    dry_run: bool = False
    """Preview of the changes of --apply, without any change."""
    restore: bool = False
    """Undo of all changes by --apply."""
    fail_on: FailOn = FailOn.HIGH
    """Lowest severity that gives exit status 1 (default: high)."""
    json: Json = False
    display: DisplayOptions

    @property
    def cpu_list(self) -> tuple[int, ...] | None:
        """The CPUs for real-time threads; None: the isolated ones. UsageError."""
        return parse_cpulist(self.cpus) if self.cpus else None


def audit(request: AuditRequest) -> int:
    """Check the real-time setup of a machine, by default this one.

    Only --apply and --restore change the machine. The exit status is 1 if a check of
    at least the severity of --fail-on fails; with --apply or --restore, if a setting
    could not be changed or restored.
    """
    detail = request.display.detail
    if request.cpus:
        parse_cpulist(request.cpus)  # refused before a machine is opened
    sources = {"config": request.config, "root": request.root}
    refuse_two(target=request.target, **sources)
    for name, source in sources.items():
        refuse_two(capture=request.capture, **{name: source})
    address = address_of(request.target, boards=True)
    refuse_board_options(address.board, kernel=request.kernel, append=request.append)
    if request.restore or request.apply is not None or request.dry_run:
        return _tune(request)
    if request.user and request.unit is None:
        raise UsageError("--user is of a unit: name it with --unit")
    if request.unit is not None:
        refuse_two(unit=request.unit, config=request.config, capture=request.capture)
        return _audit_unit(request, request.unit)
    if request.capture is not None:
        refuse_unwritable(request.capture)
    context, what = _context(request)
    refuse_absent(context)
    kinds = auditing(config_only=request.config is not None)
    checks = examine(context, kinds, observed_first=True)
    form = Checked(what, json=request.json, detail=detail)
    show_checks(checks, context, form)
    if request.capture is not None:
        _write_capture(context, request.capture)
    if not context.only_requested and all(
        check.outcome in _UNANSWERED for check in checks
    ):
        raise TargetError(
            f"{what}: no check has an answer, so nothing is known of it; give the root "
            "directory of a system, or an archive of `rtscope audit --capture`"
        )
    return fails(checks, request.fail_on) or not_shown(context)


_UNANSWERED = frozenset({CheckOutcome.UNKNOWN, CheckOutcome.NOT_APPLICABLE})


def _tune(request: AuditRequest) -> int:
    restore = request.restore or None
    others = {
        "config": request.config,
        "root": request.root,
        "capture": request.capture,
    }
    refuse_two(apply=request.apply, restore=restore, unit=request.unit)
    refuse_two(apply=request.apply, **others)
    refuse_two(restore=restore, **others)
    if request.apply is not None:
        return _apply(request, request.apply)
    if request.dry_run:
        raise UsageError("--dry-run needs --apply: write --apply safe --dry-run")
    return _restore(request.target, json=request.json)


def _window_ns(seconds: float) -> int:
    if not 0 <= seconds <= MAX_WINDOW_S:
        raise UsageError(
            f"--observe {seconds:g}: write 0 to {MAX_WINDOW_S:.0f} seconds; to observe "
            "longer: rtscope run"
        )
    return round(seconds * NS_PER_S)


def _context(request: AuditRequest) -> tuple[AuditContext, str]:
    window_ns = _window_ns(request.observe)
    if (config := request.config) is not None:
        given = read_config(config)
        context = context_of_config(given, profile=request.profile, of_build=False)
        return context, str(config)
    if (root := request.root) is not None:
        with _captured(root) as tree:
            return _read(tree, request, tree.observed), str(root)
    address, what = address_of(request.target, boards=True), request.target or "local"
    if address.board is None and not address.is_here:
        with open_target(address) as board:
            watched = _with_trial(watch(board.reader, window_ns), board)
            return _read(board.reader, request, watched), what
    if address.board is not None:
        reader, watched = _boot(address.board, request, window_ns)
        return _read(reader, request, watched), what
    here = FileReader()
    return _read(here, request, watch_here(here, window_ns)), what


def _boot(name: str, request: AuditRequest, window_ns: int) -> tuple[Reader, Observed]:
    """Boot a virtual board and read it from inside; UsageError, BoardError."""
    # Emulator, packages and plugin: only this audit needs them.
    from rtscope.boards.catalogue import get_board, with_append
    from rtscope.boards.parts.buildcontext import BuildContext
    from rtscope.boards.parts.cache import cache_dir
    from rtscope.boards.parts.prepare import prepare
    from rtscope.boards.runs.inspect import inspect_guest
    from rtscope.cli.progress import Waiting
    from rtscope.machine.target import agent_file

    board = with_append(get_board(name), (request.append or "").split())
    kernel = request.kernel or board.kernels[0]
    with Waiting(stderr_console()) as waiting:
        log = waiting.over(note)
        build_context = BuildContext(
            cache=cache_dir(), agent=agent_file, log=log, progress=waiting
        )
        prepared = prepare(board, kernel, context=build_context)
        log(f"booting {prepared.kernel.name} on {board.name}")
        guest = inspect_guest(
            prepared, paths(auditing()), window_ns=window_ns, progress=waiting
        )
    return guest.reader, guest.observed


def _with_trial(observed: Observed, board: Target) -> Observed:
    """Have the board's agent try a real-time policy, with this user's own rights."""
    agent = board.start_agent(TRIAL_ARGS)
    try:
        answer = read_trial(collect(agent, timeout_s=TIMEOUT_S))
    finally:
        agent.kill()
    return replace(observed, trial=answer.trial, clock_cost_ns=answer.clock_cost_ns)


def _read(reader: Reader, request: AuditRequest, observed: Observed) -> AuditContext:
    return read_context(
        reader,
        auditing(),
        profile=request.profile,
        cpus=request.cpu_list,
        observed=observed,
    )


@contextlib.contextmanager
def _captured(root: Path) -> Iterator[capturing.Captured]:
    if root.is_dir():
        yield capturing.open_tree(root)
        return
    if not root.exists():
        raise UsageError(f"{root}: no such directory or archive")
    with temporary_folder("capture", error=RecordError) as place:
        capturing.unpack(root, place)
        yield capturing.open_tree(place)


def _write_capture(context: AuditContext, path: Path) -> None:
    made = capturing.archive(context)
    write_atomically(path, made.content)
    path.chmod(0o600)  # a kernel log is for its owner, as it is on the machine
    lines = [f"wrote {path}: {made.files} files"]
    lines += [f"  {line}" for line in capturing.taken(context)]
    for why in dict.fromkeys(made.left_out.values()):
        lines.append(f"  {len(made.left_out):,} files {why}")
    counts = made.redacted.counts
    taken_out = [f"{number} {kind}" for kind, number in counts.items()]
    lines.append(f"  redacted: {', '.join(taken_out) or 'nothing found to redact'}")
    lines += [f"  {NO_PROMISE}", f"  {capturing.STAYS}"]
    say("\n".join(lines))


# --- a unit of systemd, on a machine or from a file ---------------------------


FIRST_PROCESS = "/proc/1/comm"


def _audit_unit(request: AuditRequest, name: str) -> int:
    """Check a unit; 1 if a check of at least the severity `fail_on` fails."""
    with _machine(request.target, request.root) as (reader, machine):
        here = request.target in (None, "local") and request.root is None
        home = str(Path.home()) if here else None
        unit = load_unit(name, reader, of_user=request.user, home=home)
        unit = _with_threads(unit, reader, machine)
        kinds = auditing_a_unit()
        context = read_context(
            reader, kinds, profile=request.profile, cpus=request.cpu_list
        )
    refuse_absent(context)
    checks = examine(replace(context, unit=unit), kinds)
    what = printable(f"{unit.name} ({', '.join(unit.files)})")
    form = Checked(what, json=request.json, detail=request.display.detail)
    show_checks(checks, context, form)
    return fails(checks, request.fail_on)


@contextlib.contextmanager
def _machine(
    target: str | None, root: Path | None
) -> Iterator[tuple[Reader, Target | None]]:
    if root is not None:
        yield FileReader(root), None
        return
    with open_target(address_of(target), may_ask=False) as machine:
        yield machine.reader, machine


def _with_threads(unit: Unit, reader: Reader, machine: Target | None) -> Unit:
    """Add the threads of the unit, or the reason why they are unknown."""
    why = _why_no_threads(unit, reader, machine)
    if why or machine is None:
        return replace(unit, why_no_threads=why)
    processes = processes_of(unit, reader)
    threads = list_threads(machine).threads if processes else ()
    return replace(
        unit,
        threads=tuple(
            UnitThread(t.line.tid, t.name, t.line.policy, t.line.priority, cpus=t.cpus)
            for t in threads
            if t.line.pid in processes
        ),
    )


def _why_no_threads(unit: Unit, reader: Reader, machine: Target | None) -> str:
    if machine is None:
        return "a captured file tree has no threads"
    if not unit.installed:
        return "this is a file; to compare its threads, name the installed unit"
    first = text_of(read(reader, FIRST_PROCESS))
    if first != "systemd":
        return f"systemd does not run here: process 1 is {first or 'unknown'}"
    return ""


# --- change settings, and restore them ----------------------------------------


def _apply(request: AuditRequest, named: str) -> int:
    """Apply the remedies of failed checks; 0 if all named checks pass afterwards."""
    names = tuple(word.strip() for word in named.split(","))
    kinds = choose(names)
    _refuse_other_profiles(names, kinds, request.profile)
    with open_target(address_of(request.target)) as machine:
        context, checks = _check_machine(machine, kinds, request)
        planned = _without_unnamed(plan(context, checks), names)
        if not request.json:
            _show(planned, context)
        if request.dry_run or not planned.changes:
            if request.json:
                put_json(tuning_document(planned, None))
            return int(bool(planned.impossible))
        done = settings.apply(machine, planned.changes)
        touched = {change.check for change in planned.changes}
        again = [kind for kind in kinds if kind.id in touched]
        _, after = _check_machine(machine, again, request)
    if request.json:
        put_json(tuning_document(planned, done, after))
    else:
        with stdout_console() as console:
            print_tuning(done, console, after=after)
    good = not done.refused and not planned.impossible
    return int(not good or any(check.failed for check in after))


def _restore(target: str | None, *, json: bool) -> int:
    """Restore all changed settings; 0 if no changed setting remains."""
    with open_target(address_of(target)) as machine:
        back, refused = settings.restore(machine)
    if json:
        put_json(restored_document(back, refused))
        return int(bool(refused))
    nothing = () if back or refused else ("no changed settings to restore",)
    failures = (
        Words(
            (f"NOT restored: {one.knob} to {one.value}: {one.reason} ({one.cause})",),
            fit="whole",
        )
        for one in refused
    )
    put_blocks(*restored_lines(back), *nothing, *failures)
    return int(bool(refused))


def _check_machine(
    machine: Target, kinds: Sequence[CheckKind], request: AuditRequest
) -> tuple[AuditContext, list[Check]]:
    """Check a machine, and read the settings that remedies would write."""
    wanted = [*kinds, catalogue()["irqbalance"]]
    context = read_context(
        machine.reader,
        wanted,
        profile=request.profile,
        cpus=request.cpu_list,
        observed=observe_settings(machine.name),
    )
    refuse_absent(context)
    order = {kind.id: place for place, kind in enumerate(kinds)}
    checks = sorted(examine(context, kinds), key=lambda check: order[check.kind.id])
    return with_settings(context, kinds, machine.reader), checks


def _without_unnamed(planned: TuningPlan, names: Sequence[str]) -> TuningPlan:
    """Leave out passed checks that were not named, unless there is nothing else."""
    named = {name: says for name, says in planned.good.items() if name in names}
    return replace(planned, good=named) if planned.changes or named else planned


def _refuse_other_profiles(
    names: Sequence[str], kinds: Sequence[CheckKind], profile: Profile
) -> None:
    for kind in kinds:
        if profile not in kind.profiles and kind.id in names:
            raise UsageError(
                f"{kind.id} is no check of the profile {profile.value}: add "
                f"--profile {min(kind.profiles).value}"
            )


def _show(planned: TuningPlan, context: AuditContext) -> None:
    with stdout_console() as console:
        print_plan(planned, console)
    if service := undone_by(context, planned.changes):
        stderr_console().print(
            f"rtscope: {service} will undo this within seconds; stop it first: "
            f"systemctl stop {service}"
        )
