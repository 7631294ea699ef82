"""The picture of a wake-up: filled is what the CPU executed, and nothing else."""

import re

from rtscope.explain.model import Cause, Explanation, Part, Segment
from rtscope.present.charts.bars import path_bar


def heights(*segments: Segment) -> list[float]:
    """Return the filled height of each stretch, as a share of the bar's."""
    latency_ns = segments[-1].end_ns
    picture = path_bar(
        Explanation(0, 7, latency_ns, segments), name="p", description=""
    )
    found = [
        float(height) for height in re.findall(r'<rect [^>]*height="(.+?)"', picture)
    ]
    return [own / whole for whole, own in zip(found[::2], found[1::2], strict=True)]


def segment(begin_ns: int, end_ns: int, executed_ns: int | None) -> Segment:
    return Segment(Part.A, begin_ns, end_ns, Cause.TIMER_SLACK, "x", executed_ns)


def test_a_stretch_in_which_the_board_slept_is_not_filled_like_an_executed_one() -> (
    None
):
    assert heights(segment(0, 700, None), segment(700, 900, 100)) == [0, 0.5]


def test_stretches_from_events_which_tell_nothing_of_execution_are_all_filled() -> None:
    assert heights(segment(0, 700, None), segment(700, 900, None)) == [1, 1]
