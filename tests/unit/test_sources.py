"""The commands of the sources, as they are typed and judged."""

from dataclasses import dataclass, replace

import pytest

from pages.session import TooLongError
from sources.run import answer_of
from sourcespage import Item, counted, documents, sources_page

ITEM = Item(
    names="a thing",
    answer="works",
    command="rtscope tasks",
    takes="seconds",
    status=(0, 1),
    shows="POLICY",
)


@dataclass(frozen=True)
class Answering:
    """A shell in which each command answers alike."""

    status: int = 0
    printed: str = "POLICY"

    def type(self, command: str, *, within_s: float) -> tuple[int, str]:
        if self.status < 0:
            raise TooLongError(f"{command}: not ended after {within_s} s")
        return self.status, self.printed


@pytest.mark.parametrize(
    ("status", "printed", "word"),
    [
        (0, "PID POLICY", "works"),
        (1, "POLICY", "works"),
        (2, "POLICY", "FAILS"),
        (0, "nothing", "FAILS"),
        (-1, "", "FAILS"),
    ],
)
def test_a_command_works_with_its_status_and_its_text(
    status: int, printed: str, word: str
) -> None:
    assert answer_of(ITEM, Answering(status, printed))[0] == word


@pytest.mark.parametrize(
    ("item", "word"),
    [
        (replace(ITEM, answer="partly"), "works in part"),
        (replace(ITEM, unseen="never built by us"), "works, unseen"),
        (replace(ITEM, takes="minutes"), "not typed"),
        (Item(names="x", answer="missing", lacks="y"), "missing"),
        (Item(names="x", answer="refused", scope="platforms"), "refused"),
    ],
)
def test_what_is_not_whole_is_not_said_to_work(item: Item, word: str) -> None:
    assert answer_of(item, Answering())[0] == word


def test_the_page_counts_each_answer() -> None:
    unseen = replace(ITEM, unseen="never built by us")
    items = [ITEM, ITEM, unseen, replace(ITEM, answer="partly", lacks="z")]

    assert counted(items) == (
        "Of 4, 3 work, 1 of them unseen by us, and 1 in part; missing: 0, refused: 0."
    )


def test_what_was_never_seen_stands_beside_the_answer_and_behind_the_command() -> None:
    page = list(sources_page())
    unseen = [one for document in documents() for one in document.item if one.unseen]

    assert unseen
    for one in unseen:
        (row,) = (line for line in page if line.startswith(f"| {one.number} |"))
        assert "| works, unseen |" in row
        assert one.unseen in row


def test_most_commands_are_typed_and_show_something() -> None:
    typed = [one for document in documents() for one in document.item if one.typed]

    assert len(typed) >= 40
    assert sum(bool(one.shows) for one in typed) >= 30
