"""A campaign that fails or is interrupted keeps what it has measured."""

import signal

import pytest

from fakes import targets
from fakes.faketarget import FakeStream, Script
from fakes.story import StoryOf, brief, ids, interrupt_after
from fakes.targets import target
from rtscope.contract import AgentError
from rtscope.host.errors import MeasurementError, RecordError, TargetError
from rtscope.measure import assemble, execute, machine


def test_an_agent_that_cannot_measure_is_told_with_its_remedy(story: StoryOf) -> None:
    refusal = AgentError("no right", cause="capability", remedy="run it as root")
    told = story("idle", "cpu", on=target({"measure": [[refusal]]}))

    with pytest.raises(MeasurementError, match="fake, 001-idle: no right; run it as"):
        list(told.run())

    assert brief(told.target.log)[-1] == "kill measure"
    assert list((told.store.path / "runs").iterdir()) == []


def test_after_a_failure_the_records_before_it_stay(story: StoryOf) -> None:
    broken = AgentError("it broke", cause="other", remedy="")
    failing: Script = [[targets.HELLO], [broken]]
    on = target()
    told = story("idle", "cpu", on=on)
    runs = told.run()
    kept = next(runs)
    on._scripts = {**on._scripts, "measure": failing}

    with pytest.raises(MeasurementError, match="002-cpu: it broke"):
        next(runs)

    assert told.store.records() == [kept]
    assert brief(on.log)[-2:] == ["kill measure", "kill load"]


def test_an_interrupted_run_is_saved_as_such_and_ends_the_campaign(
    story: StoryOf,
) -> None:
    told = story("idle", "cpu", hear=interrupt_after(3))
    runs = told.run()

    kept = next(runs)
    with pytest.raises(KeyboardInterrupt):
        next(runs)

    assert kept.result.stopped == "signal"
    assert "stopped_early" in ids(kept)
    assert told.store.done_ids() == frozenset()
    assert told.store.records() == [kept]
    assert brief(told.target.log)[3:] == [
        "root measure",
        "stop measure",
        "kill measure",
        "facts",
        "saved interrupted.json",
    ]


def test_an_interrupt_while_the_load_ends_loses_nothing(
    story: StoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def impatient(stream: FakeStream) -> None:
        raise KeyboardInterrupt

    told = story("cpu")
    monkeypatch.setattr(FakeStream, "ask_stop", impatient)

    kept = next(told.run())

    assert kept.result == targets.result()
    saved = {p.name for p in told.store.run_dir("001-cpu").iterdir()}
    assert saved == {"audit.json", "interrupted.json"}


def test_an_agent_that_says_nothing_of_itself_is_refused(story: StoryOf) -> None:
    told = story("idle", on=target({"measure": [[targets.result()]]}))

    with pytest.raises(TargetError, match="sent no first line"):
        list(told.run())


def test_a_record_that_cannot_be_written_ends_the_campaign(story: StoryOf) -> None:
    told = story("idle", "cpu")
    told.store.run_dir("001-idle").write_text("in the way")

    with pytest.raises(RecordError, match="cannot make"):
        list(told.run())

    assert "begin 002-cpu" not in told.target.log


@pytest.mark.parametrize("ended_by", ["signal", "parent"])
def test_a_run_whose_agent_others_have_ended_is_not_done(
    story: StoryOf, ended_by: str
) -> None:
    cut: Script = [[targets.HELLO], [targets.result(stopped=ended_by)]]
    told = story("idle", "cpu", on=target({"measure": cut}))
    runs = told.run()

    kept = next(runs)
    with pytest.raises(MeasurementError, match="001-idle: the agent was ended"):
        next(runs)

    assert told.store.done_ids() == frozenset()
    assert told.store.records() == [kept]


@pytest.mark.parametrize("step", ["assemble", "with_lost"])
def test_signals_while_a_run_is_saved_lose_nothing(
    story: StoryOf, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    whole = getattr(execute, step)

    def interrupted(*asked: object) -> object:
        for _ in range(execute.PATIENCE):
            signal.raise_signal(signal.SIGINT)
        return whole(*asked)

    monkeypatch.setattr(execute, step, interrupted)
    told = story("idle", "cpu")

    with pytest.raises(KeyboardInterrupt):
        next(told.run())

    assert told.store.done_ids() == {"001-idle"}


def test_signals_while_facts_are_read_after_a_run_keep_what_was_measured(
    story: StoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = assemble.Measured

    def interrupted(**asked: object) -> object:
        signal.raise_signal(signal.SIGINT)
        return whole(**asked)  # type: ignore[arg-type]

    monkeypatch.setattr(machine, "Measured", interrupted)
    told = story("idle", "cpu")
    runs = told.run()
    kept = next(runs)

    with pytest.raises(KeyboardInterrupt):
        next(runs)

    assert told.store.records() == [kept]


def test_somebody_in_earnest_can_end_a_step_that_hangs() -> None:
    def hang() -> None:
        with execute.put_off():
            for _ in range(execute.PATIENCE + 1):
                signal.raise_signal(signal.SIGINT)
            pytest.fail("goes on")

    with pytest.raises(KeyboardInterrupt):
        hang()
