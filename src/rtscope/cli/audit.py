"""Look whether a machine is set up for real time."""

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rtscope.audit.context import AuditContext, Observed, refuse_absent
from rtscope.audit.examine import (
    auditing,
    context_of_config,
    examine,
    paths,
    read_context,
)
from rtscope.audit.model import Profile, checks_document
from rtscope.audit.observe import watch, watch_here
from rtscope.cli.console import put_json, stderr_console, stdout_console
from rtscope.cli.kernelverify import FailOn, fails, read_config, refuse_two
from rtscope.cpulist import parse_cpulist
from rtscope.errors import UsageError
from rtscope.machine.filetree import FileReader
from rtscope.machine.reader import Reader
from rtscope.report.formats.audit import print_checks
from rtscope.target.address import address_of, open_target
from rtscope.units import NS_PER_S

if TYPE_CHECKING:
    from rtscope.audit.capture import Captured
    from rtscope.target import Target

MAX_WINDOW_S = 60.0
PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class _AuditOptions:
    """For whom a machine is judged, how long it is watched, how a board boots."""

    profile: Profile
    cpus: tuple[int, ...] | None
    window_ns: int
    kernel: str | None
    """Of a virtual board: a name or an image; None: the board's first."""
    append: str | None
    """More words for a virtual board's command line."""


def audit(
    *,
    profile: Annotated[
        Profile, typer.Option(help="What the machine is for.")
    ] = Profile.CONTROL,
    cpus: Annotated[
        str | None,
        typer.Option(
            help="The CPUs for real-time threads, such as 2-3; else the isolated ones."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="local, ssh:HOST, or virtual:BOARD, which is booted."),
    ] = None,
    kernel: Annotated[
        str | None, typer.Option(help="Of a virtual board: a name, or an image.")
    ] = None,
    append: Annotated[
        str | None,
        typer.Option(help="More words for a virtual board's kernel: 'isolcpus=1'."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A kernel's configuration, alone.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(help="A captured tree, or an archive that --capture wrote."),
    ] = None,
    observe: Annotated[
        float, typer.Option(help="How many seconds to watch the machine; 0: not.")
    ] = 1.0,
    capture: Annotated[
        Path | None,
        typer.Option(help="Also write what was read to this archive, to send it."),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help="Judge a unit of systemd instead: its name, or a file."),
    ] = None,
    apply: Annotated[
        str | None,
        typer.Option(help="Change what these checks need: ID,ID or safe."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="With --apply: only show what would be changed."
        ),
    ] = False,
    restore: Annotated[
        bool, typer.Option("--restore", help="Put back what --apply has changed.")
    ] = False,
    fail_on: Annotated[
        FailOn, typer.Option(help="The least severity that fails.")
    ] = FailOn.HIGH,
    json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON.")
    ] = False,
) -> int:
    """Look whether a machine is set up for real time; change nothing unasked.

    Without an option, this machine, for a periodic control loop. The exit status is 1
    if a check fails that is at least as grave as --fail-on; with --apply or --restore,
    if something could not be changed or put back.
    """
    refuse_two(target=target, config=config, root=root)
    refuse_two(capture=capture, config=config)
    refuse_two(capture=capture, root=root)
    address = address_of(target, boards=True)
    if address.board is None and (kernel, append) != (None, None):
        raise UsageError(
            "--kernel and --append say how a virtual board boots: add --target "
            "virtual:BOARD"
        )
    if restore or apply is not None or dry_run:
        refuse_two(apply=apply, restore=restore or None, unit=unit)
        refuse_two(apply=apply, config=config, root=root, capture=capture)
        refuse_two(restore=restore or None, config=config, root=root, capture=capture)
        return _tune(
            target, apply, profile=profile, cpus=cpus, dry_run=dry_run, json=json
        )
    if unit is not None:
        refuse_two(unit=unit, config=config, capture=capture)
        return _audit_unit(
            (unit, profile, parse_cpulist(cpus) if cpus else None, fail_on, json),
            target=target,
            root=root,
        )
    window_ns = _window_ns(observe)
    asked = _AuditOptions(
        profile, parse_cpulist(cpus) if cpus else None, window_ns, kernel, append
    )
    context, what = _context(asked, target=target, config=config, root=root)
    refuse_absent(context)
    checks = examine(
        context, auditing(config_only=config is not None), observed_first=True
    )
    if json:
        put_json(checks_document(checks, of=what, kernel=context.kernel))
    else:
        with stdout_console() as console:
            print_checks(checks, console, of=what, kernel=context.kernel)
    if capture is not None:
        _write_capture(context, capture)
    return int(any(fails(check, fail_on) for check in checks))


def _audit_unit(
    asked: tuple[str, Profile, tuple[int, ...] | None, FailOn, bool],
    *,
    target: str | None,
    root: Path | None,
) -> int:
    from rtscope.cli.unit import (  # with the contract, as above
        UnitAuditOptions,
        audit_unit,
    )

    return audit_unit(UnitAuditOptions(*asked), target=target, root=root)


def _tune(
    target: str | None,
    checks: str | None,
    *,
    profile: Profile,
    cpus: str | None,
    dry_run: bool,
    json: bool,
) -> int:
    from rtscope.cli import tune  # with the contract, half of what an audit takes

    if checks is None and dry_run:
        raise UsageError(
            "--dry-run shows what --apply would do: --apply safe --dry-run"
        )
    if checks is None:
        return tune.restore(target, json=json)
    asked = tune.TuneOptions(
        checks=tuple(word.strip() for word in checks.split(",")),
        profile=profile,
        cpus=parse_cpulist(cpus) if cpus else None,
        dry_run=dry_run,
        json=json,
    )
    return tune.apply(target, asked)


def _window_ns(seconds: float) -> int:
    if not 0 <= seconds <= MAX_WINDOW_S:
        raise UsageError(
            f"--observe {seconds:g}: 0 to {MAX_WINDOW_S:.0f} seconds; rtscope run "
            "watches for longer"
        )
    return round(seconds * NS_PER_S)


def _context(
    asked: _AuditOptions,
    *,
    target: str | None,
    config: Path | None,
    root: Path | None,
) -> tuple[AuditContext, str]:
    if config is not None:
        found = context_of_config(read_config(config), profile=asked.profile)
        return found, str(config)
    if root is not None:
        with _captured(root) as tree:
            return _read(tree, asked, tree.observed), str(root)
    address, what = address_of(target, boards=True), target or "local"
    if address.host is not None:
        with open_target(address) as board:
            watched = _with_trial(watch(board.reader, asked.window_ns), board)
            return _read(board.reader, asked, watched), what
    if address.board is not None:
        reader, watched = _boot(address.board, asked)
        return _read(reader, asked, watched), what
    here = FileReader()
    return _read(here, asked, watch_here(here, asked.window_ns)), what


def _boot(name: str, asked: _AuditOptions) -> tuple[Reader, Observed]:
    """Boot a virtual board and read it from inside; UsageError, BoardError."""
    # Emulator, packages and plugin: no other audit needs them.

    from rtscope.board.buildcontext import Workshop
    from rtscope.board.cache import cache_dir
    from rtscope.board.catalogue import get_board
    from rtscope.board.prepare import prepare
    from rtscope.target import agent_file
    from rtscope.virtual.inspect import inspect_guest, with_append

    talk = stderr_console()
    board = with_append(get_board(name), asked.append or "")
    kernel = asked.kernel or board.kernels[0]
    shop = Workshop(
        cache=cache_dir(),
        agent=agent_file,
        say=lambda text: talk.print(text, markup=False),
    )
    prepared = prepare(board, kernel, workshop=shop)
    talk.print(f"booting {prepared.kernel.name} on {board.name}", markup=False)
    guest = inspect_guest(prepared, paths(auditing()), window_ns=asked.window_ns)
    return guest.reader, guest.observed


def _with_trial(observed: Observed, board: "Target") -> Observed:
    """Have the board's agent try a real-time policy, with this user's own rights."""
    from rtscope.audit.observe import TRIAL_ARGS, tried
    from rtscope.target.stream import collect

    agent = board.start_agent(TRIAL_ARGS)
    try:
        found = tried(collect(agent, timeout_s=PATIENCE_S))
    finally:
        agent.kill()
    return replace(observed, trial=found.trial, clock_cost_ns=found.clock_cost_ns)


def _read(reader: Reader, asked: _AuditOptions, observed: Observed) -> AuditContext:
    return read_context(
        reader, auditing(), profile=asked.profile, cpus=asked.cpus, observed=observed
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
    told = [f"rtscope: wrote {path}: {count} files"]
    told += [f"  {line}" for line in capturing.taken(context)]
    taken_out = [f"{number} {kind}" for kind, number in redacted.counts.items()]
    told.append(f"  redacted: {', '.join(taken_out) or 'nothing was found to redact'}")
    print("\n".join(told), file=sys.stderr)
