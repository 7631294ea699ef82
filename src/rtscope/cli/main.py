"""
The `rtscope` command: choose the verb, run it, turn errors into an exit status.

0 passed or done, 1 deadline missed or check failed, 2 wrong usage, 3 no valid
measurement, 4 claim not shown, 70 rtscope itself failed, 125 kernel to skip, 126 no
execution of a program, 127 no such program, 128 no verdict for `git bisect run`,
130 interrupted.

The module of a verb is imported when it is asked for; the fields of its dataclasses are
its options. An option given twice is refused.
"""

import ast
import errno
import functools
import importlib
import inspect
import itertools
import os
import shlex
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Any, NoReturn, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from rtscope.cli.console import open_streams
from rtscope.cli.foreign import answers
from rtscope.cli.start import INTERRUPTED, SAID
from rtscope.host.errors import MeasurementError, RtscopeError, UsageError
from rtscope.host.process import NO_THREAD
from rtscope.host.version import __version__

# --- the verbs of `verbs.toml` as one app: loaded, with options, help and exit status -

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

# No bugs of ours: full or read-only disks, limits of the shell, and paths that no file
# can have, or that this user may not look at.
_NOT_OURS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM),
    *(errno.EIO, errno.ESTALE),
)

Verb = Callable[..., int]


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
            is_typed = (name, verb) == (first, second)
            _add(group, verb, row, load=typed is None or is_typed)
        app.add_typer(group, name=name)
    return app


def _add(app: typer.Typer, name: str, row: Mapping[str, Any], *, load: bool) -> None:
    """Add a verb; one that is not loaded serves the list of verbs alone."""
    if not load:
        app.command(name, help=row["help"])(lambda: None)
        return
    examples = "\n".join(f"  {line}" for line in row["examples"])
    verb = _exits(_loaded(row["place"]))
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


# --- one verb -------------------------------------------------------------------


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
            if error.errno not in _NOT_OURS:
                raise
            where = error.filename or "cannot write a file"
            print(f"rtscope: {where}: {error.strerror}", file=sys.stderr)
            status = MeasurementError.exit_status
        except KeyboardInterrupt:
            print(SAID, file=sys.stderr)
            status = INTERRUPTED
        raise typer.Exit(status)

    return command


def _loaded(place: str) -> Verb:
    """Import the verb at `module:function` of rtscope."""
    module, _, function = place.partition(":")
    return _filling(getattr(importlib.import_module(f"rtscope.{module}"), function))


def _filling(verb: Verb) -> Verb:
    """
    Return the verb with the fields of its dataclasses as its own options.

    The text below a field is the help of its option.
    """

    @functools.wraps(verb)
    def at_work(**typed: object) -> int:  # by this name a signal knows of it
        status: int = _filled(verb, typed)
        return status

    options = list(_options(verb))
    at_work.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    at_work.__annotations__ = {option.name: option.annotation for option in options}
    return at_work


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
            kind = _shortened(f"--{name.replace('_', '-')}", kind)
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


def _shortened(option: str, kind: Any) -> Any:
    """Return the annotation with the short form that this option has in all verbs."""
    short = tables()["short"].get(option)
    if short is None:
        return kind
    for info in getattr(kind, "__metadata__", ())[:1]:
        if isinstance(info, OptionInfo) and short not in (info.param_decls or ()):
            # Within Annotated, typer keeps the first name as the default.
            first = () if isinstance(info.default, str) else (option,)
            info.param_decls = (*(info.param_decls or first), short)
        return kind
    return Annotated[kind, typer.Option(option, short)]


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


class Command(TyperCommand):
    """A verb whose help has a section for each group of options."""

    examples: Sequence[str] = ()

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the options by their groups, and examples."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        for param in self.get_params(ctx):
            setattr(param, "show_default", False)  # the text names it  # noqa: B010
            if (row := param.get_help_record(ctx)) is not None:
                kind = f"{param.param_type_name.capitalize()}s"
                title = getattr(param, "rich_help_panel", None) or kind
                sections.setdefault(title, []).append(row)
        others = sections.pop("Options", [])
        for title, rows in {**sections, "Options": others}.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """
        Refuse an option that is given twice: the first would be lost unseen.

        And a path that is empty: Python takes it for the current directory. What
        follows `--` belongs to a program.
        """
        own = args[: args.index("--")] if "--" in args else args
        parsed, _, order = self.make_parser(ctx).parse_args(args=list(args))
        counts = Counter(
            param.name
            for param in order
            if param.param_type_name == "option"
            and not (param.multiple or getattr(param, "is_flag", False))
        )
        for param in self.get_params(ctx):
            if counts[param.name] > 1:
                ctx.fail(_duplicate_message(param.opts, args))
            values = parsed.get(param.name)
            listed = values if isinstance(values, list | tuple) else [values]
            is_of_program = param.param_type_name == "argument" and "" not in own
            if "" in listed and _is_place(param) and not is_of_program:
                ctx.fail(f"{param.opts[0]} is empty: name a file or a directory")
        return super().parse_args(ctx, args)


def _is_place(param: Any) -> bool:
    kind = getattr(param, "type", None)
    return kind is None or kind.name == "path"


LISTS = ("--load", "--kernel", "--cpus", "--seeds", "--policy", "--priority")
"""Options that take several values with commas between them."""


def _duplicate_message(names: Sequence[str], args: Sequence[str]) -> str:
    name = next(one for one in names if one.startswith("--"))
    said = f"{name} is given twice, and only the last one would count"
    if name not in LISTS:
        return f"{said}: leave one out"
    values = [value for word, value in itertools.pairwise(args) if word in names]
    values += [w.partition("=")[2] for w in args if w.startswith(f"{name}=")]
    return f"{said}: write {name} {','.join(values)}"


# --- the `rtscope` command: choose the verb, run it, turn errors into an exit status --

CRASHED = os.EX_SOFTWARE
"""70 of sysexits.h: Python's own 1 would say that a deadline was missed."""

VERDICTS = (0, 1, 125)
NO_VERDICT = 128
"""git takes 1 to 127 for a bad kernel, but for 125, and stops at 128 and above."""


def _keep_numpy_to_one_thread() -> None:
    """Its threads do nothing here; where they cannot start, it sends SIGINT."""
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        os.putenv("OPENBLAS_NUM_THREADS", "1")  # not in os.environ, which loads get


def main() -> NoReturn:
    """Run the command line and exit."""
    is_verdict = _judges_a_kernel(sys.argv[1:])
    try:
        _run()
    except SystemExit as ended:
        if is_verdict and ended.code not in VERDICTS:
            interrupted = ended.code == INTERRUPTED
            status = INTERRUPTED if interrupted else NO_VERDICT
            raise SystemExit(status) from ended
        raise


def _judges_a_kernel(words: Sequence[str]) -> bool:
    """Whether `git bisect run` may read the exit status: an error is no bad kernel."""
    return words[:1] == ["bisect"] and any(
        word.partition("=")[0] == "--measured" for word in words
    )


def _run() -> NoReturn:
    _keep_numpy_to_one_thread()
    open_streams()
    try:
        make_app(sys.argv[1:])(prog_name="rtscope")
    except SystemExit as ended:
        if ended.code == UsageError.exit_status:
            _name_foreign(sys.argv[1:])
        if isinstance(ended.__context__, typer.Abort):  # Ctrl-C at a question
            raise SystemExit(INTERRUPTED) from ended
        raise
    except MemoryError:
        print("rtscope: not enough memory", file=sys.stderr)
        raise SystemExit(MeasurementError.exit_status) from None
    except Exception as error:
        raise SystemExit(_status_of(error)) from error
    raise SystemExit(0)


def _status_of(error: Exception) -> int:
    """Print an error that has no class of ours, and return the exit status."""
    # Python has no type for a thread that could not be started, nor, before 3.13, for
    # a link that leads to itself.
    words = str(error) if type(error) is RuntimeError else ""
    if words == "can't start new thread":
        print(f"rtscope: {NO_THREAD}", file=sys.stderr)
        return MeasurementError.exit_status
    if words.startswith("Symlink loop"):
        print(f"rtscope: {words}", file=sys.stderr)
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


def _name_foreign(words: Sequence[str]) -> None:
    if words[:1] == ["run"] or words[0].startswith("-"):
        for line in answers(words, tables()["foreign"]):
            print(f"rtscope: {line}", file=sys.stderr)
