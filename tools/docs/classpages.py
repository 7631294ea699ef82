"""Tables of the fields of classes: from annotations and the strings after these."""

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prose import cell, plain_type

HEAD = ("| field | type | meaning |", "|---|---|---|")


def class_node(of: type) -> ast.ClassDef:
    """Return the source of a class, parsed."""
    (node,) = ast.parse(inspect.cleandoc(inspect.getsource(of))).body
    assert isinstance(node, ast.ClassDef)
    return node


def field_rows(
    node: ast.ClassDef,
    schemas: Mapping[str, Any],
    words: Mapping[str, str],
    otherwise: Callable[[str, str], str],
) -> Iterator[str]:
    """
    Yield a row for each field.

    `words` by CLASS.FIELD come before what the class itself says; `otherwise` makes
    words of a name and a type if there are none.
    """
    for i, item in enumerate(node.body):
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        name, kind = item.target.id, plain_type(schemas[item.target.id])
        after = node.body[i + 1] if i + 1 < len(node.body) else None
        said = words.get(f"{node.name}.{name}", "")
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            said = f"{said} {after.value.value!s}".strip()
        yield f"| `{name}` | {cell(kind)} | {cell(said) or otherwise(name, kind)} |"
