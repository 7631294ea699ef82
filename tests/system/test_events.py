"""Threads woken by events: the real agent, its refusals, and a board that repeats."""

from pathlib import Path

import pytest
from rig import CPUS, MS, NEEDS_APT, doubts, judged, measuring, rtscope

from rtscope.measure.events import event_names
from rtscope.record.directory.records import open_records

pytestmark = pytest.mark.system

THREADS = ("futex", "eventfd", "pipe", "signal", "mq", "sem", "cond")

two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")


@two_cpus
@pytest.mark.parametrize("event", [*THREADS, "pty", "udp", "raw", "futex:cpu=same"])
@pytest.mark.usefixtures("root")
def test_every_event_that_was_sent_is_a_sample_or_counted(event: str) -> None:
    with measuring("--event", event, seconds=0.1) as agent:
        done = agent.finish()

    if event in ("udp", "raw") and done.status and "veth" in done.error.message:
        pytest.skip(done.error.message)  # a kernel without the driver
    result = done.result
    assert not {"identity_broken", "sums_inconsistent"} & doubts(judged(result)).keys()
    for thread in result.threads:
        assert thread.event is not None
        same = thread.event.stimulus_cpu == thread.cpu
        assert same == event.endswith("same")
        assert thread.event.stimulus_priority == thread.priority - 1
        assert thread.event.sent > 0
        assert thread.minor_faults == 0
        assert all(w.expiry_ns >= thread.start_ns + w.seq * MS for w in thread.worst)


@two_cpus
@pytest.mark.usefixtures("root")
def test_a_loop_that_never_sleeps_has_a_gap_in_every_interval() -> None:
    words = ("--event", "poll", "--cpus", str(CPUS[-1]))
    with measuring(*words, seconds=0.2, priority=50) as agent:
        done = agent.finish()

    result = done.result
    assert not {"identity_broken", "sums_inconsistent"} & doubts(judged(result)).keys()
    (thread,) = result.threads
    assert thread.event is None
    assert thread.voluntary_switches == thread.minor_faults == 0
    assert all(w.wake_ns > w.expiry_ns >= thread.start_ns for w in thread.worst)


@pytest.mark.usefixtures("root")
def test_a_real_time_loop_on_every_cpu_is_refused() -> None:
    with measuring("--event", "poll", seconds=0.2, priority=50) as agent:
        done = agent.finish()

    assert done.status == 3
    assert "nothing else of this machine would run" in done.error.message


@pytest.mark.usefixtures("root")
def test_interfaces_that_are_not_there_are_refused_by_name() -> None:
    with measuring("--event", "raw:from=rtscope-no:to=rtscope-ne") as agent:
        done = agent.finish()

    error = done.error
    assert done.status == 3
    assert "rtscope-no" in error.message
    assert error.cause == "event"


VANISHING = """
ip link add rtscope-a type veth peer name rtscope-b || exit 77
ip link set rtscope-a up && ip link set rtscope-b up || exit 77
(
    until grep -q rtscope-ev/ /proc/$$/task/*/comm; do sleep 0.1; done
    ip link del rtscope-a
) >/dev/null 2>&1 </dev/null &
exec "$@"
"""
"""Removes the interfaces when the stimulus runs; in a network namespace of its own."""


@two_cpus
@pytest.mark.usefixtures("root")
def test_an_interface_that_is_removed_ends_the_run_in_words() -> None:
    prefix = ("unshare", "--net", "sh", "-c", VANISHING, "sh")
    event = "raw:from=rtscope-a:to=rtscope-b"
    with measuring("--event", event, seconds=60, prefix=prefix) as agent:
        done = agent.finish()

    if done.status == 77:
        pytest.skip("no veth here")
    assert done.status == 3
    assert done.error.cause == "event"
    assert done.error.message.startswith("event raw: cannot ")
    assert "any more" in done.error.message


@pytest.mark.long
@NEEDS_APT
def test_events_of_a_board_repeat_to_the_byte(tmp_path: Path) -> None:
    words = (
        *("run", "--target", "virtual:pc", "--kernel", "debian-6.12-rt"),
        *("--event", "futex,mq,cond,poll", "--load", "idle", "--duration", "1s"),
        *("--interval", "1ms", "--cpus", "1", "--settle", "1s", "--repetitions", "2"),
        *("--require-identical", "--out", tmp_path / "out"),
    )
    with rtscope(*words) as campaign:
        done = campaign.finish(900.0)

    assert done.status == 0, done.stderr
    digests = {r.run.event: r.result_digest for r in open_records(tmp_path / "out")}
    assert len(set(digests.values())) == 4
    assert set(digests) <= set(event_names())
