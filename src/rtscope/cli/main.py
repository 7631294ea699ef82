"""
The `rtscope` command: choose the verb, run it, turn errors into an exit status.

0 passed or done, 1 deadline missed or check failed, 2 wrong usage, 3 no valid
measurement, 4 claim not shown, 70 rtscope itself failed, 130 interrupted.
"""

import errno
import functools
import os
import shlex
import signal
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from types import FrameType
from typing import Any, NoReturn

import typer

from rtscope import __version__
from rtscope.cli.command import Command
from rtscope.cli.foreign import answers
from rtscope.cli.streams import open_streams
from rtscope.errors import MeasurementError, RtscopeError, UsageError
from rtscope.process import NO_THREAD

INTERRUPTED = 130

CRASHED = os.EX_SOFTWARE
"""70 of sysexits.h: Python's own 1 would say that a deadline was missed."""

ENDING = (signal.SIGTERM, signal.SIGHUP)

FIRST = """\
rtscope measures how late this machine wakes real-time threads, and explains why.

Type first:
  rtscope doctor               see what works on this machine, and what to do
  rtscope run -l idle -d 10s   measure this machine for ten seconds, idle
  rtscope run                  measure it under five loads
  rtscope audit                check its real-time settings
  rtscope report DIR           show that result again; -v shows everything
  rtscope explain DIR          name the causes of the worst wake-ups

All commands: rtscope --help; the options of one: rtscope run --help"""

# Full or read-only disks and limits of the shell are no bugs of ours.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE)

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
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            where = error.filename or "cannot write a file"
            print(f"rtscope: {where}: {error.strerror}", file=sys.stderr)
            status = MeasurementError.exit_status
        except KeyboardInterrupt:
            print("rtscope: interrupted", file=sys.stderr)
            status = INTERRUPTED
        raise typer.Exit(status)

    return command


@cache
def tables() -> Mapping[str, Any]:
    """Return the tables of `verbs.toml`."""
    file = resources.files("rtscope.cli").joinpath("verbs.toml")
    return tomllib.loads(file.read_text("utf-8"))


def make_app(typed: Sequence[str] | None = None) -> typer.Typer:
    """
    Return the command with the typed verb; None: with all verbs.

    Loading all verbs takes a second. Verbs that were not typed have only their help.
    """
    app = typer.Typer(
        name="rtscope",
        help="Measure the wake-up latency of real-time threads on Linux, and explain "
        "it.",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback(invoke_without_command=True)(_first)
    first, second = (*(typed or ()), "", "")[:2]
    alone, groups = tables()["verbs"], tables()["groups"]
    for name, row in alone.items():
        _add(app, name, row, load=typed is None or name == first)
    for name, table in groups.items():
        group = typer.Typer(
            help=table["help"], no_args_is_help=True, rich_markup_mode=None
        )
        for verb, row in table["verbs"].items():
            asked = (name, verb) == (first, second)
            _add(group, verb, row, load=typed is None or asked)
        app.add_typer(group, name=name)
    return app


def _add(app: typer.Typer, name: str, row: Mapping[str, Any], *, load: bool) -> None:
    """Add a verb; one that is not loaded serves the list of verbs alone."""
    if not load:
        app.command(name, help=row["help"])(lambda: None)
        return
    # Only a verb that runs or shows its options needs its module.
    from rtscope.cli.verbs import load_verb

    examples = "\n".join(f"  {line}" for line in row["examples"])
    verb = _exits(load_verb(row["place"]))
    app.command(name, cls=Command, epilog=f"\b\nExamples:\n{examples}")(verb)


def _first(
    ctx: typer.Context,
    *,
    version: bool = typer.Option(False, "--version", help="Version of rtscope."),
) -> None:
    if version:
        print(f"rtscope {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(FIRST)
        raise typer.Exit


def _interrupt(_signo: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _keep_numpy_to_one_thread() -> None:
    """Its threads do nothing here; where they cannot start, it sends SIGINT."""
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        os.putenv("OPENBLAS_NUM_THREADS", "1")  # not in os.environ, which loads get


def main() -> NoReturn:
    """Run the command line and exit."""
    # These signals must restore the machine as Ctrl-C does.
    for signo in ENDING:
        if signal.getsignal(signo) is not signal.SIG_IGN:  # nohup wants that kept
            signal.signal(signo, _interrupt)
    open_streams()
    _keep_numpy_to_one_thread()
    try:
        make_app(sys.argv[1:])(prog_name="rtscope")
    except SystemExit as ended:
        if ended.code == UsageError.exit_status:
            _name_renamed(sys.argv[1:])
        if isinstance(ended.__context__, typer.Abort):  # Ctrl-C at a question
            raise SystemExit(INTERRUPTED) from ended
        raise
    except KeyboardInterrupt:
        print("rtscope: interrupted", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except MemoryError:
        print("rtscope: not enough memory", file=sys.stderr)
        raise SystemExit(MeasurementError.exit_status) from None
    except Exception as error:
        raise SystemExit(_status_of(error)) from error
    raise SystemExit(0)


def _status_of(error: Exception) -> int:
    """Print an error that has no class of ours, and return the exit status."""
    # Python has no type for a thread that could not be started.
    if type(error) is RuntimeError and str(error) == "can't start new thread":
        print(f"rtscope: {NO_THREAD}", file=sys.stderr)
        return MeasurementError.exit_status
    _keep_traceback(error)
    return CRASHED


def _keep_traceback(error: Exception) -> None:
    """Say where the traceback of a bug is, and how to report it."""
    import tempfile
    import traceback

    trace = "".join(traceback.format_exception(error))
    what = traceback.format_exception_only(error)[-1].strip()[:300]
    print(f"rtscope: internal error, a bug of rtscope: {what}", file=sys.stderr)
    try:
        number, name = tempfile.mkstemp(prefix="rtscope-crash-", suffix=".txt")
        with os.fdopen(number, "w", errors="backslashreplace") as file:
            file.write(f"rtscope {__version__}: {shlex.join(sys.argv[1:])}\n{trace}")
    except OSError:
        print(f"{trace}rtscope: report it with this traceback", file=sys.stderr)
    else:
        print(f"rtscope: the traceback is in {name}: report it", file=sys.stderr)


def _name_renamed(words: Sequence[str]) -> None:
    for old in (word.partition("=")[0] for word in words):
        if new := tables()["renamed"].get(old):
            print(f"rtscope: {old} is now {new}", file=sys.stderr)
    if words[:1] == ["run"] or words[0].startswith("-"):
        for line in answers(words, tables()["foreign"]):
            print(f"rtscope: {line}", file=sys.stderr)
