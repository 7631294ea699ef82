"""The runs that a step of a search compares differ in their kernel alone."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fakes.boardruns import near, runs_of, with_fact
from fakes.measurements import on_board
from rtscope.host.errors import MeasurementError, UsageError
from rtscope.record.caveats.catalogue import make
from rtscope.record.model import RunRecord
from rtscope.verbs.bisect.machineruns import Samples, samples_of

Runs = Sequence[RunRecord]


def found(
    new: Runs,
    *,
    good: Runs | None = None,
    bad: Runs | None = None,
    load: str | None = None,
    figure: str = "max",
) -> Samples:
    return samples_of(
        ("--good good", near(40, kernel="6.12.1") if good is None else good),
        ("--bad bad", near(80, kernel="6.12.9") if bad is None else bad),
        ("--measured new", new),
        load=load,
        figure=figure,
    )


def new_runs(base_us: float = 81) -> list[RunRecord]:
    return near(base_us, kernel="6.12.5")


def test_each_run_gives_one_value_of_the_figure() -> None:
    samples = found(new_runs())

    assert list(samples.new.values) == [81_000, 81_300, 81_600, 81_900, 82_200]
    assert (samples.load, samples.good.label) == ("memory", "--good good")
    assert samples.notes == ()


def test_the_only_common_load_is_taken_and_several_are_asked_for() -> None:
    both = [*near(40), *near(20, load="idle")]
    bad = near(80, kernel="6.12.9")

    assert found(new_runs(), good=both).load == "memory"
    worse = [*bad, *near(80, kernel="6.12.9", load="idle")]
    with pytest.raises(UsageError, match="runs under idle, memory: name the load"):
        found([*new_runs(), *near(3, load="idle")], good=both, bad=worse)
    with pytest.raises(UsageError, match=r"no load in common .*--measured new under"):
        found(near(3, load="idle"))
    with pytest.raises(UsageError, match="--bad bad: no run under idle; it has runs"):
        found(new_runs(), good=both, load="idle")


def test_runs_of_a_virtual_board_are_refused() -> None:
    with pytest.raises(UsageError, match=r"--measured new: run .* a virtual board"):
        found([on_board(run) for run in new_runs()])


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (near(81, target="ssh:other"), "target is ssh:other in place of ssh:board"),
        (near(81, facts={"hostname": "b"}), "host name is b in place of unknown"),
        (near(81, interval_ns=2_000_000), "different intervals"),
        (near(81, samples=600), "a longer run has a larger maximum"),
        (near(81, facts={"governor": "powersave"}), "frequency governor is powersave"),
        (near(81, facts={"governor": "powersave"}), "git bisect skip"),
        (near(81, facts={"kernel_cmdline": "quiet mitigations=off"}), "mitigations"),
    ],
)
def test_runs_that_differ_in_more_than_their_kernel_are_refused(
    new: Runs, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        found(new)


def test_a_setting_may_be_that_of_either_end_and_the_difference_is_named() -> None:
    bad = near(80, kernel="6.12.9", facts={"governor": "schedutil"})
    new = near(81, kernel="6.12.5", facts={"governor": "schedutil"})

    [note] = found(new, bad=bad).notes

    assert "frequency governor is schedutil in place of performance" in note


def test_runs_of_two_kernels_are_not_those_of_one() -> None:
    mixed = [*new_runs()[:3], *near(83, kernel="6.12.6")[:3]]

    with pytest.raises(UsageError, match=r"kernel is 6\.12\.6 in place of 6\.12\.5"):
        found(mixed)


def test_settings_that_changed_between_two_runs_are_named() -> None:
    first, *others = new_runs()

    with pytest.raises(UsageError, match="--measured new: its runs are not of one"):
        found([with_fact(first, "governor", "powersave"), *others])


def test_a_run_that_is_given_twice_is_refused() -> None:
    new = new_runs()

    with pytest.raises(UsageError, match="1 of its runs are copies of others"):
        found([*new, new[0]])
    with pytest.raises(UsageError, match="the same measurement"):
        found(near(40))


@pytest.mark.parametrize("caveat", ["suspended", "load_died", "stopped_early"])
def test_a_run_without_a_valid_measurement_is_left_out_by_name(caveat: str) -> None:
    lost, *others = new_runs()
    samples = found([replace(lost, caveats=(make(caveat),)), *others])

    assert len(samples.new.values) == 4
    assert "run 001-memory:" in samples.notes[0]


def test_a_kernel_without_a_valid_run_has_no_values_and_an_end_must_have_some() -> None:
    lost = [replace(run, caveats=(make("suspended"),)) for run in new_runs()]

    samples = found(lost)

    assert samples.new.values == ()
    assert len(samples.new.left_out) == 5
    with pytest.raises(MeasurementError, match="--bad bad: no valid run under memory"):
        found(new_runs(), bad=lost)


def test_the_kernel_of_an_end_in_place_of_a_new_one_is_noted() -> None:
    [note] = found(near(43, kernel="6.12.1")).notes

    assert "--measured new and --good good ran the same kernel (6.12.1)" in note


def test_a_figure_that_runs_do_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match=r"run 001-memory has no p99\.999: measure"):
        found(new_runs(), figure="p99.999")


def test_the_name_of_a_variant_and_the_boot_entry_are_no_settings() -> None:
    new = [replace(run, run=replace(run.run, variant="v")) for run in new_runs()]

    assert found(new).notes == ()


def test_runs_of_several_boots_belong_together() -> None:
    new = [
        with_fact(run, "boot_id", f"{number:08}-0000-4000-8000-000000000001")
        for number, run in enumerate(runs_of([81, 82, 83, 84, 85], kernel="6.12.5"))
    ]

    samples = found(new)

    assert len(samples.new.values) == 5
    assert samples.one_boot  # of the ends
    other = "00000000-0000-4000-8000-00000000000a"
    boots = [
        [with_fact(runs[0], "boot_id", other), *runs[1:]]
        for runs in (near(40, kernel="6.12.1"), near(80, kernel="6.12.9"))
    ]
    assert not found(new, good=boots[0], bad=boots[1]).one_boot
