"""Offenders are found by what they do, with thread, function, line and count."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from rig import (
    MARK,
    PATIENCE_S,
    agents_of,
    alive,
    marked,
    most_long,
    repeated,
    rtscope,
    until,
)

pytestmark = pytest.mark.system

SOURCE = Path(__file__).parent.parent / "offenders" / "offender.c"
FILE_BYTES = 64 * 4096
PERIODS_A_SECOND = 1000


@pytest.fixture(scope="module")
def offender(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    place = tmp_path_factory.mktemp("offenders")
    # its name is none of its offence's
    out = place / "offends"
    subprocess.run(["gcc", "-O1", "-g", "-o", out, SOURCE, "-pthread"], check=True)
    (place / "data").write_bytes(os.urandom(FILE_BYTES))
    os.sync()
    return out


def checked(
    offender: Path, offence: str, *, options: Sequence[str] = (), now: str = "1"
) -> tuple[int, dict[str, Any]]:
    env = {**os.environ, "LD_BIND_NOW": now}
    words = ("app", "check", "--json", "--duration", "1s", "--settle", "300ms")
    command = (str(offender), offence, str(offender.with_name("data")))
    with rtscope(*words, *options, "--", *command, env=env) as program:
        done = program.finish(3 * PATIENCE_S)
    assert done.status in (0, 1), done.stderr
    document = json.loads(done.stdout)
    return done.status, document | {"findings": list(_own(document))}


OTHERS = ("RA13", "RA14")
OF_THE_MACHINE = "RA17"
"""Cycles that are late because this machine stood still."""
THREADS = ("offends", "cycle", "above", "owner", "between", "poster")


def _own(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Leave out what other programs of this machine do to these threads."""
    ours = {f" {thread['tid']} " for thread in document["threads"]}
    for one in document["findings"]:
        if one["id"] == OF_THE_MACHINE:
            continue
        if one["id"] in OTHERS and one["worst"]["where"] not in THREADS:
            continue
        # the machine's interrupt threads have 50, on whichever CPU it puts them
        if one["id"] == "RA02" and " below " in one["detail"]:
            continue
        its_own = one["detail"].startswith("fifo 99")  # whoever else has it too
        named = "" if its_own else one["detail"].partition(" of priority ")[2]
        if named and sum(tid in named for tid in ours) < 2:
            continue
        yield one


def by_id(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in document["findings"]}


def line_of(text: str) -> int:
    lines = SOURCE.read_text().splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if text in line]
    return number


def test_a_program_that_does_nothing_wrong_has_no_findings(
    offender: Path, root: None
) -> None:
    status, document = checked(offender, "clean")

    assert document["findings"] == []
    assert document["not_seen"] == []
    assert status in (0, 1)


@pytest.mark.parametrize(
    ("offence", "id_", "others"),
    most_long(
        [
            ("policy", "RA01", {"RA18"}),
            ("priority-99", "RA02", set()),
            ("peers", "RA02", set()),
            # other work moves what may run anywhere
            ("not-pinned", "RA03", {"RA15"}),
            ("not-locked", "RA04", {"RA23"}),
            ("on-fault", "RA23", set()),
            ("rttime", "RA19", set()),
        ],
        but=4,
    ),
)
def test_a_wrong_setup_is_found(
    offender: Path, root: None, offence: str, id_: str, others: set[str]
) -> None:
    status, document = checked(offender, offence)

    assert status == 1
    assert set(by_id(document)) - others == {id_}


@pytest.mark.parametrize(
    ("offence", "id_", "a_second", "function", "line", "others"),
    [
        (
            "minor-fault",
            "RA05",
            1000,
            "touch",
            "*(volatile char *)where",
            {"RA04", "RA08"},
        ),
        (
            "major-fault",
            "RA06",
            50,
            "peek",
            "*(const volatile char *)",
            # of the disk: it wakes the thread; fadvise64 of the offender's own
            {"RA04", "RA08", "RA09", "RA12", "RA24"},
        ),
        ("malloc", "RA07", 2000, "offend", "= malloc(100)", set()),
        # sched_setaffinity waits until the thread has left its CPU
        ("migration", "RA15", 1000, None, None, {"RA09", "RA24"}),
        ("mmap", "RA08", 2000, "offend_in_system", "PROT_READ, MAP_PRIVATE", set()),
        ("write", "RA09", 1000, "offend_in_system", 'write(fd, "x", 1)', set()),
        ("relative-sleep", "RA09", 1000, "offend_in_system", "usleep(10)", set()),
        ("tai-sleep", "RA09", 1000, "offend_in_system", "nanosleep(CLOCK_TAI", set()),
        ("signal", "RA21", 1000, "offend_in_system", "raise(SIGUSR1)", set()),
    ],
)
def test_what_a_thread_does_is_found_with_its_place(
    offender: Path,
    root: None,
    offence: str,
    id_: str,
    a_second: int,
    function: str | None,
    line: str | None,
    others: set[str],
) -> None:
    status, document = checked(offender, offence)

    assert status == 1
    findings = by_id(document)
    assert set(findings) - others == {id_}
    one = findings[id_]
    assert one["thread"] == "cycle"
    # a machine that is busy misses periods, and never makes more of them
    expected = a_second * document["window_ns"] / 1e9
    assert 0.2 * expected < one["count"] <= 1.1 * expected + 2
    if id_ in ("RA05", "RA06", "RA08") or offence == "write":
        is_timed(one, document["window_ns"])
        assert offence != "write" or one["worst"]["where"] == "write"
    if function is None or line is None:
        return
    assert all(stack["complete"] for stack in one["stacks"])
    frames = [f for f in one["stacks"][0]["frames"] if f["line"] and f["file"]]
    own = [f for f in frames if Path(f["file"]).name == SOURCE.name]
    assert own[0]["function"] == function
    # a call of several lines may be of any of them
    assert abs(own[0]["line"] - line_of(line)) <= 1


def test_a_static_program_is_seen_as_others_are(
    offender: Path, root: None, tmp_path: Path
) -> None:
    static = tmp_path / "offends"
    argv = ["gcc", "-O1", "-g", "-static", "-o", str(static), str(SOURCE), "-pthread"]
    if subprocess.run(argv, check=False, capture_output=True).returncode:
        pytest.skip("needs a static C library")

    _, document = checked(static, "malloc")

    one = by_id(document)["RA07"]
    assert set(by_id(document)) == {"RA07"}
    assert all(stack["complete"] for stack in one["stacks"])
    functions = [f["function"] for f in one["stacks"][0]["frames"]]
    assert functions[1:3] == ["offend", "cycle"]


def test_a_wait_for_a_lock_is_found_with_its_place(offender: Path, root: None) -> None:
    _, document = checked(offender, "mutex")

    # Its owner is not real-time: other work of this machine may keep it from its CPU,
    # and events are lost then: who wakes the thread is known, and for which lock not.
    assert set(by_id(document)) - {"RA11", "RA12"} == {"RA01", "RA10"}
    one = by_id(document)["RA10"]
    assert one["thread"] == "cycle"
    functions = {f["function"] for s in one["stacks"] for f in s["frames"]}
    assert "offend_in_system" in functions
    assert 0 < one["worst"]["lasted_ns"] <= document["window_ns"]


def test_an_inversion_is_found_with_owner_and_the_one_between(
    offender: Path, root: None
) -> None:
    _, document = checked(offender, "inversion")

    # Of a busy machine a wake-up may come without its lock.
    others = [one for one in document["findings"] if one["thread"] != "cycle"]
    of_cycle = [
        one
        for one in document["findings"]
        if one["thread"] == "cycle" and one["id"] != "RA12"
    ]
    assert [one["id"] for one in of_cycle] == ["RA10", "RA11"]
    one = of_cycle[1]
    assert one["count"] == one["worst"]["timed"] > 0
    assert "owner (" in one["detail"]
    # Others of this machine may have had the CPU too.
    held = r"owner \(\d+, priority 10\) had the lock, (.*, )?between \("
    assert re.search(held, one["detail"])
    assert one["worst"]["where"] == "between"
    functions = {f["function"] for s in one["stacks"] for f in s["frames"]}
    assert "offend_in_system" in functions
    # the owner is preempted by the same thread, and nobody else is
    assert {(one["id"], one["thread"]) for one in others} <= {
        ("RA09", "owner"),
        ("RA09", "between"),
        ("RA10", "owner"),
        ("RA13", "owner"),
    }


def test_who_wakes_a_thread_is_found(offender: Path, root: None) -> None:
    _, document = checked(offender, "woken")

    assert set(by_id(document)) == {"RA01", "RA12"}
    one = by_id(document)["RA12"]
    assert one["thread"] == "cycle"
    assert "by poster (" in one["detail"]
    assert "not real-time" in one["detail"]
    assert 0 < one["count"] <= 1.1 * PERIODS_A_SECOND * document["window_ns"] / 1e9 + 2


def is_timed(one: dict[str, Any], window_ns: int) -> None:
    """Check that what was counted was also timed, from its begin to its end."""
    worst = one["worst"]
    # of faults those with a stack; counters, one of each CPU, begin and end one after
    # the other, on a busy machine within some of the offender's periods
    most = min(one["count"], 32) if one["id"] in ("RA05", "RA06") else one["count"]
    assert 0.8 * most - 5 < worst["timed"] <= most + 20
    assert 0 < worst["lasted_ns"] <= worst["total_ns"] <= window_ns
    assert worst["after_ns"] <= window_ns


def test_a_preemption_is_found_in_the_thread_that_was_preempted(
    offender: Path, root: None
) -> None:
    # what other work preempts longest is no finding of ours
    _, document = repeated(
        lambda: checked(offender, "preempted"), lambda seen: seen[1]["findings"] != []
    )

    assert {one["id"] for one in document["findings"]} == {"RA13"}
    (one,) = document["findings"]
    assert one["thread"] == "cycle"
    assert one["count"] > 0
    is_timed(one, document["window_ns"])
    assert one["worst"]["where"] == "above"
    spins = [s for s in one["stacks"] if "spin" in {f["function"] for f in s["frames"]}]
    assert spins
    assert all(stack["complete"] for stack in spins)


def test_functions_that_are_looked_up_at_their_first_call_are_found(
    offender: Path, root: None
) -> None:
    _, document = checked(offender, "clean", now="")

    assert set(by_id(document)) <= {"RA20"}


def test_a_process_that_is_not_there_is_a_wrong_command(root: None) -> None:
    with rtscope("app", "check", "4194305") as program:
        done = program.finish()

    assert done.status == 2
    assert "there is no such process" in done.stderr


BROKEN = r"""
import sys
sys.stderr.write("a line of the flood\n" * 100_000)
sys.stderr.write("no device /dev/robot\x1b[31m: is it plugged in?\n")
sys.stderr.write("motor: cannot begin\n" + "\n" * 50)
sys.exit(4)
"""


def test_a_program_that_ends_with_an_error_at_its_start_says_why() -> None:
    command = (sys.executable, "-c", BROKEN)
    with rtscope("app", "check", "--duration", "1s", "--", *command) as running:
        done = running.finish(PATIENCE_S)

    assert done.status == 3
    assert "with status 4" in done.stderr
    assert "no device /dev/robot" in done.stderr
    assert "motor: cannot begin" in done.stderr
    assert "\x1b" not in done.stderr
    assert len(done.stderr) < 1_500


def test_a_program_that_floods_its_standard_error_is_kept_in_bounds(
    tmp_path: Path,
) -> None:
    code = "import os, time\nwhile 1: os.write(2, bytes(4096)); time.sleep(1e-3)"
    command = (sys.executable, "-c", code)
    words = ("app", "check", "--light", "--duration", "3s", "--fail-on", "never")
    with rtscope(*words, "--", *command) as running:
        until(lambda: bool(agents_of(running.pid, "load")), what="its guard runs")
        (guard,) = agents_of(running.pid, "load")
        sizes = []
        while alive([guard]):
            with suppress(OSError):
                files = Path(f"/proc/{guard}/fd").iterdir()
                errors = [
                    one for one in files if "rtscope-errors" in str(one.readlink())
                ]
                sizes += [512 * one.stat().st_blocks for one in errors]
            time.sleep(0.05)
        running.finish(PATIENCE_S)

    # 4 MB/s, of whose memory the begin is given back, whatever else the machine does
    assert sizes
    assert min(sizes[len(sizes) // 2 :]) < 1 << 20


HOSTILE = """
import os, signal, sys, time
how, own = sys.argv[1], os.path.realpath("/proc/self/exe")
if how == "stops its guard":
    os.kill(os.getppid(), signal.SIGSTOP)
if how == "deletes itself":
    os.unlink(own)
if how == "renames itself":
    os.rename(own, own + ".other")
    open("/proc/self/comm", "w").write("other \\n name")
if how == "executes itself":
    time.sleep(1)
    os.execv(own, [own, "-c", "import time; time.sleep(600)"])
while True:
    if how == "forks":
        if os.fork() == 0:
            os.execv("/bin/true", ["true"])
        os.wait()
    time.sleep(0.02)
"""
WAYS = [
    *("stops its guard", "deletes itself", "renames itself", "executes itself"),
    "forks",
]


@pytest.mark.parametrize("how", most_long(WAYS, but=2))
def test_a_program_that_plays_tricks_has_an_answer_and_ends(
    tmp_path: Path, root: None, how: str
) -> None:
    own = shutil.copy(os.path.realpath(sys.executable), tmp_path / "offends")
    command = ("env", f"PYTHONHOME={sys.base_prefix}", str(own), "-c")
    if subprocess.run([*command, "pass"], capture_output=True).returncode:
        pytest.skip("this interpreter does not run as a copy")
    words = ("app", "check", "--json", "--duration", "1s", "--settle", "500ms")
    mark = f"{os.getpid()}.{how}"
    with rtscope(*words, "--", *command, HOSTILE, how, env={MARK: mark}) as running:
        done = running.finish(4 * PATIENCE_S)

    assert done.status in (1, 3), done.stderr
    assert "Traceback" not in done.stderr
    if done.status == 1:
        assert json.loads(done.stdout)["threads"]
    until(lambda: not marked(mark), what="all that it started has ended")


def test_the_quiet_answer_is_one_line(offender: Path, root: None) -> None:
    words = ("app", "check", "-q", "-d", "1s", "--settle", "300ms")
    with rtscope(*words, "--", str(offender), "clean") as program:
        done = program.finish(3 * PATIENCE_S)

    (line,) = done.stdout.decode().splitlines()
    assert " (process " in line
    assert " judged, watched for " in line


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGKILL])
def test_nothing_stays_when_the_check_is_ended(
    offender: Path, root: None, signo: signal.Signals
) -> None:
    words = ("app", "check", "--duration", "1m", "--", str(offender), "clean")
    mark = f"{os.getpid()}.{signo}"
    with rtscope(*words, env={MARK: mark}) as program:
        until(lambda: bool(agents_of(program.pid, "watch")), what="it watches")
        os.kill(program.pid, signo)
        program.finish()
        # One that was just starting, too, and the program that it was to watch.
        until(lambda: not marked(mark), what="all that it started has ended")
    left = subprocess.run(["pgrep", "-f", str(offender)], capture_output=True)
    assert left.stdout == b""


def test_probes_leave_a_program_soon_after_the_answer(
    offender: Path, root: None
) -> None:
    command = [str(offender), "malloc", str(offender.with_name("data"))]
    running = subprocess.Popen(command, env={**os.environ, "LD_BIND_NOW": "1"})
    try:
        words = ("app", "check", str(running.pid), "--duration", "2s", "--json")
        with rtscope(*words) as program:
            until(lambda: breakpoints_in(running.pid) > 0, what="it has probes")
            done = program.finish(3 * PATIENCE_S)
        assert done.status == 1, done.stderr
        until(lambda: breakpoints_in(running.pid) == 0, what="its probes are out")
        assert running.poll() is None
    finally:
        running.kill()
        running.wait()


def breakpoints_in(pid: int) -> int:
    """Return how many bytes of the C library's code are others than in its file."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    rows = [row.split() for row in maps if " r-xp " in row and "/libc" in row]
    if not rows:
        return 0
    begin, end = (int(one, 16) for one in rows[0][0].split("-"))
    memory_file, library = Path(f"/proc/{pid}/mem"), Path(rows[0][5])
    with memory_file.open("rb") as memory, library.open("rb") as file:
        memory.seek(begin)
        file.seek(int(rows[0][2], 16))
        there, stored = memory.read(end - begin), file.read(end - begin)
    return sum(one != other for one, other in zip(there, stored, strict=False))
