"""A report: all of it, one look at a terminal, the summary for a merge request."""

from collections.abc import Iterator, Mapping, Sequence

from rtscope.host.units import plural
from rtscope.present.document import (
    Block,
    Document,
    Item,
    Notes,
    Phrase,
    Section,
    Span,
    Words,
    table,
)
from rtscope.present.documents.shared import (
    TONES,
    WIDE,
    Form,
    bullets,
    conclusions,
    grave,
    rows_table,
    sides_table,
)
from rtscope.present.model.build import Model
from rtscope.present.model.rows import Row
from rtscope.present.model.verdicts import LoadVerdict, VerdictInWords
from rtscope.present.model.wakeparts import parts_section
from rtscope.present.render.fitted import COLUMNS, Room, rows_left_out
from rtscope.present.tables import (
    SEEDS_EXPLAINED,
    SEEDS_HEADINGS,
    seeds_cells,
    seeds_title,
)
from rtscope.present.words import NOTHING, duration, enumeration
from rtscope.stats.figures import Figure, columns

LONGEST_NAME = 12
"""A longer name of a variant gets a letter in the table, and a line below."""


def report_answer(model: Model) -> Phrase:
    """Return the answer in a line."""
    if model.verdict is None:
        return f"{model.headline.maximum} {model.headline.where}"
    return _meaning(model.verdict)


def report_document(model: Model, form: Form, width: int) -> Document:
    """Return all of a report, for a terminal of so many characters or for Markdown."""
    return Document(model.title, tuple(_report(model, form, width)), model.made_by)


def _report(model: Model, form: Form, width: int) -> Iterator[Block]:
    yield model.subtitle
    yield ""
    if model.verdict is not None:
        yield model.verdict.question
        yield _meaning(model.verdict)
        yield from map(_judged_load, model.verdict.loads)
    else:
        yield from _headline(model)
    yield ""
    yield from _tables(model, form, width)
    if model.pair is not None:
        yield conclusions(model.pair)
    yield from _seeds(model, _letters(model, form))
    yield from bullets("Findings", model.findings)
    yield from _loads(model, form)
    parts = parts_section(model.named_rows)
    if parts is not None:
        yield parts
    yield Notes(model.caveats)
    if form is Form.MARKDOWN:
        commands = tuple(Words((one,), fit="whole") for one in model.commands)
        yield Section("Repeat this measurement", commands)
        return
    for one in model.commands:
        yield Words((("Repeat with: ", "strong"), one))


def _meaning(verdict: VerdictInWords) -> Words:
    return Words(((verdict.word, TONES[verdict.tone]), f": {verdict.meaning}."))


def _judged_load(load: LoadVerdict) -> Item:
    said = Words(((load.word, TONES[load.tone]), f" ({load.name}): {load.sentence}"))
    advice = (f"→ {load.run_next}",) if load.run_next else ()
    return Item(said, advice, "indent")


def _headline(model: Model) -> Iterator[Block]:
    head = model.headline
    yield Words(((head.maximum, "strong"), f" {head.where}"))
    yield head.support


def _tables(model: Model, form: Form, width: int) -> Iterator[Block]:
    main, narrow = columns("main"), columns("main", wide=False)
    letters = _letters(model, form)
    wide = form is Form.MARKDOWN or width >= WIDE
    if model.pair is not None:
        yield from sides_table(model.pair, columns("pair", wide=wide), width=width)
        yield ""
        there = columns("pair", wide=False) if form is Form.TERMINAL else ()
        tables: list[list[Figure]] = [[one for one in main if one not in there]]
    elif wide:
        tables = [list(main)]
    else:
        tables = [list(narrow), [one for one in main if one not in narrow]]
    rows = _in_letter_order(model.rows, letters)
    kind = model.variant_kind if form is Form.MARKDOWN else ""
    for figures in tables:
        yield rows_table(rows, figures, letters, kind=kind, form=form)
        yield ""
    yield from _below(model, main, form)
    if model.pair is None:
        yield from _legend(letters)
    yield ""


def _below(model: Model, main: Sequence[Figure], form: Form) -> Iterator[Block]:
    """Say what holds for each row of the main table."""
    notes = [f"Latencies in {model.virtual}µs."]
    if form is Form.MARKDOWN:
        yield notes[0]
        yield f"{NOTHING} means too few samples, or not reported by the load."
        return
    if _lacks_percentiles(model.rows, main):
        notes.append(f"{NOTHING} under p99.x: too few samples.")
    if any(row.runs > 1 for row in model.rows):
        runs = sorted({row.runs for row in model.rows})
        notes.append(f"{' or '.join(map(str, runs))} runs merged in each row.")
    notes.append(f"Measured per row: {_time_and_cpus(model)}.")
    yield (" ".join(notes), "muted")


def _lacks_percentiles(rows: Sequence[Row], figures: Sequence[Figure]) -> bool:
    return any(
        row.summary is not None and one.percentile and one.of(row) is None
        for row in rows
        for one in figures
    )


def _time_and_cpus(model: Model) -> str:
    spans = dict.fromkeys(duration(row.observed_ns) for row in model.rows)
    cpus = dict.fromkeys(plural(row.cpus, "CPU") for row in model.rows)
    return f"{' or '.join(spans)}, {' or '.join(cpus)}"


def _legend(letters: Mapping[str, str]) -> Iterator[str]:
    for name, letter in letters.items():
        if letter != name:
            yield f"{letter} = {name}"


def _seeds(model: Model, letters: Mapping[str, str]) -> Iterator[Section]:
    if not model.seeds:
        return
    left = ("load", "") if any(letters) else ("load",)
    rows: list[list[Span]] = []
    for row in model.seeds:
        lowest, middle, highest, *rest = seeds_cells(row)
        names = [row.load, letters[row.variant]][: len(left)]
        rows.append([*names, lowest, middle, (highest, "strong"), *rest])
    shown = table(left, SEEDS_HEADINGS, rows)
    yield Section(seeds_title(model.seeds), (shown, (SEEDS_EXPLAINED, "muted")))


def _letters(model: Model, form: Form = Form.TERMINAL) -> dict[str, str]:
    """Return what stands in a table for each variant: its name, or a letter."""
    names = list(dict.fromkeys(row.variant for row in model.rows))
    if form is Form.MARKDOWN or (
        model.pair is None and all(len(name) <= LONGEST_NAME for name in names)
    ):
        return {name: name for name in names}
    if model.pair is not None:
        return {s.label: x for s, x in zip(model.pair.sides, "AB", strict=True)}
    return {name: chr(ord("A") + i % 26) for i, name in enumerate(names)}


def _in_letter_order(rows: Sequence[Row], letters: Mapping[str, str]) -> Sequence[Row]:
    """Put the rows of each load in the order of their letters or names as they came."""
    loads = list(dict.fromkeys(row.load for row in rows))
    if any(len(letter) != 1 for letter in letters.values()):
        return rows
    return sorted(rows, key=lambda r: (loads.index(r.load), letters[r.variant]))


def _loads(model: Model, form: Form) -> Iterator[Section]:
    """Say of each load whether it worked."""
    if form is Form.TERMINAL:
        yield from bullets(
            "Load", (f"{one.name}: {one.sentence}" for one in model.loads)
        )
    elif model.loads:
        heads = ("workers", "CPU time, of one CPU each", "operations/s")
        rows = [
            (
                one.name,
                str(one.workers),
                one.share,
                one.operations,
                one.ran,
                "; ".join(one.notes),
            )
            for one in model.loads
        ]
        shown = table(("load",), heads, rows, last=("ran", "notes"))
        yield Section("Load", (shown,))


# --- one look, and the summary --------------------------------------------------------


def brief_report(model: Model, room: Room) -> Iterator[Block]:
    """Yield what one look at a terminal has room for."""
    yield (model.title, "strong")
    yield model.subtitle
    yield ""
    if model.verdict is not None:
        yield from _verdict(model.verdict, model.rows, room)
    else:
        yield from _headline(model)
    yield ""
    yield from _table(model, room)
    yield ""
    yield from _findings(model)[: room.sentences]


def _findings(model: Model) -> Sequence[str]:
    """Return the findings, the worst first, and next to it the cause if explained."""
    in_the_table = f"{model.headline.maximum} {model.headline.where}"
    causes = [sentence for one in model.explained for sentence in one.sentences]
    kept = (*causes, in_the_table)
    others = [one for one in model.findings if one not in kept]
    return [*others[:1], *causes[:1], *others[1:], *causes[1:]]


def _verdict(
    verdict: VerdictInWords, rows: Sequence[Row], room: Room
) -> Iterator[Block]:
    yield verdict.question
    yield _meaning(verdict)
    maxima = {row.name: row.summary.max_ns for row in rows if row.summary}
    deciding = [load for load in verdict.loads if load.word == verdict.word]
    if not deciding:
        return
    worst = max(deciding, key=lambda load: maxima.get(load.name, 0))
    yield worst.sentence
    if worst.run_next and room.sentences:
        yield f"→ {worst.run_next}"
    others = [load for load in verdict.loads if load is not worst]
    if others:
        yield f"{'; '.join(_by_word(others))}."


def _by_word(loads: Sequence[LoadVerdict]) -> Iterator[str]:
    for word in dict.fromkeys(load.word for load in loads):
        same = [load.name for load in loads if load.word == word]
        yield f"{word}: {enumeration(same)}"


def _table(model: Model, room: Room) -> Iterator[Block]:
    if model.pair is not None and len(model.pair.rows) <= room.rows:
        figures = columns("pair", wide=False)
        *named, caution = sides_table(model.pair, figures, width=COLUMNS)
        yield from named
        if room.sentences:
            yield caution
        return
    letters, figures = _letters(model), columns("brief")
    rows = _in_letter_order(model.rows, letters)
    if len(rows) > room.rows:
        rows = _worst(rows, room.rows)
    yield rows_table(rows, figures, letters)
    yield from rows_left_out(len(model.rows) - len(rows))
    notes = [f"Latencies in {model.virtual}µs."]
    if _lacks_percentiles(rows, figures):
        notes.append(f"{NOTHING}: too few samples.")
    notes.append(f"Each row: {_time_and_cpus(model)}.")
    yield (" ".join(notes), "muted")
    yield from _legend(letters)


def _worst(rows: Sequence[Row], count: int) -> Sequence[Row]:
    """Return the rows with the highest maxima, in the order in which they came."""
    ranked = sorted(rows, key=lambda r: r.summary.max_ns if r.summary else 0)
    kept = ranked[-count:]
    return [row for row in rows if row in kept]


def summary_document(model: Model) -> Document:
    """Return what a merge request shows: verdict, table, and each grave caveat."""
    return Document(model.title, tuple(_summary(model)))


def _summary(model: Model) -> Iterator[Block]:
    verdict, head = model.verdict, model.headline
    if verdict is None:
        yield Words(((head.maximum, "strong"), f" {head.where}"))
    else:
        yield Words(((verdict.word, "strong"), f": {verdict.question}"))
        yield from (Item(_judged_load(load).words) for load in verdict.loads)
    letters, form = _letters(model, Form.MARKDOWN), Form.MARKDOWN
    figures, kind = columns("brief"), model.variant_kind
    yield rows_table(model.rows, figures, letters, kind=kind, form=form)
    yield f"Latencies in {model.virtual}µs; {NOTHING}: too few samples, or not known."
    severe = grave(model.caveats)
    for note in severe:
        runs = "" if note.everywhere else f" in {', '.join(note.runs)}"
        yield Item(Words(((note.label, "strong"), f" {note.says}{runs}")))
    if notes := len(model.caveats) - len(severe):
        yield Item(f"{plural(notes, 'further note')} in the report")
    yield ""
    yield f"{model.subtitle}. Made by {model.made_by}."
