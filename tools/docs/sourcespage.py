"""The page of what the source documents name: each with its command or refusal."""

import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from prose import row

TABLE = Path(__file__).parents[2] / "lab" / "sources.toml"

Answer = Literal["works", "partly", "missing", "refused"]
SECONDS = "seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A thing that a document names."""

    number: int = 0
    """Its number over all documents, from 1; the table does not write it."""
    names: str
    answer: Answer
    command: str | None = None
    takes: Literal["seconds", "minutes", "a board", "a kernel build"] | None = None
    status: tuple[int, ...] = (0,)
    shows: str = ""
    lacks: str = ""
    unseen: str = ""
    """Of what works, what we never saw it do."""
    scope: str | None = None
    """The heading of docs/scope.md that refuses it, as a link names it."""

    @property
    def typed(self) -> bool:
        """Whether `make sources` types its command."""
        return self.command is not None and self.takes == SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A source document, with what it names."""

    letter: str
    title: str
    item: tuple[Item, ...]


def documents() -> list[Document]:
    """Return them with their things numbered; ValueError for a table that is wrong."""
    rows = tomllib.loads(TABLE.read_text("utf-8"))["document"]
    read = TypeAdapter(list[Document]).validate_python(rows)
    before = 0
    numbered = []
    for document in read:
        items = [
            replace(one, number=before + n) for n, one in enumerate(document.item, 1)
        ]
        numbered.append(replace(document, item=tuple(items)))
        before += len(items)
    return numbered


def counted(items: list[Item]) -> str:
    """Return how many of them work, in words."""
    answers = Counter(one.answer for one in items)
    unseen = sum(bool(one.unseen) for one in items)
    return (
        f"Of {len(items)}, {answers['works']} work, {unseen} of them unseen by us, and "
        f"{answers['partly']} in part; missing: {answers['missing']}, refused: "
        f"{answers['refused']}."
    )


def sources_page() -> Iterator[str]:
    """Yield the lines of the page."""
    read = documents()
    yield "# Sources: what they name, and its command"
    yield ""
    yield "rtscope does what these documents did by hand."
    yield counted([one for document in read for one in document.item])
    typed = sum(one.typed for document in read for one in document.item)
    yield (
        f"`make sources` types the {typed} commands that take seconds; what others "
        "take stands behind them; names of files and boards are yours."
    )
    for document in read:
        yield from ("", f"## {document.letter}: {document.title}", "")
        yield "| | named there | here | |"
        yield "|--:|---|---|---|"
        for one in document.item:
            yield row((str(one.number), one.names, word_of(one), _how(one)))


def word_of(one: Item) -> str:
    """Return the answer, with a mark if we never saw it."""
    return f"{one.answer}, unseen" if one.unseen else one.answer


def _how(one: Item) -> str:
    if one.scope is not None:
        return f"[refused](../scope.md#{one.scope})"
    said = f"`{one.command}`" if one.command is not None else ""
    if one.takes not in (None, SECONDS):
        said += f" ({one.takes})"
    doubt = one.lacks or one.unseen
    return f"{said}; {doubt}" if said and doubt else said or doubt
