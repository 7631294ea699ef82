"""Answers to events on virtual boards: explained from their begin, and repeated."""

import json
import re
from pathlib import Path

import pytest
from rig import NEEDS_APT, rtscope

from rtscope.measure.events import event_names
from rtscope.record.directory.records import open_records
from rtscope.record.model import RunRecord
from rtscope.stats.wakeparts import parts_seen

pytestmark = [pytest.mark.system, NEEDS_APT]

LINE, BUS = "raw:from=eth0:to=eth1", "can:from=can0:to=can1"
XDP = "xdp:from=eth0:to=eth1"
DEVICES = f"{LINE},udp:from=eth0:to=eth1,{XDP},{BUS},uio,serial:from=ttyS1:to=ttyS1"
"""Those of the virtual board pc, each by its driver and interrupt."""
BEGINS = {"sending the event", "an interrupt on its way", "the event's interrupt"}


@pytest.mark.parametrize(
    ("events", "load", "says"),
    [
        ("futex", "os", "had the event"),
        pytest.param("poll", "idle", "had a gap of", marks=pytest.mark.long),
        pytest.param(BUS, "idle", "had the event", marks=pytest.mark.long),
        pytest.param("eventfd:cpu=same", "os", "had the event", marks=pytest.mark.long),
        pytest.param("udp,raw,xdp", "idle", "had the event", marks=pytest.mark.long),
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


AS_FOUND = """
t=/sys/kernel/tracing; mount -t tracefs nodev $t; cd $t/{folder}
seen() {{ cat {settings} ../current_tracer; ls ../instances; }}
found=$(seen)
rtscope-agent measure --event {event} --policy other --cpus 0 \
    --interval-ns 100000000 --duration-ns 60000000000 </dev/null >/dev/null &
sleep 0.5; set=$(seen)
kill -KILL $!; sleep 0.1
rtscope-agent restore
echo "found" $found "set" $set "left" $(seen) "end" >/dev/kmsg
sleep 9
"""
"""Says in the kernel's log how a tracer was before, during and after a run."""


@pytest.mark.parametrize(
    ("event", "folder", "settings", "before", "during"),
    [
        (
            *("hwlat:threshold=7:width=30000", "hwlat_detector"),
            "../tracing_thresh width window mode",
            "0 500000 1000000 none [round-robin] per-cpu nop",
            "7 30000 100000 none round-robin [per-cpu] nop rtscope.",
        ),
        (
            *("timerlat", "osnoise"),
            "timerlat_period_us cpus stop_tracing_us stop_tracing_total_us",
            "1000 0-1 0 0 nop",
            "100000 0 0 0 nop rtscope.",
        ),
    ],
)
def test_a_tracer_of_a_killed_run_is_put_back(
    event: str, folder: str, settings: str, before: str, during: str, tmp_path: Path
) -> None:
    script = AS_FOUND.format(event=event, folder=folder, settings=settings)
    (tmp_path / "as-found").write_text(script)
    words = (
        *("run", "--target", "virtual:pc", "--kernel", "debian-6.12-rt"),
        *("--load", "custom", "--command", "sh /files/as-found", "--warmup", "3s"),
        *("--guest-files", tmp_path / "as-found", "--interval", "10ms"),
        *("--duration", "1s", "--settle", "1s", "--out", tmp_path / "out"),
    )
    with rtscope(*words) as campaign:
        done = campaign.finish(300.0)

    assert done.status == 0, done.stderr
    (log,) = (tmp_path / "out").glob("runs/*/kernel.log")
    said = re.search(r"found (.+) set (.+) left (.+) end", log.read_text())
    assert said is not None
    found, changed, left = said.groups()
    assert found == left == before
    assert changed.startswith(during)


IN_USE = r"""
mount -t tracefs nodev /sys/kernel/tracing; cd /sys/kernel/tracing; mkdir instances/a
all() { cat tracing_thresh osnoise/timerlat_period_us osnoise/cpus hwlat_detector/w*; }
measure() {
    rtscope-agent measure --event $1 --policy other --cpus 0 --interval-ns 100000000 \
        --duration-ns 3000000000 </dev/null | grep -o '"message":"[^"]*"' >/tmp/$1
}
for tracer in osnoise timerlat hwlat; do
    echo $tracer >instances/a/current_tracer
    found=$(all); measure hwlat; measure timerlat
    [ "$found" = "$(all)" ] && echo "beside $tracer: $(cat /tmp/hwlat /tmp/timerlat)" \
        >/dev/kmsg
done
echo nop >instances/a/current_tracer
measure timerlat &
sleep 1; echo 2000 >osnoise/timerlat_period_us; wait $!
measure hwlat &
sleep 1; echo 20000 >hwlat_detector/width; wait $!
echo "changed: $(cat /tmp/timerlat /tmp/hwlat)" >/dev/kmsg
sleep 30
"""
"""Says in the kernel's log what was refused, where no setting has changed, and why."""


def test_a_tracer_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "in-use").write_text(IN_USE)
    words = (
        *("run", "--target", "virtual:pc", "--kernel", "debian-6.12-rt"),
        *("--load", "custom", "--command", "sh /files/in-use", "--warmup", "12s"),
        *("--guest-files", tmp_path / "in-use", "--interval", "10ms"),
        *("--duration", "1s", "--settle", "1s", "--out", tmp_path / "out"),
    )
    with rtscope(*words) as campaign:
        done = campaign.finish(300.0)

    assert done.status == 0, done.stderr
    (log,) = (tmp_path / "out").glob("runs/*/kernel.log")
    said = log.read_text()
    for running, others in (
        ("osnoise", ("hwlat", "timerlat")),
        ("timerlat", ("hwlat", "timerlat")),
        ("hwlat", ("hwlat",)),
    ):
        told = re.findall(rf"beside {running}: .*(?:\n.*message.*)?", said)
        assert told, running
        for one in others:
            assert f"cannot set the kernel's tracer {one}: " in told[0], running
    told = re.findall(r"changed: .*(?:\n.*message.*)?", said)
    assert told
    assert "cannot keep timerlat_period of the kernel's tracer" in told[0]
    assert "cannot keep hwlat_width of the kernel's tracer" in told[0]


def test_the_kernels_own_thread_has_latencies_of_two_parts(tmp_path: Path) -> None:
    words = (
        *("run", "--target", "virtual:pc", "--kernel", "debian-6.12-rt"),
        *("--event", "timerlat", "--load", "idle", "--interval", "1ms"),
        *("--duration", "1s", "--settle", "1s", "--out", tmp_path / "out"),
    )
    with rtscope(*words) as campaign:
        done = campaign.finish(300.0)

    assert done.status == 0, done.stderr
    (one,) = open_records(tmp_path / "out")
    seen = parts_seen([one])
    assert seen is not None
    assert not seen.withdrawn
    assert len(seen.parts) == 2
    for thread in one.result.threads:
        assert thread.own.samples + thread.own.missed_periods == 1000
        assert thread.own.samples > 990  # its grid may begin and end elsewhere
    with rtscope("export", "--to", "csv", tmp_path / "out") as exporting:
        text = exporting.finish(60.0).stdout.decode()
    assert {row.split(",")[-1] for row in text.splitlines()[1:]} == {
        *("latency", "timerlat_before", "timerlat_thread")
    }


def test_a_kernel_without_the_tracer_is_refused_with_its_option(tmp_path: Path) -> None:
    words = (
        *("run", "--target", "virtual:pc", "--kernel", "debian-6.12"),
        *("--event", "timerlat", "--load", "idle", "--interval", "1ms"),
        *("--duration", "1s", "--settle", "100ms", "--out", tmp_path / "out"),
    )
    with rtscope(*words) as campaign:
        done = campaign.finish(300.0)

    assert done.status == 3
    assert "no tracer timerlat" in done.stderr
    assert "CONFIG_TIMERLAT_TRACER" in done.stderr


@pytest.mark.long
def test_holes_of_a_board_repeat_and_none_is_an_answer(tmp_path: Path) -> None:
    words = (
        *("run", "--target", "virtual:pc", "--kernel", "debian-6.12-rt"),
        *("--event", "hwlat:threshold=1,hwlat:threshold=900", "--load", "idle"),
        *("--interval", "100ms", "--duration", "1s", "--settle", "1s"),
        *("--repetitions", "2", "--require-identical", "--out", tmp_path / "out"),
    )
    with rtscope(*words) as campaign:
        done = campaign.finish(600.0)

    assert done.status == 0, done.stderr
    with rtscope("report", tmp_path / "out", "-v") as reporting:
        told = " ".join(reporting.finish(60.0).stdout.decode().split())
    assert "No latency of 901 µs or more was found" in told
    for one in open_records(tmp_path / "out"):
        for thread in one.result.threads:
            assert thread.hwlat is not None
            assert thread.own.samples + thread.hwlat.silent == 10
            assert thread.nothing_found == one.run.event.endswith("900")


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
    assert len(set(digests.values())) == len(digests) == 10
    assert {event.partition(":")[0] for event in digests} <= set(event_names())


@pytest.mark.parametrize(("load", "line"), [("packets", "eth1"), ("interrupts", "uio")])
def test_a_load_of_events_comes_at_its_rate_by_its_driver(
    load: str, line: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = (
        *("run", "--target", "virtual:pc", "--kernel", "debian-6.12-rt"),
        *("--load", f"{load}:2000,idle", "--duration", "1s", "--settle", "1s"),
        *("--cpus", "1", "--out", out),
    )
    with rtscope(*words) as campaign:
        done = campaign.finish(600.0)

    assert done.status == 0, done.stderr
    records = {one.run.load: one for one in open_records(out)}
    loaded, idle = records[f"{load}:2000"], records["idle"]
    assert loaded.load.throughput.keys() == {load}
    assert 1900 < loaded.load.throughput[load] < 2100
    assert {"load_below_rate", "load_unproved"}.isdisjoint(c.id for c in loaded.caveats)
    assert count_of(loaded, line) > 1500
    assert not count_of(idle, line)


def count_of(record: RunRecord, line: str) -> int:
    """Return how often an interrupt came while a run measured, on all CPUs."""
    machine = record.result.machine
    assert machine is not None
    rows = machine.interrupts
    return sum(sum(row.per_cpu.values()) for row in rows if line in row.name)


OF_INTERFACE = r"""
cd /sys/class/net/eth1; index=$(cat ifindex)
thread=$(grep -l 'irq/.*-eth1-rx' /proc/[0-9]*/comm | cut -d/ -f3)
seen() {
    cat gro_flush_timeout threaded /proc/sys/net/core/busy_[pr]*
    cut -d' ' -f40,41 /proc/$thread/stat
    rtscope-agent apply --set coalescing:$index=$1 | grep -oE '"(old|cause)":"[^"]*"'
}
found=$(seen 3.0.0)
rtscope-agent hold --set gro_flush_timeout:$index=20000 --set napi_threaded:$index=1 \
    --set busy_poll=50 --set busy_read=60 --set irq_priority:$thread=fifo.40 \
    --set coalescing:$index=50.0.0 </dev/null >/tmp/held &
sleep 0.5; set=$(seen 50.0.0; grep -o '"applied":[0-9]*' /tmp/held)
kill -KILL $!; sleep 0.1
rtscope-agent restore
echo "found" $found "set" $set "left" $(seen 3.0.0) "end" >/dev/kmsg
sleep 9
"""
"""Says in the kernel's log how an interface was before, during and after settings."""


def test_settings_of_an_interface_of_a_killed_run_are_put_back(tmp_path: Path) -> None:
    (tmp_path / "settings").write_text(OF_INTERFACE)
    words = (
        *("run", "--target", "virtual:pc", "--kernel", "debian-6.12-rt"),
        *("--event", LINE, "--load", "custom", "--command", "sh /files/settings"),
        *("--guest-files", tmp_path / "settings", "--interval", "100ms"),
        *("--warmup", "4s", "--duration", "1s", "--settle", "1s"),
        *("--out", tmp_path / "out"),
    )
    with rtscope(*words) as campaign:
        done = campaign.finish(300.0)

    (log,) = (tmp_path / "out").glob("runs/*/kernel.log")
    said = re.search(r"found (.+) set (.+) left (.+) end", log.read_text())
    assert said is not None, done.stderr
    found, changed, left = said.groups()
    assert found == left == '0 0 0 0 50 1 "old":"3.0.0"'
    assert changed == '20000 1 50 60 40 1 "cause":"held" "applied":6'


UIO, SERIAL = "uio", "serial:from=ttyS1:to=ttyS1"


@pytest.mark.parametrize(
    ("event", "address", "words"),
    [
        (UIO, "uio_pci_generic 3", "receive on CPU 1 any more: I/O error"),
        pytest.param(
            *(BUS, "kvaser_pci 3", "send on CPU 1 any more: No such device"),
            marks=pytest.mark.long,
        ),
        pytest.param(
            *(BUS, "kvaser_pci 4", "receive on CPU 1 any more: Network is down"),
            marks=pytest.mark.long,
        ),
        pytest.param(
            *(SERIAL, "serial 3", "send on CPU 1 any more: I/O error"),
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_device_that_loses_its_driver_ends_the_run_in_words(
    event: str, address: str, words: str, tmp_path: Path
) -> None:
    driver, slot = address.split()
    (tmp_path / "unbind").write_text(
        f"sleep 2; echo 0000:00:0{slot}.0 >/sys/bus/pci/drivers/{driver}/unbind\n"
        "sleep 60\n"
    )
    argv = (
        *("run", "--target", "virtual:pc", "--kernel", "debian-6.12-rt"),
        *("--event", event, "--load", "custom", "--command", "sh /files/unbind"),
        *("--guest-files", tmp_path / "unbind", "--interval", "10ms"),
        *("--warmup", "1s", "--duration", "4s", "--cpus", "1", "--settle", "1s"),
        *("--out", tmp_path / "out"),
    )
    with rtscope(*argv) as campaign:
        done = campaign.finish(300.0)

    assert done.status == 3
    assert f"event {event.partition(':')[0]}: cannot {words}" in done.stderr
    assert "Traceback" not in done.stderr
