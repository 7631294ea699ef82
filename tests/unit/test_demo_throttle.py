"""Who limits real-time threads is told by what leaks, and judged by the kernel."""

from collections.abc import Mapping

import pytest

from fakes.democases import Runs, case_lines, ran
from rtscope.contract import DemoBegin, Line
from rtscope.verbs.demo.judge import judged
from rtscope.verbs.demo.limits import Limiter, limiter_seen
from rtscope.verbs.demo.model import (
    GROUP_RUNTIME,
    RT_PERIOD,
    RT_RUNTIME,
    DemoResult,
    Judged,
    Scenario,
    case_result_of,
    demos,
    settings_of,
)
from rtscope.verbs.demo.text import demo_document

STORY = demos()[Scenario.THROTTLE]

WHOLE: Mapping[str, Runs] = {"hog": [(20, 2500)], "other": [(0, 20), (2500, 2501)]}
LEAK: Mapping[str, Runs] = {
    "hog": [(20, 950), (1000, 1950), (2000, 2500)],
    "other": [(0, 20), (950, 1000), (1950, 2000)],
}
FAIR_SERVER = "/sys/kernel/debug/sched/fair_server/cpu1"


def lines_of(place: int, runs: Mapping[str, Runs], kernel: str) -> list[Line]:
    events = {name: ran(some) for name, some in runs.items()}
    begin, *others = case_lines(STORY.cases[place], events)
    assert isinstance(begin, DemoBegin)
    return [
        DemoBegin(
            **{f: getattr(begin, f) for f in begin.__slots__ if f != "kernel"},
            kernel=kernel,
        ),
        *others,
    ]


def judge(
    kernel: str,
    *cases: Mapping[str, Runs],
    after: Mapping[str, str] | None = None,
    **facts: str,
) -> Judged:
    known = {RT_RUNTIME: "950000", RT_PERIOD: "1000000"}
    paths = {
        "runtime": f"{FAIR_SERVER}/runtime",
        "rt_runtime": RT_RUNTIME,
        "group": GROUP_RUNTIME,
    }
    known |= {paths[name]: value for name, value in facts.items()}
    results = [
        case_result_of(STORY.cases[n], lines_of(n, runs, kernel))
        for n, runs in enumerate(cases)
    ]
    result = DemoResult(tuple(results), known, known if after is None else after)
    return judged(STORY, result, "local")


def failed(found: Judged) -> list[str]:
    return [check.says for check in found.checks if not check.held]


@pytest.mark.parametrize(
    ("kernel", "cases", "seen"),
    [
        ("6.1.0-50-amd64", (LEAK, WHOLE), "RT throttling limits"),
        ("6.12.107+deb13-rt-amd64", (LEAK, LEAK, WHOLE), "The fair server limits"),
        ("7.3.0", (LEAK, LEAK), "The fair server limits"),
    ],
)
def test_d3_each_kernel_has_its_own_limiter_and_what_is_seen_names_it(
    kernel: str, cases: tuple[Mapping[str, Runs], ...], seen: str
) -> None:
    found = judge(kernel, *cases)

    assert failed(found) == []
    assert found.notes[0].startswith(seen)
    assert ("-1 does not give" in " ".join(found.notes)) is (
        seen == "The fair server limits"
    )


def test_what_ends_the_fair_server_is_promised_only_where_it_was_set() -> None:
    ends = "/sys/kernel/debug/sched/fair_server/cpuN/runtime = 0"

    assert f"{ends} does." in judge("6.12.0", LEAK, LEAK, WHOLE).notes[1]
    assert (
        f"{ends} would, but could not be set here."
        in (judge("7.3.4", LEAK, LEAK).notes[1])
    )


def test_a_limiter_that_the_kernel_should_not_have_fails() -> None:
    says = [*failed(judge("6.1.0", LEAK, LEAK)), *failed(judge("6.12.0", LEAK, WHOLE))]

    assert says == [
        "RT throttling limits real-time threads, as this kernel's source has it",
        "the fair server limits real-time threads, as this kernel's source has it",
    ]


def test_a_limit_that_was_off_already_is_expected_to_limit_nobody() -> None:
    assert failed(judge("6.1.0", WHOLE, WHOLE, rt_runtime="-1")) == []
    assert failed(judge("6.12.0", WHOLE, WHOLE, runtime="0")) == []
    assert len(failed(judge("6.12.0", WHOLE, WHOLE))) == 2


def test_more_than_the_setting_gives_and_a_leak_with_all_off_fail() -> None:
    much: Mapping[str, Runs] = {
        "hog": [(20, 950), (1400, 2500)],
        "other": [(0, 20), (950, 1400)],
    }

    assert failed(judge("6.12.0", much, LEAK)) == [
        "the ordinary thread gets some of the CPU, at most twice 5.0 %"
    ]
    assert failed(judge("6.12.0", LEAK, LEAK, LEAK)) == [
        "with the fair server off, too, nothing leaks"
    ]


def test_d4_a_setting_that_is_not_put_back_fails() -> None:
    found = judge("6.12.0", LEAK, LEAK, after={RT_RUNTIME: "-1"})

    assert failed(found) == ["all settings are as they were"]


def test_a_setting_that_could_not_be_read_is_not_taken_for_put_back() -> None:
    result = DemoResult(judge("6.12.0", LEAK, LEAK).results)
    found = judged(STORY, result, "local")

    assert failed(found) == ["all settings are as they were"]


GROUPED: Mapping[str, Runs] = {
    "hog": [(20, 300), (1000, 1300), (2000, 2300)],
    "other": [(0, 20), (300, 1000), (1300, 2000), (2300, 2500)],
}


@pytest.mark.parametrize(
    ("kernel", "free", "notes"), [("6.1.0", WHOLE, 1), ("6.18.0", LEAK, 2)]
)
def test_d3_a_control_group_that_limits_is_told_from_the_machines_own_limit(
    kernel: str, free: Mapping[str, Runs], notes: int
) -> None:
    found = judge(kernel, GROUPED, free, group="300000")

    assert failed(found) == []
    assert found.notes[0].startswith("RT throttling of its control group limits")
    assert len(found.notes) == notes  # the fair server is there beside it
    assert len(failed(judge(kernel, GROUPED, free))) == 2
    assert "the fifo thread lacks about 40.0 %, as its group is limited" in failed(
        judge(kernel, GROUPED, free, group="600000")
    )


def test_the_document_has_the_settings_of_both_looks_and_what_was_not_tried() -> None:
    result = DemoResult(
        judge("6.12.0", LEAK, LEAK).results,
        {RT_RUNTIME: "950000"},
        {RT_RUNTIME: "-1"},
        {"off": "fair_server cannot be 0: no debugfs"},
    )
    document = demo_document(judged(STORY, result, "local"))

    assert document["settings"] == {RT_RUNTIME: "950000"}
    assert document["settings_after"] == {RT_RUNTIME: "-1"}
    assert document["not_tried"] == {"off": "fair_server cannot be 0: no debugfs"}


def limiter(*cases: Mapping[str, Runs], grouped: bool = True) -> Limiter:
    one, free = (
        case_result_of(STORY.cases[n], lines_of(n, runs, "6.1.0"))
        for n, runs in enumerate(cases)
    )
    return limiter_seen(one, free, 0.05, grouped=grouped)


def test_what_leaks_without_throttling_tells_who_limits() -> None:
    assert limiter(LEAK, WHOLE) is Limiter.THROTTLING
    assert limiter(LEAK, LEAK) is Limiter.FAIR_SERVER
    assert limiter(WHOLE, WHOLE) is Limiter.NOBODY
    assert limiter(WHOLE, LEAK) is Limiter.UNCLEAR
    assert limiter(GROUPED, LEAK) is Limiter.GROUP


def test_no_control_group_limits_that_has_no_limit() -> None:
    assert limiter(GROUPED, LEAK, grouped=False) is Limiter.UNCLEAR


@pytest.mark.parametrize("cases", [(LEAK, LEAK), (WHOLE, WHOLE), (GROUPED, WHOLE)])
def test_a_limiter_that_does_not_fit_the_kernel_is_not_claimed(
    cases: tuple[Mapping[str, Runs], ...],
) -> None:
    notes = " ".join(judge("6.1.0", *cases).notes)

    assert notes.startswith("The limiter of real-time threads is not clear: ")
    assert "limits real-time threads on this kernel" not in notes
    assert "does not give a fifo thread the whole CPU" not in notes


def test_the_fair_server_is_set_on_the_cpu_of_the_demonstration() -> None:
    assert list(settings_of(STORY.cases[2], 3)) == [
        ("rt_runtime_us", 0, "-1"),
        ("fair_server", 3, "0"),
    ]
