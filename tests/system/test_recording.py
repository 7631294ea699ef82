"""A board that records its worst paths: nothing changes, and they can be listed."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from rig import NEEDS_APT, RISCV, Done, Program, rtscope
from test_rights import python_for

from rtscope.record.directory.records import open_records

pytestmark = [
    pytest.mark.system,
    NEEDS_APT,
]

RUN = ("run", "--target", "virtual:jh7110", "--kernel", RISCV)
SHORT = (
    *("--load", "idle", "--duration", "1s", "--interval", "1ms"),
    *("--warmup", "0s", "--settle", "0s"),
)

PATIENCE_S = 900.0
"""It may wait for the parts of a board that another test fetches."""
NOBODY = 65_534


def finished(*words: str | Path, env: Mapping[str, str] | None = None) -> Done:
    with rtscope(*words, env=env) as program:
        done = program.finish(PATIENCE_S)
    assert done.status == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def with_it(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recorded run, which both tests compare another with."""
    out = tmp_path_factory.mktemp("recorded") / "with"
    finished(*RUN, *SHORT, "--out", out)
    return out


def test_recording_changes_no_result_and_a_second_pass_tells_more(
    with_it: Path, tmp_path: Path
) -> None:
    without = tmp_path / "without"
    finished(*RUN, *SHORT, "--no-record", "--out", without)

    (recorded,), (plain,) = open_records(with_it), open_records(without)
    assert recorded.result_digest == plain.result_digest
    worst_ns = max(t.max_ns or 0 for t in recorded.result.threads)

    (first,) = json.loads(finished("board", "trace", with_it, "--json").stdout)
    assert first["latency_ns"] == worst_ns
    assert (first["cut"], first["left_out"], first["unnamed"]) == (False, False, 0)
    called = {step["what"] for step in first["steps"]}
    assert {"hrtimer_interrupt", "__schedule", "(user space)"} <= called
    assert first["steps"][-1]["kind"] == "mark"

    again = finished("board", "trace", with_it, "--replay", "--json")
    (second,) = json.loads(again.stdout)
    assert second["functions"] == first["functions"]
    assert {"task", "preempt"} <= {step["kind"] for step in second["steps"]}

    words = finished("board", "trace", with_it, "--limit", "10").stdout.decode()
    assert "Worst wake-up 1" in words


def test_a_bundle_alone_gives_the_same_result_with_an_empty_cache(
    with_it: Path, tmp_path: Path
) -> None:
    there, bundle = tmp_path / "there", tmp_path / "b.tar"
    finished("board", "export", "jh7110", "--campaign", with_it, "--out", bundle)
    # Neither apt nor a compiler: nothing can be fetched or built.
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "env").symlink_to(str(shutil.which("env")))
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": str(bare)}

    finished("run", "--bundle", bundle, "--out", there, env=env)

    (one,), (two,) = open_records(with_it), open_records(there)
    assert two.result_digest == one.result_digest
    assert one.virtual is not None
    assert two.virtual is not None
    assert two.virtual.part_digests == one.virtual.part_digests


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_without_any_rights_measures_the_same(
    with_it: Path, scratch: Path
) -> None:
    bundle = scratch / "b.tar"
    finished("board", "export", "jh7110", "--campaign", with_it, "--out", bundle)
    bundle.chmod(0o644)
    scratch.chmod(0o777)
    user = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    words = ("run", "--bundle", bundle, "--out", scratch / "out")
    home = str(scratch)
    env = {"HOME": home, "XDG_CACHE_HOME": f"{home}/cache", "TMPDIR": home}

    with Program(
        ["setpriv", *user, *python_for(str(NOBODY)), *words], env=env
    ) as program:
        done = program.finish(PATIENCE_S)

    assert done.status == 0, done.stderr
    (one,), (two,) = open_records(with_it), open_records(scratch / "out")
    assert two.result_digest == one.result_digest
