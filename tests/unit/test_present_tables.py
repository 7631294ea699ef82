"""The table of figures: one row is all that a new one needs."""

import csv
import json
from collections.abc import Iterator
from importlib import resources
from typing import get_args

import pytest

from fakes import cycling
from fakes.htmltables import uneven_rows
from fakes.measurements import record, thread
from fakes.printed import printed, render_text
from rtscope.present.documents.pages import render_html
from rtscope.present.documents.results import render_markdown
from rtscope.present.formats.data import render_csv, render_json
from rtscope.present.model.build import build_model
from rtscope.present.model.comparison import build_comparison
from rtscope.present.model.published_comparison import compare_with_published
from rtscope.present.render.page import page_of
from rtscope.record.model import RunRecord
from rtscope.record.published import get_published
from rtscope.stats import figures
from rtscope.stats.figures import Table
from rtscope.stats.summary import Summary
from rtscope.verbs.app.cycletables import cycle_lines, cycles_row
from rtscope.verbs.app.page import examined_document
from rtscope.verbs.exchange.writers import WRITERS, ExportOptions
from unit.test_app_output import recorded

REPORTED = {"brief", "main", "cpu", "pair", "sets", "sets_page", "published"}

NEW = """
[best_case]
heading = "best case"
unit = "ns"
attribute = "mean_with_missed_periods_ns"
tables = { main = 15, cpu = 15, pair = 15, sets = 15, sets_page = 15, published = 15 }
compared = true
name = "The best case"
weakness = "It is none."
meaning = "A figure that nobody needs."

[p99_5]
percentile = 99.5
help = "Latency of 199 in 200 wake-ups at most."
name = "Percentile 99.5"
weakness = "It hides five in a thousand."
meaning = "All but one in 200."

[p99_5.tables]
main = 105
pair = 105
bisect = 55
sweep = 15
cycles = 35
cycles_page = 55
export = 35
"""


@pytest.fixture
def one_more(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add a figure to the table, and nothing else."""
    shipped = resources.files("rtscope.stats").joinpath("figures.toml").read_text()
    monkeypatch.setattr(figures, "_table", lambda: shipped + NEW)
    for cached in (figures.figures, figures.definitions):
        cached.cache_clear()
    yield
    for cached in (figures.figures, figures.definitions):
        cached.cache_clear()


def run(kernel: str, us: int, *, rt: bool) -> RunRecord:
    latencies = [4_000] * 99 + [us * 1_000]
    return record([thread(latencies)], kernel=kernel, facts={"preempt_rt": rt})


def two_kernels() -> list[RunRecord]:
    return [run("rt", 8, rt=True), run("plain", 80, rt=False)]


@pytest.mark.slow
@pytest.mark.usefixtures("one_more")
def test_a_figure_that_is_one_row_of_the_table_is_in_every_form_of_a_report() -> None:
    model = build_model(two_kernels())
    alone = build_model(two_kernels()[:1])
    (row, _) = csv.DictReader(render_csv(model).splitlines())
    told = json.loads(render_json(model))

    assert row["best case_us"] == "4.040"
    assert told["rows"][0]["summary"]["mean_with_missed_periods_ns"] == 4040
    assert told["pair"]["loads"][0]["best_case_ratio"] == pytest.approx(4.76 / 4.04)
    for width in (60, 80, 120):
        assert "best case" in render_text(alone, width=width)
    assert "A best case" in render_text(model, width=160)
    assert "best case B/A" in render_text(model, width=160)
    assert "| A best case |" in render_markdown(model)
    assert "| best case |" in render_markdown(alone)
    page = render_html(model)
    assert page.count(">best case<") == 2 + 2 + 1  # each CPU, both sides, the table
    assert ">ratio of best case<" in page
    assert '<a href="#def-best_case">best case</a>' in page
    assert '<dt id="def-best_case">The best case</dt>' in page


@pytest.mark.usefixtures("one_more")
def test_the_same_row_is_in_every_form_of_a_comparison() -> None:
    sets = {"a": two_kernels()[:1] * 2, "b": two_kernels()[1:]}
    comparison = build_comparison(sets)
    published = compare_with_published(
        two_kernels(), get_published("starfive-visionfive2")
    )

    assert "best case" in render_text(comparison, width=140)
    assert "| best case |" in render_markdown(comparison)
    assert '<a href="#def-best_case">best case</a>' in render_html(comparison)
    assert "best case" in render_text(published, width=140)
    assert "| RT best case |" in render_markdown(published)
    assert ">best case<" in render_html(published)


@pytest.mark.usefixtures("one_more")
def test_a_percentile_that_is_one_row_is_in_every_command() -> None:
    one = record([thread([1_000] * 599 + [9_000])])
    (row,) = csv.DictReader(render_csv(build_model([one])).splitlines())
    reported = json.loads(render_json(build_model([one])))["rows"][0]["summary"]
    exported = {
        to: WRITERS[to]([one], ExportOptions())
        for to in ("openmetrics", "junit", "kcidb")
    }

    assert row["p99.5_us"] == "1.000"
    assert reported["percentiles"]["p99.5"] == 1_000
    assert "p99.5" in render_text(build_comparison({"a": [one], "b": [one]}), width=160)
    assert figures.named("bisect")["p99.5"].of_record(one) == 1_000
    assert list(figures.named("sweep"))[:2] == ["worst", "p99.5"]
    assert "rtscope_latency_p99_5_seconds{run" in exported["openmetrics"]
    assert '"p99_5_us" value="1.000"' in exported["junit"]
    assert '"p99_5_us": "1.000"' in exported["kcidb"]


@pytest.mark.usefixtures("one_more")
def test_a_percentile_that_is_one_row_is_in_the_check_of_a_program() -> None:
    examined, shown = recorded(cycling.periodic(600))
    lines = printed(cycle_lines(shown, width=80)).splitlines()
    (head,) = [line.split() for line in lines if line.startswith("  µs")]

    assert head[1:] == list(figures.named("cycles"))
    assert "p99.5" in head
    assert max(map(len, lines)) <= 80
    assert cycles_row(shown)["threads"][0]["latency_ns"]["percentiles"]["99.5"] == 20
    page = page_of(examined_document(examined, shown, {}))
    assert page.count('<th scope="col">p99.5</th>') == 1
    assert list(uneven_rows(page)) == []


def test_every_figure_can_be_taken_and_written_and_links_to_what_it_means() -> None:
    (row,) = build_model(two_kernels()[:1]).rows
    defined = {definition.key for definition in figures.definitions()}
    names = {field for field in Summary.__slots__}

    for figure in figures.figures():
        assert figure.of_row or bool(figure.percentile or figure.record) == (
            figure.attribute not in names
        )
        assert isinstance(figure.of(row), float | int | None)
        assert figure.text(row)
        if figure.tables.keys() & REPORTED:
            assert figure.key in defined


def test_places_are_told_apart_and_a_row_without_a_sample_has_no_figure() -> None:
    (row,) = build_model([record([thread([], activations=5)])]).rows
    for table in get_args(Table):
        places = [figure.tables[table] for figure in figures.columns(table)]
        assert places
        assert places == sorted(set(places))
    for figure in figures.columns("cpu"):
        assert (figure.of(row), figure.text(row)) == (None, "\N{EN DASH}")
        assert figure.csv(row) == ("0" if figure.zero else "")
        assert not figure.is_bad(row)
        assert figure.ratio(row, row) is None
