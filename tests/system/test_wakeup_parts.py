"""The parts of all wake-ups of a virtual board: they add up, and change nothing."""

from pathlib import Path

import pytest
from rig import NEEDS_APT, rtscope

from rtscope.record.directory.records import open_records
from rtscope.record.model import RunRecord
from rtscope.stats.wakeparts import parts_seen, threads_with_parts

pytestmark = [pytest.mark.system, NEEDS_APT]

PATIENCE_S = 600.0
"""The first call boots each kernel for its symbols and types."""
FEW = ("--duration", "1s", "--interval", "20ms", "--worst", "64")
"""Each CPU's wake-ups are all among its worst, so the agent marks every one."""


def run(board: str, out: Path, *words: str) -> RunRecord:
    board, _, kernel = board.partition(" ")
    about = ("--target", f"virtual:{board}", "--kernel", kernel, "--load", "idle")
    quick = ("--settle", "1s", "--warmup", "200ms")
    with rtscope("run", *about, *quick, *words, "--out", out) as started:
        done = started.finish(PATIENCE_S)
    assert done.status == 0, done.stderr
    (kept,) = open_records(out)
    return kept


@pytest.mark.parametrize(
    ("board", "event"),
    [
        ("pc debian-6.12-rt", "timer"),
        pytest.param("pc debian-6.12", "pipe", marks=pytest.mark.long),
        pytest.param("jh7110 jh7110-6.12-rt", "timer", marks=pytest.mark.long),
    ],
)
def test_the_parts_of_every_wakeup_add_up_to_the_latency_of_the_agent(
    tmp_path: Path, board: str, event: str
) -> None:
    kept = run(board, tmp_path / "with", *FEW, "--event", event, "--parts")
    seen = parts_seen([kept])
    assert seen is not None
    assert (seen.withdrawn, seen.unknown) == ("", 0)
    samples = sum(t.own.samples for t in kept.result.threads)
    assert seen.checked == samples
    assert len(list(threads_with_parts(kept))) == len(kept.result.threads)
    for thread, parts in threads_with_parts(kept):
        assert {part.samples for part in parts.parts} == {thread.own.samples}
        assert parts.wrong == 0
        *_, back = parts.parts
        assert back.min_ns > 0
    alike = run(board, tmp_path / "without", *FEW, "--event", event)
    assert alike.parts is None
    assert alike.result_digest == kept.result_digest


@pytest.mark.long
def test_a_sender_that_is_preempted_has_not_read_the_clock_again(
    tmp_path: Path,
) -> None:
    kernel, out = "pc debian-6.12-rt", tmp_path / "out"
    busy = ("--load", "memory", "--event", "futex", "--cpus", "1", "--duration", "1s")
    soon = ("--settle", "200ms")
    seen = parts_seen([run(kernel, out, *busy, *soon, "--parts")])

    assert seen is not None
    assert (seen.withdrawn, seen.unknown) == ("", 0)
