"""Documents as Markdown, for a wiki or a merge request: no charts."""

from collections.abc import Iterable, Iterator, Sequence

from rtscope.host.escape import for_markdown
from rtscope.present.document import (
    Block,
    Document,
    Item,
    Key,
    Lines,
    Note,
    Notes,
    Phrase,
    Section,
    Span,
    Table,
    Words,
)
from rtscope.present.words import as_sentence

_HEAVY = ("strong", "open", "alarm", "good")


def render_document(document: Document, *, level: int = 1) -> str:
    """Return it as CommonMark with tables, one sentence a line."""
    made_by = [f"Made by {document.made_by}."] if document.made_by else []
    head = "#" * level
    groups = [
        [f"{head} {for_markdown(document.title)}"],
        *_groups(document.blocks, head),
        [for_markdown(line) for line in made_by],
    ]
    return "\n\n".join("\n".join(group) for group in groups if group) + "\n"


def _groups(blocks: Iterable[Block], head: str) -> Iterator[list[str]]:
    """Yield lines that stand together; blank ones keep groups apart."""
    group: list[str] = []
    before: type[Block] | None = None
    for block in blocks:
        kind = Words if isinstance(block, str | tuple) else type(block)
        if group and (block == "" or kind is not before or kind in (Table, Section)):
            yield group
            group = []
        before = kind
        if isinstance(block, Notes):
            items = "\n".join(map(_note, block.notes)) or "* none"
            yield [f"{head}# Caveats"]
            yield [items]
        elif isinstance(block, Section):
            yield [f"{head}# {for_markdown(block.heading)}"]
            yield from _groups(block.blocks, f"{head}#")
        elif block != "":
            group += _lines(block)
    if group:
        yield group


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Words(fit="whole"):
            # Indented code: nothing in a line without line breaks can end it.
            yield f"    {block.plain}"
        case str() | tuple() | Words():
            yield _phrase(block)
        case Item():
            yield f"* {' '.join(map(_phrase, (block.words, *block.then)))}"
        case Table():
            yield from _table(block)
        case Lines():
            yield from (f"    {Words(tuple(spans)).plain}" for spans in block.lines)


def _phrase(phrase: Phrase) -> str:
    spans = phrase.spans if isinstance(phrase, Words) else (phrase,)
    return "".join(map(_span, spans))


def _span(span: Span) -> str:
    if isinstance(span, Key):
        return ""
    text, weight = (span, "") if isinstance(span, str) else span
    # Only what ends with no space is closed by the asterisks.
    escaped = for_markdown(text.rstrip())
    space = " " * (len(text) - len(text.rstrip()))
    return f"**{escaped}**{space}" if weight in _HEAVY and text else escaped + space


def _table(table: Table) -> Iterator[str]:
    yield _row([for_markdown(column.heading.strip()) for column in table.columns])
    yield _row(["---:" if column.right else "---" for column in table.columns])
    for row in table.rows:
        yield _row([_phrase(cell) for cell in row])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _note(note: Note) -> str:
    details = f" ({'; '.join(note.details)})" if note.details else ""
    runs = "" if note.everywhere else f" in {', '.join(note.runs)}"
    said = for_markdown(f"{note.says}{details}{runs}")
    return f"* **{note.label}** {said} → {for_markdown(as_sentence(note.remedy))}"
