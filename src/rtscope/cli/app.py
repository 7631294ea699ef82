"""
The verbs of `verbs.toml` as one app: loaded, with options, help and exit status.

The module of a verb is imported when it is asked for; the fields of its dataclasses are
its options. An option given twice is refused.
"""

import ast
import errno
import functools
import gc
import importlib
import inspect
import itertools
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from rtscope.cli.start import INTERRUPTED, SAID
from rtscope.host.errors import MeasurementError, RtscopeError
from rtscope.host.version import __version__

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
    settings = _PASSES_ON if row.get("passes_on") else None
    app.command(
        name,
        cls=Command,
        epilog=f"\b\nExamples:\n{examples}",
        context_settings=settings,
    )(verb)


_PASSES_ON = {"ignore_unknown_options": True, "help_option_names": ["--help"]}


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
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
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
        self._refuse_no_value(ctx, args)
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

    def _refuse_no_value(self, ctx: Any, args: Sequence[str]) -> None:
        """Refuse an option at the end without its value, and say what it takes."""
        last = args[-1] if args and "--" not in args else ""
        params: Sequence[Any] = self.get_params(ctx)
        for param in params:
            if (
                last in param.opts
                and param.param_type_name == "option"
                and not param.is_flag
            ):
                ctx.fail(f"{last} needs a value: {param.help}")


def _is_place(param: Any) -> bool:
    kind = getattr(param, "type", None)
    return kind is None or kind.name == "path"


LISTS = (
    *("--load", "--kernel", "--cpus", "--seeds", "--policy", "--priority"),
    *("--board", "--package", "--files", "--environment"),
)
"""Options that take several values with commas between them."""


def _duplicate_message(names: Sequence[str], args: Sequence[str]) -> str:
    name = next(one for one in names if one.startswith("--"))
    said = f"{name} is given twice, and only the last one would count"
    if name not in LISTS:
        return f"{said}: leave one out"
    values = [value for word, value in itertools.pairwise(args) if word in names]
    values += [w.partition("=")[2] for w in args if w.startswith(f"{name}=")]
    return f"{said}: write {name} {','.join(values)}"
