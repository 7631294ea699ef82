"""Options of all verbs: the same one has the same name and short form everywhere."""

from collections.abc import Iterator
from typing import Any

import typer

from rtscope.cli.app import make_app, tables


def verbs(command: Any, name: str = "rtscope") -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for word, one in command.commands.items():
        yield from verbs(one, f"{name} {word}")


def options() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Give each option of each verb, and the short forms that it has there."""
    for verb, command in verbs(typer.main.get_command(make_app())):
        for param in command.params:
            if param.param_type_name == "option":
                names = [*param.opts, *param.secondary_opts]
                assert len({*names}) == len(names), names
                shorts = tuple(one for one in names if not one.startswith("--"))
                yield verb, param.opts[0], shorts


def test_an_option_has_its_one_short_form_in_every_verb() -> None:
    table = tables()["short"]
    found = list(options())
    expected = [
        (verb, name, (table[name],) if name in table else ()) for verb, name, _ in found
    ]

    assert found == expected
    assert len(set(table.values())) == len(table)
    for name in table:
        assert sum(option == name for _, option, _ in found) > 1, name
