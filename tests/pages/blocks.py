"""
The blocks of a page, and the comments above them that say how to type them.

A block is fenced. A reader types `sh`; `output` is what the block before it prints, and
`...` in it stands for any text. All others are contents of files. Comments in the line
above a block, which no reader of the page sees:

    <!-- needs: time -->        only `make docs-run` types it; see NEEDS
    <!-- status: 0, 1 -->       what its commands may end with; 0 without it
    <!-- given: COMMAND -->     what the page presumes, typed before it
    <!-- then: COMMAND -->      what must succeed after it
    <!-- stop: 5 -->            Ctrl-C ends each of its commands after so many seconds
    <!-- file: NAME -->         the block is the content of this file
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "docs" / "tutorial", ROOT / "docs" / "how-to")

NEEDS = {
    "time": "takes more than seconds: make docs-run",
    "hours": "takes an hour or more, to build a kernel of a board for instance",
    "root": "needs root: make docs-run, as root",
    "trace-cmd": "needs root, and a kernel that trace-cmd may trace: make docs-run",
    "install": "installs or removes programs: setup/try-install",
    "board": "needs a board, or a computer that boots another kernel",
    "yours": "names files or programs that only a reader has",
}
"""Why a block is not typed with all others."""

WORDS = ("needs", "status", "given", "then", "stop", "file")
LANGUAGES = ("sh", "output", "toml", "ini", "text", "yaml", "groovy", "c")


class PageError(ValueError):
    """A page that cannot be typed; the message names page and line."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; `line` is that of its fence, the first of the page being 1."""

    line: int
    language: str
    text: str
    needs: frozenset[str] = frozenset()
    statuses: frozenset[int] = frozenset({0})
    given: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    stop_s: int | None = None
    file: str | None = None

    @property
    def commands(self) -> tuple[str, ...]:
        """What to type, in order; a line that ends in a backslash goes on."""
        return tuple(re.findall(r"^(?!$)(?:.*\\\n)*.*$", self.text, re.M))


@dataclass(frozen=True)
class Page:
    """A page with the blocks in its order."""

    path: Path
    text: str = field(repr=False)

    @property
    def name(self) -> str:
        """The page's place, as in `how-to/install.md`."""
        return f"{self.path.parent.name}/{self.path.name}"

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks. Raises PageError for a comment or language that is unknown."""
        return tuple(_blocks(self))


def all_pages() -> tuple[Page, ...]:
    """Read all tutorials, then all how-to guides."""
    paths = (path for folder in FOLDERS for path in sorted(folder.glob("*.md")))
    return tuple(Page(path, path.read_text("utf-8")) for path in paths)


def _blocks(page: Page) -> list[Block]:
    found: list[Block] = []
    comments: list[tuple[str, str]] = []
    lines = iter(enumerate(page.text.splitlines(), start=1))
    for number, line in lines:
        if comment := re.fullmatch(r" *<!-- (\w+): (.+) -->", line):
            comments.append((comment[1], comment[2]))
        elif fence := re.fullmatch(r"( *)```(.*)", line):
            body = []
            for _, inner in lines:
                if inner == f"{fence[1]}```":
                    break
                body.append(inner.removeprefix(fence[1]))
            else:
                raise PageError(f"{page.name}:{number}: the block does not end")
            text = "".join(f"{one}\n" for one in body)
            place = f"{page.name}:{number}"
            found.append(_block(place, number, fence[2], text, comments))
            comments = []
        elif comments:
            raise PageError(f"{page.name}:{number}: a comment without a block below it")
        elif re.match(r" {4,}\S", line) or "<!--" in line:
            raise PageError(f"{page.name}:{number}: neither a fenced block nor prose")
    return found


def _block(
    place: str, line: int, language: str, text: str, comments: list[tuple[str, str]]
) -> Block:
    said: dict[str, list[str]] = {word: [] for word in WORDS}
    for word, value in comments:
        if word not in said or (language == "sh") == (word == "file"):
            raise PageError(f"{place}: `{word}:` above a block of {language!r}")
        said[word].append(value)
    needs = {one for value in said["needs"] for one in value.split(", ")}
    if unknown := needs - set(NEEDS):
        raise PageError(f"{place}: nothing is known of the need {min(unknown)!r}")
    if language not in LANGUAGES:
        raise PageError(f"{place}: the language {language!r} is not one of {LANGUAGES}")
    statuses = (int(one) for value in said["status"] for one in value.split(", "))
    return Block(
        line=line,
        language=language,
        text=text,
        needs=frozenset(needs),
        statuses=frozenset(statuses) or frozenset({0}),
        given=tuple(said["given"]),
        then=tuple(said["then"]),
        stop_s=next(map(int, said["stop"]), None),
        file=next(iter(said["file"]), None),
    )
