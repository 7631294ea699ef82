"""Each block of a tutorial or how-to guide is typed by a test, or says why not."""

import re
import tomllib
from pathlib import Path

import pytest

from pages.blocks import NEEDS, Page, PageError, all_pages
from pages.typed import NotAsWrittenError, type_page, why_left_out

PAGES = all_pages()


def page_of(text: str) -> Page:
    return Page(Path("how-to/page.md"), text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_block_is_a_command_or_the_content_of_a_file(page: Page) -> None:
    for block in page.blocks:
        assert block.text.strip(), block
        if block.language == "toml":
            assert tomllib.loads(block.text), block


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_block_for_everybody_follows_no_block_that_is_left_out_for_it(
    page: Page,
) -> None:
    """It would read results that nobody wrote."""
    written: dict[str, bool] = {}
    for block in page.blocks:
        everybody = not block.needs
        for word in re.findall(r"--out (\S+)", "\n".join((*block.given, block.text))):
            written[word] = everybody
        for command in (*block.given, *block.commands):
            for word in re.findall(
                r"rtscope (?:report|explain|compare) (\S+)", command
            ):
                assert not everybody or written.get(word, True), (block.line, word)


def test_all_pages_are_found_and_most_of_them_are_typed() -> None:
    kinds = {page.path.parent.name for page in PAGES}
    blocks = [one for page in PAGES for one in page.blocks if one.language == "sh"]

    assert kinds == {"tutorial", "how-to"}
    assert len(PAGES) > 20
    assert (
        sum(not one.needs <= {"time", "root", "trace-cmd", "hours"} for one in blocks)
        < len(blocks) / 3
    )
    assert {one for block in blocks for one in block.needs} == set(NEEDS)


def test_a_block_is_read_with_the_comments_above_it() -> None:
    (block,) = page_of(
        "1. Measure:\n\n   <!-- needs: time, root -->\n   <!-- status: 0, 1 -->\n"
        "   <!-- given: cd a -->\n   <!-- then: test -e b -->\n"
        "   ```sh\n   one \\\n     more\n\n   two\n   ```\n"
    ).blocks

    assert (block.line, block.language) == (7, "sh")
    assert block.commands == ("one \\\n  more", "two")
    assert block.needs == {"time", "root"}
    assert block.statuses == {0, 1}
    assert (block.given, block.then) == (("cd a",), ("test -e b",))


@pytest.mark.parametrize(
    "text",
    [
        "<!-- needs: luck -->\n```sh\nls\n```\n",
        "<!-- wants: time -->\n```sh\nls\n```\n",
        "<!-- needs: time -->\n\n```sh\nls\n```\n",
        "<!-- needs: time -->\n```toml\na = 1\n```\n",
        "<!-- file: a.toml -->\n```sh\nls\n```\n",
        "<!-- needs time -->\n```sh\nls\n```\n",
        "```\nls\n```\n",
        "```bash\nls\n```\n",
        "```sh\nls\n",
        "Type:\n\n    rtscope run\n",
    ],
)
def test_a_block_that_would_be_passed_over_is_refused(text: str) -> None:
    with pytest.raises(PageError, match=r"how-to/page\.md:\d"):
        _ = page_of(text).blocks


@pytest.mark.parametrize(
    ("needs", "slow", "root", "typed"),
    [
        ("time", False, True, False),
        ("time", True, False, True),
        ("root", True, False, False),
        ("root", True, True, True),
        ("time, root", True, True, True),
        ("board", True, True, False),
        ("install", True, True, False),
    ],
)
def test_only_docs_run_types_what_takes_long_and_nobody_what_needs_a_board(
    needs: str, slow: bool, root: bool, typed: bool
) -> None:
    (block,) = page_of(f"<!-- needs: {needs} -->\n```sh\nls\n```\n").blocks

    assert (why_left_out(block, slow=slow, root=root) == "") == typed


def test_a_page_is_typed_into_one_shell_and_compared_with_what_it_shows() -> None:
    page = page_of(
        "<!-- file: words -->\n```text\none two\n```\n"
        "<!-- given: n=3 -->\n<!-- then: test $n = 4 -->\n"
        "```sh\ncat words\nn=4; echo it takes 17 s\n```\n"
        "```output\none   two\nit takes ... s\n```\n"
        "<!-- needs: board -->\n```sh\nexit 1\n```\n"
        "<!-- status: 1 -->\n```sh\ntest $n = 3\n```\n"
    )
    typed = list(type_page(page, slow=False))

    assert [one.took_s is None for one in typed] == [False, True, False]


@pytest.mark.parametrize(
    "text",
    [
        "```sh\nfalse\n```\n",
        "```sh\necho a\n```\n```output\nb\n```\n",
        "<!-- given: false -->\n```sh\ntrue\n```\n",
        "<!-- then: false -->\n```sh\ntrue\n```\n",
        "<!-- status: 1 -->\n```sh\ntrue\n```\n",
        "```sh\necho 'Traceback (most recent call last)'\n```\n",
    ],
)
def test_a_page_that_says_something_else_than_what_happens_fails(text: str) -> None:
    with pytest.raises(NotAsWrittenError, match=r"how-to/page\.md:\d"):
        list(type_page(page_of(text), slow=False))
