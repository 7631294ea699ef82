"""The timeline of a wake-up: what each CPU did, and what there is no room for."""

import re

import pytest

from fakes.paths import Step, section, symbols
from rtscope.explain import timeline
from rtscope.explain.activity import Recording
from rtscope.explain.instructions.explain import explain_path
from rtscope.explain.timeline import Slice, Timeline, Track, timeline_of
from rtscope.present.charts.flame import flame_chart, note_of_timeline

TABLE = symbols("zap", "free_pages", "do_irq")
STEPS: list[Step] = [
    (100, "zap"),
    (200, "free_pages"),
    (300, "zap", 1),
    (50, "zap+"),
    (50, "free_pages"),
]


def recording(late: int = 400) -> Recording:
    found = section(STEPS, TABLE, late=late, flags=((0, 0),))
    explained = explain_path(found, TABLE, arch="riscv64")
    return Recording("001, worst wake-up 1", found, explained, TABLE, "riscv64")


def test_the_cpu_that_was_late_comes_first_and_its_calls_are_nested() -> None:
    found = timeline_of(recording())

    assert (found.begin_ns, found.end_ns, found.left_out) == (-100, 400, 0)
    assert found.tracks == (
        Track(
            0,
            (
                Slice(0, -100, 400, "zap"),
                Slice(1, -100, 300, "free_pages"),
                Slice(1, 350, 400, "free_pages"),
            ),
        ),
        Track(1, (Slice(0, 0, 400, "zap"),)),
    )


def test_only_what_was_recorded_before_the_timer_was_due_is_shown() -> None:
    assert timeline_of(recording(late=700)).begin_ns == 0
    assert timeline_of(recording(late=680)).begin_ns == -20


def test_the_longest_are_kept_and_the_others_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeline, "MOST_SLICES", 2)

    found = timeline_of(recording())

    assert [one.slices for one in found.tracks] == [
        (Slice(0, -100, 400, "zap"), Slice(1, -100, 300, "free_pages")),
    ]
    assert (found.left_out, found.longest_left_out_ns) == (2, 400)
    assert note_of_timeline(found, unit="") == (
        "2 more calls are not drawn; the longest took 0.400 µs."
    )


def test_deep_calls_make_room_for_the_outermost_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeline, "MOST_SLICES", 2)
    monkeypatch.setattr(timeline, "MOST_LEVELS", 1)

    tracks = timeline_of(recording()).tracks

    assert [[s.name for s in one.slices] for one in tracks] == [["zap"], ["zap"]]


def test_boxes_lie_where_their_times_are_and_names_are_escaped() -> None:
    one = recording()
    hostile = Slice(0, 100, 200, '<b>&"')
    drawn = Timeline(0, 400, (Track(3, (hostile,)),), 0, 0)

    page = flame_chart(drawn, one.explanation, name="path1", unit="virtual ")

    assert '<i style="left:25%;width:25%"' in page
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;&quot;" in page
    assert "CPU 3" in page
    assert note_of_timeline(drawn, unit="") == ""


def test_the_blamed_calls_and_the_causes_are_marked_and_the_axis_is_round() -> None:
    one = recording()
    assert one.explanation.dominant is not None

    page = flame_chart(timeline_of(one), one.explanation, name="p")

    blamed = re.findall(r'<i class=blamed [^>]*title="([^,]*),', page)
    known = {one.explanation.dominant.name, *one.explanation.dominant.callers}
    assert blamed
    assert set(blamed) <= known
    ticks = re.findall(r"<span [^>]*>([^<]*)</span>", page)
    assert ticks == ["-0.1", "0", "0.1", "0.2", "0.3"]
    assert page.count('type="radio"') == 4
    assert page.count(" checked") == 1
