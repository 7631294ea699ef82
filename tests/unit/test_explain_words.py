"""An explanation in words: the sentence, the caveats, and causes over a whole run."""

from dataclasses import replace

import pytest

from rtscope.explain.model import Cause, Explanation, OtherCpuActivity, Part, Segment
from rtscope.explain.runs import causes_of, difference, differences, paragraph, title_of
from rtscope.explain.words import caveats_of, evidence, sentence, where


def segment(part: Part, begin_ns: int, end_ns: int, cause: Cause, name: str) -> Segment:
    return Segment(part, begin_ns, end_ns, cause, name, executed_ns=end_ns - begin_ns)


LOCK = replace(
    segment(Part.A, 0, 1_934_568, Cause.LOCK, "get_page"),
    executed_ns=457_474,
    callers=("_raw_spin_lock_irqsave", "get_page", "handle_fault", "do_fault"),
    other_cpus=(
        OtherCpuActivity(0, "memset", 0.12, 450_000),
        OtherCpuActivity(2, "__rmqueue_pcplist", 0.81, 520_000),
    ),
)
MASKED = segment(
    Part.A, 1_934_568, 3_255_480, Cause.INTERRUPTS_OFF, "__rmqueue_pcplist"
)
TIMER = segment(
    Part.B, 3_255_480, 3_277_872, Cause.TIMER_INTERRUPT, "hrtimer_interrupt"
)
SCHEDULER = segment(Part.D, 3_277_872, 3_294_087, Cause.SCHEDULER, "__schedule")
LATE = Explanation(1, 43, 3_294_087, (LOCK, MASKED, TIMER, SCHEDULER))


def lock_only(latency_ns: int, *, kernel_function: str = "get_page") -> Explanation:
    lock = replace(
        LOCK,
        end_ns=latency_ns,
        name=kernel_function,
        callers=("_raw_spin_lock_irqsave", kernel_function),
    )
    return Explanation(0, 1, latency_ns, (lock,))


def test_the_sentence_names_the_longest_segments_in_their_order() -> None:
    assert sentence(LATE, virtual="virtual ") == (
        "CPU 1 woke 3,294 virtual µs late. Waiting for a lock in "
        "get_page < handle_fault < do_fault: 1,935 µs (457 µs "
        "executed here, the rest: this CPU paused; CPU 2 spent 81 % of its time "
        "in __rmqueue_pcplist); interrupts off in __rmqueue_pcplist: 1,321 µs. Rest "
        "(38.6 µs): the timer interrupt 22.4 µs, the scheduler 16.2 µs."
    )


@pytest.mark.parametrize(
    ("off_ns", "cause"), [(249, Cause.SCHEDULER), (250, Cause.INTERRUPTS_OFF)]
)
def test_what_belongs_to_every_wake_up_is_dominant_from_four_times_the_rest_on(
    off_ns: int, cause: Cause
) -> None:
    off = segment(Part.A, 0, off_ns, Cause.INTERRUPTS_OFF, "free_pages")
    scheduler = segment(Part.D, off_ns, off_ns + 1000, Cause.SCHEDULER, "__schedule")
    found = Explanation(0, 1, off_ns + 1000, (off, scheduler)).dominant

    assert found is not None
    assert found.cause is cause


def test_of_two_cpus_that_may_hold_the_lock_none_is_named() -> None:
    """Both are among the evidence; which of them it was, nothing tells."""
    one = OtherCpuActivity(0, "rcu_do_batch", 1.0, 400_000)
    other = OtherCpuActivity(2, "handle_irq", 0.6, 350_000)
    idle = OtherCpuActivity(2, "handle_irq", 0.6, 300_000)
    said = [
        sentence(replace(LATE, segments=(replace(LOCK, other_cpus=both), MASKED)))
        for both in ((one, other), (one, idle))
    ]

    assert "CPU 0" not in said[0]
    assert "CPU 2" not in said[0]
    assert "CPU 0 spent 100 % of its time in rcu_do_batch" in said[1]
    told = evidence(replace(LOCK, other_cpus=(one, other)))
    assert [line[:5] for line in told if "in this time" in line] == ["CPU 0", "CPU 2"]


def test_of_a_timer_on_another_cpu_only_that_one_is_told() -> None:
    """As measured on a board of four CPUs: CPU 0 did something else meanwhile."""
    busy = OtherCpuActivity(0, "rcu_do_batch", 1.0, 3367)
    asked = OtherCpuActivity(2, "riscv_timer_interrupt", 0.53, 3367)
    waited = segment(Part.A, 0, 3367, Cause.TIMER_ELSEWHERE, "CPU 2")
    found = Explanation(1, 1, 3367, (replace(waited, other_cpus=(busy, asked)),))

    assert "CPU 2 spent 53 % of its time in riscv_timer_interrupt" in sentence(found)
    assert "CPU 0" not in sentence(found)


def test_a_cpu_that_did_many_things_is_not_named_as_the_locks_holder() -> None:
    busy = replace(LOCK, other_cpus=(OtherCpuActivity(0, "memset", 0.3, 450_000),))
    found = sentence(replace(LATE, segments=(busy, MASKED, TIMER, SCHEDULER)))

    assert "CPU 0" not in found
    assert evidence(busy) == (
        "CPU 0 executed 450 µs in this time, 30 % of it in memset",
    )


def test_pauses_are_named_from_a_fifth_of_the_time_on() -> None:
    mostly = replace(MASKED, begin_ns=0, end_ns=1000, executed_ns=801)
    partly = replace(mostly, executed_ns=800)

    assert "paused" not in sentence(Explanation(0, 1, 1000, (mostly,)))
    assert "paused" in sentence(Explanation(0, 1, 1000, (partly,)))


def test_a_wake_up_without_a_path_has_an_unknown_cause() -> None:
    found = Explanation(2, 1, 5_000, (), ("no path was recorded for this wake-up",))

    assert sentence(found) == "CPU 2 woke 5.00 µs late; the cause is unknown."
    assert caveats_of(found) == (
        "100.0 % of the latency is in no part: the explanation may miss the cause",
        "no path was recorded for this wake-up",
    )


def test_a_residual_of_a_twentieth_is_no_caveat_and_more_is_one() -> None:
    whole = segment(Part.A, 0, 950, Cause.SOFTIRQ, "net_rx_action")

    assert not caveats_of(Explanation(0, 1, 1000, (whole,)))
    assert caveats_of(Explanation(0, 1, 1000, (replace(whole, end_ns=949),))) == (
        "5.1 % of the latency is in no part: the explanation may miss the cause",
    )


def test_what_was_not_recorded_is_a_caveat() -> None:
    unknown = segment(Part.A, 0, 100, Cause.UNKNOWN, "not recorded")
    rest = segment(Part.B, 100, 1000, Cause.TIMER_INTERRUPT, "hrtimer_interrupt")

    assert caveats_of(Explanation(0, 1, 1000, (unknown, rest))) == (
        "10.0 % of the latency was not recorded: the cause may be there",
    )


def test_a_segment_without_known_callers_is_where_its_name_says() -> None:
    assert where(MASKED) == "__rmqueue_pcplist"


def test_causes_are_counted_and_summed_and_the_dominant_too() -> None:
    found = causes_of([LATE, lock_only(400_000)], load="memory", kernel="plain")

    assert (found.wakeups, found.worst_ns) == (2, 3_294_087)
    assert [
        (title_of(s), s.wakeups, s.dominant_in, s.sum_ns, s.worst_ns)
        for s in found.sums
    ][:2] == [
        (
            "waiting for a lock in get_page",
            2,
            2,
            2_334_568,
            1_934_568,
        ),
        ("interrupts off in __rmqueue_pcplist", 1, 0, 1_320_912, 1_320_912),
    ]


def test_a_cause_that_comes_twice_on_one_way_counts_once_with_both_durations() -> None:
    again = replace(TIMER, begin_ns=3_294_087, end_ns=3_295_000)
    twice = replace(LATE, latency_ns=3_295_000, segments=(*LATE.segments, again))

    sums = causes_of([twice], load="os", kernel="k").sums
    timer = next(s for s in sums if s.cause is Cause.TIMER_INTERRUPT)

    assert (timer.wakeups, timer.sum_ns, timer.worst_ns) == (1, 23_305, 23_305)
    assert title_of(timer) == "the timer interrupt"


def test_two_kernels_differ_in_their_dominant_causes() -> None:
    plain = causes_of(
        [lock_only(900_000), lock_only(500_000, kernel_function="zap")],
        load="memory",
        kernel="plain",
    )
    rt = causes_of(
        [
            lock_only(80_000),
            Explanation(
                0, 2, 90_000, (segment(Part.C, 0, 90_000, Cause.PREEMPTION_OFF, "map"),)
            ),
        ],
        load="memory",
        kernel="rt",
    )

    found = difference(plain, rt)

    assert [s.name for s in found.gone] == ["zap"]
    assert [s.name for s in found.new] == ["map"]
    assert [s.name for s, _ in found.common] == ["get_page"]
    assert paragraph(found, virtual="virtual ") == (
        "Load memory: the worst wake-up was 900 virtual µs late with plain "
        "(2 explained) and 90.0 virtual µs late with rt (2 explained). Dominant cause "
        "with plain only: waiting for a lock in zap (once, longest 500 µs). Dominant "
        "cause with rt only: preemption off in map (once, longest 90.0 µs). Dominant "
        "cause with both: waiting for a lock in get_page (once and once, longest "
        "900 µs and 80.0 µs)."
    )


def test_only_kernels_of_the_same_load_are_set_beside_each_other() -> None:
    one = causes_of([LATE], load="os", kernel="a")
    other = causes_of([LATE], load="memory", kernel="b")

    assert not differences([one, other])
    assert len(differences([one, replace(other, load="os")])) == 1


def test_a_wake_up_without_a_path_is_not_counted_as_explained() -> None:
    found = causes_of([LATE, Explanation(0, 2, 9_000, ())], load="os", kernel="k")

    assert (found.wakeups, found.attributed_share) == (1, 1.0)


# --- sums -------------------------------------------------------------------------


def pieces(cause: Cause, *rows: tuple[int, str], task: str = "") -> Explanation:
    """Make an explanation of segments of 10 ns apart, by length and name."""
    at_ns, segments = 0, []
    for length, name in rows:
        one = segment(Part.B, at_ns, at_ns + length, cause, name)
        segments.append(replace(one, task=task, callers=(name, "caller")))
        at_ns += length
        segments.append(segment(Part.B, at_ns, at_ns + 10, Cause.SCHEDULER, "f"))
        at_ns += 10
    return Explanation(0, 1, at_ns, tuple(segments))


def test_many_short_pieces_of_one_name_are_one_sum() -> None:
    flood = [(500, "sync_counter")] * 100 + [(400, "free_callbacks")] * 3
    found = sentence(pieces(Cause.OTHER_INTERRUPT, *flood))

    assert "Another interrupt in sync_counter < caller: 50.0 µs." in found
    assert "Rest (2.23 µs)" in found


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [(700, "(user space)"), (300, "do_exit")],
            "in (user space) (0.700 µs), do_exit (0.300 µs): 1.00 µs",
        ),
        (
            [(271, "do_exit"), (900, "(user space)"), (800, "__schedule")],
            "in (user space) (0.900 µs), __schedule (0.800 µs), do_exit (0.271 µs): "
            "1.97 µs",
        ),
        ([(950, "spin"), (50, "do_exit")], "in spin < caller: 1.00 µs"),
        ([(600, "a"), (400, "b"), (500, "a")], "in a (1.10 µs), b (0.400 µs): 1.50 µs"),
        (
            [(300, "a"), (290, "b"), (280, "c"), (270, "d")],
            "in a (0.300 µs), b (0.290 µs), c (0.280 µs) and more: 1.14 µs",
        ),
    ],
)
def test_a_sum_stands_behind_one_name_only_if_that_has_nearly_all_of_it(
    rows: list[tuple[int, str]], said: str
) -> None:
    found = sentence(pieces(Cause.OTHER_TASK, *rows, task="nag"))

    assert f"Another task (nag) {said}" in found


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            (("flush_b", 260), ("flush_a", 120), ("flush_c", 110)),
            "flush_b (0.260 µs), flush_a (0.120 µs), flush_c (0.110 µs): 0.500 µs",
        ),
        ((("flush_b", 480), ("flush_a", 10)), "flush_b: 0.500 µs"),
        (
            (("flush_b", 300), ("flush_a", 190), ("tiny", 1)),
            "flush_b (0.300 µs), flush_a (0.190 µs): 0.500 µs",
        ),
        (
            (("a", 125), ("b", 120), ("c", 115), ("d", 110)),
            "a (0.125 µs), b (0.120 µs), c (0.115 µs) and more: 0.500 µs",
        ),
        ((("only", 490),), "only: 0.500 µs"),
    ],
)
def test_each_callback_of_one_interrupt_is_named_with_its_part(
    parts: tuple[tuple[str, int], ...], said: str
) -> None:
    one = segment(Part.A, 0, 500, Cause.EARLIER_INTERRUPT, parts[0][0])
    callers = ("__flush_smp_call_function_queue", "asm_sysvec_call_function_single")
    whole = replace(one, pieces=parts, callers=callers)
    found = sentence(Explanation(0, 1, 500, (whole,)))

    assert f"An earlier interrupt in {said}." in found
