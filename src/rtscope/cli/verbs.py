"""
Load a verb, with the fields of its dataclasses as its options.

`verbs.toml` has the verbs; the module of one is imported when it is asked for.
"""

import ast
import functools
import importlib
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Annotated, Any, get_type_hints

import typer

Verb = Callable[..., int]


def load_verb(place: str) -> Verb:
    """Import the verb at `module:function` of rtscope.cli."""
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
