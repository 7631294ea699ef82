"""Check the real-time setup of a machine."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rtscope.audit.context import AuditContext, Observed, refuse_absent
from rtscope.audit.examine import (
    auditing,
    context_of_config,
    examine,
    paths,
    read_context,
)
from rtscope.audit.model import Profile
from rtscope.audit.observe import watch, watch_here
from rtscope.cli.console import Json, note, say
from rtscope.cli.kernelverify import (
    FailOn,
    fails,
    read_config,
    refuse_two,
    show_checks,
)
from rtscope.cpulist import parse_cpulist
from rtscope.errors import UsageError
from rtscope.machine.filetree import FileReader
from rtscope.machine.reader import Reader
from rtscope.target.address import address_of, open_target
from rtscope.units import NS_PER_S

if TYPE_CHECKING:
    from rtscope.audit.capture import Captured
    from rtscope.target import Target

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
    Machine to check: local, ssh:HOST or virtual:BOARD (default: local), e.g. ssh:board.
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
    apply: str | None = None
    """Checks whose remedies to apply: safe, or their IDs, e.g. rt_throttling."""
    dry_run: bool = False
    """Preview of the changes of --apply, without any change."""
    restore: bool = False
    """Undo of all changes by --apply."""
    fail_on: FailOn = FailOn.HIGH
    """Lowest severity that gives exit status 1 (default: high)."""
    json: Json = False

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
    if request.cpus:
        parse_cpulist(request.cpus)  # refused before a machine is opened
    sources = {"config": request.config, "root": request.root}
    refuse_two(target=request.target, **sources)
    for name, source in sources.items():
        refuse_two(capture=request.capture, **{name: source})
    address = address_of(request.target, boards=True)
    if address.board is None and (request.kernel, request.append) != (None, None):
        raise UsageError(
            "--kernel and --append are for virtual boards only: add --target "
            "virtual:BOARD"
        )
    if request.restore or request.apply is not None or request.dry_run:
        return _tune(request)
    if request.unit is not None:
        refuse_two(unit=request.unit, config=request.config, capture=request.capture)
        from rtscope.cli.unit import audit_unit  # with the contract, as in _tune

        return audit_unit(request, request.unit)
    context, what = _context(request)
    refuse_absent(context)
    kinds = auditing(config_only=request.config is not None)
    checks = examine(context, kinds, observed_first=True)
    show_checks(checks, context, what=what, json=request.json)
    if request.capture is not None:
        _write_capture(context, request.capture)
    return fails(checks, request.fail_on)


def _tune(request: AuditRequest) -> int:
    from rtscope.cli import tune  # with the contract, half of what an audit takes

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
        return tune.apply(request, request.apply)
    if request.dry_run:
        raise UsageError("--dry-run needs --apply: write --apply safe --dry-run")
    return tune.restore(request.target, json=request.json)


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
        found = context_of_config(read_config(config), profile=request.profile)
        return found, str(config)
    if (root := request.root) is not None:
        with _captured(root) as tree:
            return _read(tree, request, tree.observed), str(root)
    address, what = address_of(request.target, boards=True), request.target or "local"
    if address.host is not None:
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
    from rtscope.board.buildcontext import BuildContext
    from rtscope.board.cache import cache_dir
    from rtscope.board.catalogue import get_board
    from rtscope.board.prepare import prepare
    from rtscope.target import agent_file
    from rtscope.virtual.inspect import inspect_guest, with_append

    board = with_append(get_board(name), request.append or "")
    kernel = request.kernel or board.kernels[0]
    build_context = BuildContext(cache=cache_dir(), agent=agent_file, log=note)
    prepared = prepare(board, kernel, context=build_context)
    note(f"booting {prepared.kernel.name} on {board.name}")
    guest = inspect_guest(prepared, paths(auditing()), window_ns=window_ns)
    return guest.reader, guest.observed


def _with_trial(observed: Observed, board: "Target") -> Observed:
    """Have the board's agent try a real-time policy, with this user's own rights."""
    from rtscope.audit.observe import TRIAL_ARGS, tried
    from rtscope.target.stream import collect

    agent = board.start_agent(TRIAL_ARGS)
    try:
        found = tried(collect(agent, timeout_s=TIMEOUT_S))
    finally:
        agent.kill()
    return replace(observed, trial=found.trial, clock_cost_ns=found.clock_cost_ns)


def _read(reader: Reader, request: AuditRequest, observed: Observed) -> AuditContext:
    return read_context(
        reader,
        auditing(),
        profile=request.profile,
        cpus=request.cpu_list,
        observed=observed,
    )


@contextlib.contextmanager
def _captured(root: Path) -> Iterator["Captured"]:
    from rtscope.audit import capture as capturing

    if root.is_dir():
        yield capturing.open_tree(root)
        return
    if not root.exists():
        raise UsageError(f"{root}: no such directory or archive")
    with tempfile.TemporaryDirectory(prefix="rtscope-") as place:
        capturing.unpack(root, Path(place))
        yield capturing.open_tree(Path(place))


def _write_capture(context: AuditContext, path: Path) -> None:
    from rtscope.audit import capture as capturing
    from rtscope.files import write_atomically

    content, redacted, count = capturing.archive(context)
    write_atomically(path, content)
    path.chmod(0o600)  # a kernel log is for its owner, as it is on the machine
    lines = [f"wrote {path}: {count} files"]
    lines += [f"  {line}" for line in capturing.taken(context)]
    taken_out = [f"{number} {kind}" for kind, number in redacted.counts.items()]
    lines.append(f"  redacted: {', '.join(taken_out) or 'nothing found to redact'}")
    say("\n".join(lines))
