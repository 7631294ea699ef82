"""
Places of labgrid: acquired, powered, and given back in every ending.

Coordinator, exporter and client are labgrid's own; the boards are sshd's.
"""

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rig import most_long, rtscope, until

from fakes.lab import Lab, Switch, lab, service, switch
from fakes.sshd import SSHD, Board, board, client_of, free_port
from rtscope.record.directory.records import open_records

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(SSHD is None, reason="needs openssh-server"),
]

SHORT = ("--policy", "other", "--interval", "1ms", "--warmup", "50ms", "--load", "idle")
LONG = (*SHORT, "--duration", "10m")


@dataclass(frozen=True, slots=True)
class Rack:
    """A lab: `b0`, whose power is off, `b1`, `bare`, without a board, `dark`, dead."""

    lab: Lab
    boards: tuple[Board, Board]
    power: Switch
    environ: dict[str, str]


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    place = tmp_path_factory.mktemp("rack")
    nobody = {"address": "127.0.0.1", "port": free_port(), "username": "root"}
    with (
        board(place / "b0") as b0,
        board(place / "b1") as b1,
        switch() as power,
        lab(
            place / "lab",
            {
                "b0": {"NetworkService": service(b0), "NetworkPowerPort": power.export},
                "b1": {"NetworkService": service(b1)},
                "bare": {"NetworkPowerPort": power.export},
                "dark": {"NetworkService": nobody, "NetworkPowerPort": power.export},
            },
        ) as made,
    ):
        path = client_of(place / "bin", {"b0": b0, "b1": b1})
        yield Rack(made, (b0, b1), power, {**made.environ, "PATH": path})


@pytest.fixture(autouse=True)
def _nothing_is_left(rack: Rack) -> Iterator[None]:
    rack.power.told.clear()
    yield
    assert rack.lab.acquired() == []
    assert not rack.power.is_on


def test_places_are_measured_and_given_back(rack: Rack, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("run", "--target", "lab:b0,lab:b1", *SHORT, "--duration", "1s")
    with rtscope(*words, "--json", "--out", out, env=rack.environ) as program:
        done = program.finish()
    assert done.status == 0, done.stderr
    boards = json.loads(done.stdout)["boards"]
    assert [(one["board"], one["state"]) for one in boards] == [
        ("lab-b0", "done"),
        ("lab-b1", "done"),
    ]
    (record,) = open_records(out / "boards" / "lab-b0")
    assert record.run.target == "lab:b0"
    assert rack.power.told == ["on", "off"]


def test_power_that_is_on_stays_on(rack: Rack) -> None:
    rack.power.is_on = True
    with rtscope("tasks", "--target", "lab:b0", "--rt", env=rack.environ) as program:
        done = program.finish()
    assert done.status == 0, done.stderr
    assert rack.power.told == []
    rack.power.is_on = False


@pytest.mark.parametrize(
    "signo", most_long([signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
)
def test_a_place_is_given_back_however_rtscope_ends(
    rack: Rack, tmp_path: Path, private_tmp: Path, signo: signal.Signals
) -> None:
    words = ("run", "--target", "lab:b0", *LONG, "--out", tmp_path / "out")
    with rtscope(*words, env=rack.environ) as program:
        until(lambda: bool(rack.boards[0].processes()), what="an agent is there")
        assert rack.lab.acquired() == ["b0"]
        program.send(signo)
        done = program.finish()
    assert done.status != 0
    until(lambda: not rack.lab.acquired(), what="the place is given back")
    assert rack.power.told == ["on", "off"]
    until(lambda: not rack.boards[0].processes(), what="no agent is left")


def test_a_place_of_somebody_else_stays_theirs(rack: Rack, tmp_path: Path) -> None:
    rack.lab.client("-p", "b1", "acquire", user="somebody")
    try:
        out = tmp_path / "out"
        words = ("run", "--target", "lab:b1", *LONG, "--out", out)
        with rtscope(*words, env=rack.environ) as program:
            done = program.finish()
        assert done.status == 3
        assert "lab:b1: labgrid acquire: Place b1 is already acquired by" in done.stderr
        assert rack.lab.acquired() == ["b1"]
        assert not out.exists()
    finally:
        rack.lab.client("-p", "b1", "release", user="somebody")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("b", "lab:b: no such place; the coordinator has: b0, b1, bare, dark"),
        ("bare", "lab:bare: it has no NetworkService, or several"),
    ],
)
def test_what_is_no_board_is_refused(rack: Rack, place: str, said: str) -> None:
    with rtscope("tasks", "--target", f"lab:{place}", env=rack.environ) as program:
        done = program.finish()
    assert done.status == 3, done.stderr
    assert said in done.stderr


def test_ctrl_c_while_a_board_starts_switches_it_off_again(rack: Rack) -> None:
    with rtscope("tasks", "--target", "lab:dark", env=rack.environ) as program:
        until(lambda: rack.power.told == ["on"], what="the board gets power")
        program.send(signal.SIGINT)
        done = program.finish()
    assert done.status == 130, done.stderr
    assert rack.power.told == ["on", "off"]


def test_without_a_coordinator_it_says_so(rack: Rack) -> None:
    nobody = {**rack.environ, "LG_COORDINATOR": "127.0.0.1:9"}
    with rtscope("audit", "--target", "lab:b0", env=nobody) as program:
        done = program.finish()
    assert done.status == 3
    assert "Could not connect to coordinator" in done.stderr
    assert len(done.stderr.splitlines()) == 1
