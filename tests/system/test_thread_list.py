"""Real threads of each policy: what is listed is what chrt and /proc say of each."""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rig import PATIENCE_S, Done, Program, native_agent, rtscope, until

from rtscope.contract.commands import TaskLine, TasksEnd
from rtscope.machine.tasks.listing import name_of

pytestmark = pytest.mark.system

SCENE = Path(__file__).parent / "policies.py"
NOBODY = 65534

# chrt's words -> ours
POLICIES = {
    "SCHED_OTHER": "other",
    "SCHED_FIFO": "fifo",
    "SCHED_RR": "rr",
    "SCHED_BATCH": "batch",
    "SCHED_IDLE": "idle",
    "SCHED_DEADLINE": "deadline",
}


@contextmanager
def scene(*words: str) -> Iterator[tuple[int, dict[str, int]]]:
    """Run the program of threads; give its process and its threads by name."""
    program = subprocess.Popen(
        [sys.executable, str(SCENE), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert program.stdout is not None
        yield program.pid, json.loads(program.stdout.readline())
    finally:
        program.kill()
        program.communicate()


def listed(
    *options: str, prefix: Sequence[str] = (), agent: Path | None = None
) -> Done:
    """Run the agent alone."""
    argv = [*prefix, str(agent or native_agent()), "tasks", *options]
    with Program(argv) as program:
        done = program.finish()
    assert done.status == 0, done.stderr
    return done


def tasks_of(done: Done, pid: int) -> dict[int, TaskLine]:
    found = (line for line in done.lines if isinstance(line, TaskLine))
    return {line.tid: line for line in found if line.pid == pid}


def end_of(done: Done) -> TasksEnd:
    last = done.lines[-1]
    assert isinstance(last, TasksEnd)
    return last


def by_chrt(tid: int) -> dict[str, Any]:
    """What chrt says of one thread, in our words."""
    said = subprocess.run(
        ["chrt", "-p", str(tid)], check=True, capture_output=True, text=True
    ).stdout
    policy = re.search(r"scheduling policy: (SCHED_\w+)(\|SCHED_RESET_ON_FORK)?", said)
    priority = re.search(r"scheduling priority: (\d+)", said)
    times = re.search(r"parameters: (\d+)/(\d+)/(\d+)", said)
    assert policy is not None
    assert priority is not None
    deadline = policy[1] == "SCHED_DEADLINE" and times
    return {
        "policy": POLICIES[policy[1]],
        "priority": int(priority[1]),
        "reset_on_fork": policy[2] is not None,
        "deadline": tuple(map(int, times.groups())) if times and deadline else None,
    }


def by_proc(pid: int, tid: int) -> dict[str, Any]:
    """What the files of one sleeping thread say."""
    task = Path(f"/proc/{pid}/task/{tid}")
    stat = (task / "stat").read_bytes().rpartition(b") ")[2].split()
    status = dict(
        line.split(":\t", 1)
        for line in (task / "status").read_text("utf-8", "replace").splitlines()
        if ":\t" in line
    )
    in_hierarchy = (
        line.split(":", 2) for line in (task / "cgroup").read_text().splitlines()
    )
    groups = {one: path for _, names, path in in_hierarchy for one in names.split(",")}
    field = {number: int(word) for number, word in enumerate(stat[1:], 4)}
    return {
        "comm": (task / "comm").read_bytes()[:-1].decode("utf-8", "backslashreplace"),
        "kind": "kernel" if field[9] & 0x00200000 else "user",
        "minor_faults": field[10],
        "major_faults": field[12],
        "kernel_priority": field[18],
        "nice": field[19],
        "last_cpu": field[39],
        "cpus": status["Cpus_allowed_list"],
        "voluntary_switches": int(status["voluntary_ctxt_switches"]),
        "involuntary_switches": int(status["nonvoluntary_ctxt_switches"]),
        "timer_slack_ns": int(Path(f"/proc/{tid}/timerslack_ns").read_text()),
        "cpu_time_ns": int((task / "schedstat").read_text().split()[0]),
        "capabilities": status["CapEff"],
        "cgroup": groups.get("cpu", groups.get("")),
    }


def listed_asleep(
    pid: int, tids: Sequence[int]
) -> tuple[dict[int, TaskLine], dict[int, dict[str, Any]]]:
    """List threads while none of them runs; give what /proc says of them, too."""
    end = time.monotonic() + PATIENCE_S
    while True:
        before = {tid: by_proc(pid, tid) for tid in tids}
        found = tasks_of(listed(), pid)
        if {tid: by_proc(pid, tid) for tid in tids} == before:
            return found, before
        # One of them was still on its way to its first sleep.
        assert time.monotonic() < end, "they never all slept"


def as_chrt(line: TaskLine) -> dict[str, Any]:
    times = line.deadline
    return {
        "policy": line.policy,
        "priority": line.priority,
        "reset_on_fork": line.reset_on_fork,
        "deadline": times and (times.runtime_ns, times.deadline_ns, times.period_ns),
    }


@pytest.mark.usefixtures("root")
def test_each_thread_is_what_chrt_and_proc_say_of_it() -> None:
    with scene() as (pid, made):
        found, told_of = listed_asleep(pid, [pid, *made.values()])

        assert set(made.values()) <= set(found)
        assert {found[made[n]].policy for n in ("fifo", "rr", "batch", "idle")} == {
            "fifo",
            "rr",
            "batch",
            "idle",
        }
        for tid in [pid, *made.values()]:
            line = found[tid]
            told = told_of[tid]
            assert as_chrt(line) == by_chrt(tid), line
            assert name_of(line) == told.pop("comm")
            assert {key: getattr(line, key) for key in told} == told
            assert line.unreadable == {}


@pytest.mark.usefixtures("root")
def test_the_command_shows_them_with_their_marks() -> None:
    with scene() as (pid, made):
        with rtscope("tasks", "--pid", str(made["rr"]), "--json") as program:
            done = program.finish()
        rows = {row["tid"]: row for row in json.loads(done.stdout)["threads"]}

        assert done.status == 0, done.stderr
        assert set(rows) == {pid, *made.values()}
        marks = {
            name: {mark["id"] for mark in rows[tid]["marks"]}
            for name, tid in made.items()
        }
        assert "priority_99" in marks["fifo_99"]
        assert "fifo_peers" in marks["fifo"]
        assert marks["deadline"] == {"deadline"}
        assert "reset_on_fork" in marks["fifo_reset"]
        assert marks["irq/9-\u202eacpi"] == set()

        with rtscope("tasks", "--rt", "--share", "50ms") as program:
            table = program.finish()

    assert table.status == 0, table.stderr
    text = " ".join(table.stdout.decode().split())
    assert f"{made['deadline']} deadline" in text
    assert "2 % of a CPU reserved (2 ms in each 100 ms, within 50 ms)" in text
    assert "CPU% over 50 ms" in text


def effective_of(pid: int, tid: int) -> int:
    stat = Path(f"/proc/{pid}/task/{tid}/stat").read_bytes()
    return int(stat.rpartition(b") ")[2].split()[15])


@pytest.mark.usefixtures("root")
def test_a_thread_with_a_lock_that_a_real_time_thread_wants_is_boosted() -> None:
    with scene("boosted") as (pid, made):
        holder, waiter = made["holder"], made["waiter"]
        until(lambda: effective_of(pid, holder) == -71, what="a boost")
        words = ("tasks", "--pid", str(pid), "--rt", "--sort", "priority", "--json")
        with rtscope(*words) as program:
            done = program.finish()
        rows = json.loads(done.stdout)["threads"]

        assert done.status == 0, done.stderr
        # Both run at 70 now, and only one of them by its own policy.
        assert {row["tid"]: row["policy"] for row in rows} == {
            holder: "other",
            waiter: "fifo",
        }
        boosts = {row["tid"]: (row["kernel_priority"], row["boosted"]) for row in rows}
        assert boosts == {holder: (-71, True), waiter: (-71, False)}
        (mark,) = next(row for row in rows if row["tid"] == holder)["marks"]
        assert mark == {"id": "boosted", "detail": "runs as real-time 70"}
        assert by_chrt(holder)["policy"] == "other"


def test_threads_that_vanish_all_the_time_are_no_error() -> None:
    gone = 0
    with scene("vanishing") as (pid, _):
        for _ in range(40):
            done = listed("--window-ns", "20000000")
            assert pid in tasks_of(done, pid)
            gone += end_of(done).vanished + (end_of(done).window_ended or 0)
            if gone:
                break

    assert gone


def test_a_user_sees_what_proc_shows_and_the_rest_has_its_reason(
    public_agent: Path, root: None
) -> None:
    prefix = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    done = listed(prefix=prefix, agent=public_agent)
    own = tasks_of(done, os.getpid())[os.getpid()]

    assert end_of(done).uid == NOBODY
    assert (own.policy, own.cpus) == ("other", as_list(os.getpid()))
    assert own.timer_slack_ns is None
    assert own.unreadable == {"timer_slack_ns": "Operation not permitted"}


def as_list(pid: int) -> str:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^Cpus_allowed_list:\t(.*)$", status, re.MULTILINE)
    assert found is not None
    return found[1]


def test_two_thousand_threads_are_all_there() -> None:
    with scene("many", "2000") as (pid, _):
        done = listed()

    assert len(tasks_of(done, pid)) == 2001
    assert end_of(done).not_read == 0


def on_a_terminal(*words: str, lines: int, typed: tuple[str, bytes]) -> tuple[int, str]:
    """Run rtscope there; when it has shown a text, type; return status and screen."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (lines, 80))
    argv = ["setsid", "--ctty", sys.executable, "-m", "rtscope", *words]
    # Without the size that readline has put into the environment of pytest.
    env = {k: v for k, v in os.environ.items() if k not in ("LINES", "COLUMNS")}
    started = subprocess.Popen(
        argv, stdin=theirs, stdout=theirs, stderr=theirs, env=env
    )
    os.close(theirs)
    shown, (text, keys) = b"", typed
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while piece := os.read(ours, 4096):
            shown += piece
            if keys and text.encode() in shown:
                os.write(ours, keys)
                keys = b""
    os.close(ours)
    return started.wait(), shown.decode()


OVER = r"CPU%(?:\x1b\[[0-9;]*m|\s)+over"
"""At the end of the sums, which take two lines where threads are of many kinds."""


@pytest.mark.parametrize("order", ["process", "name"])
def test_a_live_list_fits_on_its_screen_until_ctrl_c(order: str) -> None:
    with scene("many", "200"):
        status, shown = on_a_terminal(
            *("tasks", "--watch", "100ms", "--sort", order),
            lines=20,
            typed=("threads: ", b"\x03"),  # never in two lines, as the sums behind it
        )

    first, *_ = re.split(OVER, shown.removeprefix("\x1b["), maxsplit=1)
    codes = set(re.findall(r"\x1b(\[[0-9;]*[A-Za-z])", shown))
    assert status == 130
    assert "rtscope: interrupted" in shown
    assert shown.startswith("\x1b[")  # it clears the screen,
    assert not any(f"\\x1b{code}" in shown for code in codes)  # and does not show how
    assert first.count("\n") < 20
    assert " more: --rt, --sort share" in first
