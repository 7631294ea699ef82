"""Two kernels side by side, and a published table beside ours: what is said and not."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from fakes.measurements import on_board, record, thread
from fakes.printed import render_text
from rtscope.host.errors import UsageError
from rtscope.present.charts.drawings import svg_of
from rtscope.present.documents.pages import render_html
from rtscope.present.documents.results import render_markdown
from rtscope.present.formats.data import render_json
from rtscope.present.model.build import build_model
from rtscope.present.model.charts import Chart, Overlay
from rtscope.present.model.comparison import build_comparison, split_by_variant
from rtscope.present.model.published_comparison import (
    PublishedComparison,
    compare_with_published,
)
from rtscope.present.model.rows import rows_of
from rtscope.present.model.side_by_side import SideBySide, side_by_side
from rtscope.record.model import RunRecord
from rtscope.record.published import KernelKind, get_published

US = 1_000
HOSTILE = "<img src=x onerror=alert(1)>\x1b[2J|"


def run(
    max_us: int,
    load: str = "idle",
    *,
    rt: bool = True,
    kernel: str | None = None,
    virtual: bool = True,
) -> RunRecord:
    name = kernel or ("k-rt" if rt else "k")
    made = record(
        [thread([5_000] * 99 + [max_us * US])],
        load,
        kernel=name,
        facts={"preempt_rt": rt},
    )
    digest = ("a" if rt else "e") * 64
    return on_board(made, kernel_digest=digest) if virtual else made


def matrix(*, virtual: bool = True) -> list[RunRecord]:
    """Two kernels under two loads, the ordinary one first."""
    return [
        run(us, load, rt=rt, virtual=virtual)
        for rt, load, us in [
            (False, "idle", 66),
            (False, "memory", 950),
            (True, "idle", 64),
            (True, "memory", 95),
        ]
    ]


def pair_of(records: list[RunRecord]) -> SideBySide:
    pair = build_model(records).pair
    assert pair is not None
    return pair


def test_the_real_time_kernel_is_first_whatever_was_measured_first() -> None:
    pair = pair_of(matrix())
    assert [(s.label, s.model) for s in pair.sides] == [
        ("k-rt", "PREEMPT_RT"),
        ("k", "not PREEMPT_RT"),
    ]
    assert [row.load for row in pair.rows] == ["idle", "memory"]
    assert [row.ratio for row in pair.rows] == [66 / 64, 10]
    assert pair.summary == (
        "k has the higher maximum under memory (10 times); about equal under idle "
        "(observed maxima, no statistical test)."
    )


def test_a_tenth_more_is_no_difference_and_said_so() -> None:
    idle = pair_of(matrix()).rows[0]
    assert idle.sentence == (
        "About equal maxima, 64.0 virtual µs and 66.0 virtual µs: two seeds of one "
        "kernel differ as much."
    )


def of_variant(variant: str, number: int) -> RunRecord:
    made = run(40 + number, virtual=False)
    named = replace(made.run, variant=variant, id=f"{number:03}-idle-{variant}")
    tables = [{"variant": "fifo"}, {"variant": "rr"}]
    return replace(made, run=named, campaign={"run": tables})


def test_variants_are_sets_in_the_order_of_the_campaign_file() -> None:
    records = [of_variant(name, i) for i, name in enumerate(("rr", "fifo", "rr"))]
    sets = split_by_variant({"dir": records})
    assert {name: len(runs) for name, runs in sets.items()} == {"fifo": 1, "rr": 2}
    assert list(sets) == ["fifo", "rr"]
    both = split_by_variant({"one": records, "two": [run(90, virtual=False)]})
    assert list(both) == ["one fifo", "one rr", "two"]


def test_where_runs_are_tested_nobody_is_sent_to_the_test() -> None:
    records = [of_variant(name, i) for i, name in enumerate(("rr", "fifo", "rr"))]
    report = build_comparison(split_by_variant({"dir": records}))
    assert report.subtitle == "Baseline: fifo"
    assert report.pair is not None
    assert "type rtscope compare" not in report.pair.caution


def test_a_sentence_says_what_each_sample_supports_and_gives_no_p() -> None:
    virtual = pair_of(matrix()).rows[1].sentence
    real = pair_of(matrix(virtual=False)).rows[1].sentence
    assert virtual.startswith(
        "The maximum of k is 10 times that of k-rt. Latencies over 95.0 "
        "virtual µs: k had 1 episode in 100 ms of virtual time (at least one per "
    )
    assert "k-rt had none in 100 ms" in virtual
    # One run against one knows nothing of how far runs of one kernel lie apart.
    for sentence in (virtual, real):
        assert "p =" not in sentence
        assert "worse" not in sentence


def of_zero(*, rt: bool) -> RunRecord:
    """A run on a clock so coarse that no wake-up was late by it."""
    kernel = "k-rt" if rt else "k"
    return record([thread([0] * 100)], kernel=kernel, facts={"preempt_rt": rt})


def test_a_maximum_of_zero_is_held_against_as_one_nanosecond() -> None:
    both = pair_of([of_zero(rt=True), of_zero(rt=False)])
    late = pair_of([of_zero(rt=True), run(66, rt=False, virtual=False)])
    worse = pair_of([run(66, virtual=False), of_zero(rt=False)])
    assert [pair.rows[0].ratio for pair in (both, late, worse)] == [
        *(1, 66_000, 1 / 66_000),
    ]


def test_an_exact_repetition_changes_nothing_but_a_caveat() -> None:
    once, twice = build_model(matrix()), build_model([*matrix(), *matrix()])
    assert once.pair is not None
    assert twice.pair is not None
    assert [r.sentence for r in once.pair.rows] == [r.sentence for r in twice.pair.rows]
    assert once.headline.support == twice.headline.support
    assert "identical_repeats" in {c.id for c in twice.caveats}


@pytest.mark.parametrize("kernels", [("a",), ("a", "b", "c")])
def test_one_kernel_or_three_have_no_pair(kernels: tuple[str, ...]) -> None:
    records = [run(40 + i, kernel=name) for i, name in enumerate(kernels)]
    assert build_model(records).pair is None


def test_two_sides_without_a_common_load_are_no_pair() -> None:
    sets = {"a": rows_of([run(40)]), "b": rows_of([run(40, "memory", rt=False)])}
    assert side_by_side(sets) is None


def test_both_sides_lie_in_the_same_bins_and_no_sample_is_lost() -> None:
    for chart in pair_of(matrix()).charts:
        assert isinstance(chart.content, Overlay)
        for layer in chart.content.layers:
            assert len(layer.counts) == len(chart.content.edges_ns) - 1
            assert sum(layer.counts) == layer.samples == 100
            assert layer.tail.x_ns[-1] <= layer.max_ns
        drawing = svg_of(chart)
        assert "virtual µs" in drawing
        assert all(f"{x.label}  max" in drawing for x in chart.content.layers)


def test_a_virtual_time_is_called_virtual_wherever_a_unit_stands() -> None:
    model = build_model(matrix())
    comparison = build_comparison({"a": matrix()[:2], "b": matrix()[2:]})
    for said in (
        render_text(model),
        render_markdown(model),
        render_text(comparison),
        render_markdown(comparison),
    ):
        words = " ".join(said.split())
        assert words.count("µs") == words.count("virtual µs") > 0


@pytest.mark.slow
def test_pages_have_both_tables_and_their_drawings() -> None:
    report = render_html(build_model(matrix()))
    comparison = render_html(build_comparison({"a": matrix()[:2], "b": matrix()[2:]}))
    for page in (report, comparison):
        assert page.count('class="chart"') >= 4
        assert 'id="pair"' in page
        assert 'id="overlaid"' in page


def test_the_terminal_holds_its_width() -> None:
    model = build_model(matrix())
    for width in (80, 120):
        assert all(len(x) <= width for x in render_text(model, width=width).split("\n"))


def test_a_determinism_failure_comes_first_in_a_comparison() -> None:
    comparison = build_comparison({"before": [run(40)], "after": [run(41)]})
    assert comparison.not_deterministic
    assert comparison.summary == "Determinism failure under idle."
    assert comparison.caveats[0].id == "not_deterministic"
    assert "DETERMINISM FAILURE" in render_text(comparison)


def test_a_result_with_two_kernels_is_two_sets_and_never_one() -> None:
    one = split_by_variant({"dir": matrix()})
    assert {label: len(runs) for label, runs in one.items()} == {"k": 2, "k-rt": 2}
    two = split_by_variant({"dir": matrix(), "other": matrix()[:2]})
    assert list(two) == ["dir k", "dir k-rt", "other"]


def test_equal_results_are_called_the_same_and_not_about_equal() -> None:
    row = rows_of(matrix()[:1])
    pair = side_by_side({"a": row, "b": row})
    assert pair is not None
    assert pair.rows[0].sentence.startswith("Identical results")


# --- a published table ------------------------------------------------------------


def beside(
    records: list[RunRecord], name: str = "starfive-visionfive2"
) -> PublishedComparison:
    return compare_with_published(records, get_published(name))


def test_figures_are_matched_by_load_and_preemption_model() -> None:
    found = beside(matrix())
    assert [row.load for row in found.rows] == ["idle", "memory"]
    memory = found.rows[1]
    assert memory.published.figures[KernelKind.MAINLINE].max_ns == 14_125 * US
    assert memory.published.ratio == 14_125 / 95
    assert memory.measured.rows[KernelKind.RT].kernel == "k-rt"
    assert memory.measured.ratio == 10
    assert memory.sentence == (
        "Published: mainline worse, 149 times. Measured: mainline worse, 10 times."
    )
    assert found.not_measured == ("cpu", "os", "storage")
    assert found.summary == (
        "The same kernel has the higher maximum on both sides under memory; the two "
        "sides disagree under idle."
    )


def test_a_maximum_of_zero_is_one_nanosecond_beside_a_published_one_too() -> None:
    found = beside([of_zero(rt=True), run(66, rt=False, virtual=False)])
    assert found.rows[0].measured.ratio == 66_000


def test_what_keeps_the_two_apart_is_told() -> None:
    told = " ".join(beside(matrix()).differences)
    for words in (
        "virtual board pc",
        "not µs of the published machine",
        "Interval: published 200 µs, measured 1 ms",
        "published 10 min, measured 100 ms",
        "Number of CPUs: published 4, measured 1",
        "cyclictest 2.20",
    ):
        assert words in told
    assert "Policy" not in told
    assert "virtual" not in " ".join(beside(matrix(virtual=False)).differences)


def test_each_sample_says_what_it_supports_and_no_verdict() -> None:
    published, rt, plain = beside(matrix()).support
    assert "one run of 10 min" in published
    assert "less than once per 3.3 min" in published
    assert "alone shows no difference between kernels" in published
    assert rt.startswith("Measured, PREEMPT_RT: 1 trajectory of 100 ms of virtual time")
    assert plain.startswith("Measured, mainline: 1 trajectory")


def test_one_kernel_kind_alone_is_set_beside_its_column_without_a_ratio() -> None:
    found = beside([run(40)])
    assert found.rows[0].measured.ratio is None
    assert found.rows[0].sentence.endswith("Measured: only one kernel.")
    assert found.summary.startswith("One side has only one kind")


def test_a_custom_load_is_matched_by_its_very_command() -> None:
    table = get_published("scheduler-talk-x86-64")
    made = run(40, "custom", rt=False)
    argv = tuple(table.loads["stress"].split())
    made = replace_load(made, argv)
    assert [row.load for row in compare_with_published([made], table).rows] == [
        "stress"
    ]
    with pytest.raises(UsageError, match="no load in common: it has stress"):
        compare_with_published([replace_load(made, argv[:-1])], table)


def replace_load(given: RunRecord, argv: tuple[str, ...]) -> RunRecord:
    return replace(given, load=replace(given.load, argv=argv))


@pytest.mark.parametrize(
    ("records", "name", "says"),
    [
        (
            [run(40)],
            "scheduler-talk-x86-64",
            "has only mainline, the records only PREEMPT",
        ),
        ([run(40, "network")], "starfive-visionfive2", "no load in common"),
        (
            [run(40, kernel="a"), run(41, kernel="b")],
            "starfive-visionfive2",
            "PREEMPT_RT column has records of 2 machines or kernels",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(
    records: list[RunRecord], name: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        beside(records, name)


def test_an_unknown_preemption_model_is_no_column() -> None:
    unknown = record([thread([5_000] * 9)], facts={"preempt_rt": None})
    with pytest.raises(UsageError, match="do not show whether"):
        beside([unknown])


def test_every_form_has_the_figures_as_published_and_the_notes() -> None:
    found = beside(matrix())
    text, page = render_text(found), render_html(found)
    for said in (text, page, render_markdown(found)):
        assert "14,125" in said
        assert "1.2 million" in said
        assert "virtual" in said
        assert "37.0" not in said
    data = json.loads(render_json(found))
    assert data["virtual"] is True
    assert data["loads"][1]["published"]["mainline"]["max_ns"] == 14_125_000
    assert data["loads"][1]["ours"]["rt"]["summary"]["max_ns"] == 95_000
    assert {note["id"] for note in data["notes"]} >= {"samples", "same_twice"}
    assert all(len(line) <= 80 for line in text.splitlines())


def test_hostile_names_do_no_harm_in_any_form() -> None:
    records = [run(40, kernel=HOSTILE), run(400, rt=False, kernel=f"{HOSTILE}2")]
    found = beside(records)
    page = render_html(found) + render_html(build_model(records))

    class Tags(HTMLParser):
        def handle_starttag(
            self, tag: str, attrs: list[tuple[str, str | None]]
        ) -> None:
            assert tag not in {"img", "script"}

    Tags().feed(page)
    assert "\x1b" not in render_text(found) + render_markdown(found) + page


def rows_of_text(svg: str) -> dict[str, float]:
    """Return how far down each text of a drawing stands, in points."""
    texts = [e for e in ET.fromstring(svg).iter() if e.tag.endswith("text")]
    return {e.text or "": float(e.get("y", "0")) for e in texts}


@pytest.mark.parametrize("deadline_us", [10, 94])
def test_the_label_of_a_deadline_covers_no_label_of_a_side(deadline_us: int) -> None:
    for chart in pair_of(matrix()).charts[-2:]:
        drawn = replace(chart, deadline_ns=deadline_us * 1_000)
        rows = rows_of_text(svg_of(drawn))
        (deadline,) = (at for text, at in rows.items() if "deadline" in text)
        sides = [at for text, at in rows.items() if " max " in text]
        assert len(sides) == 2
        assert min(abs(deadline - side) for side in sides) > 9


def loads_compared(*samples: int) -> Chart:
    loads = ("idle", "memory")
    threads = [thread([5_000] * count + [95_000]) for count in samples]
    records = map(record, ([one] for one in threads), loads)
    chart = build_model([on_board(one) for one in records]).comparison
    assert chart is not None
    return chart


def test_the_label_of_a_deadline_has_a_row_of_its_own_above_the_loads() -> None:
    chart = replace(loads_compared(9, 9), deadline_ns=50_000)
    rows = rows_of_text(svg_of(chart))
    (deadline,) = (at for text, at in rows.items() if "deadline" in text)

    assert rows["idle"] - deadline > 12


def test_a_caption_names_the_figures_that_are_drawn_and_no_other() -> None:
    few, many = loads_compared(9, 9), loads_compared(9, 20_000)

    assert few.figures == "Minimum, average and maximum"
    assert many.figures == "Minimum, average, 99.9th percentile and maximum"
    assert few.figures in few.description
