"""A campaign does what its plan says, in this order, and keeps what it has measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from fakes import targets
from fakes.faketarget import Script
from fakes.story import StoryOf, brief, ids
from fakes.targets import measuring, target
from rtscope.contract import AgentResult, Line, LoadEnd, Tick, parse_line
from rtscope.host.errors import MeasurementError, TargetError
from rtscope.machine.kernelidentity import RELEASE
from rtscope.machine.reader import Content, Reader
from rtscope.measure.campaign.model import RunTable
from rtscope.measure.plan import make_plan, remaining


def test_effects_follow_in_this_order(story: StoryOf) -> None:
    told = story("cpu")
    list(told.run())

    assert brief(told.target.log) == [
        "begin 001-cpu",
        "audit",
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
    assert log[:6] == [
        "begin 001-idle",
        "audit",
        "facts",
        "root measure",
        "kill measure",
        "facts",
    ]
    assert log[6:8] == ["saved record.json", "begin 002-cpu"]


def test_the_agent_is_asked_for_what_the_plan_says(story: StoryOf) -> None:
    told = story("idle", hold_cpu_awake=True, rt_throttling="off", governor="powersave")
    (kept,) = told.run()

    (asked,) = [line for line in told.target.log if line.startswith("root measure")]
    assert asked == (
        "root measure --policy fifo --priority 99 --interval-ns 100000000 "
        "--duration-ns 6000000000 --worst 64 --hold-cpu-awake "
        "--set governor=powersave --set rt_runtime_us=-1 --growth"
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

    with pytest.raises(TargetError, match=r"cpu, os need stress-ng.*apt install"):
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


def test_what_a_run_without_a_result_has_said_is_kept_until_it_is_measured_again(
    story: StoryOf,
) -> None:
    said = measuring()[:-1]  # the machine stops before the result
    told = story("idle", on=target({"measure": said}))
    file = told.store.path / "unfinished" / "001-idle.jsonl"

    with pytest.raises(
        TargetError,
        match=r"without a result; its first 6 s \(maximum 7\.00 us\) are in .*jsonl",
    ):
        list(told.run())

    lines = [parse_line(line) for line in file.read_bytes().splitlines()]
    assert lines == [line for batch in said[1:] for line in batch]
    assert told.store.done_ids() == frozenset()
    assert told.store.records() == []

    told.target = target()
    list(told.run())
    assert told.store.done_ids() == {"001-idle"}
    assert not file.exists()


def test_a_run_that_stops_before_its_first_second_leaves_nothing(
    story: StoryOf,
) -> None:
    told = story("idle", on=target({"measure": measuring()[:1]}))

    with pytest.raises(TargetError, match=r"without a result$"):
        list(told.run())

    assert not (told.store.path / "unfinished").exists()


def test_where_nothing_can_be_kept_of_a_run_the_first_cause_comes_first(
    story: StoryOf,
) -> None:
    told = story("idle", on=target({"measure": measuring()[:-1]}))
    (told.store.path / "unfinished").write_text("in the way")

    with pytest.raises(
        TargetError, match=r"without a result; its first 6 s .* are lost: cannot make"
    ):
        list(told.run())


def test_a_load_that_dies_is_in_the_record(story: StoryOf) -> None:
    died = LoadEnd(
        status=None, signal=9, stop_requested=False, killed=0, oom_kills=None, cpu_ns=0
    )
    script: Script = [[targets.LOAD_HELLO], [], [died]]
    (kept,) = story("cpu", on=target({"load": script})).run()

    assert ("load_died", "ended by signal 9") in [
        (c.id, c.detail) for c in kept.caveats
    ]


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reads the log of any load, and all else of a machine."""

    machine: Reader
    log: bytes

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        found = self.machine.read_many(paths)
        logs = dict.fromkeys(
            [path for path in paths if path.endswith(".log")], self.log
        )
        return {**found, **logs}


def test_of_a_long_log_of_the_load_the_end_is_kept(story: StoryOf) -> None:
    on = target()
    on.reader = LogReader(on.reader, b"first" + b"." * 10_000 + b"last")
    (kept,) = story("cpu", on=on).run()

    assert kept.load.log_tail == "." * 3_996 + "last"


def test_a_load_that_does_nothing_is_in_the_record(story: StoryOf) -> None:
    lazy = target({"load": targets.loading(busy=False)})
    (kept,) = story("cpu", on=lazy).run()

    assert "load_stalled" in ids(kept)


def test_the_result_type_has_no_field_that_the_fake_forgets() -> None:
    assert isinstance(targets.result(), AgentResult)
    assert targets.result().threads == (targets.MEASURED,)


# --- runs that need another kernel -------------------------------------------------


def test_it_stops_before_a_run_that_needs_another_kernel(story: StoryOf) -> None:
    here = RunTable(
        loads=("idle",),
        durations_ns=(6_000_000_000,),
        intervals_ns=(100_000_000,),
        variant="here",
        kernel_release="6.12.*-here",
    )
    there = replace(here, variant="there", kernel_release="*-there")
    told = story(
        "idle",
        on=target(files={RELEASE: "6.12.1-here\n"}),
        runs=(here, there),
        order="blocked",
    )

    with pytest.raises(
        MeasurementError, match=r"002-idle-there, needs kernel \*-there"
    ):
        list(told.run())

    begun = [line for line in brief(told.target.log) if line.startswith("begin")]
    assert begun == ["begin 001-idle-here"]
    left = remaining(make_plan(told.campaign), told.store.done_ids())
    assert [run.id for run in left.runs] == ["002-idle-there"]


def test_nothing_is_done_for_a_kernel_that_is_not_booted(story: StoryOf) -> None:
    table = RunTable(loads=("idle",), kernel_release="*-there")
    on = target(files={RELEASE: "6.12.1-here\n"})
    told = story("idle", on=on, runs=(table,), tuned=("safe",))

    with pytest.raises(
        MeasurementError, match=r"6\.12\.1-here is running; boot such a kernel"
    ):
        list(told.run())
    assert not [line for line in brief(told.target.log) if line != "facts"]
