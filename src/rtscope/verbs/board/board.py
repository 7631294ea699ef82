"""Virtual boards: list, build, export and import them."""

import json as json_text
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rtscope.boards.catalogue import Board, board_names, get_board
from rtscope.boards.events import device_events
from rtscope.boards.kernels.catalogue import kernel_names
from rtscope.boards.parts.aptroot import lock_text, read_lock
from rtscope.boards.parts.buildcontext import BuildContext, cached_lock
from rtscope.boards.parts.bundle import export_bundle, import_bundle
from rtscope.boards.parts.cache import all_parts, cache_dir, imported_parts
from rtscope.boards.parts.prepare import prepare_all
from rtscope.boards.parts.prepared import Prepared
from rtscope.cli.console import (
    Json,
    note,
    put,
    put_blocks,
    put_json,
    say,
    stderr_console,
)
from rtscope.cli.progress import Waiting
from rtscope.host.errors import UsageError
from rtscope.host.files import write_atomically
from rtscope.host.units import format_duration, format_size
from rtscope.host.version import __version__
from rtscope.machine.target import agent_file
from rtscope.measure.campaign.file import from_dict, load_campaign, to_dict, with_places
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.options import Options, with_options
from rtscope.measure.plan import kernels_by_label
from rtscope.present.document import table
from rtscope.present.words import NOTHING
from rtscope.record.directory.place import CAMPAIGN, read_document


def list_boards(*, json: Json = False) -> int:
    """List the virtual boards, and the size of their parts in the cache."""
    boards = [get_board(name) for name in board_names()]
    if json:
        put_json([_row(board) for board in boards])
        return 0
    rows = [
        (
            board.name,
            f"{board.title}, {board.arch}",
            str(board.cpus),
            f"{board.mips:g}",
            _quantum(board),
            ", ".join(board.kernels),
        )
        for board in boards
    ]
    names, last = ("board", "models"), ("quantum", "kernels")
    put_blocks(table(names, ("CPUs", "MIPS"), rows, last=last, fit="wraps"))
    _print_cache()
    return 0


def show(
    name: Annotated[str, typer.Argument(help="Board: pc, jh7110 or rpi3.")],
    *,
    json: Json = False,
) -> int:
    """Show a board: machine, virtual time, kernels, models and omissions."""
    board = get_board(name)
    if json:
        put_json(_row(board))
        return 0
    lines = [
        f"{board.name}: {board.title}",
        f"machine   QEMU {board.machine}, CPU {board.cpu}, {board.memory} of memory",
        f"model     revision {board.revision}",
        f"time      {board.cpus} CPUs, each {board.mips:g} million instructions per "
        f"virtual second; quantum {_quantum(board)}",
        f"kernels   {', '.join(kernel_names(board.arch))}, or an image",
        *_listed("events", device_events(board)),
        *_listed("models", board.models),
        *_listed("lacks", board.leaves_out),
    ]
    put("\n".join(lines) + "\n")
    return 0


def _row(board: Board) -> dict[str, Any]:
    """Return a board for JSON, with the events that go through devices of it."""
    row = asdict(board)
    del row["event_devices"]
    return {**row, "events": device_events(board)}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """The arguments and options of `rtscope board build`."""

    names: Annotated[list[str] | None, typer.Argument()] = None
    """Boards to build (default: all), e.g. pc."""
    kernel: str | None = None
    """
    Kernels, by name or path of an image (default: those of the board), e.g.
    debian-6.12-rt.
    """
    lockfile: Path | None = None
    """Lock file with the exact packages to use (default: none), e.g. packages.lock."""
    save_lock: Path | None = None
    """Lock file to write with the packages used, e.g. packages.lock."""
    upgrade: bool = False
    """Newest packages of the archive, not the cached."""


def build(request: BuildRequest) -> int:
    """Fetch and build the parts of boards into the cache, unless they are there."""
    context = _build_context(request.lockfile, upgrade=request.upgrade)
    for name in request.names or board_names():
        board = get_board(name)
        kernels = _kernels(request.kernel, board)
        with Waiting(stderr_console()) as waiting:
            reporting = replace(context, log=waiting.over(say), progress=waiting)
            made = prepare_all(board, kernels, context=reporting)
        for prepared in made:
            _print_prepared(prepared)
    if request.save_lock is not None:
        used = context.lock or cached_lock(context.cache)
        write_atomically(request.save_lock, lock_text(used).encode())
    _print_cache()
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """The arguments and options of `rtscope board export`."""

    name: Annotated[str, typer.Argument()]
    """Board to export, e.g. pc."""
    out: Path
    """Bundle to write, e.g. pc.tar.gz."""
    kernel: str | None = None
    """
    Kernels, by name or path of an image (default: those of the board), e.g.
    debian-6.12-rt.
    """
    campaign: Path | None = None
    """Campaign to include: its file, or a result directory, e.g. campaign.toml."""


def export(request: ExportRequest) -> int:
    """Write all parts of a board into one bundle, for reproducible results elsewhere.

    rtscope run --bundle FILE measures with it, without network.
    """
    board = get_board(request.name)
    campaign = _campaign(request.campaign, board)
    if request.kernel is not None:
        kernels = ",".join(_kernels(request.kernel, board))
        campaign = with_options(campaign, Options(kernel=kernels))
    names = kernels_by_label(campaign.kernels or board.kernels)
    made = prepare_all(
        board,
        list(names.values()),
        context=_build_context(),
        files=[Path(file) for file in campaign.guest_files],
        config=campaign.config,
    )
    prepared = dict(zip(names, made, strict=True))
    # The files are in the bundle; their paths are valid on this machine only. Its
    # kernels have the symbols already.
    document = to_dict(replace(campaign, guest_files=(), config=()))
    files = {CAMPAIGN.file: json_text.dumps(document, sort_keys=True).encode()}
    digest = export_bundle(request.out, prepared, files=files, rtscope=__version__)
    put(f"{digest}  {request.out}\n")
    return 0


def import_(
    file: Annotated[
        Path, typer.Argument(help="Bundle of rtscope board export, e.g. pc.tar.gz.")
    ],
) -> int:
    """Keep the parts of a bundle in the cache, after checking all digests.

    A bundle contains programs that run on this machine: import only bundles you trust.
    Only rtscope run --bundle FILE uses them, and replays of its results.
    """
    bundle = import_bundle(file, cache=_build_context().cache, log=say)
    put(f"{bundle.digest}  {bundle.board.name} with {', '.join(bundle.kernels)}\n")
    return 0


def _campaign(path: Path | None, board: Board) -> Campaign:
    """Return the campaign of a bundle; UsageError if it is of another target."""
    target = f"virtual:{board.name}"
    if path is None:
        return Campaign(target=target)
    if path.is_dir():
        document = read_document(path, CAMPAIGN)
        campaign = from_dict(document.asked, source=document.source)
    else:
        campaign = with_places(load_campaign(path), path.parent)
    if campaign.target not in ("local", target):
        raise UsageError(f"{path}: measures {campaign.target}, not {target}")
    if campaign.qemu is not None:
        raise UsageError(
            f"{path}: a bundle cannot contain your own QEMU; leave qemu out"
        )
    # The bundle itself is the lock.
    return replace(with_options(campaign, Options(target=target)), lockfile=None)


def _build_context(
    lockfile: Path | None = None, *, upgrade: bool = False
) -> BuildContext:
    return BuildContext(
        cache=cache_dir(),
        agent=agent_file,
        lock=read_lock(lockfile) if lockfile else None,
        upgrade=upgrade,
        log=say,
    )


def _kernels(option: str | None, board: Board) -> list[str]:
    return [k for k in (option or ",".join(board.kernels)).split(",") if k]


def _print_prepared(prepared: Prepared) -> None:
    board, kernel = prepared.board, prepared.kernel
    release = kernel.release or "your own image"
    put(f"{board.name}: {kernel.name} ({release}), QEMU {prepared.qemu.version}\n")


def _print_cache() -> None:
    cache = cache_dir()
    parts = [*all_parts(cache), *imported_parts(cache)]
    total = sum(part.size_bytes for part in parts)
    note(f"{len(parts)} parts, {format_size(total)}, in {cache}")
    for part in parts:
        note(f"{format_size(part.size_bytes):>10}  {part.name}")


def _quantum(board: Board) -> str:
    if board.quantum_ns is None:
        return NOTHING
    instructions = board.quantum_instructions
    return f"{format_duration(board.quantum_ns)} ({instructions} instructions)"


def _listed(title: str, texts: tuple[str, ...]) -> list[str]:
    return [f"{title if at == 0 else '':<9} - {t}" for at, t in enumerate(texts)]
