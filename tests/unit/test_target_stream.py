"""Lines from a real pipe: whole, in order, or an error; and no process stays."""

import fcntl
import sys
import threading
import time
from pathlib import Path

import pytest

from fakes.targets import HELLO, LOAD_HELLO
from rtscope.contract import Keeping, Line, dump_line
from rtscope.host.errors import ContractError, TargetError
from rtscope.machine.target import stream
from rtscope.machine.target.stream import PipeStream, collect, wait_any


def says(script: str) -> PipeStream:
    """Start a program in place of an agent."""
    return PipeStream(["sh", "-c", script], heartbeat=False)


LINE = dump_line(HELLO).decode()


def test_lines_arrive_whole_and_in_order() -> None:
    script = f"printf '%s\\n\\n%s' '{LINE}' '{LINE[:20]}'; sleep 0.05; " + (
        f"printf '%s\\n' '{LINE[20:]}'; echo '{dump_line(LOAD_HELLO).decode()}'"
    )
    running = says(script)

    assert collect(running, timeout_s=600) == [HELLO, HELLO, LOAD_HELLO]
    assert running.ended
    assert running.fileno() is None
    assert running.status == 0


def test_output_that_breaks_off_is_an_error() -> None:
    with pytest.raises(ContractError, match="ends in the middle of a line"):
        collect(says(f"printf '%s' '{LINE[:30]}'"), timeout_s=600)


@pytest.mark.parametrize("garbage", ["hello", '{"type":"hello"}', "\\377\\376", "[]"])
def test_garbage_is_an_error(garbage: str) -> None:
    running = says(f"printf '{garbage}\\n'")

    with pytest.raises(ContractError, match="breaks its contract"):
        collect(running, timeout_s=600)
    running.kill()


def test_a_line_without_an_end_is_an_error_and_ends_the_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "MAX_LINE_BYTES", 100_000)
    monkeypatch.setattr(stream, "KILL_TIMEOUT_S", 0.05)
    running = says("yes rtscope | tr -d '\\n'")

    with pytest.raises(ContractError, match="a line of more than"):
        collect(running, timeout_s=600)

    assert running.ended
    assert running.status is not None


def test_many_lines_at_once_are_not_one_long_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "MAX_LINE_BYTES", 2 * len(LINE))
    monkeypatch.setattr(stream, "READ_BYTES", len(LINE) // 2)
    running = says(f"sleep 0.2; yes '{LINE}' | head -n 200")
    descriptor = running.fileno()
    assert descriptor is not None
    fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, 1 << 20)

    assert running.ends_within(600)
    assert collect(running, timeout_s=600) == [HELLO] * 200


def test_an_agent_that_never_pauses_leaves_time_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "READS_AT_ONCE", 3)
    monkeypatch.setattr(stream, "READ_BYTES", len(LINE) + 1)
    running = says(f"yes '{LINE}' | head -n 10")

    assert running.ends_within(600)
    assert running.take_lines() == [HELLO] * 3
    assert collect(running, timeout_s=600) == [HELLO] * 7


def test_an_agent_that_sends_too_much_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MAX_ANSWER_BYTES", 10_000)
    monkeypatch.setattr(stream, "BYTES_PER_S", 1_000)
    monkeypatch.setattr(stream, "KILL_TIMEOUT_S", 0.05)
    running = says(f"yes '{LINE}'")

    with pytest.raises(ContractError, match="more than 10,000 and 1,000 for each"):
        collect(running, timeout_s=600)

    assert running.ended


@pytest.mark.parametrize("line", ["", " ", "\\t", "\\r", "\\f \\v"])
def test_lines_without_content_are_counted_too(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MAX_ANSWER_BYTES", 10_000)
    # Less for each second: a program that is slow on a busy machine reaches it too.
    monkeypatch.setattr(stream, "BYTES_PER_S", 1_000)
    monkeypatch.setattr(stream, "KILL_TIMEOUT_S", 0.05)
    running = says(f"yes \"$(printf '{line}')\"")

    with pytest.raises(ContractError, match="more than 10,000 and"):
        collect(running, timeout_s=600)


@pytest.mark.slow
@pytest.mark.parametrize("line", [LINE, '{"type":"keep"}', '{"type":"keep","x":[[]]}'])
def test_an_answer_that_takes_too_much_memory_is_ended(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MAX_KEPT_BYTES", 100_000)
    monkeypatch.setattr(stream, "KILL_TIMEOUT_S", 0.05)
    running = says(f"yes '{line}'")

    with pytest.raises(ContractError, match="takes more than 100,000 bytes"):
        collect(running, timeout_s=600)

    assert running.ended
    assert "memory runs out" not in running.stderr_tail()


@pytest.mark.parametrize(
    "endless",
    [
        "yes an error",
        "cat /dev/zero",
        "yes ''",
        "while :; do echo e; done",
        "yes & yes",
    ],
)
def test_an_endless_standard_error_ends_the_agent_and_is_told(
    endless: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MAX_ANSWER_BYTES", 10_000)
    monkeypatch.setattr(stream, "BYTES_PER_S", 1)
    monkeypatch.setattr(stream, "KILL_TIMEOUT_S", 0.05)
    running = says(f"({endless}) >&2")

    assert collect(running, timeout_s=600) == []

    assert "wrote more than 10,000 bytes to standard error" in running.stderr_tail()
    assert len(running.stderr_tail()) < 2300


def test_standard_error_takes_no_place_on_a_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    running = says("yes | head -n 100000 >&2; echo the end >&2")

    assert collect(running, timeout_s=600) == []
    assert running.stderr_tail().endswith("the end")


def test_what_the_agent_leaves_behind_is_not_waited_for() -> None:
    running = says("echo words >&2; sleep 5 <&- >&- &")

    assert collect(running, timeout_s=600) == []
    assert running.stderr_tail() == "words"


def test_an_answer_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MAX_ANSWER_S", 0.2)
    monkeypatch.setattr(stream, "KILL_TIMEOUT_S", 0.2)
    running = says(f"while echo '{LINE}'; do sleep 0.01; done")
    wait_any([running], timeout_s=600)  # its first line is there

    with pytest.raises(TargetError, match="has no end after"):
        collect(running, timeout_s=600)

    assert running.ended


def test_each_line_ends_a_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0

    class Talkative(PipeStream):
        def __init__(self) -> None:
            self.patience = None
            self._memory_bytes = 0
            self._ended = False

        def fileno(self) -> None:
            return None

        def take_lines(self) -> list[Line]:
            nonlocal now_s
            now_s += 1
            return [HELLO]

        def kill(self) -> None:
            self._ended = True

    talkative = Talkative()
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    monkeypatch.setattr(stream, "MAX_ANSWER_S", 10)
    with pytest.raises(TargetError, match="has no end after 10 s"):
        collect(talkative, timeout_s=2)

    assert talkative.ended


def test_an_agent_that_says_nothing_is_given_up() -> None:
    running = says("cat")

    with pytest.raises(TargetError, match=r"no answer from the agent for \d+ s"):
        collect(running, timeout_s=0.05)

    assert running.ended
    assert running.status == 0


def test_the_end_of_standard_error_is_kept() -> None:
    running = says("echo first >&2; yes | head -n 5000 >&2; echo last >&2")
    collect(running, timeout_s=600)

    assert running.stderr_tail().endswith("y\nlast")
    assert len(running.stderr_tail()) <= 2000


def test_to_kill_closes_the_tether_which_ends_what_holds_it() -> None:
    running = says("cat")

    was_running = running.status is None
    running.kill()
    running.kill()

    assert was_running

    assert running.ended
    assert running.status == 0
    assert running.take_lines() == []


def test_a_thread_that_reads_may_see_the_end_before_the_one_that_kills(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = says("cat")
    wait = running._process.wait

    def wait_and_read(timeout_s: float) -> int:
        status = wait(timeout_s)
        running.take_lines()
        return status

    monkeypatch.setattr(running._process, "wait", wait_and_read)
    running.kill()

    assert running.ended
    assert running.status == 0


def test_what_was_stopped_goes_on_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "KILL_TIMEOUT_S", 600)
    running = says("kill -STOP $$; read line")
    while b"T" not in Path(f"/proc/{running.pid}/stat").read_bytes().split()[2]:
        time.sleep(0.01)

    running.kill()

    assert running.status is not None
    assert running.status >= 0


def test_what_still_writes_more_than_a_pipe_holds_comes_to_its_end() -> None:
    """As a list of threads does to whom Ctrl-C ends the reader."""
    running = says("cat; head -c 1000000 /dev/zero; exit 7")

    running.kill()

    assert running.status == 7
    assert "killed" not in running.stderr_tail()


def test_what_does_not_end_by_itself_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "KILL_TIMEOUT_S", 0.05)
    running = PipeStream(["sleep", "60"], heartbeat=False)
    running.kill()

    assert running.status == -9


def test_to_ask_is_to_write_a_q() -> None:
    waiting = PipeStream(
        [
            sys.executable,
            "-c",
            "import sys; sys.stdin.read(1) == 'q' and print('{\"type\":\"keep\"}')",
        ],
        heartbeat=False,
    )
    waiting.ask_stop()
    assert collect(waiting, timeout_s=600) == [Keeping()]


def test_a_heartbeat_goes_on_while_nobody_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_S", 0.005)
    beating = PipeStream(
        [
            sys.executable,
            "-c",
            "import sys; sys.stdin.read(9) == 9 * '.' and print('{\"type\":\"keep\"}')",
        ],
        heartbeat=True,
    )

    assert collect(beating, timeout_s=600) == [Keeping()]


def test_without_a_thread_for_heartbeats_the_limit_is_named_and_nothing_runs_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    ended = tmp_path / "ended"
    with pytest.raises(TargetError, match=r"cannot start a thread: .*ulimit -u"):
        PipeStream(["sh", "-c", f"read _; : >{ended}"], heartbeat=True)

    assert ended.exists()


def test_an_agent_that_the_kernel_killed_leads_to_its_log() -> None:
    running = says("kill -KILL $$")
    collect(running, timeout_s=600)

    assert running.stderr_tail().startswith("sh ended by signal 9; the kernel sends it")


def test_to_write_to_an_agent_that_is_gone_is_no_error() -> None:
    running = PipeStream(["true"], heartbeat=False)
    collect(running, timeout_s=600)

    running.ask_stop()

    assert running.ended


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(TargetError, match="no-such-program: not installed"):
        PipeStream(["no-such-program"], heartbeat=False)


def test_to_wait_for_nobody_takes_no_time() -> None:
    begun = time.monotonic()
    wait_any([], timeout_s=3600)

    assert time.monotonic() - begun < 1800
