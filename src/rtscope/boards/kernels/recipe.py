"""
Recipes: which source, patches and configuration a kernel is built from.

Data only: one TOML file each, ours in `recipes/`, a user's wherever it is. A recipe has
up to two sizes: `virtual`, as small as a virtual board allows, and `board`, what one
would put on the board itself, called NAME-board.
"""

import difflib
import hashlib
import re
import tomllib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from rtscope.boards.kernels.resolved import requested_settings
from rtscope.host.errors import UsageError
from rtscope.host.files.documents import toml_tables
from rtscope.host.files.opening import read_named

MAX_FILE_BYTES = 1 << 20
MAX_CONFIG_BYTES = 4 << 20

SIZES = ("virtual", "board")

LINES = "[kernel]/config"
"""The name of a recipe's lines among its fragments; no fragment can have it."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.+-]{0,63}$")]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9._+~/:@%=-]{1,500}$")]
# It stands in a package's description, where a second line would be another field.
Prose = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f-\x9f]{1,200}$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

_STRICT = ConfigDict(extra="forbid")
_KINDS = ("package", "source_package", "tarball", "git", "directory")


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Source:
    """Where the source comes from: exactly one of the five kinds."""

    package: Annotated[str, Field(max_length=100)] = ""
    """A Debian package with usr/src/linux-source-*.tar.xz; a pattern, newest match."""
    source_package: Word | None = None
    """A Debian source package of this `version`, which brings patches of its own."""
    tarball: Word | None = None
    """A file or an https address, with its `sha256`."""
    git: Word | None = None
    """A repository, as git names it, and a `ref`."""
    directory: Word | None = None
    """A source tree of yours: copied, never changed."""
    suite: Word = "trixie"
    """Debian's release that a package is of."""
    version: Word | None = None
    """Of a source package: exactly this one. Of others: what Linux it must be."""
    sha256: Digest | None = None
    """Of a tarball, or over the files of a directory that must stay as it is."""
    ref: Word = "HEAD"
    """Of a repository: a branch, a tag, or a commit, which is the only one to stay."""

    @property
    def kind(self) -> str:
        """Return which of the five it is."""
        return next(kind for kind in _KINDS if getattr(self, kind))


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class Size:
    """What the configuration begins with, and the fragments that make it this size."""

    base: Word
    """`allnoconfig`, `defconfig` or another of the source's, or a file."""
    fragments: tuple[Word, ...] = ()
    """Names of ours, or files as `./NAME.config`; a later one overrides."""


@checked_dataclass(frozen=True, slots=True, config=_STRICT)
class RecipeFile:
    """What stands in a recipe's file."""

    title: Prose
    """What the kernel is, in a few words."""
    arch: Name | Annotated[str, Field(pattern=r"^x86_64$")]
    """As `uname -m` prints it on the board."""
    board: Name
    """The virtual board that the kernel boots on."""
    source: Source
    """Where the source comes from."""
    size: Mapping[str, Size]
    """`[size.virtual]`, `[size.board]`, or both."""
    fragments: tuple[Word, ...] = ()
    """For every size, after those of the size."""
    patches: tuple[Word, ...] = ()
    """Series in their order: one of ours, `debian/FOLDER` of the source package, or a
    path: a folder with a file `series`, or a patch."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one kernel is made, in one size."""

    name: str
    title: str
    arch: str
    """As `uname -m` prints it."""
    board: str
    """The virtual board that it boots on."""
    size: str
    source: Source
    patches: tuple[str, ...]
    """Series, in order: one of ours, a folder of the source package, or a path."""
    base: str
    fragments: tuple[str, ...]
    """Of ours by name, or paths; those of the size first."""
    folder: Path | None = None
    """Where paths in a user's recipe begin; None for one of ours."""
    lines: tuple[str, ...] = ()
    """Settings after all fragments, as CONFIG_NAME=VALUE."""

    def path(self, text: str) -> Path:
        """Return a path that the recipe names."""
        return (self.folder or Path()) / text


@dataclass(frozen=True, slots=True)
class Arch:
    """A row of `arches.toml`, which explains the fields."""

    name: str
    tuxmake: str
    srcarch: str
    cross: str
    debian: str
    compiler: str
    goal: str
    image: str
    host: tuple[str, ...]
    headers: tuple[str, ...]


def recipe_names(*, size: str | None = None) -> tuple[str, ...]:
    """Return the names of our recipes, of one size or of both, sorted."""
    return tuple(
        name for name, recipe in sorted(_ours().items()) if size in (None, recipe.size)
    )


def get_recipe(name: str) -> Recipe:
    """Return one of our recipes; UsageError names the nearest if there is none."""
    recipe = _ours().get(name)
    if recipe is None and name.startswith("debian-"):
        raise UsageError(
            f"no recipe {name[:64]!r}: Debian's kernels are not built; measure one "
            "with rtscope run --kernel, or check one with rtscope kernel verify "
            "--image, --config or --target"
        )
    if recipe is None:
        raise UsageError(
            f"no recipe {name[:64]!r}{_near(name, recipe_names())} (rtscope kernel "
            "list shows them; name a file of yours by its path: ./my.toml)"
        )
    return recipe


def find_recipe(text: str, *, size: str | None = None) -> Recipe:
    """
    Return the recipe of a name, or of a file if the text is a path to a .toml.

    Of a file with both sizes it is the virtual one, unless `size` names the other;
    the other one is called as ours are: ./NAME-board.toml, of the file ./NAME.toml.
    """
    if not text.endswith(".toml"):
        recipe = get_recipe(text)
        return recipe if size in (None, recipe.size) else get_recipe(f"{text}-{size}")
    path = Path(text)
    if size is None and path.stem.endswith("-board") and not path.exists():
        of_both = path.with_name(f"{path.stem.removesuffix('-board')}.toml")
        path, size = (of_both, "board") if of_both.exists() else (path, None)
    content = read_named(path, limit=MAX_FILE_BYTES, kind="recipe", error=UsageError)
    sizes = parse_recipe(path.stem, content, folder=path.resolve().parent)
    if size is not None and size not in sizes:
        raise UsageError(f"{path}: has no [size.{size}]")
    return sizes[size] if size else next(iter(sizes.values()))


def parse_recipe(
    name: str, text: bytes | str, *, folder: Path | None = None
) -> dict[str, Recipe]:
    """Read a recipe, one for each size; UsageError names the wrong key."""
    source = f"{name}.toml"
    try:
        file = _FILE.validate_python(toml_tables(text, name=source))
    except ValidationError as error:
        raise UsageError(f"{source}: {_first_mistake(error)}") from error
    _check(source, name, file)
    return {
        size: Recipe(
            name=name if size == "virtual" else f"{name}-{size}",
            title=file.title,
            arch=file.arch,
            board=file.board,
            size=size,
            source=file.source,
            patches=file.patches,
            base=file.size[size].base,
            fragments=(*file.size[size].fragments, *file.fragments),
            folder=folder,
        )
        for size in SIZES
        if size in file.size
    }


def fragment_text(recipe: Recipe, name: str) -> str:
    """Return a fragment: one of ours, or a file of the user's."""
    if recipe.folder is not None and "/" in name:
        return _text(recipe.path(name))
    there = fragment_names()
    if name not in there:
        raise UsageError(
            f"{recipe.name}: no configuration fragment {name!r}{_near(name, there)} "
            "(fragments: "
            f"{', '.join(there)}, or a file as ./NAME.config)"
        )
    return our_fragment(name)


def fragments_of(recipe: Recipe) -> dict[str, str]:
    """Return the texts of all fragments by their names, the recipe's lines last."""
    texts = {name: fragment_text(recipe, name) for name in recipe.fragments}
    if recipe.lines:
        # A sweep adds the lines of a cell to those of its base, and kbuild mistakes two
        # lines of one symbol in a choice.
        last = {line.partition("=")[0]: line for line in recipe.lines}
        texts[LINES] = "".join(f"{_setting(line)}\n" for line in last.values())
    return texts


def _setting(line: str) -> str:
    """Return a line as kbuild writes it: what is off is a comment."""
    name, _, value = line.partition("=")
    return f"# {name} is not set" if value == "n" else line


def base_file(recipe: Recipe) -> Path | None:
    """Return the user's configuration that the recipe starts from; None for a goal."""
    if recipe.folder is None or "/" not in recipe.base:
        return None
    return recipe.path(recipe.base)


def base_text(recipe: Recipe) -> str:
    """Return the text of the user's configuration; empty if the recipe has none."""
    base = base_file(recipe)
    return _text(base) if base else ""


def configuration_digest(recipe: Recipe) -> str:
    """Return one digest over the base and the settings that the fragments ask for."""
    fragments = fragments_of(recipe)
    settings = sorted(
        f"{one.name}={one.value}" for one in requested_settings(fragments)
    )
    parts = [recipe.base, base_text(recipe), *settings]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def fragment_names() -> tuple[str, ...]:
    """Return the names of our fragments, sorted."""
    return tuple(sorted(f.name.removesuffix(".config") for f in _fragments()))


def our_fragment(name: str) -> str:
    """Return the text of a fragment of ours."""
    return _folder("fragments").joinpath(f"{name}.config").read_text("utf-8")


def get_arch(name: str) -> Arch:
    """Return the row of an architecture that a recipe names."""
    return TypeAdapter(Arch).validate_python({"name": name, **_arches()[name]})


_FILE = TypeAdapter(RecipeFile)


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name[:64], list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _first_mistake(error: ValidationError) -> str:
    """Describe the mistake; unknown keys first: often one is the missing key."""
    mistakes = sorted(
        error.errors(), key=lambda one: one["type"] != "unexpected_keyword_argument"
    )
    *above, key = (str(part) for part in mistakes[0]["loc"])
    if mistakes[0]["type"] == "tuple_type":
        return f'{".".join([*above, key])}: expected a list: ["one", "two"]'
    if mistakes[0]["type"] != "unexpected_keyword_argument":
        return f"{'.'.join([*above, key])}: {mistakes[0]['msg']}"
    table = {"source": Source, "size": Size}.get(above[0] if above else "", RecipeFile)
    known = [one.name for one in fields(table)]
    hint = _near(key, known) or f" (keys: {', '.join(known)})"
    return f"no such key: {'.'.join([*above, key])!r}{hint}"


def _check(source: str, name: str, file: RecipeFile) -> None:
    if file.arch not in _arches():
        raise UsageError(f"{source}: arch: one of {', '.join(_arches())}")
    if not file.size or not set(file.size) <= set(SIZES):
        raise UsageError(
            f"{source}: size: a table [size.virtual], [size.board] or both"
        )
    kinds = [kind for kind in _KINDS if getattr(file.source, kind)]
    if len(kinds) != 1:
        raise UsageError(
            f"{source}: source: exactly one of {', '.join(_KINDS)}, "
            f"not {' and '.join(kinds) or 'none'}"
        )
    if file.source.tarball and not file.source.sha256:
        raise UsageError(f"{source}: source: a tarball needs its sha256")
    if file.source.source_package and not file.source.version:
        raise UsageError(f"{source}: source: a source_package needs its version")
    for key, of in _KEYS_OF.items():
        if kinds[0] not in of and getattr(file.source, key) != getattr(_NOTHING, key):
            raise UsageError(f"{source}: source: a {kinds[0]} has no {key}")
    try:
        with warnings.catch_warnings():  # of what another Python reads differently
            warnings.simplefilter("error")
            re.compile(file.source.package)
    except (re.error, Warning) as error:
        raise UsageError(
            f"{source}: source: package is a pattern (regular expression): {error}"
        ) from error
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{source}: the name of the file is the kernel's name: small letters, "
            "digits, '.', '-' and '_', and a letter or digit first"
        )


_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_KEYS_OF = {
    "suite": ("package", "source_package"),
    "sha256": ("tarball", "directory"),
    "ref": ("git",),
}
"""Which sources have a key: one that means nothing would look like a pin."""
_NOTHING = Source()


def _text(path: Path) -> str:
    content = read_named(path, limit=MAX_CONFIG_BYTES, kind="config", error=UsageError)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: not text (UTF-8)") from error


def _folder(name: str) -> Traversable:
    return resources.files("rtscope.boards.kernels").joinpath(name)


def _fragments() -> Sequence[Traversable]:
    return [f for f in _folder("fragments").iterdir() if f.name.endswith(".config")]


@cache
def _ours() -> Mapping[str, Recipe]:
    recipes = {}
    for file in _folder("recipes").iterdir():
        if file.name.endswith(".toml"):
            name = file.name.removesuffix(".toml")
            for recipe in parse_recipe(name, file.read_text("utf-8")).values():
                recipes[recipe.name] = recipe
    return recipes


@cache
def _arches() -> Mapping[str, Any]:
    return tomllib.loads(_folder("arches.toml").read_text("utf-8"))
