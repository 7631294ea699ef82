"""The pages of the commands and of the campaign file."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import typer

from prose import cell, plain_type, sentences
from rtscope.cli import app as cli
from rtscope.measure.campaign import model
from rtscope.measure.campaign.file import description, key_schemas, to_dict
from rtscope.measure.campaign.messages import element
from rtscope.measure.campaign.options import option_of
from rtscope.verbs.test import file as testfile


def commands_page() -> Iterator[str]:
    """Yield the page of every command with its options."""
    yield "# Commands"
    yield ""
    yield sentences(typer.main.get_command(cli.make_app()).help or "")
    yield "Results go to standard output, everything else to standard error."
    yield "See [exit-status.md](exit-status.md) for the exit status."
    group: Any = typer.main.get_command(cli.make_app())
    for name, command in _verbs(group):
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        usage = " ".join(["rtscope", name, *map(_placeholder, arguments), "[OPTIONS]"])
        yield from ("", f"## rtscope {name}", "", sentences(command.help or ""), "")
        yield f"    {usage}"
        groups: dict[str | None, list[str]] = {}
        for param in command.params:
            row = f"| {_typed(param)} | {cell(param.help or '')} |"
            groups.setdefault(param.rich_help_panel, []).append(row)
        for title, rows in groups.items():
            yield from (*(["", f"{title}:"] if title else []), "", "| | |", "|---|---|")
            yield from rows
    yield ""
    yield "Keys with the same meaning are in [the campaign file](campaign.md)."


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


def _typed(option: Any) -> str:
    """Return what to type for an option or argument, in Markdown."""
    if option.param_type_name == "argument":
        return f"`{option.name.upper()}`"
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
    yield "A TOML file with the settings of a campaign: `rtscope run FILE.toml`."
    yield "Every key is optional; an option of the command line replaces its value."
    yield "`[[run]]` may occur several times: each is the product of its lists."
    yield "Examples are in [examples/](../../examples)."
    defaults = to_dict(model.Campaign())
    defaults["run"] = defaults["run"][0]
    known = _options_of_run()
    last = ""
    for key, schema in key_schemas().items():
        table, _, name = key.partition(".")
        if table != last:
            yield from ("", "## [[run]]" if table == "run" else f"## [{table}]")
            last = table
        yield from ("", f"### `{name}`", "", f"{description(key)}.", "")
        written = name in defaults[table] and _toml(defaults[table][name])
        option = f"--{option_of(key)}".replace("_", "-")
        yield f"* Value: {_value(key, schema)}."
        if written or "(default: " not in description(key):
            yield f"* Default: {f'`{written}`' if written else 'not set'}."
        yield f"* Option: {f'`{option}`' if option in known else 'none'}."


def test_file_page() -> Iterator[str]:
    """Yield the page of every key of a test file."""
    yield "# The test file"
    yield ""
    yield "A TOML file with a program and its budgets: `rtscope test FILE.toml`."
    yield "Every key but `command` is optional; an option replaces its value."
    yield "Paths begin at the directory of the file."
    yield "How: [test a program](../how-to/test-a-program.md)."
    defaults = testfile.written(testfile.ProgramTest())
    last = None
    for key, schema in testfile.schemas().items():
        table, _, name = key.rpartition(".")
        if key in ("budget", "thread", ".base"):
            continue
        if table != last:
            yield from ("", f"## [{table}]" if table else "## Before any table", "")
            if table == "budget":
                yield '`[thread."NAME*"]` has the same keys, for threads of that name.'
                yield ""
            yield from ("| key | value | default | meaning |", "|---|---|---|---|")
            last = table
        value = defaults.get(key.removeprefix("."))
        default = f"`{_toml(value)}`" if value not in (None, {}) else ""
        said = str(schema.get("description", "")).split("(default")[0]
        meaning = " ".join(said.split()).rstrip(".")
        kind = plain_type(_without_none(schema)).replace("|", "\\|")
        yield f"| `{name}` | {kind} | {default} | {meaning} |"


def _without_none(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    kinds = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    examples = {key: schema[key] for key in ("examples",) if key in schema}
    return {**kinds[0], **examples} if kinds else schema


def _options_of_run() -> frozenset[str]:
    group: Any = typer.main.get_command(cli.make_app())
    params = group.commands["run"].params
    return frozenset(name for param in params for name in param.opts)


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
