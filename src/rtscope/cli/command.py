"""A verb on the command line: its help in groups, and options given twice refused."""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand


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

        And a path that is empty: Python takes it for the current directory.
        """
        given_values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        given = Counter(
            param.name
            for param in order
            if param.param_type_name == "option"
            and not (param.multiple or getattr(param, "is_flag", False))
        )
        for param in self.get_params(ctx):
            if given[param.name] > 1:
                ctx.fail(_given_twice(param.opts, args))
            values = given_values.get(param.name)
            listed = values if isinstance(values, list | tuple) else [values]
            if "" in listed and _is_place(param):
                ctx.fail(f"{param.opts[0]} is empty: name a file or a directory")
        return super().parse_args(ctx, args)


def _is_place(param: Any) -> bool:
    kind = getattr(param, "type", None)
    return kind is None or kind.name == "path"


LISTS = ("--load", "--kernel", "--cpus", "--seeds", "--policy", "--priority")
"""Options that take several values with commas between them."""


def _given_twice(names: Sequence[str], args: Sequence[str]) -> str:
    name = next(one for one in names if one.startswith("--"))
    said = f"{name} is given twice, and only the last one would count"
    if name not in LISTS:
        return f"{said}: leave one out"
    values = [value for word, value in itertools.pairwise(args) if word in names]
    values += [w.partition("=")[2] for w in args if w.startswith(f"{name}=")]
    return f"{said}: write {name} {','.join(values)}"
