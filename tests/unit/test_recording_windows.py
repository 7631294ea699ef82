"""Windows of a replay are virtual times in ns, and not too long together."""

from dataclasses import replace

import pytest

from fakes.paths import section, symbols
from rtscope.boards.recording.replay import windows_around
from rtscope.host.units import NS_PER_MS
from rtscope.record.instructions.section import TraceSection

PATH = section([(10, "zap")], symbols("zap"), late=5)


def path(first_ns: int, last_ns: int) -> TraceSection:
    return replace(PATH, first_ns=first_ns, last_ns=last_ns)


def test_paths_that_overlap_have_one_window() -> None:
    paths = [path(500, 900), path(100, 200), path(850, 1000)]

    assert windows_around(paths, 2) == ((100, 200), (500, 900))
    assert windows_around(paths, 3) == ((100, 200), (500, 1000))


def test_windows_of_10_ms_together_are_the_most() -> None:
    most = path(0, 10 * NS_PER_MS)
    more = path(20 * NS_PER_MS, 20 * NS_PER_MS + 1)

    assert windows_around([most, more], 2) == ((0, 10 * NS_PER_MS),)
    assert windows_around([path(0, 10 * NS_PER_MS + 1)], 1) == ()


@pytest.mark.parametrize(
    ("latency_ns", "lead_ns"),
    [(79_000, 40_000), (400_000, 200_000), (1_000_000, 500_000), (1_400_000, 500_000)],
)
def test_the_window_of_a_path_that_was_cut_begins_before_its_expiry(
    latency_ns: int, lead_ns: int
) -> None:
    cut = replace(path(1_950_000, 2_000_000), cut=True, latency_ns=latency_ns)

    begin_ns = 2_000_000 - latency_ns - lead_ns
    assert windows_around([cut], 1) == ((begin_ns, 2_000_000),)
