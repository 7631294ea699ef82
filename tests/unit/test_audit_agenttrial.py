"""What the trial of a board's agent says to the audit."""

import pytest

from fakes.measurements import record, thread
from rtscope.audit.context import Trial
from rtscope.audit.observe import ASKED, Tried, tried
from rtscope.contract import AgentError


@pytest.mark.parametrize(
    ("cause", "error"), [("capability", 1), ("rlimit", 1), ("cgroup", 1), ("other", 5)]
)
def test_a_refusal_is_told_with_its_reason(cause: str, error: int) -> None:
    said = AgentError("lacks CAP_SYS_NICE", cause=cause, remedy="")

    assert tried([said]) == Tried(Trial(ASKED, error, "lacks CAP_SYS_NICE"), None)


def test_a_result_is_a_policy_that_was_granted_and_a_clock_that_was_timed() -> None:
    one = thread([1000])

    assert tried([record([one]).result]) == Tried(
        Trial(ASKED, None), one.clock_before.p50_ns
    )


def test_an_agent_that_says_nothing_tried_nothing() -> None:
    assert tried([]) == Tried(None, None)
