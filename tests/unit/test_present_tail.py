"""The latest wake-ups by cause: what is known, and how much is not."""

from hypothesis import given
from hypothesis import strategies as st

from fakes.measurements import thread
from rtscope.explain.bound import (
    OTHERS,
    KnownCause,
    WorstWakeups,
    sentence_of_tail,
    tail_of,
)
from rtscope.host.units import NS_PER_S
from rtscope.present.charts.bars import tail_bars

US = 1_000


def tail(latencies: list[int], known: list[KnownCause]) -> WorstWakeups:
    found = tail_of([thread(latencies)], known)
    assert found is not None
    return found


def test_the_tail_is_at_most_a_thousandth_and_never_empty() -> None:
    many = tail([1 * US] * 2997 + [7 * US, 8 * US, 9 * US], [])
    assert (many.wakeups, many.samples) == (3, 3000)
    assert tail([1 * US] * 2996 + [7 * US, 8 * US, 9 * US], []).wakeups == 2
    assert tail([1 * US] * 2999 + [9 * US], []).wakeups == 1
    assert tail([1 * US, 2 * US], []).wakeups == 1
    assert tail_of([thread([])], []) is None


def test_causes_are_counted_with_their_sum_and_their_worst() -> None:
    known = [
        KnownCause(9 * US, "b", 900),
        KnownCause(8 * US, "a", 500),
        KnownCause(7 * US, "a", 6 * US),
    ]
    found = tail([1 * US] * 4996 + [7 * US] * 2 + [8 * US, 9 * US], known)

    rows = [(c.cause, c.wakeups, c.sum_ns, c.worst_ns) for c in found.causes]
    assert rows == [("a", 2, 6_500, 6_000), ("b", 1, 900, 900)]
    assert (found.recorded, found.unknown) == (3, 1)
    assert sentence_of_tail(found, virtual="").endswith(
        "3 recorded, 1 not recorded. Dominant causes of those recorded: a 2 times "
        "(longest 6.00, sum 6.50 µs), b once (0.900 µs)."
    )


def test_what_is_known_of_earlier_wakeups_is_not_of_the_tail() -> None:
    found = tail([1 * US] * 3000 + [9 * US], [KnownCause(1 * US, "a", 500)])
    assert (found.recorded, found.unknown) == (0, 1)
    assert "0 recorded, 1 not recorded." in sentence_of_tail(found, virtual="virtual ")


def test_rare_causes_are_put_together() -> None:
    known = [KnownCause((10 + i) * US, f"cause {i}", i) for i in range(7)]
    found = tail([1 * US] * 9000 + [one.latency_ns for one in known], known)
    assert len(found.causes) == 5
    assert (found.causes[-1].cause, found.causes[-1].wakeups) == (OTHERS, 3)
    assert found.causes[-1].worst_ns == 2


@given(
    st.lists(st.integers(1 * US, 900 * US), min_size=1, max_size=60), st.integers(0, 60)
)
def test_the_bins_hold_every_wakeup_of_the_tail(
    latencies: list[int], kept: int
) -> None:
    worst = sorted(latencies, reverse=True)[:kept]

    found = tail(latencies, [KnownCause(ns, f"c{ns % 3}", ns) for ns in worst])

    assert sum(sum(b.known) for b in found.bins) == found.recorded
    assert sum(b.unknown for b in found.bins) == found.unknown
    assert found.recorded + found.unknown == found.wakeups


def test_a_wake_up_later_than_every_bucket_is_drawn_once_too() -> None:
    late_ns = 20 * NS_PER_S

    known = tail([1 * US] * 2998 + [9 * US, late_ns], [KnownCause(late_ns, "a", US)])
    unknown = tail([1 * US] * 2998 + [9 * US, late_ns], [])

    assert sum(sum(b.known) for b in known.bins) == known.recorded == 1
    assert sum(b.unknown for b in known.bins) == known.unknown == 1
    assert sum(b.unknown for b in unknown.bins) == unknown.unknown == 2


def test_the_picture_is_grey_where_nothing_is_known_and_escapes_causes() -> None:
    found = tail([1 * US] * 2998 + [7 * US, 9 * US], [KnownCause(9 * US, "<b>&", US)])
    picture = tail_bars(found, name="x", virtual="virtual ")
    assert "not recorded: cause unknown: 1" in picture
    assert "&lt;b&gt;&amp;: 1" in picture
    assert picture.count("var(--c6,") == 2  # its bar, and its legend
    known = tail([1 * US] * 2999 + [9 * US], [KnownCause(9 * US, "a", US)])
    assert "var(--c6," not in tail_bars(known, name="x", virtual="")
