"""Whether a kernel is what was built, and what it complained of."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fakes.measurements import record as make_record
from fakes.measurements import thread
from rtscope.boards.runs.diagnosis import (
    KERNEL_LOG,
    BuiltKernel,
    SmokeBoot,
    complaints,
    smoke_test,
)
from rtscope.machine.facts import FactValue
from rtscope.record.caveats.catalogue import make
from rtscope.record.directory.records import with_lost
from rtscope.record.model import RunRecord

CONFIG = "c" * 64
BUILT = BuiltKernel("my", "6.12.1-rt", "d" * 64, CONFIG, preempt_rt=True)
QUIET = "<5>Linux version 6.12.1-rt\n<6>[    0.000100] Machine model: x\n"


def _fact(value: str | bool, source: str = "/proc/config.gz") -> FactValue:
    return FactValue(value, source)


FACTS: Mapping[str, FactValue] = {
    "kernel_release": _fact("6.12.1-rt"),
    "kernel_config_digest": _fact(CONFIG),
    "preempt_rt": _fact(True),
}


def _record(facts: Mapping[str, FactValue] = FACTS) -> RunRecord:
    return replace(
        make_record([thread([5_000])]), facts_before=facts, kernel_log=(), caveats=()
    )


def test_a_kernel_that_runs_as_built_and_is_quiet_is_good() -> None:
    outcome = smoke_test(BUILT, [SmokeBoot(_record(), QUIET)])

    assert outcome.good
    assert set(outcome.worst_ns) == {_record().run.load}


def test_a_kernel_that_did_not_come_through_is_not_good() -> None:
    outcome = smoke_test(BUILT, [], failures=["001-idle: it panics"])

    assert not outcome.good
    assert outcome.problems == ("001-idle: it panics",)


@pytest.mark.parametrize(
    ("name", "fact", "said"),
    [
        ("kernel_release", _fact("6.12.2"), "kernel_release: 6.12.2 runs"),
        ("kernel_config_digest", _fact("e" * 64), "kernel_config_digest: eee"),
        ("preempt_rt", _fact(False), "preempt_rt: False runs, and True was built"),
        (
            "kernel_config_digest",
            _fact(CONFIG, "/boot/config-6.12.1-rt"),
            "could not be read from inside",
        ),
        (
            "kernel_config_digest",
            FactValue(None, "/proc/config.gz", "no such file"),
            "an unknown value (no such file) runs",
        ),
    ],
)
def test_another_kernel_than_the_one_that_was_built_is_told(
    name: str, fact: FactValue, said: str
) -> None:
    outcome = smoke_test(BUILT, [SmokeBoot(_record({**FACTS, name: fact}), QUIET)])

    assert not outcome.good
    assert any(said in problem for problem in outcome.problems)


def test_a_complaint_while_booting_counts_with_or_without_a_time() -> None:
    log = (
        QUIET + "<3>[    1.500000] probe of poweroff failed with error -16\n<4>BUG: x\n"
    )

    outcome = smoke_test(BUILT, [SmokeBoot(_record(), log)])

    texts = [message.text for message in outcome.messages]
    assert texts == ["probe of poweroff failed with error -16", "BUG: x"]
    assert outcome.messages[0].time_us == 1_500_000
    assert not outcome.good


def test_the_same_complaint_of_several_boots_is_told_once() -> None:
    boot = SmokeBoot(_record(), QUIET + "<3>it failed\n")

    assert len(smoke_test(BUILT, [boot, boot]).messages) == 1


def test_warnings_of_no_known_kind_are_no_complaints() -> None:
    assert list(complaints("<4>a warning\n<6>BUGS are not looked for here\n")) == []


def test_what_a_booting_kernel_only_tells_is_no_complaint() -> None:
    said = "clocksource: Switched to clocksource riscv_clocksource"

    assert list(complaints(f"<6>{said}\n")) == []
    assert len(list(complaints(f"<4>{said}\n"))) == 1


def test_no_log_at_all_is_a_problem() -> None:
    (problem,) = smoke_test(BUILT, [SmokeBoot(_record(), "")]).problems

    assert problem.endswith(": it sent no kernel log")


def test_a_log_that_a_full_disk_lost_is_not_one_that_the_board_did_not_send() -> None:
    record = with_lost(_record(), {KERNEL_LOG: "No space left on device"})

    (problem,) = smoke_test(BUILT, [SmokeBoot(record, "")]).problems

    assert problem.endswith(": kernel.log was not kept: No space left on device")


@pytest.mark.parametrize("caveat", ["load_died", "worker_idle", "clocksource_changed"])
def test_a_run_without_its_load_or_that_is_invalid_is_a_problem(caveat: str) -> None:
    record = replace(_record(), caveats=(make(caveat, "at once"),))

    problems = smoke_test(BUILT, [SmokeBoot(record, QUIET)]).problems

    assert any(caveat in problem for problem in problems)
