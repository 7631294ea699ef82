"""Write the disk image of a board, and boot it as proof."""

import hashlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.prepared import Prepared
from rtscope.cli.console import Json, put, put_json, say, stderr_console
from rtscope.cli.progress import Waiting
from rtscope.host.errors import BoardError, UsageError
from rtscope.host.escape import printable
from rtscope.host.files import refuse_unwritable
from rtscope.host.units import format_size, format_us
from rtscope.machine.target import agent_file
from rtscope.verbs.board.diskimage import (
    ImageCheck,
    check_image,
    loader_of,
    refuse_without_tools,
    write_image,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """The arguments and options of `rtscope board image`."""

    name: Annotated[str, typer.Argument()]
    """Board, e.g. jh7110."""
    out: Path
    """Image to write, e.g. board.img."""
    kernel: str | None = None
    """
    Kernel, by name or path of an image (default: the board's first), e.g.
    jh7110-6.12-rt.
    """
    check: bool = False
    """Boot the image in QEMU, and measure for a second."""
    force: bool = False
    """Replace an existing image."""
    json: Json = False


def image(request: ImageRequest) -> int:
    """Write a disk image that boots a board: kernel, user space, boot files.

    U-Boot starts it by extlinux.conf, the EFI firmware of a PC by systemd-boot. It
    measures for a second, then opens a shell on the serial console. The same inputs
    give the same bytes.
    """
    board = get_board(request.name)
    loader_of(board)
    refuse_without_tools()
    refuse_unwritable(request.out)
    if request.out.exists() and not request.force:
        raise UsageError(
            f"{request.out}: exists; name another file, or replace it with --force"
        )
    context = BuildContext(cache=cache_dir(), agent=agent_file, log=say)
    with Waiting(stderr_console()) as waiting:
        reporting = replace(context, log=waiting.over(say), progress=waiting)
        prepared = prepare(board, request.kernel or board.kernels[0], context=reporting)
        size_bytes = write_image(request.out, prepared, reporting)
        checked = _checked(request, prepared, reporting)
    with request.out.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if request.json:
        put_json(
            {
                "file": str(request.out),
                "board": board.name,
                "kernel": prepared.kernel.name,
                "release": prepared.kernel.release,
                "size_bytes": size_bytes,
                "sha256": digest,
                "check": None if checked is None else asdict(checked),
            }
        )
        return 0
    put(f"{digest}  {request.out}\n")
    put(f"{board.name}: {prepared.kernel.name}, {format_size(size_bytes)}\n")
    if checked is not None:
        put(
            f"booted in QEMU: {printable(checked.kernel)}; {checked.samples:,} "
            f"wake-ups, the latest after {format_us(checked.max_ns)} µs of host time, "
            "which says nothing about a board\n"
        )
    return 0


def _checked(
    request: ImageRequest, prepared: Prepared, context: BuildContext
) -> ImageCheck | None:
    """Boot the image if asked for; one that does not boot is removed."""
    if not request.check:
        return None
    try:
        return check_image(request.out, prepared, context)
    except (BoardError, KeyboardInterrupt):
        request.out.unlink(missing_ok=True)
        raise
