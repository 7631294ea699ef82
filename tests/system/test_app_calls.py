"""Each call that may block is named with its longest time; harmless ones are none."""

import json
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from rig import PATIENCE_S, repeated, rtscope

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("root")]

MANY = 5
"""Of a longest wait that begins before the agent looks at wake-ups none is seen."""
SOURCE = Path(__file__).parent.parent / "offenders" / "calls.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("needs gcc")
    out = tmp_path_factory.mktemp("calls") / "prog"
    argv = [gcc, "-O1", "-g", "-w", "-o", str(out), str(SOURCE), "-pthread", "-lrt"]
    subprocess.run(argv, check=True)
    return out


def findings_of(program: Path, kind: str, place: Path) -> dict[str, Any]:
    """Check it; return what was found of its calls, by ids."""
    findings = answer_of(program, kind, place)["findings"]
    of_calls = [one for one in findings if one["id"] in ("RA08", "RA09", "RA24")]
    # not the one about the clock of a call's deadline
    return {one["id"]: one for one in of_calls if not one["detail"].startswith("until")}


def answer_of(program: Path, kind: str, place: Path) -> Any:
    """Check it; return the whole answer."""
    place.mkdir(exist_ok=True)
    words = ("app", "check", "--json", "--duration", "1s", "--settle", "1s")
    named = ("--thread", "cycle", "--", str(program), kind, str(place))
    with rtscope(*words, *named) as checked:
        done = checked.finish(4 * PATIENCE_S)
    assert done.status in (0, 1, 3), done.stderr
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def unseen_calls(answer: dict[str, Any]) -> list[Any]:
    return [one for one in answer["not_seen"] if one["ids"] == ["RA09"]]


def names_in(finding: dict[str, Any]) -> set[str]:
    return {one["name"] for one in finding["calls"]}


def test_calls_that_touch_files_or_wait_for_others(
    program: Path, tmp_path: Path
) -> None:
    found = findings_of(program, "many", tmp_path / "place")

    one = found["RA09"]
    wanted = {
        *("rename", "unlink", "ftruncate", "fallocate", "access", "msync"),
        *("sync_file_range", "preadv", "pwritev", "close", "mq_timedreceive"),
        *("semtimedop", "sendmmsg", "recvmmsg", "getrandom", "membarrier", "openat"),
    }
    assert wanted <= names_in(one)
    assert {"newfstatat", "stat", "statx"} & names_in(one)
    for call in one["calls"]:
        assert 0 < call["longest_ns"] <= one["worst"]["lasted_ns"], call
        assert call["count"] > 0
        assert call["why"]
        assert call["name"] in one["detail"]
    assert sum(call["count"] for call in one["calls"]) == one["count"]


def test_a_wait_inside_the_kernel_has_who_ended_it(
    program: Path, tmp_path: Path
) -> None:
    for _ in range(MANY):
        one = findings_of(program, "many", tmp_path / "place")["RA24"]
        (call,) = [call for call in one["calls"] if call["name"] == "membarrier"]
        assert 0 < call["longest_in_kernel_ns"] <= call["longest_ns"]
        assert "RCU" in call["why"]
        if call["ended_by"]:
            return
    pytest.fail("of none of the longest waits was seen who ended it")


def test_other_calls_that_may_block(program: Path, tmp_path: Path) -> None:
    found = findings_of(program, "others", tmp_path / "place")

    wanted = {
        *("openat", "close", "flock", "fcntl", "msgsnd", "msgrcv", "splice", "read"),
        *("getdents64", "statx", "sched_yield", "copy_file_range", "mkdir", "rmdir"),
        "fsync",
    }
    assert wanted <= names_in(found["RA09"])
    assert "lseek" not in names_in(found["RA09"])
    assert {"madvise", "mmap", "munmap"} <= names_in(found["RA08"])


@pytest.mark.parametrize(
    "kind", ["harmless", "poll", "ppoll", "epoll", "select", "timerfd"]
)
def test_calls_that_cannot_block_and_the_wait_for_the_next_cycle_are_none(
    program: Path, tmp_path: Path, kind: str
) -> None:
    assert findings_of(program, kind, tmp_path / "place") == {}


def test_a_call_is_judged_by_the_flags_that_its_descriptor_had(
    program: Path, tmp_path: Path
) -> None:
    answer = repeated(
        lambda: answer_of(program, "brief", tmp_path / "place"),
        lambda answer: unseen_calls(answer) == [],  # no room, on a busy machine
    )

    (one,) = [one for one in answer["findings"] if one["id"] == "RA09"]
    assert names_in(one) == {"socket", "close", "dup", "openat", "pwrite64", "writev"}
    assert unseen_calls(answer) == []


def test_a_program_of_another_user_is_seen_as_one_of_root_is(program: Path) -> None:
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    place.chmod(0o777)
    try:
        copy = Path(shutil.copy(program, place))
        user = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups")
        rights = ("--inh-caps", "+sys_nice,+ipc_lock", "--ambient-caps")
        start = (*user, *rights, "+sys_nice,+ipc_lock", str(copy), "harmless")
        with subprocess.Popen([*start, str(place)]) as running:
            try:
                time.sleep(1)
                words = ("app", "check", "--json", "--duration", "1s")
                with rtscope(*words, "--thread", "cycle", str(running.pid)) as checked:
                    done = checked.finish(4 * PATIENCE_S)
            finally:
                running.kill()
    finally:
        shutil.rmtree(place)
    answer = json.loads(done.stdout)

    # its descriptors and its files are behind /proc/PID, which is its user's
    assert "RA09" not in {one["id"] for one in answer["findings"]}
    unseen = {id_ for one in answer["not_seen"] for id_ in one["ids"]}
    assert not {"RA07", "RA09", "RA20"} & unseen


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program for the 32-bit mode of this processor."""
    if platform.machine() != "x86_64":
        pytest.skip("needs a processor with a mode of 32 bits and zig's musl for it")
    out = tmp_path_factory.mktemp("narrow") / "prog"
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", "x86-linux-musl")
    subprocess.run([*zig, "-O1", "-w", "-static", "-o", out, SOURCE], check=True)
    try:
        subprocess.run([out], check=False)
    except OSError:
        pytest.skip("needs a kernel with CONFIG_IA32_EMULATION")
    return out


def test_a_program_of_32_bits_has_the_calls_of_its_own_table(
    narrow: Path, tmp_path: Path
) -> None:
    found = findings_of(narrow, "others", tmp_path / "place")

    # musl opens, reads and waits by the calls of 32-bit x86
    wanted = {
        *("open", "close", "flock", "fcntl64", "splice", "read", "getdents64"),
        *("statx", "sched_yield", "copy_file_range", "mkdir", "rmdir", "fsync"),
    }
    assert wanted <= names_in(found["RA09"])
    assert {"madvise", "mmap2", "munmap"} <= names_in(found["RA08"])
    # of its numbers a program of 64 bits has these for other calls
    assert not {"stat", "lstat", "alarm", "shmdt"} & names_in(found["RA09"])


def test_a_program_of_32_bits_that_only_waits_for_its_cycle_has_no_finding(
    narrow: Path, tmp_path: Path
) -> None:
    assert findings_of(narrow, "ppoll", tmp_path / "place") == {}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="an instruction of x86")
def test_a_call_of_the_32_bit_gate_is_named_as_that_gate_does(
    program: Path, tmp_path: Path
) -> None:
    found = findings_of(program, "int80", tmp_path / "place")

    assert names_in(found["RA09"]) == {"write"}


def test_a_wait_for_events_within_a_cycle_is_one(program: Path, tmp_path: Path) -> None:
    found = findings_of(program, "within", tmp_path / "place")

    assert names_in(found["RA09"]) == {"poll"} or names_in(found["RA09"]) == {"ppoll"}


@pytest.fixture(scope="module")
def uring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program that waits in io_uring_enter()."""
    disabled = Path("/proc/sys/kernel/io_uring_disabled")
    if disabled.exists() and disabled.read_text().strip() != "0":
        pytest.skip("needs a kernel that permits io_uring")
    out = tmp_path_factory.mktemp("uring") / "prog"
    source = SOURCE.with_name("uring.c")
    argv = ["gcc", "-O1", "-g", "-o", str(out), str(source), "-pthread"]
    subprocess.run(argv, check=True)
    return out


def watched_uring(program: Path, kind: str) -> dict[str, Any]:
    words = ("app", "check", "--json", "--duration", "1s", "--settle", "1s")
    with rtscope(*words, "--thread", "cycle", "--", str(program), kind) as checked:
        done = checked.finish(4 * PATIENCE_S)
    assert done.status in (0, 1, 3), done.stderr
    assert done.stdout, done.stderr
    found = {one["id"]: one for one in json.loads(done.stdout)["findings"]}
    return {id_: one for id_, one in found.items() if id_ in ("RA08", "RA09", "RA24")}


@pytest.mark.parametrize("kind", ["idle", "submits"])
def test_the_idle_wait_in_io_uring_and_a_submission_are_none(
    uring: Path, kind: str
) -> None:
    assert watched_uring(uring, kind) == {}


def test_an_operation_of_io_uring_that_stalls_the_loop_is_found(uring: Path) -> None:
    one = watched_uring(uring, "stalls")["RA09"]

    (call,) = [c for c in one["calls"] if c["name"] == "io_uring_enter"]
    assert call["longest_ns"] >= 2_000_000
    assert call["slept"]
    lines = SOURCE.with_name("uring.c").read_text().splitlines()
    (line,) = (n for n, text in enumerate(lines, 1) if "stalls here" in text)
    frames = [frame for stack in one["stacks"] for frame in stack["frames"]]
    assert ("stall", line) in {(f["function"], f["line"]) for f in frames}
