"""
The `rtscope` command: choose the verb, run it, turn errors into an exit status.

0 held or done, 1 limit exceeded or check failed, 2 usage, 3 no valid measurement,
4 a claim not shown, 130 interrupted.
"""

import functools
import io
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

import typer

from rtscope import __version__
from rtscope.cli import (
    audit,
    board,
    compare,
    explain,
    kernel,
    kernelverify,
    report,
    run,
    tasks,
    trace,
)
from rtscope.errors import RtscopeError

INTERRUPTED = 130

ENDING = (signal.SIGTERM, signal.SIGHUP)

Verb = Callable[..., int]


def _exits(verb: Verb) -> Callable[..., None]:
    """Make a verb end the program: with its status, or with that of its error."""

    @functools.wraps(verb)
    def command(*args: object, **options: object) -> None:
        try:
            status = verb(*args, **options)
        except RtscopeError as error:
            print(f"rtscope: {error}", file=sys.stderr)
            status = error.exit_status
        except KeyboardInterrupt:
            print("rtscope: interrupted", file=sys.stderr)
            status = INTERRUPTED
        raise typer.Exit(status)

    return command


app = typer.Typer(
    name="rtscope",
    help="How late a Linux machine wakes real-time threads, and what may be promised.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(_exits(run.run))
app.command("report")(_exits(report.report))
app.command("compare")(_exits(compare.compare))
app.command("tasks")(_exits(tasks.tasks))
app.command("audit")(_exits(audit.audit))
app.command("explain")(_exits(explain.explain))

boards = typer.Typer(
    help="Virtual boards: list, build and move them; what they executed.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
boards.command("list")(_exits(board.list_boards))
boards.command("show")(_exits(board.show))
boards.command("build")(_exits(board.build))
boards.command("export")(_exits(board.export))
boards.command("import")(_exits(board.import_))
boards.command("trace")(_exits(trace.trace))
app.add_typer(boards, name="board")

kernels = typer.Typer(
    help="Kernels: from source and patches to an image that is what was asked for.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
kernels.command("list")(_exits(kernel.list_kernels))
kernels.command("show")(_exits(kernel.show))
kernels.command("patches")(_exits(kernel.patches))
kernels.command("config")(_exits(kernel.config))
kernels.command("build")(_exits(kernel.build))
kernels.command("package")(_exits(kernel.package))
kernels.command("verify")(_exits(kernelverify.verify))
app.add_typer(kernels, name="kernel")


@app.callback(invoke_without_command=True)
def _version(
    *,
    version: bool = typer.Option(False, "--version", help="Print the version."),
) -> None:
    if version:
        print(f"rtscope {__version__}")
        raise typer.Exit


def _interrupt(_signo: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def main() -> NoReturn:
    """Run the command line and exit."""
    # What ends us otherwise is to put the machine back as Ctrl-C does.
    for signo in ENDING:
        signal.signal(signo, _interrupt)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(
            errors="replace"
        )  # a terminal without, say, a micro sign
    app(prog_name="rtscope")
    raise SystemExit(0)
