"""Run a program behind a shield of CPUs, and say what the shield is and what it was."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rtscope.cli.console import say, stderr_console
from rtscope.host import process
from rtscope.host.errors import TargetError
from rtscope.machine.settings.change import HeldSettings
from rtscope.machine.settings.shield import Shield, shielded
from rtscope.machine.target import Target
from rtscope.present.formats.shield import shield_blocks
from rtscope.present.render.terminal import print_blocks

if TYPE_CHECKING:
    from rtscope.present.document import Block


def note_blocks(blocks: "Iterable[Block]") -> None:
    """Print a part of a document on standard error: standard output is a program's."""
    print_blocks(blocks, stderr_console())


def run_behind(
    machine: Target,
    cpus: tuple[int, ...],
    argv: Sequence[str],
    *,
    environ: Mapping[str, str],
) -> int:
    """
    Run a program that enters the shield of these CPUs, held until it ends; its status.

    Raises TargetError where there is no shield, or it was not there to the end.
    """
    with shielded(machine, cpus) as (shield, holding):
        note_blocks(shield_blocks(shield))
        status = process.run_in_front(argv, environ, watch=_watch(holding))
        holding.check()
    say_restored(shield)
    return status


def say_restored(shield: Shield) -> None:
    """Say that all was put back, which the agent has confirmed."""
    say(f"the shield of CPU {shield.cpu_list} is gone, and all settings are restored")


def _watch(holding: HeldSettings) -> Callable[[], None]:
    """Return what says once that the shield has ended before the program did."""
    told: list[str] = []

    def watch() -> None:
        if told:
            return
        try:
            holding.check()
        except TargetError as error:
            told.append(str(error))
            say(f"the shield is gone while the program runs: {error}")

    return watch
