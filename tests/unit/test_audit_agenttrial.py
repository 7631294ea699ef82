"""What the trial of a board's agent says to the audit."""

from dataclasses import replace

import pytest

from fakes.measurements import record, thread
from rtscope.contract import AgentError, require
from rtscope.machine.audit.context import Trial
from rtscope.machine.audit.observe import (
    AGENT_REQUEST,
    TRIAL_ARGS,
    TrialResult,
    read_trial,
)


@pytest.mark.parametrize(
    ("cause", "error"), [("capability", 1), ("rlimit", 1), ("cgroup", 1), ("other", 5)]
)
def test_a_refusal_is_told_with_its_reason(cause: str, error: int) -> None:
    said = AgentError("lacks CAP_SYS_NICE", cause=cause, remedy="")

    assert read_trial([said]) == TrialResult(
        Trial(AGENT_REQUEST, error, "lacks CAP_SYS_NICE"), None
    )


def test_a_result_is_a_policy_that_was_granted_and_a_clock_that_was_timed() -> None:
    one = thread([1000])

    assert read_trial([record([one]).result]) == TrialResult(
        Trial(AGENT_REQUEST, None), require(one.clock_before).p50_ns
    )


def test_an_agent_that_says_nothing_tried_nothing() -> None:
    assert read_trial([]) == TrialResult(None, None)


def test_of_several_threads_the_dearest_clock_is_told() -> None:
    cheap, dear = thread([1000]), thread([1000], cpu=1)
    dear = replace(dear, clock_before=replace(require(dear.clock_before), p50_ns=70))

    found = read_trial([record([cheap, dear, replace(cheap, cpu=2)]).result])
    assert found.clock_cost_ns == 70
    assert read_trial(
        [record([cheap]).result, AgentError("x", cause="", remedy="")]
    ) == (TrialResult(Trial(AGENT_REQUEST, None), require(cheap.clock_before).p50_ns))


def test_the_trial_is_a_short_measurement_with_the_policy_that_it_names() -> None:
    assert (
        *("measure", "--priority", "80"),
        *("--duration-ns", "20000000"),
    ) == TRIAL_ARGS
    assert AGENT_REQUEST == "SCHED_FIFO 80, by the agent"
