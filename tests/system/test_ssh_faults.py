"""
What is left on a board whose user is gone: nothing, within seconds.

Each test starts a campaign on a private sshd, breaks one piece while it measures, and
watches every process that the session had started on the board.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from rig import (
    GONE_WITHIN_S,
    Done,
    Program,
    alive,
    arguments_of,
    children_of,
    most_long,
    native_agent,
    rtscope,
    until,
)

from fakes.sshd import SSHD, Board, board
from rtscope.contract import LOST
from rtscope.record.directory.records import open_records
from rtscope.stats.runcaveats import all_caveats

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(SSHD is None, reason="needs openssh-server"),
]

ENDS_WITHIN_S = 12.0
REPORTED_WITHIN_S = 30.0  # what was kept is told in a report


@dataclass(frozen=True, slots=True)
class Session:
    """A campaign that is measuring on a board."""

    board: Board
    program: Program
    out: Path
    board_tmp: Path
    processes: Sequence[int]
    """All that it has started on the board: three agents, the load and its workers."""

    def gone_after_s(self, since: float) -> float:
        """Wait until all its processes are gone; return how long that took."""
        until(lambda: not alive(self.processes), what="nothing runs on the board")
        return time.monotonic() - since

    def directory_is_gone(self) -> bool:
        """Whether the private directory on the board is removed."""
        return not list(self.board_tmp.iterdir())

    def client_of(self, command: str) -> int:
        """Return the local ssh through which an agent runs."""
        return next(
            child
            for child in children_of(self.program.pid)
            if f"rtscope-agent {command} " in arguments_of(child)[-1]
        )


def is_at_work(running: Board) -> bool:
    """Whether an agent keeps the directory, one guards the load and one measures."""
    processes = [" ".join(arguments_of(pid)) for pid in running.processes()]
    return all(
        any(f"rtscope-agent {command} " in line for line in processes)
        for command in ("keep", "load", "measure")
    )


STRESS_NG = ("--load", "cpu")
STUBBORN = (
    *("--load", "custom", "--command"),
    "sh -c 'trap \"\" INT TERM HUP; while :; do sleep 0.05; done'",
)


@pytest.fixture
def load() -> Sequence[str]:
    """The load that asks most of whoever has to end it."""
    return STUBBORN


@pytest.fixture
def duration() -> str:
    """How long the campaign measures, if nothing breaks."""
    return "60s"


@pytest.fixture
def session(
    tmp_path: Path, private_tmp: Path, load: Sequence[str], duration: str
) -> Iterator[Session]:
    board_tmp = tmp_path / "board-tmp"
    board_tmp.mkdir()
    with board(tmp_path / "ssh", settings=[f"SetEnv TMPDIR={board_tmp}"]) as running:
        out = tmp_path / "out"
        times = ["--duration", duration, "--warmup", "100ms"]
        words = ["run", "--target", "ssh:board", "--policy", "other", *load, *times]
        with rtscope(*words, "--out", out, env={"PATH": running.path}) as program:
            until(lambda: is_at_work(running), what="the board measures")
            time.sleep(0.2)  # into the measurement, not only into its preparation
            yield Session(running, program, out, board_tmp, running.processes())


def ends(session: Session) -> tuple[Done, float]:
    began = time.monotonic()
    done = session.program.finish()
    return done, time.monotonic() - began


def kill(pids: Sequence[int], signo: signal.Signals = signal.SIGKILL) -> float:
    """Send a signal to processes; return when."""
    for pid in pids:
        os.kill(pid, signo)
    return time.monotonic()


def nothing_stays(session: Session) -> None:
    """Wait until the directory and the connection are gone as well."""
    until(session.directory_is_gone, what="no directory on the board")
    # ControlPersist, for the case that nobody was left to end the connection
    until(lambda: not session.board.masters(), what="no connection")


VICTIMS: dict[str, Callable[[Session], Sequence[int]]] = {
    "measuring client": lambda s: [s.client_of("measure")],
    "connection": lambda s: [p for p in s.board.masters() if p not in s.processes],
    "server session": lambda s: s.board.sessions(),
}


@pytest.mark.parametrize("victim", most_long(VICTIMS))
def test_a_killed_piece_ends_agent_and_load_and_the_campaign_says_so(
    session: Session, victim: str
) -> None:
    broken = kill(VICTIMS[victim](session))

    done, ended_s = ends(session)

    assert session.gone_after_s(broken) < GONE_WITHIN_S
    assert ended_s < ENDS_WITHIN_S
    assert done.status == 3
    assert "ssh:board, 001-" in done.stderr
    assert "lost" in done.stderr or "ssh ended by signal 9" in done.stderr
    assert "Traceback" not in done.stderr
    nothing_stays(session)


def test_a_killed_host_program_leaves_nothing_behind(session: Session) -> None:
    broken = kill([session.program.pid])

    assert session.gone_after_s(broken) < GONE_WITHIN_S
    nothing_stays(session)


@pytest.mark.parametrize("load", [STRESS_NG], ids=["stress-ng"])
@pytest.mark.parametrize("duration", ["11s"])
def test_a_frozen_link_ends_agent_and_load_and_resume_completes(
    session: Session,
) -> None:
    frozen = session.board.sessions()
    broken = kill(frozen, signal.SIGSTOP)
    try:
        gone_s = session.gone_after_s(broken)
        done, _ = ends(session)
        ended_s = time.monotonic() - broken
        assert session.directory_is_gone()
    finally:
        kill(frozen, signal.SIGCONT)

    assert gone_s < GONE_WITHIN_S
    assert ended_s < ENDS_WITHIN_S
    assert done.status == 3
    assert "lost the connection to the machine" in done.stderr
    with rtscope(
        "run", "--resume", session.out, env={"PATH": session.board.path}
    ) as program:
        done = program.finish()
    assert done.status == 0, done.stderr
    assert [kept.run.load for kept in open_records(session.out)] == ["cpu"]


@pytest.mark.parametrize("load", [STRESS_NG], ids=["stress-ng"])
def test_a_board_that_stops_is_named_and_what_it_had_measured_is_kept(
    session: Session,
) -> None:
    """All of it stops, like a guest whose monitor says `stop`: nothing answers."""
    kept = session.out / "runs" / "001-cpu" / "interrupted.json"
    time.sleep(1.5)  # until it has told its first second
    stopped = alive([*session.board.processes(), *session.board.sessions()])
    broken = kill(stopped, signal.SIGSTOP)
    try:
        done, _ = ends(session)
        ended_s = time.monotonic() - broken
    finally:
        kill(alive(stopped), signal.SIGCONT)

    assert ended_s < REPORTED_WITHIN_S
    assert done.status == 3
    assert "lost the connection to the machine" in done.stderr
    assert re.search(rf"; its first [0-9]+ s \(maximum .* are in {kept}", done.stderr)
    (record,) = open_records(session.out)
    assert record.result.stopped == LOST
    assert all(t.samples and t.histogram for t in record.result.threads)
    assert "result_rebuilt" in {caveat.id for caveat in all_caveats(record)}
    assert not list(session.out.glob("runs/*/record.json"))
    session.gone_after_s(broken)
    nothing_stays(session)


def test_a_link_that_stalls_and_recovers_ends_the_run_with_its_reason(
    session: Session,
) -> None:
    stalled = session.board.sessions()
    broken = kill(stalled, signal.SIGSTOP)
    try:
        gone_s = session.gone_after_s(broken)
    finally:
        kill(stalled, signal.SIGCONT)
    done, _ = ends(session)

    assert gone_s < GONE_WITHIN_S
    assert done.status == 3
    # The agent says it, unless the link took no more of a line just then.
    assert "the link was lost, or the host stood still" in done.stderr
    assert list(session.out.glob("runs/*/record.json")) == []


def test_an_agent_whose_words_nobody_takes_does_not_wait_for_ever(
    tmp_path: Path,
) -> None:
    (tmp_path / "large").write_bytes(bytes(1 << 20))  # more than a pipe holds
    with subprocess.Popen(
        [native_agent(), "read", "--heartbeat", "--", tmp_path / "large"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as agent:
        try:
            assert agent.wait(GONE_WITHIN_S) == 3
        finally:
            agent.kill()


@pytest.mark.parametrize("load", [STRESS_NG], ids=["stress-ng"])
def test_ctrl_c_ends_everything_in_good_order(session: Session) -> None:
    session.program.send(signal.SIGINT)

    done, _ = ends(session)

    assert done.status == 130
    assert not alive(session.processes)
    assert session.directory_is_gone()
    assert session.board.masters() == []
    assert session.board.clients() == []
