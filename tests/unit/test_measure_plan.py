"""Plans: which runs, in which order, under which names."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from rtscope.measure.campaign.model import Campaign, RunTable
from rtscope.measure.campaign.values import Order
from rtscope.measure.plan import (
    MAX_BLOCK,
    kernels_by_label,
    make_plan,
    remaining,
    with_order_drawn,
)
from rtscope.record.model import Run, RunId

S = 1_000_000_000


def ids(*runs: RunTable, order: Order = "interleaved", kernels: str = "") -> list[str]:
    campaign = Campaign(runs=runs, order=order, kernels=tuple(kernels.split()))
    return [run.id for run in make_plan(campaign).runs]


def test_the_default_plan_is_the_five_loads_once() -> None:
    plan = make_plan(Campaign())

    assert [run.id for run in plan.runs] == [
        "001-idle",
        "002-cpu",
        "003-os",
        "004-memory",
        "005-storage",
    ]


def test_a_run_has_every_value_of_its_cell() -> None:
    campaign = Campaign(
        target="ssh:vf2",
        kernels=("a",),
        runs=(RunTable(loads=("cpu",), priorities=(80,), cpus=(0, 1)),),
    )

    assert make_plan(campaign).runs == (
        Run(
            id="001-cpu",
            target="ssh:vf2",
            kernel="a",
            load="cpu",
            repetition=1,
            policy="fifo",
            priority=80,
            interval_ns=200_000,
            duration_ns=20 * S,
            cpus=(0, 1),
        ),
    )


def test_interleaved_repeats_everything_before_anything_is_run_a_third_time() -> None:
    assert ids(RunTable(loads=("idle", "cpu"), repetitions=2)) == [
        "001-idle-r1",
        "002-cpu-r1",
        "003-idle-r2",
        "004-cpu-r2",
    ]


def test_interleaved_alternates_kernels() -> None:
    assert ids(RunTable(loads=("idle",), repetitions=2), kernels="std rt") == [
        "001-idle-std-r1",
        "002-idle-rt-r1",
        "003-idle-std-r2",
        "004-idle-rt-r2",
    ]


def test_blocked_repeats_each_run_at_once() -> None:
    run = RunTable(loads=("idle", "cpu"), repetitions=2)

    assert ids(run, order="blocked", kernels="std rt") == [
        "001-idle-std-r1",
        "002-idle-std-r2",
        "003-cpu-std-r1",
        "004-cpu-std-r2",
        "005-idle-rt-r1",
        "006-idle-rt-r2",
        "007-cpu-rt-r1",
        "008-cpu-rt-r2",
    ]


def test_tables_with_fewer_repetitions_drop_out_of_later_rounds() -> None:
    assert ids(
        RunTable(loads=("idle",), repetitions=1),
        RunTable(loads=("cpu",), repetitions=3),
    ) == ["001-idle-r1", "002-cpu-r1", "003-cpu-r2", "004-cpu-r3"]


def test_a_name_tells_only_what_varies() -> None:
    run = RunTable(
        loads=("idle",),
        policy_names=("fifo", "other"),
        intervals_ns=(200_000, 1_500_000),
    )

    assert ids(run) == [
        "001-idle-fifo99-200us",
        "002-idle-fifo99-1500us",
        "003-idle-other-200us",
        "004-idle-other-1500us",
    ]


def test_a_name_tells_durations_and_cpus_that_vary() -> None:
    assert ids(
        RunTable(loads=("idle",), cpus=(0, 2, 3)),
        RunTable(loads=("idle",), durations_ns=(60 * S,)),
        RunTable(loads=("idle",), cpus=tuple(range(0, 100, 2))),
    ) == ["001-idle-20s-cpu0+2-3", "002-idle-1m-allcpus", "003-idle-20s-50cpus"]


def test_many_runs_get_longer_numbers() -> None:
    names = ids(RunTable(loads=("idle",), repetitions=1000))

    assert (names[0], names[-1]) == ("0001-idle-r1", "1000-idle-r1000")


@pytest.mark.parametrize(("asked", "reserved"), [(None, 100_000), (50_000, 50_000)])
def test_policy_deadline_reserves_what_was_asked_or_half_the_interval(
    asked: int | None, reserved: int
) -> None:
    run = RunTable(loads=("idle",), policy_names=("deadline", "fifo"))

    plan = make_plan(Campaign(runs=(run,), deadline_runtime_ns=asked))

    assert [r.deadline_runtime_ns for r in plan.runs] == [reserved, None]


def test_the_total_time_is_settling_and_for_each_run_warm_up_and_duration() -> None:
    run = RunTable(loads=("idle", "cpu"), durations_ns=(10 * S, 30 * S))

    plan = make_plan(Campaign(runs=(run,), settle_ns=180 * S, warmup_ns=2 * S))

    assert plan.total_ns == (180 + 4 * 2 + 2 * (10 + 30)) * S


def test_a_traced_run_takes_half_as_long_again_for_what_tracing_costs() -> None:
    run = RunTable(loads=("idle", "cpu"), durations_ns=(20 * S, 2 * S, 400 * S))

    plan = make_plan(Campaign(runs=(run,), warmup_ns=0, explain=True))

    assert plan.total_ns == 2 * (20 + 2 * 5 + 2 + 2 * 1 + 400 + 2 * 10) * S


def test_a_virtual_board_is_not_traced_and_takes_no_longer() -> None:
    board = Campaign(target="virtual:pc", explain=True)

    plain = make_plan(replace(board, explain=False))

    assert make_plan(board).total_ns == plain.total_ns


def test_what_remains_keeps_its_order_and_names() -> None:
    plan = make_plan(Campaign())

    rest = remaining(plan, ["001-idle", "003-os", "999-unknown"])

    assert [run.id for run in rest.runs] == ["002-cpu", "004-memory", "005-storage"]
    assert rest.total_ns == 3 * 21 * S


def test_nothing_remaining_takes_no_time() -> None:
    plan = make_plan(Campaign(settle_ns=S))

    assert remaining(plan, {run.id for run in plan.runs}).total_ns == 0


RUN_TABLES = st.builds(
    RunTable,
    loads=st.lists(
        st.sampled_from(["idle", "cpu", "custom"]), min_size=1, unique=True
    ).map(tuple),
    policy_names=st.lists(
        st.sampled_from(["fifo", "rr", "other"]), min_size=1, unique=True
    ).map(tuple),
    priorities=st.lists(st.integers(1, 99), max_size=2, unique=True).map(tuple),
    intervals_ns=st.lists(
        st.integers(10_000, S), min_size=1, max_size=2, unique=True
    ).map(tuple),
    repetitions=st.integers(1, 3),
    cpus=st.none() | st.sets(st.integers(0, 4095), min_size=1).map(sorted).map(tuple),
)


@given(
    st.lists(RUN_TABLES, min_size=1, max_size=3),
    st.sampled_from(["interleaved", "blocked", "random"]),
    st.sampled_from([(), ("debian-6.12",), ("a", "b" * 61)]),
)
def test_any_plan_has_every_run_once_under_a_valid_name(
    runs: list[RunTable], order: Order, kernels: tuple[str, ...]
) -> None:
    plan = make_plan(Campaign(runs=tuple(runs), order=order, kernels=kernels))

    expected = max(1, len(kernels)) * sum(
        len(run.loads) * len(run.policies) * len(run.intervals_ns) * run.repetitions
        for run in runs
    )
    assert len({run.id for run in plan.runs}) == len(plan.runs) == expected
    for run in plan.runs:
        TypeAdapter(RunId).validate_python(run.id)


def test_everything_is_run_once_with_each_seed() -> None:
    table = RunTable(loads=("idle", "cpu"))
    campaign = Campaign(target="virtual:pc", runs=(table,), seeds=(1, 9))

    runs = make_plan(campaign).runs

    assert [(run.id, run.seed) for run in runs] == [
        ("001-idle-s1", 1),
        ("002-cpu-s1", 1),
        ("003-idle-s9", 9),
        ("004-cpu-s9", 9),
    ]


def test_seeds_are_varied_within_a_repetition() -> None:
    table = RunTable(loads=("idle",), repetitions=2)
    board = Campaign(target="virtual:pc", runs=(table,), seeds=(1, 2))

    assert [(r.seed, r.repetition) for r in make_plan(board).runs] == [
        *((1, 1), (2, 1), (1, 2), (2, 2))
    ]
    blocked = replace(board, order="blocked")
    assert [(r.seed, r.repetition) for r in make_plan(blocked).runs] == [
        *((1, 1), (1, 2), (2, 1), (2, 2))
    ]


def test_one_seed_is_in_no_name() -> None:
    (run,) = make_plan(Campaign(target="virtual:pc", runs=(RunTable(("idle",)),))).runs

    assert (run.id, run.seed) == ("001-idle", 1)


def test_a_board_settles_after_each_boot_a_machine_once() -> None:
    runs = (RunTable(("idle", "cpu"), durations_ns=(10 * S,)),)
    here = Campaign(runs=runs, settle_ns=3 * S, warmup_ns=0)

    assert make_plan(here).total_ns == 23 * S
    assert make_plan(replace(here, target="virtual:pc")).total_ns == 26 * S


def test_images_of_the_same_name_have_runs_of_their_own() -> None:
    campaign = Campaign(
        target="virtual:pc",
        kernels=("/My Kernels/RT/bzImage", "/My Kernels/std/bzImage", "debian-6.12"),
        runs=(RunTable(("idle",)),),
    )

    runs = make_plan(campaign).runs

    assert [(run.id, run.kernel) for run in runs] == [
        ("001-idle-rt-bzimage", "RT/bzImage"),
        ("002-idle-std-bzimage", "std/bzImage"),
        ("003-idle-debian-6.12", "debian-6.12"),
    ]


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1))
def test_any_image_has_a_run_that_a_record_takes(name: str) -> None:
    kernels = (f"/a/{name}", f"/b/{name}")
    campaign = Campaign(
        target="virtual:pc", kernels=kernels, runs=(RunTable(("idle",)),)
    )

    ids = [run.id for run in make_plan(campaign).runs]

    assert len(set(ids)) == 2
    for run_id in ids:
        TypeAdapter(RunId).validate_python(run_id)


@pytest.mark.parametrize(
    ("kernels", "labels"),
    [
        (["debian-6.12", "./bzImage"], ["debian-6.12", "bzImage"]),
        (["/a/bzImage", "/b/bzImage"], ["a/bzImage", "b/bzImage"]),
        (
            ["/rt/arch/x86/boot/bzImage", "/std/arch/x86/boot/bzImage"],
            ["rt/bzImage", "std/bzImage"],
        ),
        (["debian-6.12", "/k/debian-6.12"], ["debian-6.12", "k/debian-6.12"]),
        (["/a/b/I", "/a/c/I", "/d/c/I"], ["/a/b/I", "/a/c/I", "/d/c/I"]),
        (["/I", "/a/I"], ["/I", "a/I"]),
    ],
)
def test_images_are_called_by_their_files_and_told_apart_by_a_directory(
    kernels: list[str], labels: list[str]
) -> None:
    assert kernels_by_label(kernels) == dict(zip(labels, kernels, strict=True))


@given(
    st.lists(
        st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(
            lambda parts: "/" + "/".join(parts)
        ),
        unique=True,
        max_size=8,
    )
)
def test_no_two_kernels_are_called_the_same(paths: list[str]) -> None:
    assert sorted(kernels_by_label(paths).values()) == sorted(paths)


# --- an order drawn at random ----------------------------------------------------

A, B = (RunTable(loads=("idle", "cpu"), variant=name, repetitions=12) for name in "ab")


def drawn(order_seed: int, *runs: RunTable) -> list[Run]:
    campaign = Campaign(runs=runs or (A, B), order_seed=order_seed)
    return list(make_plan(campaign).runs)


def test_variants_on_a_machine_are_run_in_random_order() -> None:
    assert Campaign(runs=(A, B)).ordering == "random"
    assert Campaign(runs=(A,)).ordering == "interleaved"
    assert Campaign(runs=(A, B), order="blocked").ordering == "blocked"
    # Nothing drifts in virtual time.
    assert Campaign(target="virtual:pc", runs=(A, B)).ordering == "interleaved"


def test_the_order_is_drawn_once_and_kept() -> None:
    first, second = (with_order_drawn(Campaign(runs=(A, B))) for _ in range(2))
    assert first.order_seed != second.order_seed
    assert with_order_drawn(first) == first
    assert with_order_drawn(Campaign()).order_seed is None


@given(st.integers(0, 2**63 - 1), st.integers(1, 23))
def test_each_block_has_every_variant_equally_often(
    order_seed: int, repetitions: int
) -> None:
    tables = [replace(table, repetitions=repetitions) for table in (A, B)]
    runs = drawn(order_seed, *tables)

    assert runs == drawn(order_seed, *tables)
    counted = Counter((run.block, run.variant, run.load) for run in runs)
    blocks = -(-repetitions // MAX_BLOCK)
    assert {run.block for run in runs} == set(range(1, blocks + 1))
    for block in range(1, blocks + 1):
        of_it = {n for (which, *_), n in counted.items() if which == block}
        assert len(of_it) == 1
        assert of_it <= set(range(repetitions // blocks, MAX_BLOCK + 1))
    assert [run.block for run in runs] == sorted(run.block or 0 for run in runs)
    for variant in "ab":
        turns = [run.repetition for run in runs if run.variant == variant]
        assert turns == [n + 1 for n in range(repetitions) for _ in A.loads]


def test_every_order_of_a_block_comes_up() -> None:
    tables = [replace(t, repetitions=2, loads=("idle",)) for t in (A, B)]
    orders = Counter(
        "".join(run.variant or "" for run in drawn(seed, *tables))
        for seed in range(1200)
    )
    assert set(orders) == {"aabb", "abab", "abba", "baab", "baba", "bbaa"}
    assert min(orders.values()) > 120  # of 200 on average


def test_the_loads_of_a_place_stay_together() -> None:
    runs = drawn(3)
    for first, second in zip(runs[::2], runs[1::2], strict=True):
        assert (first.load, second.load) == ("idle", "cpu")
        assert first.variant == second.variant
        assert first.repetition == second.repetition


def test_a_variant_is_in_the_name_of_its_runs() -> None:
    tables = [replace(t, repetitions=1, loads=("idle",)) for t in (A, B)]
    assert sorted(run.id[4:] for run in drawn(1, *tables)) == ["idle-a", "idle-b"]
    odd = (replace(A, variant="Ä / x", repetitions=1), replace(B, repetitions=1))
    for run in drawn(1, *odd):
        TypeAdapter(RunId).validate_python(run.id)
