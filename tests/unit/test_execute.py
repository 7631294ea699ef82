"""A campaign does what its plan says, in this order, and keeps what it has measured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fakes import targets
from fakes.targets import target
from rtscope.campaign import Campaign, RunTable
from rtscope.contract import AgentError, AgentResult, Line, LoadEnd, Tick
from rtscope.errors import MeasurementError, RecordError, TargetError
from rtscope.execute import Event, Heard, RunBegins, RunEnds, Settling, execute
from rtscope.plan import make_plan
from rtscope.record import RunRecord
from rtscope.resultdir import ResultDir, create
from rtscope.stats.lint import all_caveats
from rtscope.target.fake import FakeStream, FakeTarget, Script


@dataclass(slots=True)
class Story:
    """A campaign on a fake target, told as it went."""

    campaign: Campaign
    target: FakeTarget
    store: ResultDir
    hear: Callable[[Line], None] = lambda line: None

    def tell(self, event: Event) -> None:
        """Note what is not in the target's log already."""
        match event:
            case Settling():
                self.target.log.append("settle")
            case RunBegins():
                self.target.log.append(f"begin {event.run.id}")
            case RunEnds():
                (saved,) = self.store.run_dir(event.record.run.id).iterdir()
                self.target.log.append(f"saved {saved.name}")
            case Heard():
                self.hear(event.line)

    def run(self) -> Iterator[RunRecord]:
        """Execute."""
        return execute(
            make_plan(self.campaign),
            self.campaign,
            self.target,
            self.store,
            command=("rtscope", "run"),
            say=self.tell,
        )


StoryOf = Callable[..., Story]


@pytest.fixture
def story(tmp_path: Path) -> StoryOf:
    def make(
        *loads: str,
        on: FakeTarget | None = None,
        hear: Callable[[Line], None] = lambda line: None,
        **settings: object,
    ) -> Story:
        table = RunTable(loads=loads, durations_ns=(6_000_000_000,))
        table = replace(table, intervals_ns=(100_000_000,))
        campaign = Campaign(runs=(table,), warmup_ns=0)
        campaign = replace(campaign, **settings)  # type: ignore[arg-type]
        store = create(tmp_path / "out", {}, command=(), rtscope="0")
        return Story(campaign, on or target(), store, hear)

    return make


def brief(log: list[str]) -> list[str]:
    """Cut the agents' options off."""
    kept = ("begin", "saved", "stop", "kill", "root")
    return [
        " ".join(line.split()[: 2 if line.split()[0] in kept else 1]) for line in log
    ]


def ids(record: RunRecord) -> set[str]:
    return {caveat.id for caveat in all_caveats(record)}


def test_effects_follow_in_this_order(story: StoryOf) -> None:
    told = story("cpu")
    list(told.run())

    assert brief(told.target.log) == [
        "begin 001-cpu",
        "facts",
        "load",
        "root measure",
        "stop load",
        "kill measure",
        "kill load",
        "facts",
        "saved record.json",
    ]


def test_the_idle_load_is_nothing_and_the_next_run_waits_for_the_record(
    story: StoryOf,
) -> None:
    told = story("idle", "cpu")
    list(told.run())

    log = brief(told.target.log)
    assert log[:5] == [
        "begin 001-idle",
        "facts",
        "root measure",
        "kill measure",
        "facts",
    ]
    assert log[5:7] == ["saved record.json", "begin 002-cpu"]


def test_the_agent_is_asked_for_what_the_plan_says(story: StoryOf) -> None:
    told = story("idle", hold_cpu_awake=True, rt_throttling="off", governor="powersave")
    (kept,) = told.run()

    (asked,) = [line for line in told.target.log if line.startswith("root measure")]
    assert asked == (
        "root measure --policy fifo --priority 99 --interval-ns 100000000 "
        "--duration-ns 6000000000 --worst 16 --hold-cpu-awake "
        "--set governor=powersave --set rt_runtime_us=-1"
    )
    assert "knobs_changed" in ids(kept)


def test_the_storage_load_works_beside_the_results_and_is_cleaned_up_by_its_guard(
    story: StoryOf,
) -> None:
    told = story("storage", storage_dir="/mnt/disk/")
    list(told.run())

    (disk,) = [line for line in told.target.log if line.startswith("disk")]
    (load,) = [line for line in told.target.log if line.startswith("load")]
    assert disk == "disk -- /mnt/disk/"
    words = load.split()
    scratch = words[words.index("--scratch") + 1]
    assert scratch.startswith("/mnt/disk/rtscope-scratch-")
    assert words[words.index("--temp-path") + 1] == scratch


def test_only_the_oom_load_needs_root(story: StoryOf) -> None:
    told = story("oom")
    list(told.run())

    loads = [line for line in brief(told.target.log) if line.endswith("load")]
    assert loads[0] == "root load"
    assert "--memory-limit" in " ".join(told.target.log)


def test_a_missing_stress_ng_is_told_before_anything_is_done(story: StoryOf) -> None:
    told = story("idle", "cpu", "os", on=target(programs={}))

    with pytest.raises(TargetError, match=r"the loads cpu, os need it.*apt install"):
        list(told.run())

    assert told.target.log == []


def test_without_a_load_that_needs_it_stress_ng_may_be_missing(story: StoryOf) -> None:
    told = story("idle", on=target(programs={}))

    (kept,) = told.run()

    assert kept.load.argv == ()
    assert kept.load.version is None


def test_a_record_has_everything_that_was_said(story: StoryOf) -> None:
    (kept,) = story("cpu").run()

    assert kept.hello == targets.HELLO
    assert len(kept.ticks) == 6
    assert kept.result == targets.result()
    assert kept.load.end == targets.ASKED
    assert kept.load.version == targets.STRESS_NG
    assert kept.command == ("rtscope", "run")
    assert kept.run.load == "cpu"
    assert ids(kept) & {"load_died", "load_stalled", "load_unproved"} == set()


def test_what_is_heard_is_passed_on_as_it_comes(story: StoryOf) -> None:
    heard: list[Line] = []
    list(story("idle", hear=heard.append).run())

    assert [type(line) for line in heard] == [Tick] * 6


def test_a_load_that_dies_is_in_the_record(story: StoryOf) -> None:
    died = LoadEnd(
        status=None, signal=9, asked=False, killed=0, oom_kills=None, cpu_ns=0
    )
    script: Script = [[targets.LOAD_HELLO], [], [died]]
    (kept,) = story("cpu", on=target({"load": script})).run()

    assert ("load_died", "ended by signal 9") in [
        (c.id, c.detail) for c in kept.caveats
    ]


def test_a_load_that_does_nothing_is_in_the_record(story: StoryOf) -> None:
    lazy = target({"load": targets.loading(busy=False)})
    (kept,) = story("cpu", on=lazy).run()

    assert "load_stalled" in ids(kept)


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


def interrupt_after(lines: int) -> Callable[[Line], None]:
    heard = 0

    def hear(line: Line) -> None:
        nonlocal heard
        heard += 1
        if heard == lines:
            raise KeyboardInterrupt

    return hear


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
    assert brief(told.target.log)[2:] == [
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
    assert [p.name for p in told.store.run_dir("001-cpu").iterdir()] == [
        "interrupted.json"
    ]


def test_an_agent_that_says_nothing_of_itself_is_refused(story: StoryOf) -> None:
    told = story("idle", on=target({"measure": [[targets.result()]]}))

    with pytest.raises(TargetError, match="did not introduce itself"):
        list(told.run())


def test_a_record_that_cannot_be_written_ends_the_campaign(story: StoryOf) -> None:
    told = story("idle", "cpu")
    told.store.run_dir("001-idle").write_text("in the way")

    with pytest.raises(RecordError, match="cannot make"):
        list(told.run())

    assert "begin 002-cpu" not in told.target.log


def test_the_result_type_has_no_field_that_the_fake_forgets() -> None:
    assert isinstance(targets.result(), AgentResult)
    assert targets.result().threads == (targets.MEASURED,)
