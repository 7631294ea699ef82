"""Run a scheduling scenario, and check that the kernel behaves as documented."""

from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.console import (
    Json,
    log,
    note,
    put_blocks,
    put_json,
    stderr_console,
    stdout_console,
)
from rtscope.cli.options import BoardKernel, refuse_board_options
from rtscope.host.errors import UsageError
from rtscope.host.files import refuse_unwritable, write_atomically
from rtscope.machine.filetree import FileReader
from rtscope.machine.target.address import Address, address_of, open_target
from rtscope.verbs.demo.judge import judged
from rtscope.verbs.demo.machine import run_demo
from rtscope.verbs.demo.model import Demo, DemoResult, Scenario, demos
from rtscope.verbs.demo.states import show_states
from rtscope.verbs.demo.statestext import (
    states_blocks,
    states_document,
    states_json,
)
from rtscope.verbs.demo.text import demo_document, print_chars, print_demo

NOT_HELD = 1


def demo(
    scenario: Annotated[Scenario, typer.Argument(help="Scenario to run.")],
    *,
    target: Annotated[
        str,
        typer.Option(
            help="Machine: local, ssh:HOST, lab:PLACE or virtual:BOARD (default: "
            "local), e.g. virtual:pc."
        ),
    ] = "local",
    kernel: BoardKernel = None,
    cpu: Annotated[
        int | None,
        typer.Option(min=0, help="CPU of the threads (default: the last), e.g. 3."),
    ] = None,
    chars: Annotated[
        bool,
        typer.Option(
            "--chars", help="A character for each ms that a thread ran, in order."
        ),
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="HTML page to write, e.g. page.html.")
    ] = None,
    json: Json = False,
) -> int:
    """Run a scheduling scenario, and check that the kernel behaves as documented.

    Threads of the agent follow a script on one CPU, for a few seconds; changed settings
    are restored. `states` makes each state of a thread on this machine, and shows it.
    The exit status is 1 if a check fails, or a state that was made is not seen.
    """
    if html is not None:
        refuse_unwritable(html)
    if json and chars:
        raise UsageError("--json has all that --chars shows: leave one out")
    address = address_of(target, boards=True)
    refuse_board_options(address.board, kernel=kernel)
    if scenario is Scenario.STATES:
        if address != Address():
            raise UsageError(
                f"states are made on this machine: run rtscope app demo {scenario} on "
                "the board itself"
            )
        if chars or cpu is not None:
            raise UsageError(f"{scenario} has no --cpu and no --chars: leave them out")
        return _states(html, json=json)
    demo = demos()[scenario]
    if address.board is not None:
        result = _on_board(address.board, kernel, demo, cpu)
    else:
        with open_target(address, alone=log) as machine:
            result = run_demo(machine, demo, cpu=cpu, log=note)
    judgement = judged(demo, result, target)
    if html is not None:
        # Loaded for a page only: it takes as long as all the rest.
        from rtscope.verbs.demo.page import render_demo

        write_atomically(html, render_demo(judgement).encode())
    if json:
        put_json(demo_document(judgement))
    else:
        with stdout_console() as console:
            if chars:
                print_chars(judgement, console)
            print_demo(judgement, console)
    return 0 if judgement.held else NOT_HELD


def _states(html: Path | None, *, json: bool) -> int:
    """Show the states of a thread; return the exit status. Raises TargetError."""
    result = show_states(FileReader(), log=note)
    if html is not None:
        # Loaded for a page only: it takes as long as all the rest.
        from rtscope.present.render.page import page_of

        write_atomically(html, page_of(states_document(result)).encode())
    if json:
        put_json(states_json(result))
    else:
        put_blocks(*states_blocks(result))
    return 0 if result.held else NOT_HELD


def _on_board(name: str, kernel: str | None, demo: Demo, cpu: int | None) -> DemoResult:
    """Boot a virtual board for it; UsageError, BoardError, TargetError."""
    # Emulator, packages and plugin: only a board needs them.
    from rtscope.boards.catalogue import get_board
    from rtscope.boards.parts.buildcontext import BuildContext
    from rtscope.boards.parts.cache import cache_dir
    from rtscope.boards.parts.prepare import prepare
    from rtscope.cli.progress import Waiting
    from rtscope.machine.target import agent_file
    from rtscope.verbs.demo.board import run_demo_on_board

    board = get_board(name)
    with Waiting(stderr_console()) as waiting:
        say = waiting.over(note)
        context = BuildContext(
            cache=cache_dir(), agent=agent_file, log=say, progress=waiting
        )
        prepared = prepare(board, kernel or board.kernels[0], context=context)
        say(f"booting {prepared.kernel.name} on {board.name}")
        return run_demo_on_board(prepared, demo, cpu=cpu, progress=waiting)
