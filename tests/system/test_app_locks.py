"""Waits for locks are found in all languages, and waits for work are none."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from rig import PATIENCE_S, most_long, rtscope

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("root")]

SOURCES = Path(__file__).parent.parent / "offenders"


def compiler(name: str, *places: str) -> str:
    """Return a compiler, or skip the test."""
    found = shutil.which(name) or next((p for p in places if Path(p).exists()), None)
    if found is None:
        pytest.skip(f"needs {name}")
    return found


def compiled(argv: Sequence[str | Path], **given: Any) -> None:
    done = subprocess.run(argv, check=False, capture_output=True, text=True, **given)
    if done.returncode:
        pytest.skip(f"cannot be compiled here: {done.stderr[-300:]}")


WATCHED_S = (1, 4, 16, 64)
"""
How long is watched, one after the other, until what is looked for has happened: the
holder of a lock is not real-time, so other work may keep it from its CPU meanwhile.
"""

Findings = dict[str, Any]


def findings_of(
    *command: str | Path,
    thread: str = "cycle",
    happened: Callable[[Findings], bool] = lambda _: True,
) -> Findings:
    """Check a program until it happened; return what is found of its thread, by ids."""
    for seconds in WATCHED_S:
        found = _watched(*command, thread=thread, seconds=seconds)
        if happened(found):
            break
    return found


def is_let_go(found: Findings) -> bool:
    """Whether a wait for a lock has ended while its holder was watched, too."""
    return "RA10" in found and ";" in found["RA10"]["detail"]


def waits(found: Findings) -> bool:
    """Whether a wait for a lock was seen."""
    return "RA10" in found


def is_held(found: Findings) -> bool:
    """Whether a wait for a lock that inherits ended while its holder was watched."""
    return "RA25" in found and ";" in found["RA25"]["detail"]


def is_woken(found: Findings) -> bool:
    """Whether one that is not real-time woke the thread, or it asked for its lock."""
    return bool({"RA12", "RA25"} & set(found))


def _watched(*command: str | Path, thread: str, seconds: int) -> Findings:
    words = ("app", "check", "--json", "--duration", f"{seconds}s", "--settle", "1s")
    named = ("--thread", thread, "--", *map(str, command))
    with rtscope(*words, *named) as program:
        done = program.finish(4 * PATIENCE_S)
    assert done.status in (0, 1, 3), done.stderr
    assert done.stdout, done.stderr
    found: Findings = {}
    for one in json.loads(done.stdout)["findings"]:
        found.setdefault(one["id"], one)
    return found


def is_lock(found: Findings, kind: str, function: str = "step") -> None:
    """Check that one wait for a lock was found, timed, with its holder and place."""
    one = found["RA10"]
    assert one["detail"].startswith(kind)
    assert one["count"] > 0
    assert 0 < one["worst"]["lasted_ns"] <= one["worst"]["total_ns"]
    functions = {f["function"] for s in one["stacks"] for f in s["frames"]}
    assert any(function in name for name in functions), functions


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("locks") / "prog"
    gcc = compiler("gcc")
    compiled([gcc, "-O1", "-g", "-o", out, SOURCES / "locks.c", "-pthread"])
    return out


LOCKS = [
    ("mutex", "a mutex"),
    ("robust", "a mutex"),
    ("timed", "a mutex"),
    ("rwlock", "a rwlock"),
    ("reader", "a rwlock"),
    ("semaphore", "a semaphore"),
]


@pytest.mark.parametrize(("kind", "words"), LOCKS)
def test_each_kind_of_lock_of_c(in_c: Path, kind: str, words: str) -> None:
    found = findings_of(in_c, kind, happened=is_let_go)

    is_lock(found, words)
    assert "holder (" in found["RA10"]["detail"]
    assert "holder (" in found["RA10"]["detail"]
    assert "not real-time) let it go in hold locks.c:" in found["RA10"]["detail"]


@pytest.mark.parametrize("kind", ["queue", "condition", "barrier", "eventfd", "pi"])
def test_a_wait_for_work_or_that_inherits_is_no_wait_for_a_lock(
    in_c: Path, kind: str
) -> None:
    happened = is_held if kind == "pi" else is_woken
    found = findings_of(in_c, kind, happened=happened)

    if kind == "condition":  # its mutex, which a preempted holder may truly have
        one = found.pop("RA10", {"stacks": []})
        assert all(
            any("mutex_lock" in frame["function"] for frame in stack["frames"])
            for stack in one["stacks"]
        )
    assert not {"RA09", "RA10", "RA11"} & set(found)
    if kind == "pi":
        assert found["RA25"]["detail"].startswith("a mutex; holder (")
        assert ") let it go in hold locks.c:" in found["RA25"]["detail"]
        assert "critical section" in found["RA25"]["remedy"]
    else:
        # the one that ends its wait
        assert "RA12" in found
        assert "RA25" not in found


@pytest.mark.parametrize(
    "kind", most_long(["mutex", "rwlock", "semaphore", "condition"])
)
@pytest.mark.parametrize("how", ["static and stripped", "musl"])
def test_locks_without_any_name(tmp_path: Path, how: str, kind: str) -> None:
    out = tmp_path / "prog"
    source = SOURCES / "locks.c"
    if how == "musl":
        target = f"{os.uname().machine}-linux-musl"
        zig = (sys.executable, "-m", "ziglang", "cc", "-target", target)
        compiled([*zig, "-O1", "-s", "-static", "-o", out, source, "-pthread"])
    else:
        gcc = compiler("gcc")
        compiled([gcc, "-O1", "-s", "-static", "-o", out, source, "-pthread"])

    if how == "musl" and kind == "rwlock":
        pytest.skip("its word is that of a parked thread of Rust")

    found = findings_of(out, kind, happened=is_woken if kind == "condition" else waits)

    assert ("RA10" in found) == (kind != "condition")


@pytest.mark.parametrize(
    ("kind", "words"), most_long([("mutex", "a mutex"), ("reader", "a rwlock")])
)
def test_locks_of_cpp(tmp_path: Path, kind: str, words: str) -> None:
    out = tmp_path / "prog"
    gxx = compiler("g++")
    compiled([gxx, "-O1", "-g", "-o", out, SOURCES / "locks.cc", "-pthread"])

    found = findings_of(out, kind, happened=waits)

    is_lock(found, words)
    assert "std::" in found["RA10"]["remedy"]


@pytest.fixture(scope="module")
def in_rust(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("locks") / "prog"
    rustc = compiler("rustc", str(Path.home() / ".cargo" / "bin" / "rustc"))
    compiled([rustc, "-g", "-C", "opt-level=1", "-o", out, SOURCES / "locks.rs"])
    return out


@pytest.mark.parametrize(
    ("kind", "words"), most_long([("mutex", "a mutex"), ("reader", "a rwlock")])
)
def test_locks_of_rust(in_rust: Path, kind: str, words: str) -> None:
    found = findings_of(in_rust, kind, happened=is_let_go)

    is_lock(found, words)
    assert "holder (" in found["RA10"]["detail"]
    assert "try_lock" in found["RA10"]["remedy"]


def test_a_channel_of_rust_is_no_lock(in_rust: Path) -> None:
    found = findings_of(in_rust, "queue", happened=is_woken)

    assert "RA12" in found
    # The channel has a mutex of its own, which receiver and sender may meet at.
    for stack in found.get("RA10", {}).get("stacks", []):
        assert any("lock_contended" in one["function"] for one in stack["frames"])


def test_locks_of_go(tmp_path: Path, go_cache: Path) -> None:
    out = tmp_path / "prog"
    go = compiler("go", "/usr/local/go/bin/go")
    env = {**os.environ, "GOCACHE": str(go_cache), "GO111MODULE": "off"}
    compiled([go, "build", "-o", out, SOURCES / "locks.go"], env=env)

    found = findings_of(out, "mutex", thread="prog", happened=waits)
    is_lock(found, "a sync.Mutex", "main.step")
    assert "sync/atomic" in found["RA10"]["remedy"]

    assert "RA10" not in findings_of(out, "queue", thread="prog")


def test_monitors_of_java(tmp_path: Path) -> None:
    java = compiler("java")
    compiled([compiler("javac"), "-d", tmp_path, SOURCES / "Locks.java"])
    small = (java, "-Xint", "-Xmx32m", "-XX:TieredStopAtLevel=1", "-cp", tmp_path)

    found = findings_of(*small, "Locks", "monitor")

    if "RA10" not in found:
        pytest.skip("needs the symbols of libjvm.so")
    is_lock(found, "a monitor", "ObjectMonitor")
    assert "JVM" in found["RA10"]["remedy"]


@pytest.mark.parametrize(
    ("kind", "words"), most_long([("lock", "a semaphore"), ("interpreter", "the GIL")])
)
def test_locks_of_python(kind: str, words: str) -> None:
    python = os.path.realpath(sys.executable)

    found = findings_of(python, SOURCES / "locks.py", kind, happened=waits)

    one = found["RA10"]
    assert one["detail"].startswith((words, "the GIL"))
    assert "another process" in one["remedy"]
