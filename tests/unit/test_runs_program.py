"""A program of the user's on a board: its script, its output, starts that failed."""

import base64
import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace

import pytest

from rtscope.boards.parts.program import Program
from rtscope.boards.runs import program as programs
from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.program import ProgramRun, run_program
from rtscope.boards.runs.programscript import (
    STREAM_BYTES,
    TICK_NS,
    ProgramJob,
    job_of_program,
    script_of_program,
    spread_phases,
)
from rtscope.host.errors import BoardError, TargetError
from rtscope.measure.loads import LoadCommand
from rtscope.verbs.app.watch import snapshot_paths
from unit.test_app_boardwatch import PREPARED

MS = 1_000_000
JOB = ProgramJob(
    Program(("/prog", "--name", "a b"), {}, ("/lib", "/opt/lib")),
    duration_ns=1000 * MS,
    warmup_ns=100 * MS,
)


def script(job: ProgramJob = JOB) -> str:
    return script_of_program(job, facts=["/proc/version"])


def scripts(job: ProgramJob) -> Mapping[str, str]:
    files = job_of_program(job, facts=[]).files
    return {name: content.decode() for name, content in files.items()}


def begin(job: ProgramJob) -> str:
    return scripts(job)["begin"]


def test_a_shell_takes_all_scripts() -> None:
    loaded = replace(
        JOB,
        phases_ns=spread_phases(3),
        user=(1000, 100),
        cpus=(1,),
        stdin=b"1\n",
        load_command=LoadCommand(("stress-ng", "--cpu", "2"), 1 << 20, ()),
    )
    for job in (JOB, loaded):
        for text in (script(job), begin(job), scripts(job)["end"]):
            subprocess.run(["sh", "-n"], input=text, text=True, check=True)


def test_nothing_watches_the_program() -> None:
    text = script()

    assert "rtscope-agent load --log /out/guard-1.log -- busybox sh" in text
    assert not {"watch", "cycles", "tasks"} & set(text.split())


def test_the_program_gets_its_environment_user_and_streams() -> None:
    text = begin(
        replace(
            JOB,
            environment=(("A", "b 'c"), ("LD_LIBRARY_PATH", "/mine")),
            directory="/var/x y",
            user=(1000, 100),
            cpus=(0, 1),
            stdin=b"",
        )
    )

    assert "LD_LIBRARY_PATH=/mine:/lib:/opt/lib" in text
    assert """'A=b '"'"'c'""" in text
    assert "'/var/x y'" in text
    assert "start --user 1000:100 -- /prog --name 'a b'" in text
    assert "taskset 0x3 busybox chroot /program" in text
    assert "</job/stdin >>/streams/stdout 2>>/streams/stderr" in text
    assert "ulimit -r 99" in text


def test_what_ends_it_has_the_highest_priority_and_only_sleeps_until_then() -> None:
    lines = scripts(JOB)["end"].splitlines()

    assert "start --policy fifo --priority 99 -- busybox sh /job/end 1 0 &" in script()
    ended = lines.index(': >"/out/asked-$1"')
    assert lines[2:ended] == [
        "sleep 0.050000000",
        'rtscope-agent read -- "/proc/$pid/maps" >>"/out/maps-$1.jsonl"',
        "sleep 1.050000000",
    ]
    assert lines[-1] == 'kill -KILL "-$pid"'


def test_what_proc_says_of_it_is_read_when_its_time_is_over() -> None:
    lines = scripts(JOB)["end"].splitlines()

    over = lines.index('if [ "$2" = 1 ]; then')
    assert lines.index(': >"/out/asked-$1"') < over
    assert lines[over + 1] == 'rtscope-agent tasks >"/out/threads-$1.jsonl"'
    assert lines[over + 3 :] == ["fi", 'kill -KILL "-$pid"']
    assert {f'"{path}"' for path in snapshot_paths("$pid")} <= {
        *lines[over + 2].split()
    }


def test_a_boot_that_reads_it_is_the_same_until_then() -> None:
    asked = replace(JOB, describes=True)

    assert scripts(asked) == scripts(JOB)
    assert len(script(asked)) == len(script(JOB))
    assert "/job/end 1 1 &" in script(asked)


def test_each_start_begins_at_its_phase_of_a_tick() -> None:
    text = script(replace(JOB, phases_ns=spread_phases(4), seed=1))

    phases = re.findall(r"^RTSCOPE_PROGRAM=(\d+) rtscope-agent load", text, re.M)
    assert phases == [str(n * MS + 37_013) for n in range(4)]
    assert max(spread_phases(1000)) < TICK_NS
    assert "/out/guard-4.jsonl" in text


def test_a_load_runs_before_the_first_start_and_ends_after_the_last() -> None:
    command = LoadCommand(("stress-ng", "--cpu", "2"), None, ())
    lines = script(replace(JOB, load_command=command)).splitlines()

    load = next(i for i, line in enumerate(lines) if "stress-ng" in line)
    first = next(i for i, line in enumerate(lines) if "/job/begin" in line)
    assert lines[load + 1 : load + 3] == ["load=$!", "sleep 1.000000000"]
    assert load < first < lines.index("kill $load 2>/dev/null")


# --- what a board sends ---------------------------------------------------------------

HELLO = {"type": "load_hello", "schema": 2, "pid": 171, "argv": ["busybox"]}


def end(status: int | None = None, signal: int | None = None) -> Mapping[str, object]:
    rest = {"stop_requested": False, "killed": 0, "oom_kills": None, "cpu_ns": 1}
    return {"type": "load_end", "status": status, "signal": signal, **rest}


def ran(
    monkeypatch: pytest.MonkeyPatch,
    *lines: Mapping[str, object],
    lasted_s: float = 1.2,
    files: Mapping[str, str] | None = None,
    job: ProgramJob = JOB,
) -> ProgramRun:
    """Run a program on a board that sends these files."""
    named = {
        "guard-1.jsonl": "".join(f"{json.dumps(one)}\n" for one in lines),
        "begun-1": "20.00 30.00\n",
        "ended-1": f"{20 + lasted_s:.2f} 30.00\n",
        **(files or {}),
    }
    content = {name: text.encode() for name, text in named.items()}
    booted = Booted(content, {}, "", "", 1.0)
    monkeypatch.setattr(programs, "boot", lambda *_, **__: booted)
    monkeypatch.setattr(programs, "identity_of", lambda *_: None)
    return run_program(PREPARED, job)


def test_a_program_that_runs_until_it_is_ended_is_fine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    maps = "1000-2000 r-xp 00000000 00:01 7 /program/prog\n"
    stat = "{} (a) b) S 1 171 171 0"
    run = ran(
        monkeypatch,
        HELLO,
        end(signal=9),
        files={
            "asked-1": "",
            "stdout-1": "hello\n",
            "stdout-1.size": "6\n",
            "maps-1.jsonl": file_line("/proc/171/maps", maps)
            + file_line("/proc/180/maps", maps)
            + file_line("/proc/1/maps", maps),
            "stats-1.jsonl": file_line("/proc/171/stat", stat.format(171))
            + file_line("/proc/180/stat", stat.format(180))
            + file_line("/proc/1/stat", "1 (sh) S 0 1 1 0"),
        },
    )

    (start,) = run.starts
    assert (start.pid, start.stopped, start.signal) == (171, True, 9)
    assert start.lasted_ns == 1200 * MS
    assert start.stdout.text == "hello\n"
    assert set(start.maps) == {171, 180}
    assert start.maps[180][0].path == "/program/prog"


def file_line(path: str, text: str) -> str:
    content = base64.b64encode(text.encode()).decode()
    row = {"type": "file", "path": path, "status": "ok", "base64": content}
    return json.dumps(row) + "\n"


@pytest.mark.parametrize(
    ("lines", "lasted_s", "said"),
    [
        ([HELLO, end(status=4)], 0.5, "ended after 0.50 virtual s, with status 4"),
        ([HELLO, end(signal=11)], 0.5, "ended after 0.50 virtual s, by signal 11"),
        ([HELLO], 0.1, "did not begin"),
        ([], 0.1, "did not begin"),
    ],
)
def test_a_program_that_fails_is_named_with_what_it_printed(
    monkeypatch: pytest.MonkeyPatch,
    lines: list[Mapping[str, object]],
    lasted_s: float,
    said: str,
) -> None:
    files = {"stderr-1": "no such device\n", "stderr-1.size": "15\n"}
    with pytest.raises(BoardError) as failed:
        ran(monkeypatch, *lines, lasted_s=lasted_s, files=files)

    assert f"pc: prog {said}" in str(failed.value)
    assert "it printed: no such device" in str(failed.value)


def test_an_end_of_its_own_counts_although_its_time_was_over_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = {"asked-1": ""}
    (start,) = ran(monkeypatch, HELLO, end(status=0), files=late).starts
    assert not start.stopped
    with pytest.raises(BoardError, match="by signal 11"):
        ran(monkeypatch, HELLO, end(signal=11), files=late)


def test_a_program_that_ends_well_is_fine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (start,) = ran(monkeypatch, HELLO, end(status=0), lasted_s=0.5).starts

    assert (start.status, start.stopped) == (0, False)


def test_a_program_that_the_memory_killer_ended_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = "<3>[ 9.0] Out of memory: Killed process 171 (prog) total-vm:1kB\n"
    with pytest.raises(BoardError, match=r"signal 9.*nothing; .*out of its memory"):
        ran(monkeypatch, HELLO, end(signal=9), files={"kernel.log": log})


def test_an_error_of_the_agent_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    error = {"type": "error", "message": "no room", "cause": "other", "remedy": ""}
    with pytest.raises(TargetError, match="no room"):
        ran(monkeypatch, error)


@pytest.mark.parametrize(
    ("size", "text", "refused"),
    [
        (4, "abcd", False),
        (6, "abcdef", False),
        (8, "abcdefgh", False),
        (11, "abcd\n[3 bytes were not kept]\nefgh", False),
        (STREAM_BYTES, "abcd\n[33,554,424 bytes were not kept]\nefgh\n[it ", True),
    ],
)
def test_what_is_not_kept_of_an_output_is_said(
    monkeypatch: pytest.MonkeyPatch, size: int, text: str, refused: bool
) -> None:
    whole = "abcdefgh"[:size] if size < 9 else ""
    tail = whole[-4:] if whole else "efgh"
    files = {
        "stdout-1": "abcd",
        "stdout-1.size": str(size),
        "stdout-1.tail": tail,
        "asked-1": "",
    }
    (start,) = ran(monkeypatch, HELLO, end(signal=9), files=files).starts

    assert start.stdout.text.startswith(text)
    assert start.stdout.refused == refused


@pytest.mark.parametrize(
    ("user", "policy", "begins"),
    [
        ((0, 0), None, "/prog"),
        ((7, 8), None, "rtscope-agent start --user 7:8 -- /prog"),
        ((0, 0), ("rr", 3), "rtscope-agent start --policy rr --priority 3 -- /prog"),
        (
            (7, 8),
            ("fifo", 80),
            "rtscope-agent start --policy fifo --priority 80 --user 7:8 -- /prog",
        ),
    ],
)
def test_the_program_begins_with_its_policy_and_user(
    user: tuple[int, int], policy: tuple[str, int] | None, begins: str
) -> None:
    begin = scripts(replace(JOB, user=user, policy=policy))["begin"]

    assert begins in begin
    assert begin.count("rtscope-agent start") == ("start" in begins)
