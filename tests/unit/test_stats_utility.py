"""The value of wake-ups to a soft deadline, beside values worked out by hand."""

import numpy as np
import pytest

from fakes.measurements import record, thread
from rtscope.host.errors import UsageError
from rtscope.present.charts.drawings import svg_of
from rtscope.present.documents.pages import render_html
from rtscope.present.model.build import build_model
from rtscope.present.model.charts import Chart
from rtscope.present.model.softvalue import ValueOverLatency
from rtscope.stats.utility import parse_utility, soft_value

US = 1_000


@pytest.mark.parametrize(
    ("curve", "at_us", "worth"),
    [
        ("200us:1,500us:0", 0, 1),
        ("200us:1,500us:0", 200, 1),
        ("200us:1,500us:0", 350, 0.5),
        ("200us:1,500us:0", 500, 0),
        ("200us:1,500us:0", 900, 0),
        ("500us:1,500us:0", 500, 1),  # firm: in time is in time
        ("500us:1,500us:0", 501, 0),
        ("100us:1,200us:0.5,200us:0.25,300us:0.25", 150, 0.75),
        ("100us:1,200us:0.5,200us:0.25,300us:0.25", 200, 0.5),
        ("100us:1,200us:0.5,200us:0.25,300us:0.25", 201, 0.25),
        ("100us:1,200us:0.5,200us:0.25,300us:0.25", 5000, 0.25),
    ],
)
def test_a_curve_is_lines_between_its_points(
    curve: str, at_us: int, worth: float
) -> None:
    found = parse_utility(curve).values_at(np.array([at_us * US], dtype=np.int64))

    assert found[0] == pytest.approx(worth)


@pytest.mark.parametrize(
    "text",
    [
        *("", "200us", "200us:1", "200us:2,500us:0", "200us:1.5,300us:0"),
        *("500us:1,200us:0", "200us:0,500us:1", "200us:1,x:0", "200us:-1,300us:0"),
        *("200us:1;500us:0", "200us:nan,300us:0", ",".join(["1us:1"] * 101)),
    ],
)
def test_another_text_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"200us:1,500us:0|write"):
        parse_utility(text)


def test_the_value_is_the_average_over_all_activations() -> None:
    firm = parse_utility("500us:1,500us:0")
    one = [thread([10 * US] * 3 + [600 * US])]

    found = soft_value([one], firm)

    assert found is not None
    assert (found.mean, found.runs, found.interval) == (0.75, 1, None)


def test_missed_periods_count_with_their_own_lateness() -> None:
    firm = parse_utility("500us:1,500us:0")
    # 2.4 periods late: the two missed ones would have been 1.4 and 0.4 ms late
    one = thread([10 * US] * 5 + [2_400 * US], interval_ns=1_000 * US)

    found = soft_value([[one]], firm)

    assert found is not None
    assert found.mean == pytest.approx(6 / 8)


def test_the_interval_is_over_runs() -> None:
    firm = parse_utility("500us:1,500us:0")
    runs = [[thread([10 * US] * (10 - n) + [900 * US] * n)] for n in (1, 2, 3)]

    found = soft_value(runs, firm)

    assert found is not None
    assert found.mean == pytest.approx(0.8)
    assert (found.least, found.runs) == (0.7, 3)
    # Student, 2 degrees: 4.302653 * 0.1 / sqrt(3)
    assert found.interval == pytest.approx((0.8 - 0.248414, 1.0), abs=1e-5)


def test_no_activation_has_no_value() -> None:
    assert soft_value([], parse_utility("1us:1,2us:0")) is None


def test_a_report_names_the_least_value_first() -> None:
    soft = parse_utility("500us:1,500us:0")
    one = record([thread([10 * US] * 9 + [600 * US])])

    model = build_model([one], utility=soft)

    assert model.soft is not None
    assert model.findings[0] == model.soft.sentence
    assert "0.9 was delivered under" in model.soft.sentence
    assert "no interval with fewer than three" in model.soft.sentence
    assert build_model([one]).soft is None


def value_chart(text: str, latencies_ns: list[int]) -> Chart:
    """The chart of a report with one run of a measuring thread."""
    one = record([thread(latencies_ns)])
    model = build_model([one], utility=parse_utility(text))
    (chart,) = (c for c in model.charts if c.name.endswith("-value"))
    return chart


def test_the_page_draws_the_curve_over_all_that_was_measured() -> None:
    chart = value_chart("200us:1,500us:0.25", [10 * US] * 9 + [600 * US])
    content = chart.content

    assert isinstance(content, ValueOverLatency)
    assert (sum(content.counts), sum(content.lost)) == (10, 1)
    assert content.edges_ns[0] <= 10 * US
    assert content.edges_ns[-1] > 600 * US
    assert content.curve[0] == (content.edges_ns[0], 1.0)
    assert content.curve[-1] == (content.edges_ns[-1], 0.25)
    soft = parse_utility("200us:1,500us:0.25")
    latencies = np.array([ns for ns, _ in content.curve], dtype=np.int64)
    drawn = [value for _, value in content.curve]
    assert soft.values_at(latencies) == pytest.approx(drawn, abs=1e-4)


def test_the_axis_reaches_the_end_of_the_curve_and_a_step_is_one() -> None:
    content = value_chart("200us:1,200us:0", [10 * US] * 5).content

    assert isinstance(content, ValueOverLatency)
    assert content.edges_ns[-1] > 200 * US
    assert sum(content.lost) == 0
    at_step = [value for ns, value in content.curve if ns == 200 * US]
    assert (at_step[0], at_step[-1]) == (1.0, 0.0)


@pytest.mark.parametrize(
    "latencies_ns", [[7 * US] * 5, [10 * US] * 9 + [6_000 * US], [0, 1]]
)
def test_the_chart_is_drawn_wherever_the_latencies_lie(latencies_ns: list[int]) -> None:
    drawn = svg_of(value_chart("200us:1,500us:0", latencies_ns))

    assert "activations per bin" in drawn
    assert "max " in drawn


def test_a_page_has_the_chart_with_a_soft_deadline_alone() -> None:
    one = record([thread([10 * US] * 9 + [600 * US])])
    soft = parse_utility("500us:1,500us:0")
    page = render_html(build_model([one], utility=soft))

    assert "Delivered: 0.9 of 1 for each (1 run" in page
    assert "500us:1,500us:0" in page
    assert "Delivered" not in render_html(build_model([one]))
