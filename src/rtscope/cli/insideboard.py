"""Boot a virtual board to look at it from inside, and nothing else."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rtscope.audit.context import Observed
from rtscope.audit.examine import auditing, paths
from rtscope.errors import UsageError

if TYPE_CHECKING:
    from rtscope.machine.reader import Reader

VIRTUAL = "virtual:"


@dataclass(frozen=True, slots=True)
class BoardBoot:
    """How a virtual board is to boot."""

    kernel: str | None
    """A name or an image; None: the board's first."""
    append: str | None
    """More words for its command line."""


def refuse_boot(boot: BoardBoot, target: str | None) -> None:
    """Raise UsageError if a boot is described and no virtual board is to boot."""
    asked = boot.kernel is not None or boot.append is not None
    if asked and not (target or "").startswith(VIRTUAL):
        raise UsageError(
            "--kernel and --append say how a virtual board boots: add --target "
            "virtual:BOARD"
        )


def look_inside(
    target: str, asked: BoardBoot, *, window_ns: int
) -> tuple["Reader", Observed]:
    """Boot the board and return what it let out; UsageError, BoardError."""
    # Emulator, packages and plugin: no other audit needs them.
    import os

    from rtscope.board.buildcontext import Workshop
    from rtscope.board.cache import cache_dir
    from rtscope.board.catalogue import get_board
    from rtscope.board.prepare import prepare
    from rtscope.cli.console import stderr_console
    from rtscope.target.agentfile import agent_file
    from rtscope.virtual.inspect import inspect_guest, with_append

    talk = stderr_console()
    board = with_append(get_board(target.removeprefix(VIRTUAL)), asked.append or "")
    kernel = asked.kernel or board.kernels[0]
    shop = Workshop(
        cache=cache_dir(os.environ),
        agent=agent_file,
        say=lambda text: talk.print(text, markup=False),
    )
    prepared = prepare(board, kernel, workshop=shop)
    talk.print(f"booting {prepared.kernel.name} on {board.name}", markup=False)
    guest = inspect_guest(prepared, paths(auditing()), window_ns=window_ns)
    return guest.reader, guest.observed
