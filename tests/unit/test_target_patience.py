"""A board has one time for all its answers, and one for the end of its sessions."""

import time

import pytest

from fakes.targets import HELLO
from rtscope.contract import dump_line
from rtscope.host.errors import TargetError
from rtscope.machine.target import patience as patiences
from rtscope.machine.target import ssh, stream
from rtscope.machine.target.patience import WHOLE_COSTS, Patience
from rtscope.machine.target.stream import PipeStream, collect

LINE = dump_line(HELLO).decode()


def says(script: str, patience: Patience) -> PipeStream:
    return PipeStream(["sh", "-c", script], heartbeat=False, patience=patience)


def test_a_whole_answer_takes_some_of_the_time_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exact, real = Patience(answers_s=8), Patience(answers_s=800)
    times = iter((100.0, 104.0))
    with monkeypatch.context() as fake:
        fake.setattr(time, "monotonic", lambda: next(times))
        with exact.answering():
            pass
    began = time.monotonic()
    collect(says(f"sleep 0.1; echo '{LINE}'", real), timeout_s=600)
    took_s = time.monotonic() - began

    assert exact.answers_s == 8 - 4 * WHOLE_COSTS
    assert 0 < 800 - real.answers_s <= took_s * WHOLE_COSTS


def test_where_no_time_is_left_silence_ends_whatever_its_own_limit() -> None:
    silent = says("exec sleep 6000", Patience(answers_s=0.1, ending_s=0.1))
    with pytest.raises(
        TargetError, match=r"no answer .* for \d+ s; the board took too long"
    ):
        collect(silent, timeout_s=60)


def test_lines_that_come_for_ever_do_not_make_it_longer() -> None:
    patience = Patience(answers_s=0.3, ending_s=0.1)
    endless = says(f"while echo '{LINE}'; do sleep 0.01; done", patience)
    stream.wait_any([endless], timeout_s=600)  # its first line is there

    with pytest.raises(
        TargetError, match="has no end after 0 s; the board took too long"
    ):
        collect(endless, timeout_s=60)


def test_the_time_that_it_was_asked_to_work_is_free() -> None:
    patience = Patience(answers_s=0.3)
    lines = collect(
        says(f"sleep 0.5; echo '{LINE}'", patience), timeout_s=60, works_s=60
    )

    assert lines == [HELLO]
    assert patience.answers_s == 0.3


def test_time_that_passes_here_is_free() -> None:
    patience = Patience(answers_s=0.3)
    time.sleep(0.4)

    assert patience.answers_s == 0.3


def test_each_run_has_all_the_time_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "PipeStream", lambda *_args, **_named: None)
    board = ssh.SshTarget("board")
    board._patience = Patience(answers_s=0.001)
    with board._patience.answering():
        time.sleep(0.01)
    board.start_agent(["measure"])
    left_s = board._patience.answers_s
    board.begin_run()

    assert (left_s, board._patience.answers_s) == (0.0, 0.001)


def test_sessions_that_do_not_end_share_the_time_to_end_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patiences, "LEAST_S", 0.01)
    patience = Patience(ending_s=0.3)
    streams = [says("exec sleep 6000", patience) for _ in range(4)]
    began = time.monotonic()
    for one in streams:
        one.kill()

    assert [one.status for one in streams] == [-9] * 4
    assert patience.ending_s == 0.01
    assert time.monotonic() - began < 4 * stream.KILL_TIMEOUT_S
