"""Whole campaigns on this machine: to their end, interrupted, killed, and resumed."""

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from rig import (
    CPUS,
    GONE_WITHIN_S,
    MARK,
    RT_RUNTIME,
    Done,
    agents_of,
    alive,
    children_of,
    doubts,
    due,
    invalid,
    marked,
    records_in,
    rtscope,
    until,
    workers_of,
)

from rtscope.contract import require
from rtscope.record.model import RunRecord

pytestmark = [pytest.mark.system]

FIVE_LOADS = ("idle", "cpu", "os", "memory", "storage")

QUICK = Path(__file__).parents[2] / "examples" / "quick.toml"

ABOUT_LOADS = {"load_died", "load_stalled", "load_unproved", "load_failed"}


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign that has ended, and where it was."""

    done: Done
    out: Path
    tmp: Path
    mark: str
    records: dict[str, RunRecord]


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """What `rtscope run` does without further options, but for a short time."""
    home = tmp_path_factory.mktemp("five")
    out, tmp = home / "results", home / "tmp"
    tmp.mkdir()
    mark = f"five-{os.getpid()}"
    environment = {"TMPDIR": str(tmp), MARK: mark}
    words = ("run", "--duration", "2s", "--warmup", "250ms", "--out", out)
    with rtscope(*words, env=environment) as campaign:
        done = campaign.finish()
    return Campaign(done, out, tmp, mark, records_in(out))


def test_five_loads_are_measured_and_the_page_is_there(five: Campaign) -> None:
    assert five.done.status == 0, five.done.stderr
    assert tuple(five.records) == FIVE_LOADS
    assert (five.out / "report.html").stat().st_size > 10_000
    shown = five.done.stdout.decode()
    for load in FIVE_LOADS:
        assert load in shown
    assert str(five.out / "report.html") in shown.replace("\n", "")


@pytest.mark.parametrize("load", FIVE_LOADS)
def test_every_activation_of_every_cpu_is_accounted_for(
    five: Campaign, load: str
) -> None:
    threads = five.records[load].result.threads

    assert [t.cpu for t in threads] == list(CPUS)
    for t in threads:
        assert abs(due(t) - 10_000) <= 1
        assert abs(t.own.samples + require(t.missed_periods) - due(t)) <= 1
        assert (
            t.samples == sum(count for _, count in t.histogram) + t.overflow + t.early
        )
    assert invalid(five.records[load]) == set()


@pytest.mark.parametrize("load", [load for load in FIVE_LOADS if load != "idle"])
def test_each_load_is_proved_to_have_run_and_its_work_is_known(
    five: Campaign, load: str
) -> None:
    kept = five.records[load]

    assert ABOUT_LOADS & set(doubts(kept)) == set()
    assert kept.load.end is not None
    assert kept.load.end.stop_requested
    assert kept.load.version is not None
    assert all(rate > 0 for rate in kept.load.throughput.values())
    assert len(kept.load.throughput) == 1


def test_a_campaign_leaves_nothing_behind_but_its_results(five: Campaign) -> None:
    assert marked(five.mark) == []
    assert list(five.tmp.iterdir()) == []
    assert sorted(path.name for path in five.out.iterdir()) == [
        "campaign.json",
        "report.html",
        "runs",
    ]
    assert names(five.out.glob("runs/*/*")) == {"audit.json", "record.json"}


def test_a_pipe_gets_the_result_and_the_talk_goes_to_standard_error(
    five: Campaign,
) -> None:
    talk = five.done.stderr.splitlines()

    assert talk[0] == "1 of 5: idle, 2 s"
    assert talk[1].startswith("  maximum ")
    assert len(talk) == 10
    assert b"\x1b" not in five.done.stdout


def test_an_interrupted_campaign_saves_shows_restores_and_can_be_resumed(
    rt_runtime: str, tmp_path: Path, private_tmp: Path
) -> None:
    out = tmp_path / "results"
    first, second = (out / "runs" / name for name in ("001-idle", "002-cpu"))
    mark = f"interrupted-{os.getpid()}"
    words = ("run", "--load", "idle,cpu", "--duration", "1500ms", "--warmup", "100ms")
    with rtscope(
        *words, "--rt-throttling", "off", "--out", out, env={MARK: mark}
    ) as campaign:
        until((first / "record.json").exists, what="the first run is done")
        until(lambda: bool(agents_of(campaign.pid, "measure")), what="the second runs")
        time.sleep(0.4)
        campaign.send(signal.SIGINT)
        done = campaign.finish()

    assert done.status == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert f"rtscope run --resume {out}" in done.stderr
    assert b"idle" in done.stdout
    assert names(second.iterdir()) == {"audit.json", "interrupted.json"}
    interrupted = records_in(second)["cpu"]
    assert interrupted.result.stopped == "signal"
    assert all(t.own.samples > 0 for t in interrupted.result.threads)
    assert invalid(interrupted) == set()
    assert "stopped_early" in doubts(interrupted)
    assert RT_RUNTIME.read_text() == rt_runtime
    assert marked(mark) == []
    assert list(private_tmp.iterdir()) == []

    finished = identity(first / "record.json")
    with rtscope("run", "--resume", out) as campaign:
        done = campaign.finish()
    assert done.status == 0, done.stderr
    assert identity(first / "record.json") == finished
    assert names(second.iterdir()) == {"audit.json", "record.json"}
    assert records_in(out)["cpu"].result.stopped is None
    assert RT_RUNTIME.read_text() == rt_runtime


def test_a_terminated_campaign_saves_and_restores_as_an_interrupted_one(
    rt_runtime: str, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    words = ("run", "--load", "idle", "--rt-throttling", "off", "--out", out)
    with rtscope(*words) as campaign:
        until(lambda: bool(agents_of(campaign.pid, "measure")), what="it runs")
        until(lambda: RT_RUNTIME.read_text() == "-1\n", what="the setting is changed")
        time.sleep(0.5)
        campaign.send(signal.SIGTERM)
        done = campaign.finish()

    assert done.status == 130, done.stderr
    assert names(out.glob("runs/*/*")) == {"audit.json", "interrupted.json"}
    assert RT_RUNTIME.read_text() == rt_runtime


def names(paths: Iterable[Path]) -> set[str]:
    return {path.name for path in paths}


def identity(path: Path) -> tuple[int, int, bytes]:
    about = path.stat()
    return about.st_ino, about.st_mtime_ns, path.read_bytes()


@pytest.mark.usefixtures("root")
def test_a_killed_campaign_leaves_nothing_running_and_resumed_it_runs_through(
    tmp_path: Path, private_tmp: Path
) -> None:
    out = tmp_path / "results"
    mark = f"killed-{os.getpid()}"
    first, second = (out / "runs" / name for name in ("001-idle", "002-cpu"))
    words = ("run", "--load", "idle,cpu", "--duration", "10s", "--warmup", "200ms")
    with rtscope(*words, "--out", out, env={MARK: mark}) as campaign:
        until((first / "record.json").exists, what="the first run is done")
        until(lambda: bool(agents_of(campaign.pid, "measure")), what="the second runs")
        until(lambda: bool(workers_of(campaign.pid)), what="the load runs")
        finished = identity(first / "record.json")
        started = [*children_of(campaign.pid), *marked(mark)]
        assert len(set(started)) >= 4, "agent, guard, keeper, load"
        campaign.send(signal.SIGKILL)
        begun = time.monotonic()
        until(
            lambda: alive(started) == [], what="all has ended", within_s=GONE_WITHIN_S
        )
        until(lambda: not list(private_tmp.iterdir()), what="no file")
        print(f"all was gone after {time.monotonic() - begun:.2f} s")
        campaign.finish()
    assert not second.exists()
    assert sorted(path.name for path in out.iterdir()) == ["campaign.json", "runs"]

    with rtscope("run", "--resume", out) as campaign:
        done = campaign.finish()
    assert done.status == 0, done.stderr
    assert identity(first / "record.json") == finished
    assert tuple(records_in(out)) == ("idle", "cpu")
    assert (out / "report.html").exists()


def test_a_line_of_cyclictest_is_measured_and_read_again_as_one(tmp_path: Path) -> None:
    out, printed, document = (tmp_path / name for name in ("out", "text", "json"))
    words = ("-m", "-S", "-p", "80", "-i", "1000", "-q", "-D", "1", "-H", "50")
    done = rtscope("cyclictest", *words, f"--json={document}", "--out", out).finish()
    assert done.status == 0, done.stderr
    printed.write_bytes(done.stdout)
    (measured,) = records_in(out).values()

    assert measured.command[:2] == ("rtscope", "cyclictest")
    for path in (printed, document):
        back = tmp_path / f"again-{path.name}"
        read = rtscope("import", path, "--out", back).finish()
        assert read.status == 0, read.stderr
        (again,) = records_in(back).values()
        for mine, theirs in zip(
            measured.result.threads, again.result.threads, strict=True
        ):
            assert theirs.samples == mine.samples
            assert theirs.min_ns == (mine.min_ns or 0) // 1000 * 1000
            assert theirs.max_ns == (mine.max_ns or 0) // 1000 * 1000
