"""The pages about what is typed: the commands, and the campaign file."""

from collections.abc import Iterator
from enum import Enum
from typing import Any

import typer

from prose import cell, sentences, whole
from rtscope.campaign import TABLES, Key, default_campaign
from rtscope.cli import main as cli
from rtscope.errors import UsageError

# Options that are called otherwise than the key they stand for.
OPTION_OF_KEY = {"address": "target", "names": "kernel"}


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
    defaults = default_campaign()
    for table, keys in TABLES.items():
        head = "[[run]]" if table == "run" else f"[{table}]"
        yield from ("", f"## {head}")
        values = defaults.runs[0] if table == "run" else defaults
        for key in keys.values():
            yield from ("", f"### `{key.name}`", "", whole(key.says), "")
            yield from _key(key, getattr(values, key.field))


def _key(key: Key, default: Any) -> Iterator[str]:
    nothing = default is None or default == ()
    written = "" if nothing else _toml(key.write(default))
    option = OPTION_OF_KEY.get(key.name, key.name).replace("_", "-")
    group: Any = typer.main.get_command(cli.make_app())
    known = {name for p in group.commands["run"].params for name in p.opts}
    yield f"* Default: {f'`{written}`' if written else 'not set'}."
    yield f"* Option: {f'`--{option}`' if f'--{option}' in known else 'none'}."
    if isinstance(default, tuple) and key.name not in ("command", "cpus"):
        yield "* One value, or a list of them: each is measured."
    try:
        key.read("?", key.name)
    except UsageError as error:
        yield f"* The answer to a wrong value: `{error}`"


def _toml(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else f'"{value}"'
