import io
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from matplotlib.image import imread

from fakes.boards import campaign
from fakes.drawn import drawn_once
from fakes.measurements import record, thread, ticks_of
from fakes.printed import render_text
from rtscope.contract import KernelThread
from rtscope.present.charts.drawings import files_of, png_of, svg_of
from rtscope.present.documents.pages import render_html
from rtscope.present.model.build import build_model
from rtscope.present.model.charts import (
    Chart,
    Content,
    Histogram,
    RangeGroup,
    RangeMark,
    TailCurve,
)
from rtscope.present.model.comparison import build_comparison
from rtscope.present.model.overtime import CpuCurve, MaximaOverTime
from rtscope.record.model import RunRecord

HOSTILE = "<img src=x onerror=alert(1)>\x1b[2J{{7*7}}\"'&]]>"


class Page(HTMLParser):
    """Collects what a test asks about: identifiers, links, tags, text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.events: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")
            if name.startswith("on"):
                self.events.append(name)


def small_campaign() -> list[RunRecord]:
    return campaign(loads=("memory",), cpus=2, seconds=20)


@pytest.fixture(scope="module")
def large_page(pytestconfig: pytest.Config) -> str:
    with drawn_once(pytestconfig):
        return render_html(build_model(campaign(), deadline_ns=200_000))


@pytest.mark.slow
def test_the_page_of_five_loads_and_eight_cpus_is_at_most_1_5_mb(
    large_page: str,
) -> None:
    assert len(large_page.encode()) <= 1_500_000


@pytest.mark.slow
def test_the_page_needs_no_script_no_network_and_no_other_file(large_page: str) -> None:
    page = Page(large_page)

    assert not {"script", "iframe", "object", "img", "link"} & page.tags
    assert all(link.startswith("#") for link in page.links)
    assert "@import" not in large_page
    assert not re.search(r"url\((?!#)", large_page)


@pytest.mark.slow
def test_identifiers_are_unique_and_every_link_leads_somewhere(large_page: str) -> None:
    page = Page(large_page)

    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links} <= set(page.ids)


@pytest.mark.slow
def test_the_page_is_the_same_to_the_byte_when_made_again() -> None:
    assert render_html(build_model(small_campaign())) == render_html(
        build_model(small_campaign())
    )


@pytest.mark.slow
def test_findings_and_caveats_come_before_the_table(large_page: str) -> None:
    places = [
        large_page.index(text)
        for text in ("Is every wake-up within", ">Findings<", ">Caveats<", "<table")
    ]
    assert places == sorted(places)


def test_shares_below_a_tenth_have_a_digit_more() -> None:
    (run,) = small_campaign()
    busy = [
        KernelThread(40 + i, f"kworker/{i}", "kernel", i, ms * 1_000_000)
        for i, ms in enumerate((2_000, 1_900))
    ]
    assert run.result.machine is not None
    machine = replace(run.result.machine, kernel_threads=tuple(busy))
    page = render_html(
        build_model([replace(run, result=replace(run.result, machine=machine))])
    )

    rows = [row for row in page.splitlines() if "kworker/" in row and "<td" in row]
    assert [re.findall(r"[0-9.]+%", row) for row in rows] == [["10%"], ["9.5%"]]


@pytest.mark.slow
def test_hostile_text_acts_nowhere_in_the_page() -> None:
    t = thread([4_000, 900_000] * 500)
    runs = [
        record(
            [t],
            HOSTILE,
            kernel=kernel,
            target=HOSTILE,
            facts={HOSTILE: HOSTILE},
            ticks=ticks_of([t], temp_mc={HOSTILE: 1}),
        )
        for kernel in (HOSTILE, "6.12.43")
    ]
    html = render_html(build_model(runs, deadline_ns=1_000))
    page = Page(html)

    assert "img" not in page.tags
    assert page.events == []
    assert "\x1b" not in html
    assert "{{7*7}}" in html


def a_chart(label: str = "6.12.43-rt") -> Chart:
    marks = (RangeMark(label, 0, 2_000, 6_000, None, 95_000),)
    return Chart("c", "Title", "Words", (RangeGroup("idle", (*marks, *marks)),))


def test_text_in_a_chart_is_never_rounded_or_recoloured() -> None:
    svg = svg_of(a_chart("6.12.43 #0072b2 id='x' url(#y)"))
    texts = [e.text for e in ET.fromstring(svg).iter() if e.tag.endswith("text")]

    assert "6.12.43 #0072b2 id='x' url(#y)" in texts


def test_a_chart_has_a_title_a_description_and_the_pages_colours() -> None:
    svg = svg_of(a_chart())
    root = ET.fromstring(svg)

    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "c-title c-desc"
    assert "var(--ink, #1c2127)" in svg
    assert not re.search(r"(?<!, )#[0-9a-f]{6}", svg)
    assert "matplotlib" not in svg


def wide_charts() -> list[Chart]:
    """One of each kind, with the longest numbers and names that are likely."""
    cpu = CpuCurve("0", 0, (1e3, 9e7, 5e8, 9.9e8))
    ghz = CpuCurve("0", 0, (0.8, 1.5, 2.4, 4.9))
    warm = (41.0, 99.0, 100.0, 103.0)
    seconds = (0.0, 1.0, 2.0, 3.0)
    histogram = Histogram((1e3, 1e6, 9.9e9), (1e9, 1), (cpu,), True, 9_900_000_000)
    tail = TailCurve((1e3, 1e6, 9e9), (1.0, 1e-6, 1e-9))
    timeline = MaximaOverTime(1, seconds, (cpu,), cpu.values, (), (ghz,), warm, "cpu")
    name = "Linux 6.12.43-rt on jh7110"
    marks = (RangeMark(name, 0, 2_000, 6_000, 9_000, 123_456_789),)
    contents: tuple[Content, ...] = (
        histogram,
        (tail,),
        timeline,
        (RangeGroup(name, marks),),
    )
    load = "memory · event udp:from=enp0s31f6:to=enp0s31f7"
    titles = ["Title", f"{load}: tail of the distribution", "Title", f"{load}, {load}"]
    return [Chart(f"c{n}", titles[n], "W", one) for n, one in enumerate(contents)]


@pytest.mark.parametrize("chart", wide_charts(), ids=lambda chart: chart.name)
def test_no_text_of_a_chart_is_cut_at_its_edge(chart: Chart) -> None:
    pixels = imread(io.BytesIO(png_of(chart)))[:, :, :3]

    # As wide as the gap between two letters.
    edges = (pixels[:4], pixels[-4:], pixels[:, :4], pixels[:, -4:])
    assert all((edge == pixels[0, 0]).all() for edge in edges)


def test_the_maximum_is_written_in_the_comparison() -> None:
    assert ">95.0<" in svg_of(a_chart())


def test_a_chart_has_a_file_of_each_form() -> None:
    files = dict(files_of([a_chart()]))

    assert list(files) == ["c.svg", "c.png"]
    assert files["c.png"].startswith(b"\x89PNG")
    assert files["c.png"] == png_of(a_chart())


def test_a_single_latency_can_be_drawn() -> None:
    t = thread([4_000] * 1000)
    for chart in build_model([record([t], ticks=ticks_of([t]))]).charts:
        assert svg_of(chart)


def test_too_few_runs_are_said_to_be_too_few() -> None:
    a, b, c = (campaign(loads=("idle",), cpus=1, seconds=2, seed=i) for i in range(3))
    comparison = build_comparison({"RPi RT": a, "RPi": b, HOSTILE: c})
    text, page = render_text(comparison), render_html(comparison)

    assert "TOO FEW RUNS to tell RPi from RPi RT: 1 v 1" in text
    assert "TOO FEW RUNS" in page
    assert "img" not in Page(page).tags
    assert "\x1b" not in text + page


def test_runs_of_different_length_are_shown_and_not_compared() -> None:
    short = campaign(loads=("idle",), cpus=1, seconds=2)
    long = campaign(loads=("idle",), cpus=1, seconds=20)
    text = render_text(build_comparison({"a": short, "b": long}))

    assert "NOT COMPARED" in text


def test_the_table_of_a_comparison_has_the_median_of_the_run_maxima() -> None:
    runs = [
        record([thread([4_000, us * 1_000])], repetition=i)
        for i, us in enumerate((10, 30, 90), 1)
    ]
    (load,) = build_comparison({"a": runs, "b": runs[:1]}).loads

    assert load.sides[0].median_max_ns == 30_000
    assert load.sides[0].row.summary is not None
    assert load.sides[0].row.summary.max_ns == 90_000
