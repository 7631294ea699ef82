"""Blocks of a document as markup of a page: all of their text is escaped."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from markupsafe import Markup, escape

from rtscope.host.errors import first_of
from rtscope.present.document import (
    Block,
    Chart,
    Folded,
    Item,
    Key,
    Lines,
    Note,
    Notes,
    Phrase,
    Section,
    Span,
    Table,
    Weight,
    Words,
)
from rtscope.present.words import as_sentence
from rtscope.record.caveats.catalogue import Effect

_CLASSES: dict[Weight, str] = {
    "muted": "muted",
    "note": "muted",
    "good": "good",
    "limit": "open",
    "open": "open",
    "bad": "bad",
    "alarm": "bad",
    "unseen": "open",
}
_STRONG = ("strong", "open", "alarm")


def markup_of(blocks: Iterable[Block], *, level: int = 2) -> Markup:
    """Return the markup; a heading of these blocks is of this level."""
    return Markup("\n").join(
        around.format(Markup("\n").join(_block(one, level) for one in group))
        for around, group in groupby((one for one in blocks if one != ""), _around)
    )


def _around(block: Block) -> Markup:
    """Return what is around this block and its neighbours of the same kind."""
    if isinstance(block, Item):
        return Markup("<ul>{}</ul>")
    beside = isinstance(block, Chart) and block.beside
    return Markup('<div class="grid">{}</div>' if beside else "{}")


def _block(block: Block, level: int) -> Markup:
    match block:
        case str() | tuple() | Key():
            return _paragraph(Words((block,)))
        case Words():
            return _paragraph(block)
        case Item():
            then = (_phrase(one) for one in block.then)
            next_ = (
                Markup(' <span class="next">{}</span>').format(one) for one in then
            )
            said = _phrase(block.words) + Markup("").join(next_)
            return Markup("<li>{}</li>").format(said)
        case Table():
            return _table(block)
        case Lines():
            lines = (Words(tuple(spans)).plain for spans in block.lines)
            return Markup("<pre>{}</pre>").format("\n".join(lines))
        case Chart():
            return Markup(
                "<figure>\n{}\n<figcaption>{}</figcaption>\n</figure>"
            ).format(block.markup, block.caption)
        case Folded():
            return Markup("<details>\n<summary>{}</summary>\n{}\n</details>").format(
                block.summary, markup_of(block.blocks, level=level)
            )
        case Section():
            return Markup("<h{0}>{1}</h{0}>\n{2}").format(
                level, block.heading, markup_of(block.blocks, level=level + 1)
            )
        case Notes():
            heading = Markup("<h{0}>Caveats</h{0}>\n").format(level)
            return heading + caveat_list(block.notes)


def _paragraph(words: Words) -> Markup:
    if words.fit == "whole":
        return Markup("<pre>{}</pre>").format(words.plain)
    aside = all(isinstance(one, tuple) and one[1] == "muted" for one in words.spans)
    kind = Markup(' class="note"') if aside else ""
    return Markup("<p{}>{}</p>").format(kind, _phrase(words))


def _phrase(phrase: Phrase) -> Markup:
    spans = phrase.spans if isinstance(phrase, Words) else (phrase,)
    return Markup("").join(map(_span, spans))


def _span(span: Span) -> Markup:
    if isinstance(span, Key):
        return Markup('<span class="key key{}"></span>').format(span.colour)
    if isinstance(span, str):
        return escape(span)
    text, weight = escape(span[0]), span[1]
    if weight in _STRONG:
        text = Markup("<strong>{}</strong>").format(text)
    if kind := _CLASSES.get(weight):
        text = Markup('<span class="{}">{}</span>').format(kind, text)
    return text


def _table(table: Table) -> Markup:
    kinds = [
        "" if one.right else "text" if one.fit == "cut" else "text wrap"
        for one in table.columns
    ]
    classes = [Markup(' class="{}"').format(one) if one else "" for one in kinds]
    heads = (
        Markup('<th scope="col"{}>{}</th>').format(kind, column.heading)
        for kind, column in zip(classes, table.columns, strict=True)
    )
    rows = (_row(row, classes) for row in table.rows)
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="{}">\n'
        "<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody>\n</table>\n</div>"
    ).format(table.label, Markup("").join(heads), Markup("\n").join(rows))


def _row(cells: Sequence[Phrase], classes: Sequence[Markup | str]) -> Markup:
    row = (
        Markup("<td{}>{}</td>" if at else '<th scope="row"{}>{}</th>').format(
            kind, _phrase(cell)
        )
        for at, (cell, kind) in enumerate(zip(cells, classes, strict=True))
    )
    return Markup("<tr>{}</tr>").format(Markup("").join(row))


def caveat_list(notes: Sequence[Note]) -> Markup:
    """Return the list of caveats; what limits or invalidates is open."""
    if not notes:
        found = "None: the checks of rtscope found no problem with these numbers."
        return Markup("<p>{}</p>").format(found)
    items = Markup("\n").join(map(_note, notes))
    return Markup('<ul class="caveats">\n{}\n</ul>').format(items)


def _note(note: Note) -> Markup:
    remark = note.effect is Effect.NOTE
    details, runs = Markup(""), Markup("")
    if note.details:
        found = first_of(2, note.details, between="; ", last="; and ")
        details = Markup("{} ").format(as_sentence(found))
    if not note.everywhere:
        where = f"In {first_of(4, note.runs)}."
        runs = Markup('<span class="muted">{}</span> ').format(where)
    return Markup(
        '<li class="{}">\n<details{}>\n<summary><span class="tag">{}</span>\n'
        '{}</summary>\n<p>{}{}<span class="next">{}</span></p>\n</details>\n</li>'
    ).format(
        "note-effect" if remark else note.effect.value,
        "" if remark else Markup(" open"),
        note.label,
        as_sentence(note.says),
        details,
        runs,
        as_sentence(note.remedy),
    )
