"""A worker of a real load that dies, stops or idles is named, and nothing holds."""

import os
import signal
import time
from pathlib import Path

import pytest
from rig import (
    PATIENCE_S,
    Done,
    agents_of,
    alive,
    doubts,
    invalid,
    records_in,
    rtscope,
    until,
    workers_of,
)

from rtscope.record.model import RunRecord, WorkerLapse

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("root")]

ABOUT_WORKERS = {"worker_died", "worker_stopped", "worker_idle"}

# Nothing is missed, and this would be enough: only the load can refuse the claim.
EASY = ("--interval", "20ms", "--deadline", "10s", "--claim", "1/1s")


def campaign(out: Path, *words: str | Path, seconds: int = 6) -> tuple[str | Path, ...]:
    timing = ("--duration", f"{seconds}s", "--warmup", "100ms")
    return ("run", *timing, *EASY, "--out", out, *words)


def only_record(out: Path) -> RunRecord:
    (kept,) = records_in(out).values()
    return kept


def disturbed(out: Path, signo: signal.Signals) -> tuple[RunRecord, int, int, Done]:
    """
    Send a signal to one worker in mid-run.

    Return the record, the worker's pid, and when it got the signal: ns on the clock of
    the record.
    """
    with rtscope(*campaign(out, "--load", "cpu")) as run:
        until(lambda: bool(agents_of(run.pid, "measure")), what="it measures")
        time.sleep(2)
        _, *others, worker = workers_of(run.pid)
        sent_ns = time.monotonic_ns()
        os.kill(worker, signo)
        until(lambda: not agents_of(run.pid, "measure"), what="the measurement is over")
        # only then the load has been looked at for the last time
        until(lambda: not alive(others), what="the load was told to end")
        if signo is signal.SIGSTOP:
            os.kill(worker, signal.SIGCONT)
        done = run.finish()
    return only_record(out), worker, sent_ns, done


def lapses_of(kept: RunRecord, what: str) -> dict[int | None, WorkerLapse]:
    return {
        worker.pid: lapse
        for worker in kept.load.workers
        for lapse in worker.lapses
        if lapse.what == what
    }


def assert_nothing_holds(kept: RunRecord, done: Done) -> None:
    assert done.status == 4, done.stderr
    assert "NOT SHOWN" in done.stdout.decode()
    assert "HELD" not in done.stdout.decode()
    assert invalid(kept) == set()


@pytest.mark.parametrize(
    ("signo", "caveat", "what"),
    [
        (signal.SIGSTOP, "worker_stopped", "stopped"),
        (signal.SIGKILL, "worker_died", "died"),
    ],
)
def test_one_worker_that_is_gone_is_named_with_its_time(
    tmp_path: Path, signo: signal.Signals, caveat: str, what: str
) -> None:
    kept, worker, sent_ns, done = disturbed(tmp_path / "results", signo)

    assert f"(pid {worker}) {what} between " in doubts(kept)[caveat]
    lapse = lapses_of(kept, what)[worker]
    at_ns = sent_ns - kept.result.start_ns
    assert lapse.after_ns <= at_ns <= lapse.by_ns
    assert lapse.until_ns is None
    # the rest of the load worked, so nothing else says that it was not there
    assert "load_stalled" not in doubts(kept)
    assert "load_died" not in doubts(kept)
    assert_nothing_holds(kept, done)
    assert caveat.replace("_", " ").split()[1] in done.stdout.decode()


def test_a_command_that_sleeps_is_idle_from_the_start_to_the_end(
    tmp_path: Path,
) -> None:
    out = tmp_path / "results"
    words = campaign(out, "--load", "custom", "--command", "sleep 100", seconds=3)
    with rtscope(*words) as run:
        done = run.finish()

    kept = only_record(out)
    assert doubts(kept)["worker_idle"].startswith("sleep (pid ")
    assert doubts(kept)["worker_idle"].endswith(" to the end")
    assert_nothing_holds(kept, done)


def test_one_busy_process_of_a_command_does_not_hide_one_that_sleeps(
    tmp_path: Path,
) -> None:
    out = tmp_path / "results"
    command = "sh -c 'yes >/dev/null & tail -f /dev/null & wait'"
    words = campaign(out, "--load", "custom", "--command", command, seconds=3)
    with rtscope(*words) as run:
        done = run.finish()

    kept = only_record(out)
    assert {w.name for w in kept.load.workers if w.lapses} == {"tail"}
    assert doubts(kept)["worker_idle"].startswith("tail (pid ")
    # its CPU time as a whole grows all the time
    assert {"load_stalled", "load_unproved"}.isdisjoint(doubts(kept))
    assert_nothing_holds(kept, done)


def test_processes_that_come_and_go_without_working_are_idle_together(
    tmp_path: Path,
) -> None:
    out = tmp_path / "results"
    command = "sh -c 'while :; do sleep 0.7; done'"
    words = campaign(out, "--load", "custom", "--command", command)
    with rtscope(*words) as run:
        done = run.finish()

    kept = only_record(out)
    (brief,) = [w for w in kept.load.workers if w.pid is None]
    assert brief.name == "sleep"
    assert brief.processes > 1
    assert " short-lived) idle from " in doubts(kept)["worker_idle"]
    assert_nothing_holds(kept, done)


def test_workers_that_work_are_in_the_record_and_raise_nothing(tmp_path: Path) -> None:
    out = tmp_path / "results"
    with rtscope(*campaign(out, "--load", "cpu,os,storage", seconds=3)) as run:
        done = run.finish(3 * PATIENCE_S)

    assert done.status in (0, 4), done.stderr
    for load, kept in records_in(out).items():
        assert set(doubts(kept)) & ABOUT_WORKERS == set(), (load, doubts(kept))
        working = [w for w in kept.load.workers if not w.waits]
        assert len(working) >= len(kept.result.threads), load
        assert all(w.cpu_ns > 0 for w in working), load
        assert all(w.most_share is not None for w in working), load
        assert all(count > 0 for count in kept.load.operations.values()), load
        assert kept.load.operations.keys() == kept.load.throughput.keys()
        first, *_, last = kept.load.windows
        assert first.from_ns < kept.result.start_ns
        assert last.to_ns >= kept.result.end_ns
