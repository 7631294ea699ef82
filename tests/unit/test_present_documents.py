"""Documents: no renderer knows a verb, and each writes every kind of block."""

import io
import re
from pathlib import Path

import pytest
from markupsafe import Markup
from rich.console import Console

import rtscope
from fakes.printed import printed
from rtscope.present.document import (
    Block,
    Chart,
    Column,
    Document,
    Folded,
    Item,
    Key,
    Lines,
    Note,
    Notes,
    Section,
    Table,
    Words,
    table,
)
from rtscope.present.render.fitted import print_fitted
from rtscope.present.render.markdown import render_document
from rtscope.present.render.page import page_of
from rtscope.record.caveats.catalogue import Effect

SRC = Path(rtscope.__file__).parent
RENDERERS = (
    *("document", "render/terminal", "render/fitted", "render/markdown"),
    "render/blocks",
)
MOST_PAGES = 8

BLOCKS = (
    "a *sentence*",
    Words((("NO", "alarm"), ": too late")),
    "",
    Section("Findings", (Item("one"), Item("two", (("→ act", "muted"),)))),
    table(("load",), ("max",), [["idle", ("7", "strong")], [Words(("a", "b")), "8"]]),
    Notes(()),
    Words(("rtscope report x",), fit="whole"),
)


@pytest.mark.parametrize("name", RENDERERS)
def test_a_renderer_names_no_verb(name: str) -> None:
    text = (SRC / f"present/{name}.py").read_text("utf-8")
    verbs = [path.name for path in (SRC / "verbs").iterdir() if path.is_dir()]
    named = set(re.findall(r"\w+", text)) & {*verbs, "verbs", "model", "documents"}

    # Words of plain English, of a measurement and of GitHub.
    assert named <= {"run", "report", "request"}


def test_a_renderer_imports_neither_a_verb_nor_what_explains() -> None:
    for path in (SRC / "present/render").glob("*.py"):
        text = path.read_text("utf-8")
        assert "rtscope.verbs" not in text
        assert "rtscope.explain" not in text


def test_few_pages_have_a_template_of_their_own() -> None:
    pages = [path for path in SRC.rglob("*.html") if path.name != "parts.html"]

    assert len(pages) <= MOST_PAGES
    for path in pages:
        assert "call page(" in path.read_text("utf-8"), path


def test_markdown_writes_every_block() -> None:
    text = render_document(Document("A *title*", BLOCKS, "rtscope"))

    assert text == (
        "# A \\*title\\*\n\na \\*sentence\\*\n**NO**: too late\n\n## Findings\n\n"
        "* one\n* two → act\n\n| load | max |\n| --- | ---: |\n| idle | **7** |\n"
        "| ab | 8 |\n\n## Caveats\n\n* none\n\n    rtscope report x\n\n"
        "Made by rtscope.\n"
    )


def test_a_page_writes_every_block() -> None:
    more: tuple[Block, ...] = (
        ("all of it", "muted"),
        Item("alone", mark="nothing"),
        Lines([["a", ("<b>", "bad")], ["c"]]),
        Chart(Markup("<svg/>"), "one & all", beside=True),
        Chart(Markup("<svg/>"), "two", beside=True),
        Folded("more", (Words((Key(2), "part")),)),
    )
    page = page_of(Document("<i>", (*BLOCKS, *more), "rtscope", ("below",)))

    assert '<h1>&lt;i&gt;</h1>\n<p class="subtitle">below</p>' in page
    assert '<p><span class="bad"><strong>NO</strong></span>: too late</p>' in page
    assert '<ul><li>one</li>\n<li>two <span class="next">' in page
    assert '<th scope="col">max</th>' in page
    assert "<p>None: the checks of rtscope found no problem" in page
    assert "<pre>rtscope report x</pre>" in page
    assert '<p class="note"><span class="muted">all of it</span></p>' in page
    assert "<pre>a&lt;b&gt;\nc</pre>" in page
    assert page.count('<div class="grid">') == 1
    assert "<figcaption>one &amp; all</figcaption>" in page
    assert "<summary>more</summary>" in page
    assert '<span class="key key2"></span>part' in page
    assert "Made by rtscope." in page


def test_text_of_a_page_is_no_markup() -> None:
    evil = "<script>alert(1)</script>"
    note = Note("a", Effect.LIMIT, evil, evil, (evil,), evil, (evil,), everywhere=False)
    blocks: tuple[Block, ...] = (
        evil,
        (evil, "bad"),
        Words((evil, (evil, "strong"))),
        Words((evil,), fit="whole"),
        Item(evil, (evil,)),
        Table((Column(evil),), [(evil,)], label=f'"{evil}'),
        Lines([[evil]]),
        Notes((note,)),
        Chart(Markup(""), evil),
        Folded(evil, (evil,)),
        Section(evil, (evil,)),
    )

    page = page_of(Document(evil, blocks, evil, (evil,)))

    assert "<script" not in page
    assert 'label="&#34;&lt;script' in page


def test_a_terminal_writes_every_block() -> None:
    lines = [one.rstrip() for one in printed(BLOCKS).splitlines()]

    assert lines == [
        *("a *sentence*", "NO: too late", ""),
        *("Findings", "• one", "• two", "    → act", ""),
        *("load  max", "idle    7", "ab      8"),
        *("No caveats.", "", "rtscope report x"),
    ]


def test_bold_words_of_markdown_end_before_a_space() -> None:
    assert render_document(Document("t", (Words((("idle: ", "strong"), "x")),))) == (
        "# t\n\n**idle:** x\n"
    )


def test_markup_of_the_terminal_in_a_cell_is_text() -> None:
    cells = Table((Column("[bold]h[/]"),), [["[red]x[/red]"]])

    assert "[bold]h[/]" in printed([cells])
    assert "[red]x[/red]" in printed([cells])


def test_a_table_without_headings_has_no_head() -> None:
    assert printed([Table((Column(""), Column("")), [("a", "b")])]) == "a  b\n"


def test_a_command_is_one_line_however_long() -> None:
    long = "rtscope report " + "x" * 100

    assert printed([Words((long,), fit="whole")], width=40) == f"{long}\n"


@pytest.mark.parametrize("gap", [1, 2])
def test_a_long_name_is_cut_and_no_number_beside_it(gap: int) -> None:
    rows = [["n" * 60, "1,234", "5,678,901"], ["short", "1", "2"]]
    made = table(("thread",), ("worst", "instructions"), rows, gap=gap)

    first, long, short = printed([made], width=40).splitlines()

    assert first.split() == ["thread", "worst", "instructions"]
    assert long.endswith("5,678,901")
    assert long.split()[0].endswith("…")
    assert long.split()[1] == "1,234"
    assert short.split() == ["short", "1", "2"]
    assert max(map(len, (first, long, short))) == 40


def test_a_table_that_fits_is_as_wide_as_its_cells() -> None:
    made = table(("thread",), ("worst",), [["loop", "1,234"]])

    assert printed([made], width=40).splitlines()[1] == "loop    1,234"


def test_what_fits_loses_sentences_then_blank_lines_then_rows() -> None:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    with console.capture() as captured:
        print_fitted(
            lambda room: [
                ("answer", "strong"),
                "",
                *(["sentence"] * room.sentences),
                table(("n",), (), [[str(n)] for n in range(30)[: room.rows]]),
            ],
            console,
        )
    lines = captured.get().split("\n")[:-1]

    assert len(lines) == 22
    assert lines[0] == "answer"
    assert "sentence" not in lines
    assert "" not in lines
