"""Boots on the workers of a cluster: who gets what, and what happens when one fails."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from fakes.measurements import measured, on_board, record, thread
from fakes.scheduler import FakeScheduler
from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.catalogue import Kernel
from rtscope.boards.parts.cache import Part
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import Qemu
from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.outcome import pack_booted
from rtscope.boards.runs.prepare import PreparedCampaign, RunRequest, request_for
from rtscope.boards.runs.store import Origin, StoredResults
from rtscope.host.errors import BoardError, TargetError
from rtscope.measure.assemble import Measured
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.execute import Event, WorkerProgress, WorkersProgress
from rtscope.measure.plan import Plan
from rtscope.record.model import InputDigests
from rtscope.verbs.sweep.cluster import runner
from rtscope.verbs.sweep.cluster.runner import MAX_PART_REQUESTS, TRIES, ClusterRunner
from rtscope.verbs.sweep.cluster.task import Answer, Task

BOARD = get_board("pc")
PARTS = tuple(
    Part(Path(f"/{name}"), {"name": name, "digest": "a" * 64})
    for name in ("qemu-x86_64", "userland-x86_64")
)
PREPARED = Prepared(
    BOARD,
    Qemu((), version="1", digest=""),
    plugin=Path("/plugin.so"),
    kernel=Kernel("debian-6.12-rt", Path("/kernel"), "a" * 64),
    archives=(),
    parts=PARTS,
)
CUT = (Path(__file__).parents[2] / "format/plugin-v2/riscv64.trace").read_bytes()
PACKED = pack_booted(Booted({}, {}, "a" * 64, "b" * 64, 1.0, None))


def boots(worker: str, task: Task) -> Answer:
    return Answer("booted", worker, content=PACKED)


def inputs_of(request: RunRequest, *_: object) -> InputDigests:
    same = dict.fromkeys(("kernel", "initrd", "qemu", "plugin", "board"), "a")
    return InputDigests(**same, campaign=request.run.load, seed=1)


@dataclass
class Cluster:
    """A campaign of so many runs on a fake scheduler."""

    folder: Path
    failures: dict[str, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    events: list[WorkersProgress] = field(default_factory=list)
    by: dict[str, str] = field(default_factory=dict)
    """Who computed a run, by its id; `stored` if nobody did."""

    def __call__(
        self,
        scheduler: FakeScheduler,
        runs: Sequence[str] = ("a", "b", "c", "d"),
        again: Mapping[str, str] | None = None,
        *,
        reuse: bool = False,
    ) -> None:
        """Run it to its end."""
        made = on_board(record([thread([9_000])])).run
        requests = [
            request_for(
                replace(made, id=name), Campaign(target="virtual:pc"), BOARD, ()
            )
            for name in (*runs, *(again or {}))
        ]
        prepared = PreparedCampaign(tuple((one, PREPARED) for one in requests))
        cluster = ClusterRunner(
            scheduler,
            prepared,
            lambda name, error: self.failures.update({name: str(error)}),
            self.told.append,
            StoredResults(self.folder, b"key", self.told.append),
            reuse,
            again or {},
        )
        plan = Plan(tuple(one.run for one in requests), 0, 0, boots_each=True)

        def heard(event: Event) -> None:
            assert isinstance(event, WorkersProgress)
            self.events.append(event)

        with cluster.start(plan, heard) as pending:
            for run, measure in pending:
                self.by[run.id] = "?"
                measure()


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(tmp_path)

    def measured_of(
        request: RunRequest,
        *_: object,
        worker: str = "",
        stored: Origin | None = None,
    ) -> Measured:
        made.by[request.run.id] = "stored" if stored else worker
        return measured(on_board(record([thread([9_000])])))

    monkeypatch.setattr(runner, "measured_of", measured_of)
    monkeypatch.setattr(runner, "inputs_before", inputs_of)
    monkeypatch.setattr(runner, "inputs_of", inputs_of)
    monkeypatch.setattr(runner, "recording_of", lambda *_: None)
    return made


def test_every_worker_computes_and_every_run_comes_back(cluster: Cluster) -> None:
    cluster(FakeScheduler(boots, {"w1": 1, "w2": 1}))

    assert sorted(cluster.by) == ["a", "b", "c", "d"]
    assert set(cluster.by.values()) == {"w1", "w2"}
    assert cluster.failures == {}


def test_what_a_dead_worker_had_is_computed_by_another(cluster: Cluster) -> None:
    scheduler = FakeScheduler(
        lambda worker, task: None if worker == "w1" else boots(worker, task),
        {"w1": 1, "w2": 1},
    )

    cluster(scheduler)

    assert set(cluster.by.values()) == {"w2"}
    assert len(cluster.by) == 4


def test_each_look_tells_what_every_worker_has_and_has_done(cluster: Cluster) -> None:
    scheduler = FakeScheduler(boots, {"w1": 1, "w2": 1})
    scheduler.works_on = {"w1": (2, 4), "w2": (3,)}

    cluster(scheduler)

    first, *_, last = cluster.events
    assert first.workers == {
        "w1": WorkerProgress(1, runs=("b",), waiting=1, done=1),
        "w2": WorkerProgress(1, runs=("c",)),
    }
    assert last.workers == {
        "w1": WorkerProgress(1, done=2),
        "w2": WorkerProgress(1, done=2),
    }
    assert cluster.told == []


def test_a_worker_that_dies_is_told_with_what_others_compute_again(
    cluster: Cluster,
) -> None:
    def answer(worker: str, task: Task) -> Answer | None:
        if worker == "w1" and scheduler.asked["w1"] == 2:
            return None
        return boots(worker, task)

    scheduler = FakeScheduler(answer, {"w1": 2, "w2": 1})
    scheduler.works_on = {"w1": (3, 4), "w2": (2,)}

    cluster(scheduler)

    assert cluster.told == ["worker w1 is gone: others compute its 2 runs"]
    assert cluster.events[-1].workers["w1"] == WorkerProgress(2, done=1, is_gone=True)
    assert set(cluster.by.values()) == {"w1", "w2"}


def test_a_worker_that_is_back_is_told_too(cluster: Cluster) -> None:
    def answer(worker: str, task: Task) -> Answer | None:
        return None if scheduler.asked["w1"] == 1 else boots(worker, task)

    scheduler = FakeScheduler(answer, {"w1": 1}, joins={2: "w1"})

    cluster(scheduler)

    assert [line for line in cluster.told if line.startswith("worker")] == [
        "worker w1 is gone",
        "worker w1 is back",
    ]
    assert not cluster.events[-1].workers["w1"].is_gone


def test_the_failures_of_each_worker_are_counted(cluster: Cluster) -> None:
    scheduler = FakeScheduler(
        lambda worker, _: Answer("failed", worker, why="it panics"), {"w1": 1, "w2": 1}
    )

    cluster(scheduler, ["a"])

    assert {w: one.failed for w, one in cluster.events[-1].workers.items()} == {
        "w1": 1,
        "w2": 1,
    }


def test_a_worker_that_lacks_parts_gets_each_of_them_once(cluster: Cluster) -> None:
    scheduler = FakeScheduler(boots, {"w1": 1, "w2": 1})

    def lacking(worker: str, task: Task) -> Answer:
        has = {name for who, name in scheduler.sent if who == worker}
        if missing := tuple(sorted(task.pins.keys() - has)):
            return Answer("lacks", worker, lacking=missing)
        return boots(worker, task)

    scheduler.answer = lacking
    cluster(scheduler)

    assert len(cluster.by) == 4
    names = sorted(part.name for part in PARTS)
    assert sorted(scheduler.sent) == [(w, n) for w in ("w1", "w2") for n in names]


def test_a_worker_that_loses_its_parts_gets_them_once_and_then_nothing(
    cluster: Cluster,
) -> None:
    scheduler = FakeScheduler(
        lambda worker, _: Answer("lacks", worker, lacking=(PARTS[0].name,)), {"w1": 1}
    )

    with pytest.raises(TargetError, match="w1: it loses the parts that rtscope sends"):
        cluster(scheduler, ["a"])

    assert scheduler.sent == [("w1", PARTS[0].name)]
    assert scheduler.asked["w1"] == MAX_PART_REQUESTS + 1


def test_a_worker_with_a_full_disk_is_told_and_left(cluster: Cluster) -> None:
    def answer(worker: str, task: Task) -> Answer:
        if worker == "w1":
            return Answer("lacks", worker, lacking=(PARTS[0].name,))
        return boots(worker, task)

    scheduler = FakeScheduler(answer, {"w1": 1, "w2": 1})
    scheduler.refuses = {"w1": "no space left"}
    cluster(scheduler)

    assert set(cluster.by.values()) == {"w2"}
    assert cluster.told == [
        "worker w1 gets no more runs: it cannot take qemu-x86_64: no space left"
    ]


def test_a_boot_that_fails_on_one_worker_is_tried_on_another(
    cluster: Cluster,
) -> None:
    def answer(worker: str, task: Task) -> Answer:
        if worker == "w1":
            return Answer("failed", worker, why="cannot write initrd: no space")
        return boots(worker, task)

    scheduler = FakeScheduler(answer, {"w1": 1, "w2": 1})
    cluster(scheduler)

    assert set(cluster.by.values()) == {"w2"}
    assert cluster.failures == {}
    assert cluster.told == [
        "worker w1 gets no more runs: it failed where w2 did not: cannot write initrd: "
        "no space"
    ]


def test_a_failure_without_a_known_worker_is_held_against_none(
    cluster: Cluster,
) -> None:
    def answer(worker: str, task: Task) -> Answer:
        if sum(scheduler.asked.values()) == 1:
            return Answer("failed", "an unknown worker", why="the task was lost")
        return boots(worker, task)

    scheduler = FakeScheduler(answer, {"w1": 1, "w2": 1})
    cluster(scheduler)

    assert len(cluster.by) == 4
    assert set(cluster.by.values()) == {"w1", "w2"}
    assert cluster.told == []


def test_a_board_that_fails_everywhere_is_named_with_its_workers(
    cluster: Cluster,
) -> None:
    scheduler = FakeScheduler(
        lambda worker, _: Answer("failed", worker, why="it panics"), {"w1": 1, "w2": 1}
    )

    cluster(scheduler, ["a"], {"a/again": "a"})

    assert cluster.failures == {"a": "a: on w1 and w2: it panics"}
    assert cluster.by == {}


def test_a_board_that_fails_on_unknown_workers_is_not_tried_for_ever(
    cluster: Cluster,
) -> None:
    def answer(*_: object) -> Answer:
        assert sum(scheduler.asked.values()) <= TRIES
        return Answer("failed", "an unknown worker", why="the task was lost")

    scheduler = FakeScheduler(answer, {"w1": 1, "w2": 1})
    cluster(scheduler, ["a"])

    assert cluster.failures == {"a": "a: on an unknown worker: the task was lost"}
    assert sum(scheduler.asked.values()) == TRIES


def test_a_second_computation_is_on_another_worker(cluster: Cluster) -> None:
    runs = [str(number) for number in range(6)]
    again = {f"{run}/again": run for run in runs}

    cluster(FakeScheduler(boots, {"w1": 2, "w2": 1, "w3": 1}), runs, again)

    assert len(cluster.by) == 12
    assert all(
        cluster.by[second] != cluster.by[first] for second, first in again.items()
    )


def test_where_there_is_one_worker_it_computes_twice_and_that_is_told_once(
    cluster: Cluster,
) -> None:
    again = {"a/again": "a", "b/again": "b"}
    cluster(FakeScheduler(boots, {"w1": 1}), ["a", "b"], again)

    assert cluster.by == dict.fromkeys(["a", "a/again", "b", "b/again"], "w1")
    assert cluster.told == [
        "no other worker than w1 is there: it computes again what another one should "
        "check"
    ]


def test_a_stored_result_is_checked_on_another_worker_than_computed_it(
    cluster: Cluster,
) -> None:
    cluster(FakeScheduler(boots, {"w1": 1}), ["a"])
    scheduler = FakeScheduler(boots, {"w1": 1, "w2": 1})

    cluster(scheduler, ["a"], {"a/again": "a"}, reuse=True)

    assert cluster.by == {"a": "stored", "a/again": "w2"}


def test_a_worker_that_comes_back_is_looked_at_anew(cluster: Cluster) -> None:
    """Its user has freed the disk, emptied its cache, and started it again."""
    lacks = Answer("lacks", "w1", lacking=("qemu-x86_64",))
    answers = iter([lacks, Answer("unfit", "w1", why="its disk is full"), lacks])

    def answer(worker: str, task: Task) -> Answer:
        found = next(answers, None) or boots(worker, task)
        if found.kind == "unfit":
            del scheduler.threads["w1"]
            scheduler.joins[scheduler.waits + 1] = "w1"
        return found

    scheduler = FakeScheduler(answer, {"w1": 1})
    cluster(scheduler, ["a"])

    assert cluster.by == {"a": "w1"}
    assert scheduler.sent == [("w1", "qemu-x86_64")] * 2


def test_a_second_computation_survives_the_death_of_the_other_worker(
    cluster: Cluster,
) -> None:
    scheduler = FakeScheduler(boots, {"w1": 1, "w2": 1})
    scheduler.answer = lambda worker, task: (
        None if worker == "w2" else boots(worker, task)
    )

    cluster(scheduler, ["a"], {"a/again": "a"})

    assert cluster.by == {"a": "w1", "a/again": "w1"}
    assert scheduler.given_up


def test_a_worker_without_this_rtscope_gets_nothing(cluster: Cluster) -> None:
    scheduler = FakeScheduler(boots, {"w1": 1, "w2": 1})
    scheduler.unfit = {"w1": "it has rtscope 9"}
    cluster(scheduler)

    assert set(cluster.by.values()) == {"w2"}
    assert scheduler.asked["w1"] == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.unfit.update(w1="it has rtscope 9"),
        lambda s: setattr(
            s, "answer", lambda w, t: Answer("unfit", w, why="it has rtscope 9")
        ),
    ],
)
def test_if_no_worker_is_fit_the_end_says_why(
    cluster: Cluster, change: Callable[[FakeScheduler], None]
) -> None:
    scheduler = FakeScheduler(boots, {"w1": 1})
    change(scheduler)

    with pytest.raises(TargetError, match="no worker is left; w1: it has rtscope 9"):
        cluster(scheduler)


def test_a_worker_may_come_later(cluster: Cluster) -> None:
    scheduler = FakeScheduler(boots, {}, joins={5: "late"})

    cluster(scheduler)

    assert set(cluster.by.values()) == {"late"}
    assert "no worker is connected to tcp://127.0.0.1:8786" in cluster.told[0]


def test_a_refused_worker_that_is_gone_does_not_end_the_wait_for_others(
    cluster: Cluster,
) -> None:
    def answer(worker: str, task: Task) -> Answer:
        if worker == "late":
            return boots(worker, task)
        del scheduler.threads[worker]
        return Answer("unfit", worker, why="it has rtscope 9")

    scheduler = FakeScheduler(answer, {"w1": 1}, joins={5: "late"})
    cluster(scheduler)

    assert set(cluster.by.values()) == {"late"}
    assert len(cluster.by) == 4


def test_if_no_worker_comes_the_end_says_what_to_type(cluster: Cluster) -> None:
    with pytest.raises(
        TargetError, match=r"start one: dask worker tcp:.* --host 127.0.0.1 "
    ):
        cluster(FakeScheduler(boots, {}))


def test_if_all_workers_die_the_end_says_what_to_type(cluster: Cluster) -> None:
    with pytest.raises(TargetError, match="no worker is left; start one"):
        cluster(FakeScheduler(lambda *_: None, {"w1": 1, "w2": 1}))


def test_a_lost_scheduler_ends_it_and_keeps_what_was_measured(
    cluster: Cluster,
) -> None:
    scheduler = FakeScheduler(boots, {"w1": 1}, lost_after=2)

    with pytest.raises(TargetError, match="does not answer"):
        cluster(scheduler)

    assert list(cluster.by.values()) == ["w1", "w1"]
    assert scheduler.given_up


def test_a_damaged_answer_is_no_result(cluster: Cluster) -> None:
    def answer(worker: str, task: Task) -> Answer:
        content = PACKED[:-4] if worker == "w1" else PACKED
        return Answer("booted", worker, content=content)

    cluster(FakeScheduler(answer, {"w1": 1, "w2": 1}))

    assert set(cluster.by.values()) == {"w2"}
    assert "its answer: damaged" in cluster.told[0]


@pytest.mark.parametrize(
    "lacking", [("../../etc/passwd",), (), ("kernel",) * 2, ("no", "such", "parts")]
)
def test_a_worker_that_asks_for_what_is_no_part_gets_nothing(
    cluster: Cluster, lacking: tuple[str, ...]
) -> None:
    def answer(worker: str, task: Task) -> Answer:
        return (
            Answer("lacks", worker, lacking=lacking)
            if worker == "w1"
            else boots(worker, task)
        )

    scheduler = FakeScheduler(answer, {"w1": 1, "w2": 1})
    cluster(scheduler)

    assert set(cluster.by.values()) == {"w2"}
    assert scheduler.sent == []
    assert "it asks for what is no part of the board" in cluster.told[0]


def test_what_booted_other_inputs_is_no_result(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        runner, "inputs_of", lambda *_: replace(inputs_of(*_), kernel="other")
    )

    with pytest.raises(TargetError, match="booted other inputs"):
        cluster(FakeScheduler(boots, {"w1": 1}))

    assert cluster.by == {}


def test_stored_results_are_not_computed_but_checks_are(cluster: Cluster) -> None:
    cluster(FakeScheduler(boots, {"w1": 1}), ["a"])
    scheduler = FakeScheduler(boots, {"w2": 1})

    cluster(scheduler, ["a"], {"a/again": "a"}, reuse=True)

    assert cluster.by == {"a": "stored", "a/again": "w2"}
    assert scheduler.asked == {"w2": 1}


def test_stored_results_need_no_worker(cluster: Cluster) -> None:
    cluster(FakeScheduler(boots, {"w1": 1}), ["a", "b"])
    scheduler = FakeScheduler(boots, {})

    cluster(scheduler, ["a", "b"], reuse=True)

    assert cluster.by == {"a": "stored", "b": "stored"}
    assert scheduler.waits == 0


def test_cut_paths_are_not_stored(cluster: Cluster, tmp_path: Path) -> None:
    booted = Booted({}, {}, "a" * 64, "b" * 64, 1.0, CUT)
    packed = pack_booted(booted)
    scheduler = FakeScheduler(
        lambda worker, _: Answer("booted", worker, content=packed), {"w1": 1}
    )

    cluster(scheduler, ["a"])

    assert cluster.by == {"a": "w1"}
    assert not list(tmp_path.glob("*/*"))


def test_a_run_that_measured_nothing_is_not_stored(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def nothing(*_: object, **__: object) -> Measured:
        raise BoardError("the board measured nothing")

    monkeypatch.setattr(runner, "measured_of", nothing)

    with pytest.raises(BoardError):
        cluster(FakeScheduler(boots, {"w1": 1}), ["a"])

    assert not list(tmp_path.glob("*/*"))
