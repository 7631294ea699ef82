"""A machine whose settings were changed gets them back, whoever is killed and how."""

import os
import signal
from pathlib import Path

import pytest
from rig import (
    JOURNAL_DIR,
    RT_RUNTIME,
    Program,
    agents_of,
    measuring,
    native_agent,
    rtscope,
    until,
)

from rtscope.contract import AgentError, Hello, Restored

pytestmark = [pytest.mark.system]

WITHOUT_LIMIT = ("--set", "rt_runtime_us=-1")


def is_changed() -> bool:
    return RT_RUNTIME.read_text() == "-1\n"


def test_a_setting_is_changed_for_the_run_and_put_back_after_it(
    rt_runtime: str,
) -> None:
    with measuring(*WITHOUT_LIMIT, seconds=0.5) as agent:
        until(is_changed, what="the setting is changed")
        assert agent.finish().status == 0

    assert RT_RUNTIME.read_text() == rt_runtime


@pytest.mark.parametrize(
    ("signo", "word"),
    [
        (signal.SIGINT, "signal"),
        (signal.SIGTERM, "signal"),
        (signal.SIGHUP, "parent"),
    ],
)
def test_an_agent_told_to_end_puts_back_what_it_changed(
    signo: signal.Signals, word: str, rt_runtime: str
) -> None:
    with measuring(*WITHOUT_LIMIT, seconds=60) as agent:
        until(is_changed, what="the setting is changed")
        agent.send(signo)
        assert agent.finish().result.stopped == word

    assert RT_RUNTIME.read_text() == rt_runtime


def killed_with_the_setting_changed() -> None:
    with measuring(*WITHOUT_LIMIT, seconds=60) as agent:
        until(is_changed, what="the setting is changed")
        agent.send(signal.SIGKILL)
        assert agent.finish().status == -signal.SIGKILL
    assert is_changed()
    assert (JOURNAL_DIR / f"journal.{agent.pid}").exists()


def test_what_a_killed_agent_left_changed_the_next_start_puts_back(
    rt_runtime: str,
) -> None:
    killed_with_the_setting_changed()

    with measuring(seconds=0.1) as agent:
        hello = agent.finish().lines[0]

    assert isinstance(hello, Hello)
    assert hello.restored == ("rt_runtime_us",)
    assert RT_RUNTIME.read_text() == rt_runtime


def test_restore_alone_puts_it_back_too(rt_runtime: str) -> None:
    killed_with_the_setting_changed()

    with Program([native_agent(), "restore"]) as agent:
        done = agent.finish()

    assert (done.status, done.lines) == (
        0,
        [Restored("rt_runtime_us", 0, rt_runtime.strip())],
    )
    assert RT_RUNTIME.read_text() == rt_runtime


def test_what_another_running_agent_has_changed_is_left_alone(rt_runtime: str) -> None:
    with measuring(*WITHOUT_LIMIT, seconds=60) as first:
        until(is_changed, what="the setting is changed")
        with measuring(*WITHOUT_LIMIT, seconds=0.1) as second:
            error = second.finish().lines[-1]
        with Program([native_agent(), "restore"]) as third:
            assert third.finish().lines == []
        assert is_changed()
        first.send(signal.SIGTERM)
        first.finish()

    assert isinstance(error, AgentError)
    assert error.cause == "knob"
    assert "another running rtscope has changed it" in error.message
    assert RT_RUNTIME.read_text() == rt_runtime


def test_a_campaign_whose_agent_is_killed_says_so_and_the_next_restores(
    rt_runtime: str, tmp_path: Path
) -> None:
    words = ("run", "--load", "idle", "--rt-throttling", "off", "--duration", "30s")
    with rtscope(*words, "--out", tmp_path / "results") as campaign:
        # Before it, another agent has tried for some milliseconds whether it can.
        until(lambda: bool(agents_of(campaign.pid, "measure")), what="it measures")
        until(is_changed, what="the setting is changed")
        (agent,) = agents_of(campaign.pid, "measure")
        os.kill(agent, signal.SIGKILL)
        done = campaign.finish()

    assert done.status == 3
    assert "the agent ended without a result" in done.stderr
    assert is_changed()

    with measuring(seconds=0.1) as next_start:
        assert next_start.finish().status == 0
    assert RT_RUNTIME.read_text() == rt_runtime
