"""What sections could combine to, against sums worked out by hand."""

from hypothesis import given
from hypothesis import strategies as st

from rtscope.explain.bound import (
    Section,
    arrivals_of,
    compose,
    fixed_point,
    scheduling_latency,
)
from rtscope.record.explanation import SCHEMA, CpuBound, Explained, LongestSection

NS = st.integers(0, 200_000)
ARRIVALS = st.lists(st.tuples(st.integers(0, 5_000_000), st.integers(0, 2000)))


def all_kinds(**ns: int) -> list[LongestSection]:
    return [LongestSection(Section(name), duration) for name, duration in ns.items()]


def bound_of(
    longest: list[LongestSection], *arrivals: list[tuple[int, int]]
) -> int | None:
    named = {f"v{i}": arrivals_of(one) for i, one in enumerate(arrivals)}
    return compose(0, longest, arrivals=named).bound_ns


def test_the_example_that_rtsl_prints() -> None:
    # stats.md 1.3: 109453 = max(56194, 45883) + 5167 + 48092
    kinds = {
        Section.POID: 56194,
        Section.ST: 45883,
        Section.PAIE: 5167,
        Section.PSD: 48092,
    }
    assert scheduling_latency(kinds) == 109_453


def test_a_long_tail_takes_the_place_of_a_shorter_section() -> None:
    kinds = {Section.POID: 10, Section.ST: 30, Section.PAIE: 2, Section.PSD: 40}
    assert scheduling_latency(kinds) == 72


def test_interrupts_lengthen_the_window_that_they_are_counted_in() -> None:
    # In 100 lie those at 0 and 90, in 140 also that at 130, in 160 no more.
    ticks = arrivals_of([(0, 20), (90, 20), (130, 20), (400, 20)])
    assert fixed_point(100, [ticks]) == 160


def test_of_all_windows_the_fullest_counts() -> None:
    rare_and_long, often = (1000, 50), [(n * 40, 3) for n in range(10)]
    arrivals = arrivals_of([rare_and_long, *often])
    assert arrivals.max_in_window(0) == 50
    assert arrivals.max_in_window(80) == 50
    assert arrivals_of(often).max_in_window(80) == 9
    assert arrivals_of([]).max_in_window(80) == 0


def test_vectors_are_counted_each_in_its_own_fullest_window() -> None:
    assert bound_of(all_kinds(PSD=100), [(0, 10)], [(9000, 7)]) == 117


def test_the_way_back_is_added_to_the_papers_latency() -> None:
    bound = compose(
        3,
        all_kinds(PSD=100, BACK=30),
        arrivals={},
        not_recorded=("an event",),
    )
    assert (bound.cpu, bound.scheduling_ns, bound.bound_ns) == (3, 100, 130)
    assert not bound.complete


def test_interrupts_without_a_pause_have_no_bound() -> None:
    endless = arrivals_of([(n * 100, 10_000_000) for n in range(200)])
    bound = compose(0, all_kinds(PSD=1), arrivals={"storm": endless})
    assert bound.bound_ns is None
    assert not bound.complete


def test_what_is_told_of_a_vector() -> None:
    arrivals = {
        "tick": arrivals_of([(500, 9), (0, 5), (90, 4)]),
        "once": arrivals_of([(3, 8)]),
    }
    tick, once = compose(0, all_kinds(PSD=100), arrivals=arrivals).interrupts
    assert (tick.vector, tick.arrivals, tick.longest_ns) == ("tick", 3, 9)
    assert (tick.min_interarrival_ns, tick.max_in_window_ns) == (90, 9)
    assert (once.min_interarrival_ns, once.max_in_window_ns) == (None, 8)


def test_the_worst_cpu_is_the_one_without_a_bound() -> None:
    small, large = (compose(i, all_kinds(PSD=9 * i), arrivals={}) for i in (1, 2))
    endless = arrivals_of([(i, 100_000_000) for i in range(20)])
    none = compose(3, all_kinds(PSD=1), arrivals={"storm": endless})

    def worst_of(*bounds: CpuBound) -> CpuBound | None:
        one = Explained(schema=SCHEMA, result_digest="", wakeups=(), bounds=bounds)
        return one.worst_bound

    assert worst_of() is None
    assert worst_of(large, small) is large
    assert worst_of(small, none, large) is none


@given(NS, NS, NS, NS, NS, ARRIVALS)
def test_a_bound_is_no_less_than_any_section(
    poid: int,
    paie: int,
    psd: int,
    tail: int,
    back: int,
    arrivals: list[tuple[int, int]],
) -> None:
    kinds = all_kinds(POID=poid, PAIE=paie, PSD=psd, ST=tail, BACK=back)
    bound = bound_of(kinds, arrivals)
    longest_interrupt = max((ns for _, ns in arrivals), default=0)
    assert bound is not None
    assert bound >= max(poid, paie, psd, tail, back) + longest_interrupt


@given(
    st.dictionaries(st.sampled_from(Section), NS),
    ARRIVALS,
    st.sampled_from(Section),
    NS,
)
def test_a_bound_never_shrinks_with_a_longer_section(
    kinds: dict[Section, int],
    arrivals: list[tuple[int, int]],
    which: Section,
    more: int,
) -> None:
    longer = {**kinds, which: kinds.get(which, 0) + more}
    less, greater = (
        bound_of([LongestSection(k, ns) for k, ns in found.items()], arrivals)
        for found in (kinds, longer)
    )
    assert less is not None
    assert greater is not None
    assert greater >= less


@given(NS, ARRIVALS, st.tuples(st.integers(0, 5_000_000), st.integers(0, 2000)))
def test_a_bound_never_shrinks_with_another_interrupt(
    start: int, arrivals: list[tuple[int, int]], one: tuple[int, int]
) -> None:
    less = fixed_point(start, [arrivals_of(arrivals)])
    more = fixed_point(start, [arrivals_of([*arrivals, one])])
    assert less is not None
    assert more is not None
    assert more >= less
