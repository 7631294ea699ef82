"""The pages about what is typed: the commands, and the campaign file."""

import ast
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from prose import cell, plain_type, sentences
from rtscope.campaign import model
from rtscope.campaign.file import element, key_schemas, to_dict
from rtscope.campaign.options import option_of
from rtscope.cli import main as cli


def commands_page() -> Iterator[str]:
    """Yield the page of every command with its options."""
    yield "# Commands"
    yield ""
    yield sentences(typer.main.get_command(cli.make_app()).help or "")
    yield "Results go to standard output, everything else to standard error."
    yield "What the exit status means is in [exit-status.md](exit-status.md)."
    group: Any = typer.main.get_command(cli.make_app())
    for name, command in _verbs(group):
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option"]
        usage = " ".join(["rtscope", name, *map(_placeholder, arguments), "[OPTIONS]"])
        yield from ("", f"## rtscope {name}", "", sentences(command.help or ""), "")
        yield from (f"    {usage}", "", "| | |", "|---|---|")
        for argument in arguments:
            yield f"| `{argument.name.upper()}` | {cell(argument.help or '')} |"
        for option in options:
            yield f"| {_option(option)} | {cell(option.help or '')} |"
    yield ""
    yield "What may be measured is also said by [the campaign file](campaign.md)."


def _verbs(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Return every command with its whole name, also those below another."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _verbs(command, f"{name} ")
        else:
            yield f"{prefix}{name}", command


def _placeholder(argument: Any) -> str:
    dots = "..." if argument.nargs != 1 else ""
    word = argument.name.upper() + dots
    return word if argument.required else f"[{word}]"


def _option(option: Any) -> str:
    words = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if option.is_flag:
        return words
    default = option.default
    values = [str(c.value) for c in type(default)] if isinstance(default, Enum) else []
    value = "\\|".join(values) or option.name.upper()
    return f"{words[:-1]} {value}`"


def campaign_page() -> Iterator[str]:
    """Yield the page of every key of a campaign file."""
    yield "# The campaign file"
    yield ""
    yield "A TOML file that says what to measure: `rtscope run FILE.toml`."
    yield "Every key may be left out; an option of the command line goes before it."
    yield "`[[run]]` may be there several times: each is the product of its lists."
    yield "Examples are in [examples/](../../examples)."
    defaults = to_dict(model.Campaign())
    defaults["run"] = defaults["run"][0]
    helps = _helps()
    known = _options_of_run()
    last = ""
    for key, schema in key_schemas().items():
        table, _, name = key.partition(".")
        if table != last:
            yield from ("", "## [[run]]" if table == "run" else f"## [{table}]")
            last = table
        yield from ("", f"### `{name}`", "", helps[key], "")
        written = name in defaults[table] and _toml(defaults[table][name])
        option = f"--{option_of(key)}".replace("_", "-")
        yield f"* Value: {_value(key, schema)}."
        yield f"* Default: {f'`{written}`' if written else 'not set'}."
        yield f"* Option: {f'`{option}`' if option in known else 'none'}."


def _options_of_run() -> frozenset[str]:
    group: Any = typer.main.get_command(cli.make_app())
    params = group.commands["run"].params
    return frozenset(name for param in params for name in param.opts)


def _helps() -> Mapping[str, str]:
    """Return the first paragraph below each field of the model, by its key."""
    tree = ast.parse(Path(model.__file__).read_text("utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    helps: dict[str, str] = {}
    for node in classes:
        for field, below in zip(node.body, node.body[1:], strict=False):
            match field, below:
                case (
                    ast.AnnAssign(annotation=annotation),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    alias = _alias(annotation)
                    key = alias if "." in alias else f"run.{alias}"
                    helps[key] = sentences(text.strip().split("\n\n")[0])
    return helps


def _alias(annotation: ast.expr) -> str:
    (alias,) = (
        keyword.value.value
        for keyword in ast.walk(annotation)
        if isinstance(keyword, ast.keyword)
        and keyword.arg == "alias"
        and isinstance(keyword.value, ast.Constant)
    )
    return str(alias)


def _value(key: str, schema: Mapping[str, Any]) -> str:
    """Write in plain English what a key may hold."""
    if key == "campaign.command":
        return "the words of the command, as a list or as one text"
    one = plain_type(element(schema))
    return f"{one}, or a list of them" if schema.get("type") == "array" else one


def _toml(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else f'"{value}"'
