"""
The `rtscope` command: choose the verb, run it, turn errors into an exit status.

0 passed or done, 1 deadline missed or check failed, 2 wrong usage, 3 no valid
measurement, 4 claim not shown, 70 rtscope itself failed, 130 interrupted.
"""

import ast
import errno
import functools
import importlib
import inspect
import itertools
import os
import shlex
import signal
import sys
import tempfile
import tomllib
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from importlib import resources
from types import FrameType
from typing import Annotated, Any, NoReturn, get_type_hints

import typer
from typer.core import TyperCommand

from rtscope import __version__
from rtscope.cli.console import open_streams
from rtscope.errors import MeasurementError, RtscopeError, UsageError
from rtscope.process import NO_THREAD

INTERRUPTED = 130

CRASHED = os.EX_SOFTWARE
"""70 of sysexits.h: Python's own 1 would say that a deadline was missed."""

ENDING = (signal.SIGTERM, signal.SIGHUP)

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
def _tables() -> Mapping[str, Any]:
    """Return the tables of `verbs.toml`."""
    file = resources.files("rtscope.cli").joinpath("verbs.toml")
    return tomllib.loads(file.read_text("utf-8"))


def make_app(typed: Sequence[str] = ()) -> typer.Typer:
    """
    Return the command with all its verbs, or with the typed one alone.

    Loading the modules of all verbs takes longer than some verbs run.
    """
    app = typer.Typer(
        name="rtscope",
        help="Measure the wake-up latency of real-time threads on Linux, and explain "
        "it.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback(invoke_without_command=True)(_version)
    first, second = (*typed, "", "")[:2]
    alone, groups = _tables()["verbs"], _tables()["groups"]
    known = first in alone or first in groups
    for name, place in alone.items():
        if not known or name == first:
            app.command(name, cls=_Command)(_exits(_load(place)))
    for name, table in groups.items():
        if known and name != first:
            continue
        group = typer.Typer(
            help=table["help"], no_args_is_help=True, rich_markup_mode=None
        )
        for verb, place in table["verbs"].items():
            if second not in table["verbs"] or verb == second:
                group.command(verb, cls=_Command)(_exits(_load(place)))
        app.add_typer(group, name=name)
    return app


class _Command(TyperCommand):
    """A verb whose help has a section for each group of options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and the options by their groups."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for param in self.get_params(ctx):
            setattr(param, "show_default", False)  # the text names it  # noqa: B010
            if (row := param.get_help_record(ctx)) is not None:
                kind = f"{param.param_type_name.capitalize()}s"
                title = getattr(param, "rich_help_panel", None) or kind
                sections.setdefault(title, []).append(row)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _load(place: str) -> Verb:
    module, _, function = place.partition(":")
    return _filling(getattr(importlib.import_module(f"rtscope.cli.{module}"), function))


def _filling(verb: Verb) -> Verb:
    """
    Return the verb with the fields of its dataclasses as its own options.

    The text below a field is the help of its option.
    """

    @functools.wraps(verb)
    def filled(**typed: object) -> int:
        status: int = _filled(verb, typed)
        return status

    options = list(_options(verb))
    filled.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    filled.__annotations__ = {option.name: option.annotation for option in options}
    return filled


def _options(function: Callable[..., object]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    texts = _texts(function) if isinstance(function, type) else {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints[name]
        if is_dataclass(kind) and isinstance(kind, type):
            yield from _options(kind)
        else:
            if name in texts:
                kind = _described(name, kind, texts[name])
            yield parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY)


def _texts(request: type) -> Mapping[str, str]:
    """Return the text below each field, which is the help of its option."""
    definition = _classes(request.__module__)[request.__name__]
    texts = {}
    for pair in itertools.pairwise(definition.body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(text))
            ):
                texts[name] = " ".join(text.split())
    return texts


@cache
def _classes(module: str) -> Mapping[str, ast.ClassDef]:
    """Return the classes of a module; `inspect` would read it again for each."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {one.name: one for one in tree.body if isinstance(one, ast.ClassDef)}


def _described(name: str, kind: Any, text: str) -> Any:
    """Return the annotation of an option with its help; a switch has no --no-."""
    if info := getattr(kind, "__metadata__", ()):
        info[0].help = text
        return kind
    names = [f"--{name.replace('_', '-')}"] if kind is bool else []
    return Annotated[kind, typer.Option(*names, help=text)]


def _filled(function: Callable[..., Any], typed: Mapping[str, object]) -> Any:
    """Call the verb, or make a dataclass of its options."""
    hints = get_type_hints(function)
    return function(
        **{
            name: _filled(hints[name], typed)
            if is_dataclass(hints[name])
            else typed[name]
            for name in inspect.signature(function).parameters
        }
    )


def _version(
    *,
    version: bool = typer.Option(False, "--version", help="Version of rtscope."),
) -> None:
    if version:
        print(f"rtscope {__version__}")
        raise typer.Exit


def _interrupt(_signo: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def main() -> NoReturn:
    """Run the command line and exit."""
    # These signals must restore the machine as Ctrl-C does.
    for signo in ENDING:
        if signal.getsignal(signo) is not signal.SIG_IGN:  # nohup wants that kept
            signal.signal(signo, _interrupt)
    open_streams()
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        # numpy's threads do nothing here; where they cannot start, it sends SIGINT.
        os.putenv("OPENBLAS_NUM_THREADS", "1")  # not in os.environ, which loads get
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
        if new := _tables()["renamed"].get(old):
            print(f"rtscope: {old} is now {new}", file=sys.stderr)
