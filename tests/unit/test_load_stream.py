"""Loads that are a stream of events at a stated rate: their command, what came."""

from dataclasses import replace

import pytest

from fakes.measurements import SECOND_NS
from fakes.targets import measuring, result
from rtscope.boards.catalogue import get_board
from rtscope.boards.events import event_of_load, with_devices_for
from rtscope.boards.runs.prepare import load_place, request_for
from rtscope.boards.runs.programscript import job_of_program
from rtscope.boards.runs.script import (
    MODULES_BEFORE,
    SYMBOLS_OF_NEW_MODULES,
    job_of,
)
from rtscope.contract import AgentError, Line, ThreadEvent, dump_line
from rtscope.host.errors import UsageError
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.loads import (
    LoadCommand,
    errors_of,
    get_load,
    make_command,
    stream_caveats,
    stream_of,
)
from unit.test_runs_program import JOB
from unit.test_runs_script import RUN

MODULES = {"e1000e.ko": b"elf", "uio.ko": b"elf", "uio_pci_generic.ko": b"elf"}


def log_of(*, came: int, end_s: int = 6) -> str:
    """Return the lines of an agent that sent from 0 to `end_s` seconds."""
    event = ThreadEvent("udp", 1, 9, "other", 0, came, 7, 0, 3, 2, 0, 0)
    whole = result()
    start_ns = whole.start_ns
    thread = replace(
        whole.threads[0],
        samples=came,
        event=event,
        start_ns=start_ns,
        end_ns=start_ns + end_s * SECOND_NS,
    )
    lines: list[Line] = [line for step in measuring()[1:-1] for line in step]
    lines.append(replace(whole, threads=(thread,)))
    return "".join(dump_line(line).decode() + "\n" for line in lines)


def span(from_s: float, to_s: float) -> tuple[int, int]:
    start_ns = result().start_ns
    return start_ns + int(from_s * SECOND_NS), start_ns + int(to_s * SECOND_NS)


@pytest.mark.parametrize(
    ("written", "name", "rate"),
    [
        ("packets", "packets:5000", 5000),
        ("packets:20000", "packets:20000", 20_000),
        ("interrupts:1", "interrupts:1", 1),
        ("interrupts:100000", "interrupts:100000", 100_000),
    ],
)
def test_a_stream_has_its_rate_in_its_name(written: str, name: str, rate: int) -> None:
    load = get_load(written)

    assert (load.name, load.rate_per_s) == (name, rate)
    assert get_load(name) == load


@pytest.mark.parametrize(
    "written", ["packets:", "packets:0", "packets:100001", "packets:1e3", "packets:٣"]
)
def test_a_rate_that_is_none_is_refused_with_what_to_write(written: str) -> None:
    with pytest.raises(UsageError, match="1 to 100000, such as packets:5000"):
        get_load(written)


def test_a_load_without_a_rate_takes_none() -> None:
    with pytest.raises(UsageError, match="no such load: 'cpu:5'"):
        get_load("cpu:5")


def test_the_agent_sends_as_an_ordinary_program_to_the_first_measured_cpu() -> None:
    place = load_place(get_board("pc"), (1,))

    made = make_command(
        get_load("packets:2000"), place, duration_s=100, custom=(), seed=3
    )

    assert made.argv == (
        *("rtscope-agent", "measure", "--name", "packets", "--policy", "other"),
        *("--event", "udp:from=eth0:to=eth1", "--interval-ns", "500000"),
        *("--duration-ns", str(160 * SECOND_NS), "--worst", "0", "--cpus", "1"),
    )
    assert made.memory_limit_bytes is None


def test_a_board_gets_the_devices_of_its_load() -> None:
    board = get_board("pc")

    assert with_devices_for(board, "timer", "cpu") == board
    assert "e1000e" in str(with_devices_for(board, "udp", "packets:9").event_devices)
    assert "edu" in with_devices_for(board, "timer", "interrupts:9").event_devices


def test_devices_that_a_board_has_not_are_refused() -> None:
    said = "--load packets:9: the virtual board jh7110 has not two Ethernet"
    with pytest.raises(UsageError, match=said):
        with_devices_for(get_board("jh7110"), "timer", "packets:9")


def test_a_load_has_devices_beside_those_of_the_event() -> None:
    board, event = get_board("pc"), "udp:from=eth0:to=eth1:priority=9"

    both = with_devices_for(board, event, "packets:9").event_devices
    other = with_devices_for(board, "uio", "packets:9").event_devices
    run = replace(RUN, load="packets:9", event=event)
    sent = request_for(run, Campaign(target="virtual:pc"), board, ()).load.argv

    assert [word for word in both if word.startswith("hubport")] == [
        f"hubport,id=h{n},hubid={1 + n // 2}" for n in range(4)
    ]
    assert both[: len(both) // 2] == with_devices_for(board, event).event_devices
    assert other.count("edu") == 2
    assert "udp:from=eth2:to=eth3" in sent
    assert event_of_load("uio", "packets:9") == get_load("packets").event
    with pytest.raises(UsageError, match="has devices for one of them"):
        with_devices_for(board, "uio", "interrupts:9")


@pytest.mark.parametrize(
    ("load", "modules"),
    [("packets:9", ["e1000e"]), ("interrupts:9", ["uio", "uio_pci_generic"])],
)
def test_drivers_are_there_before_the_load_begins(
    load: str, modules: list[str]
) -> None:
    command = LoadCommand(("rtscope-agent", "measure"), None, ())
    measured = job_of(
        replace(RUN, load=load),
        Campaign(target="virtual:pc"),
        command,
        facts=[],
        seed=3,
        event_modules=MODULES,
    )
    program = job_of_program(
        replace(JOB, load=load, load_command=command), facts=[], event_modules=MODULES
    )

    for job in (measured, program):
        lines = job.script.splitlines()
        inserted = [line for line in lines if line.startswith("insmod")]
        assert inserted == [f"insmod /job/{name}.ko" for name in modules]
        begin = next(i for i, line in enumerate(lines) if "-- rtscope-agent" in line)
        assert max(map(lines.index, inserted)) < begin
        assert {f"{name}.ko" for name in modules} <= job.files.keys()
        # what they are called is known only while they are inserted
        listed = lines.index(MODULES_BEFORE), lines.index(SYMBOLS_OF_NEW_MODULES)
        assert listed[0] < min(map(lines.index, inserted)) < begin < listed[1]
        assert listed[1] < lines.index("wait $load")


@pytest.mark.parametrize(
    ("from_s", "to_s", "rate"),
    [
        (0, 6, 10),
        (2, 3, 10),
        (2.5, 3.5, 10),  # what is known around it: 2 to 4 s
        (5, 9, 10),
        (-1, 0.5, 10),
    ],
)
def test_the_rate_is_that_of_the_measurement(
    from_s: float, to_s: float, rate: float
) -> None:
    stream = stream_of(log_of(came=60), span(from_s, to_s))

    assert stream is not None
    assert stream.rate_per_s == rate
    assert (stream.lost, stream.unsent) == (5, 7)


def test_what_came_before_is_in_no_rate() -> None:
    """40 came in the last of six seconds, 10 in each before."""
    stream = stream_of(log_of(came=90, end_s=6), span(5.0, 6.0))

    assert stream is not None
    assert stream.rate_per_s == 40


@pytest.mark.parametrize("log", ["", "no line\n", log_of(came=60).split("\n")[0]])
def test_a_stream_that_tells_no_end_is_unknown(log: str) -> None:
    assert stream_of(log, span(0, 6)) is None
    assert [c.id for c in stream_caveats(get_load("packets"), None, log)] == [
        "load_unproved"
    ]


@pytest.mark.parametrize(("asked", "ids"), [(10, []), (11, ["load_below_rate"])])
def test_fewer_than_stated_are_a_caveat(asked: int, ids: list[str]) -> None:
    stream = stream_of(log_of(came=60), span(0, 6))

    caveats = list(stream_caveats(get_load(f"packets:{asked}"), stream, ""))

    assert [one.id for one in caveats] == ids
    assert not caveats or caveats[0].detail == (
        "10 of 11 packets a second; from its begin 5 never came, 7 were never sent"
    )


def test_another_load_has_no_rate() -> None:
    assert not list(stream_caveats(get_load("cpu"), None, ""))


def test_only_errors_of_the_agent_are_kept_of_its_lines() -> None:
    error = AgentError(cause="other", message="no interface eth0", remedy="")
    log = f"insmod: oops\n{log_of(came=60)}{dump_line(error).decode()}\n"

    assert errors_of(log) == "insmod: oops\nno interface eth0"
    (caveat,) = stream_caveats(get_load("packets:7"), None, log)
    assert caveat.detail == "packets:7: insmod: oops; no interface eth0"
    assert errors_of(log_of(came=60)) == ""
