"""A campaign does what its plan says, in this order, and keeps what it has measured."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from fakes import targets, traces
from fakes.fulldisk import full_but_for
from fakes.targets import target
from rtscope import resultdir
from rtscope.campaign import Campaign, RunTable
from rtscope.contract import (
    AgentError,
    AgentResult,
    Applied,
    Line,
    LoadEnd,
    Refused,
    Restored,
    Tick,
    Tuned,
)
from rtscope.errors import MeasurementError, RecordError, TargetError, UsageError
from rtscope.execute import (
    Event,
    Heard,
    RunBegins,
    RunEnds,
    Settling,
    TunedNow,
    execute,
)
from rtscope.plan import make_plan
from rtscope.record import RunRecord, record_from_json, record_to_json
from rtscope.resultdir import ResultDir, create
from rtscope.runtuning import checks_for
from rtscope.stats.lint import all_caveats
from rtscope.target.fake import FakeStream, FakeTarget, Script
from rtscope.tracecost import untraced_runs
from rtscope.tracedrun import why_untraced


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
            case TunedNow():
                self.target.log.append(f"tuned {' '.join(event.tuned.changed)}")
            case RunBegins():
                self.target.log.append(f"begin {event.run.id}")
            case RunEnds():
                there = {p.name for p in self.run_dir(event.record).iterdir()}
                self.target.log.append(
                    f"saved {' '.join(sorted(there - {'audit.json'}))}"
                )
            case Heard():
                self.hear(event.line)

    def run_dir(self, record: RunRecord) -> Path:
        """Return where the files of a run lie."""
        return self.store.run_dir(record.run.id)

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
        cpus: tuple[int, ...] | None = None,
        **settings: object,
    ) -> Story:
        table = RunTable(loads=loads, durations_ns=(6_000_000_000,))
        table = replace(table, intervals_ns=(100_000_000,))
        campaign = Campaign(runs=(table,), warmup_ns=0)
        if cpus:
            campaign = replace(campaign, runs=(replace(table, cpus=cpus),))
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


def traced_target(*, pages: bool) -> FakeTarget:
    sent = [traces.trace_pages(0, 0, [traces.page(7)])] if pages else []
    said = traces.tracing(cause="" if pages else "lockdown")
    result = targets.traced_result(said)
    return target({"measure": [[targets.HELLO, *traces.FILES, *sent, result]]})


def test_a_traced_run_keeps_its_trace_beside_the_record(
    story: StoryOf,
) -> None:
    told = story("idle", on=traced_target(pages=True), explain=True)
    list(told.run())

    trace = told.store.run_dir("001-idle") / "worst.trace.dat"
    assert told.target.log[-1] == "saved record.json worst.trace.dat"
    assert trace.read_bytes().startswith(b"\x17\x08\x44tracing6\0")
    measures = [line for line in told.target.log if line.startswith("root measure")]
    assert ["--trace" in line for line in measures] == [False, True, False]
    assert ["--duration-ns 1500000000" in line for line in measures] == [
        True,
        False,
        True,
    ]


def test_the_trace_of_an_earlier_try_is_not_taken_for_that_of_the_run(
    story: StoryOf,
) -> None:
    told = story("idle", on=traced_target(pages=False), explain=True)
    trace = told.store.attach("001-idle", "worst.trace.dat", b"of an earlier try")
    list(told.run())

    assert not trace.exists()


def test_a_disk_that_is_full_for_the_trace_does_not_lose_the_record(
    story: StoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = story("idle", on=traced_target(pages=True), explain=True)
    trace = told.store.attach("001-idle", "worst.trace.dat", b"of an earlier try")
    write = full_but_for("record.json", "audit.json")
    monkeypatch.setattr(resultdir, "write_atomically", write)
    (kept,) = told.run()

    lost = [one.detail for one in kept.caveats if one.id == "file_not_kept"]
    assert lost == ["worst.trace.dat: No space left on device"]
    assert told.target.log[-1] == "saved record.json"
    assert not trace.exists()
    assert told.store.records()[0].caveats == kept.caveats
    assert why_untraced(kept) == (
        "worst.trace.dat: No space left on device, when it was to be written beside "
        "the record"
    )


def test_a_disk_with_room_for_the_record_alone_keeps_it_with_what_is_missing(
    story: StoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = story("idle", on=traced_target(pages=True), explain=True)
    monkeypatch.setattr(resultdir, "write_atomically", full_but_for("record.json"))
    (kept,) = told.run()

    lost = [one.detail for one in kept.caveats if one.id == "file_not_kept"]
    assert [one.split(":")[0] for one in lost] == ["audit.json", "worst.trace.dat"]
    (saved,) = told.store.records()
    assert saved.result == kept.result
    assert saved.caveats == kept.caveats


def test_a_run_counts_as_done_only_when_its_trace_is_there(
    story: StoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = story("idle", on=traced_target(pages=True), explain=True)
    written: list[str] = []

    def write(path: Path, content: bytes) -> None:
        written.append(path.name)
        path.write_bytes(content)

    monkeypatch.setattr(resultdir, "write_atomically", write)
    list(told.run())

    assert sorted(written[:-1]) == ["audit.json", "worst.trace.dat"]
    assert written[-1] == "record.json"


def test_what_tracing_cost_is_in_the_record_and_told(story: StoryOf) -> None:
    told = story("idle", on=traced_target(pages=False), explain=True)
    (kept,) = told.run()

    assert len(untraced_runs(kept)) == 2
    assert "trace_refused" in ids(kept)
    assert untraced_runs(record_from_json(record_to_json(kept), name="x")) == (
        kept.result.threads,
        kept.result.threads,
    )


def test_without_explain_nothing_is_traced(story: StoryOf) -> None:
    told = story("idle")
    (kept,) = told.run()

    assert untraced_runs(kept) == ()
    assert not any("--trace" in line for line in told.target.log)


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


# --- the audit beside the record ---------------------------------------------------


def audit_of(told: Story, kept: RunRecord) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        (told.run_dir(kept) / "audit.json").read_text()
    )
    return document


def detail(record: RunRecord, caveat_id: str) -> str:
    return next(c.detail for c in record.caveats if c.id == caveat_id)


def test_an_audit_lies_beside_the_record_and_its_grave_failures_are_a_caveat(
    story: StoryOf,
) -> None:
    told = story("idle")
    (kept,) = told.run()

    document = audit_of(told, kept)
    failed = {
        (row["severity"], row["id"])
        for row in document["checks"]
        if row["outcome"] == "fail" and row["severity"] in ("high", "fatal")
    }
    said = detail(kept, "audit_failed")

    assert document["of"] == "fake"
    assert ("fatal", "preempt_rt") in failed
    assert said.startswith("fatal: preempt_rt; high: ")
    assert all(name in said for _, name in failed)
    # The agent has rights of its own: what the user may do says nothing of the run.
    assert not {row["id"] for row in document["checks"]} & {"realtime_policy"}


def test_a_machine_that_cannot_be_audited_is_measured_and_that_is_said(
    story: StoryOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise TargetError("it does not answer")

    monkeypatch.setattr("rtscope.runaudit.scene_of", broken)
    told = story("idle")
    (kept,) = told.run()

    assert detail(kept, "audit_missing") == "it does not answer"
    assert not (told.run_dir(kept) / "audit.json").exists()
    assert kept.result == targets.result()


def test_the_measured_cpus_are_those_set_apart_if_others_are_left(
    story: StoryOf,
) -> None:
    files = {"/sys/devices/system/cpu/online": "0-1\n", "/proc/self/status": TWO_CPUS}

    def audited(cpus: tuple[int, ...]) -> object:
        told = story("idle", on=target(files=files), cpus=cpus)
        (kept,) = told.run()
        found = audit_of(told, kept)["cpus"]
        shutil.rmtree(told.store.path)
        return found

    assert audited((1,)) == [1]
    assert audited((0, 1)) is None


TWO_CPUS = "Name:\tagent\nCpus_allowed_list:\t0-1\n"


# --- --tuned ----------------------------------------------------------------------

LOCKED = "/proc/sys/vm/compact_unevictable_allowed"
HUGE = "/sys/kernel/mm/transparent_hugepage/enabled"
UNTUNED = {LOCKED: "1\n", HUGE: "[always] madvise never\n"}
GRANTED: list[Line] = [
    Applied("transparent_hugepage", 0, "always", "madvise"),
    Applied("compact_unevictable_allowed", 0, "1", "0"),
    Tuned(1, applied=2, already=0, refused=0),
]
BACK: list[Line] = [
    Restored("compact_unevictable_allowed", 0, "1"),
    Restored("transparent_hugepage", 0, "always"),
]


def holding(*lines: Line, back: Sequence[Line] = BACK) -> FakeTarget:
    return target(
        {"hold": [list(lines), *([[]] * 50)]},
        on_stop={"hold": [list(back)]},
        files=UNTUNED,
    )


def test_settings_hold_from_before_the_first_run_until_after_the_last(
    story: StoryOf,
) -> None:
    told = story("idle", on=holding(*GRANTED), tuned=("safe",))
    told = replace(told, campaign=replace(told.campaign, runs=(TWICE,)))
    first, _ = told.run()

    log = [line for line in brief(told.target.log) if "measure" not in line]
    assert log[:4] == ["audit", "root hold", "tuned", "begin 001-idle-r1"]
    assert log[-3:] == ["saved record.json", "stop hold", "kill hold"]
    assert first.extra["tuned"]["changed"] == [
        {
            "check": "transparent_hugepages",
            "path": HUGE,
            "before": "always",
            "value": "madvise",
        },
        {"check": "locked_memory_moves", "path": LOCKED, "before": "1", "value": "0"},
    ]
    assert detail(first, "knobs_changed") == (
        "transparent_hugepage=madvise, compact_unevictable_allowed=0"
    )


TWICE = RunTable(
    loads=("idle",),
    durations_ns=(6_000_000_000,),
    intervals_ns=(100_000_000,),
    repetitions=2,
)


def test_a_named_check_that_is_refused_ends_it_before_anything_is_measured(
    story: StoryOf,
) -> None:
    refused = Refused(
        "compact_unevictable_allowed", 0, "0", cause="read-only", reason="a container"
    )
    on = holding(GRANTED[0], refused, GRANTED[2])
    told = story("idle", on=on, tuned=("safe", "locked_memory_moves"))

    with pytest.raises(TargetError, match="locked_memory_moves: a container; nothing"):
        list(told.run())

    assert "root measure" not in brief(told.target.log)
    assert told.target.log[-1] == "kill hold"


def test_of_safe_what_is_refused_is_in_the_record(story: StoryOf) -> None:
    refused = Refused(
        "compact_unevictable_allowed", 0, "0", cause="read-only", reason="a container"
    )
    on = holding(GRANTED[0], refused, GRANTED[2], back=BACK[1:])
    (kept,) = story("idle", on=on, tuned=("safe",)).run()

    assert kept.extra["tuned"]["refused"] == [
        {"check": "locked_memory_moves", "path": LOCKED, "why": "a container"}
    ]
    assert detail(kept, "knobs_changed") == "transparent_hugepage=madvise"


def test_a_service_that_would_undo_it_is_in_the_record(story: StoryOf) -> None:
    irq = Applied("irq_affinity", 24, "0-1", "0")
    files = {
        "/sys/devices/system/cpu/online": "0-1\n",
        "/proc/self/status": TWO_CPUS,
        "/proc/interrupts": "  CPU0 CPU1\n 24: 1 1 PCI eth0\n",
        "/proc/irq/24/smp_affinity_list": "0-1\n",
        "/proc/7/comm": "irqbalance\n",
    }
    back = [Restored("irq_affinity", 24, "0-1")]
    on = target(
        {"hold": [[irq, GRANTED[2]], *([[]] * 50)]},
        on_stop={"hold": [back]},
        files=files,
    )
    (kept,) = story("idle", on=on, cpus=(1,), tuned=("irq_affinity",)).run()

    assert kept.extra["tuned"]["undone_by"] == "irqbalance"


def test_settings_that_are_lost_while_measuring_end_the_campaign(
    story: StoryOf,
) -> None:
    on = target({"hold": [GRANTED]}, files=UNTUNED)
    told = story("idle", on=on, tuned=("safe",))

    with pytest.raises(TargetError, match="ended before the measurement did"):
        list(told.run())

    assert told.store.done_ids() == frozenset()


def test_an_interrupt_puts_held_settings_back(story: StoryOf) -> None:
    told = story("idle", on=holding(*GRANTED), tuned=("safe",), hear=interrupt_after(3))

    with pytest.raises(KeyboardInterrupt):
        list(told.run())

    assert told.target.log[-1] == "kill hold"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"tuned": ("nonsense",)}, "is no check"),
        ({"tuned": ("swap",)}, "no setting that can be put back"),
        ({"tuned": ("rt_throttling",)}, "--profile polling --apply rt_throttling"),
        (
            {"tuned": ("scaling_governor",), "governor": "powersave"},
            "--tuned scaling_governor and --governor set the same",
        ),
    ],
)
def test_what_cannot_be_tuned_is_refused_by_name(
    story: StoryOf, settings: Mapping[str, object], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        list(story("idle", **settings).run())


def test_of_safe_what_an_option_sets_is_left_to_the_option() -> None:
    names = {
        kind.id for kind in checks_for(Campaign(tuned=("safe",), governor="powersave"))
    }

    assert "transparent_hugepages" in names
    assert "scaling_governor" not in names
