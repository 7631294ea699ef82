"""The catalogue of facts, and what a parser of one gets to see."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import PurePosixPath

from rtscope.contract import Text
from rtscope.machine.kernelidentity import KernelIdentity
from rtscope.machine.reader import Content, Denied, Missing, text_of


@dataclass(frozen=True, slots=True)
class FactValue:
    """A fact about the machine; `value` is None if unknown, `why` then says why."""

    value: str | int | float | bool | tuple[str, ...] | None
    source: Text
    """The file or call that it was read from."""
    why: Text = ""


@dataclass(frozen=True, slots=True)
class FactKind:
    """A row of `facts.toml`."""

    name: str
    title: str
    means: str
    paths: tuple[str, ...]
    parser: str
    key: str
    absent: str
    """Why there is no value when none of the paths exists."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that was read of a machine."""

    files: Mapping[str, Content]
    kernel: KernelIdentity

    def text(self, path: str) -> str | None:
        """Return a file's text without white space and NUL at its ends."""
        text = text_of(self.files.get(path, Missing()))
        return None if text is None else text.strip("\0 \t\r\n")

    def raw(self, path: str) -> bytes | None:
        """Return a file's bytes, None if they could not be read."""
        content = self.files.get(path)
        return content if isinstance(content, bytes) else None

    def is_there(self, path: str) -> bool:
        """Whether the file exists, readable or not."""
        return not isinstance(self.files.get(path, Missing()), Missing)

    def matching(self, pattern: str) -> Mapping[str, str]:
        """Return the texts of the files that a pattern stands for, by path."""
        return {
            path: text
            for path in sorted(self.files)
            if PurePosixPath(path).match(pattern)
            and (text := self.text(path)) is not None
        }


@cache
def catalogue() -> Mapping[str, FactKind]:
    """Return every kind of fact by its name, in the order of the file."""
    text = resources.files("rtscope.machine").joinpath("facts.toml").read_text("utf-8")
    return {
        name: FactKind(
            name=name,
            title=row["title"],
            means=row["means"],
            paths=tuple(row["paths"]),
            parser=row["parser"],
            key=row.get("key", ""),
            absent=row.get("absent", ""),
        )
        for name, row in tomllib.loads(text).items()
    }


def known(value: str | int | float | bool | tuple[str, ...], source: str) -> FactValue:
    """Make a fact."""
    return FactValue(value=value, source=source)


def unknown(kind: FactKind, seen: Seen, why: str = "") -> FactValue:
    """Make a fact without value; without `why`, the state of its files says why."""
    return FactValue(
        value=None, source=", ".join(kind.paths), why=why or _why_not(kind, seen)
    )


def _why_not(kind: FactKind, seen: Seen) -> str:
    refusals = [
        f"{path}: {content.reason}"
        for path, content in seen.files.items()
        if isinstance(content, Denied)
        and any(_stands_for(pattern, path) for pattern in kind.paths)
    ]
    if refusals:
        return "; ".join(refusals[:3])
    if any(seen.is_there(path) or seen.matching(path) for path in kind.paths):
        return f"{', '.join(kind.paths)}: says nothing that is understood"
    return kind.absent or f"{', '.join(kind.paths)}: no such file"


def _stands_for(pattern: str, path: str) -> bool:
    # A pattern whose directory was refused is answered under its own name.
    return path == pattern or PurePosixPath(path).match(pattern)
