"""The page of the kernels that are built: recipes, their file, fragments."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from prose import cell, sentences, whole
from rtscope.boards.kernels import recipe

SOURCE = Path(__file__).parents[2] / "src/rtscope/boards/kernels/recipe.py"

RECIPE_TABLES: Mapping[str, str] = {
    "RecipeFile": "At the top",
    "Source": "`[source]`",
    "Size": "`[size.virtual]` and `[size.board]`",
}


def kernels_page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# Kernels that are built"
    yield ""
    yield "`rtscope kernel build NAME` builds one; `--kernel NAME` measures it."
    yield "How: [build a kernel](../how-to/build-a-kernel.md)."
    for name in recipe.recipe_names(size="virtual"):
        yield from _recipe(name)
    yield from ("", "## The file of a recipe", "")
    yield (
        "Ours are in `src/rtscope/boards/kernels/recipes/`; yours are named by their "
        "paths."
    )
    yield "Unknown keys are errors."
    yield from _recipe_keys()
    yield from ("", "## Fragments of configuration")
    for name in recipe.fragment_names():
        text = recipe.our_fragment(name)
        head = text.partition("\nCONFIG_")[0].partition("\n\n")[0]
        words = [w[2:] for w in head.splitlines() if w.startswith("# ")]
        said = " ".join(w for w in words if not w.startswith("CONFIG_"))
        yield from ("", f"### `{name}`", "", sentences(said))


def _recipe(name: str) -> Iterator[str]:
    one = recipe.get_recipe(name)
    yield from ("", f"## {name}", "", f"{whole(one.title)}", "")
    kind = one.source.kind
    where = f"`{getattr(one.source, kind)}`"
    version = f" {one.source.version}" if one.source.version else ""
    yield f"* Source: {kind} {where}{version} of Debian {one.source.suite}."
    if one.patches:
        yield f"* Patches: {', '.join(f'`{p}`' for p in one.patches)}."
    for size in recipe.SIZES:
        full = name if size == "virtual" else f"{name}-{size}"
        if full in recipe.recipe_names():
            sized = recipe.get_recipe(full)
            parts = ", ".join(f"`{f}`" for f in sized.fragments)
            yield f"* `{full}`: {sized.base}, then {parts}."


def _recipe_keys() -> Iterator[str]:
    module = ast.parse(SOURCE.read_text("utf-8"))
    for node in module.body:
        if isinstance(node, ast.ClassDef) and node.name in RECIPE_TABLES:
            yield from ("", f"### {RECIPE_TABLES[node.name]}", "")
            yield from ("| key | meaning |", "|---|---|")
            for field, after in zip(node.body, [*node.body[1:], None], strict=True):
                if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                    said = cell(str(getattr(after.value, "value", "")))
                    yield f"| `{ast.unparse(field.target)}` | {said} |"
