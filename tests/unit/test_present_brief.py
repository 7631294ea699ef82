"""The short forms on a terminal: 22 lines of 80 columns, and nothing grave left out."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from fakes.boards import campaign
from fakes.measurements import on_board, record, thread
from fakes.printed import render_brief
from rtscope.present.document import Detail
from rtscope.present.documents.results import Result, print_result
from rtscope.present.documents.shared import More
from rtscope.present.model.build import build_model
from rtscope.present.model.comparison import build_comparison
from rtscope.present.model.published_comparison import compare_with_published
from rtscope.present.render.fitted import COLUMNS, LINES
from rtscope.record.caveats.catalogue import Effect, catalogue, make
from rtscope.record.model import RunRecord, record_from_json
from rtscope.record.published import get_published
from rtscope.stats.verdict import Claim

FORMAT = Path(__file__).parent.parent.parent / "format"
MORE = More("rtscope report results", "results/report.html")
GRAVE = [kind for kind in catalogue().values() if kind.effect is not Effect.NOTE]


def loads(*, kernel: str | None = None, repetition: int = 1) -> list[RunRecord]:
    return campaign(cpus=2, seconds=3, kernel=kernel, repetition=repetition)


def kernels(*names: str) -> list[RunRecord]:
    return [on_board(one) for name in names for one in loads(kernel=name)]


def stored() -> list[RunRecord]:
    return [
        record_from_json(path.read_bytes(), name=path.name)
        for path in sorted(FORMAT.glob("v*/record*.json"))
    ]


HOUR_NS = 3_600_000_000_000

TOLD: dict[str, Callable[[], Result]] = {
    **{f"stored {n}": partial(build_model, [one]) for n, one in enumerate(stored())},
    "five loads": lambda: build_model(loads()),
    "missed": lambda: build_model(
        loads(), deadline_ns=1_000, claim=Claim(1, HOUR_NS), min_boots=3
    ),
    "held": lambda: build_model(loads(), deadline_ns=1_000_000_000),
    "two kernels": lambda: build_model(kernels("k-6.12", "k-6.12-rt")),
    "two kernels, asked": lambda: build_model(
        kernels("k-6.12", "k-6.12-rt"), deadline_ns=10_000
    ),
    "five kernels": lambda: build_model(kernels(*(f"k-6.{n}" for n in range(5)))),
    "nothing measured": lambda: build_model([record([thread([])])]),
    "three sets": lambda: build_comparison(
        {"before": loads(), "after": loads(), "a-long-name-of-a-third-set": loads()}
    ),
    "published": lambda: compare_with_published(
        loads(), get_published("starfive-visionfive2")
    ),
}


def shown(one: Result, detail: Detail) -> str:
    console = Console(width=COLUMNS, color_system=None)
    with console.capture() as captured:
        print_result(one, console, detail=detail, more=MORE)
    return captured.get()


@pytest.mark.slow
@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
def test_a_result_fits_into_one_look(told: Callable[[], Result]) -> None:
    lines = render_brief(told(), more=MORE).splitlines()

    assert len(lines) <= LINES == 22
    assert max(map(len, lines)) <= COLUMNS == 80


def test_no_caveat_that_limits_or_invalidates_is_ever_left_out() -> None:
    grave = tuple(make(kind.id) for kind in GRAVE)
    model = build_model([replace(one, caveats=grave) for one in loads()])
    lines = render_brief(model, more=MORE).splitlines()

    for effect in (Effect.INVALID, Effect.LIMIT):
        kinds = [kind for kind in GRAVE if kind.effect is effect]
        found = [line for line in lines if line.startswith(f"{effect.upper()} ")]
        assert len(found) == len(kinds)
        for line, kind in zip(found, kinds, strict=True):
            assert kind.message.startswith(line.partition(" ")[2])  # whole clauses


def test_notes_are_counted_with_the_command_that_lists_them() -> None:
    model = build_model(loads())
    notes = [one for one in model.caveats if one.effect is Effect.NOTE]
    text = render_brief(model, more=MORE)

    assert f"{len(notes)} notes: rtscope report results --notes\n" in text
    assert notes[0].remedy not in text
    everything = " ".join(shown(model, Detail.NOTES).split())
    for note in notes:
        assert note.remedy in everything


def test_the_page_is_named_and_a_long_command_is_not_broken() -> None:
    more = More(f"rtscope report {'long-' * 30}name", "results/report.html")
    lines = render_brief(build_model(loads()), more=more).splitlines()

    assert "Page with charts: results/report.html" in lines
    assert f"  {more.command} --notes" in lines


def test_quiet_is_the_answer_in_one_line() -> None:
    missed = build_model(loads(), deadline_ns=1_000)
    plain = build_model(loads())

    assert shown(missed, Detail.QUIET) == "NO: the deadline was missed.\n"
    assert shown(plain, Detail.QUIET).startswith(plain.headline.maximum)
    assert shown(plain, Detail.QUIET).count("\n") == 1


def test_the_verdict_of_every_load_is_named() -> None:
    text = render_brief(build_model(loads(), deadline_ns=5_000), more=MORE)

    for load in ("idle", "cpu", "os", "memory", "storage"):
        assert load in text.partition("load ")[0]


def test_everything_is_more_than_one_look() -> None:
    model = build_model(loads())

    assert shown(model, Detail.ALL).count("\n") > LINES
