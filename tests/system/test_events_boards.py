"""Answers to events on virtual boards: explained from their begin, and repeated."""

import json
from pathlib import Path

import pytest
from rig import NEEDS_APT, rtscope

from rtscope.measure.events import event_names
from rtscope.record.directory.records import open_records

pytestmark = [pytest.mark.system, NEEDS_APT]

LINE, BUS = "raw:from=eth0:to=eth1", "can:from=can0:to=can1"
DEVICES = f"{LINE},udp:from=eth0:to=eth1,{BUS},uio,serial:from=ttyS1:to=ttyS1"
"""Those of the virtual board pc, each by its driver and interrupt."""
BEGINS = {"sending the event", "an interrupt on its way", "the event's interrupt"}


@pytest.mark.parametrize(
    ("events", "load", "says"),
    [
        ("futex", "os", "had the event"),
        (f"{LINE},{BUS},uio", "idle", "had the event"),
        ("poll", "idle", "had a gap of"),
        pytest.param("eventfd:cpu=same", "os", "had the event", marks=pytest.mark.long),
        pytest.param("udp,raw", "idle", "had the event", marks=pytest.mark.long),
        pytest.param(DEVICES, "idle", "had the event", marks=pytest.mark.long),
    ],
)
def test_the_worst_answers_of_a_board_are_explained_from_their_begin(
    events: str, load: str, says: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = (
        *("run", "--target", "virtual:pc", "--kernel", "debian-6.12-rt"),
        *("--event", events, "--load", load, "--cpus", "1", "--policy", "fifo"),
        *("--duration", "1s", "--settle", "1s", "--out", out),
    )
    with rtscope(*words) as campaign:
        done = campaign.finish(900.0)
    with rtscope("explain", out, "--json") as explaining:
        told = explaining.finish(300.0)

    assert done.status == 0, done.stderr
    assert told.status == 0, told.stderr
    assert b"addrconf" not in told.stdout  # nothing sends packets beside ours
    runs = json.loads(told.stdout)
    assert len(runs) == len(events.split(","))
    notes = {note for run in runs for one in run["wakeups"] for note in one["notes"]}
    assert not any("who woke" in note for note in notes)
    for one in (one for run in runs for one in run["wakeups"]):
        assert not one["broken_invariants"], one["notes"]
        assert (one["attributed_share"], one["residual_ns"]) == (1.0, 0)
        assert one["dominant_segment"] is not None
        assert says in one["sentence"]
        assert one["segments"][0]["begin_ns"] == 0
        # An interrupt may come as soon as the sender has read the clock, and a store
        # takes less than the CPUs' times may differ by.
        causes = {segment["cause"] for segment in one["segments"]}
        assert bool(causes & BEGINS) == (events != "poll")


@pytest.mark.long
def test_events_of_a_board_repeat_to_the_byte(tmp_path: Path) -> None:
    words = (
        *("run", "--target", "virtual:pc", "--kernel", "debian-6.12-rt"),
        *("--event", f"futex,mq,cond,poll,{DEVICES}", "--load", "idle"),
        *("--duration", "1s", "--interval", "1ms", "--cpus", "1", "--settle", "1s"),
        *("--repetitions", "2", "--require-identical", "--out", tmp_path / "out"),
    )
    with rtscope(*words) as campaign:
        done = campaign.finish(900.0)

    assert done.status == 0, done.stderr
    digests = {r.run.event: r.result_digest for r in open_records(tmp_path / "out")}
    assert len(set(digests.values())) == len(digests) == 9
    assert {event.partition(":")[0] for event in digests} <= set(event_names())
