"""`rtscope app unit` writes a unit that starts something, or nothing."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from fakes import targets
from fakes.commandline import Rtscope
from fakes.threads import listing, task
from rtscope.verbs.app import unit as appunit
from rtscope.verbs.app.running import RunningProgram, running_program

SEEN = replace(
    running_program(
        100, listing(task(100, name="control", cpus="0")).threads, {}, directory="/"
    ),
    argv=("/opt/control", "--fast"),
    executable="/opt/control",
)


def given(monkeypatch: pytest.MonkeyPatch, seen: RunningProgram) -> None:
    target = targets.target({})
    monkeypatch.setattr(
        appunit, "open_target", lambda address: contextlib.nullcontext(target)
    )
    monkeypatch.setattr(appunit, "find_process", lambda machine, program: seen.pid)
    monkeypatch.setattr(appunit, "see_program", lambda machine, pid: seen)


def test_the_unit_is_written_where_it_is_asked_for(
    rtscope: Rtscope, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given(monkeypatch, SEEN)
    out = tmp_path / "control.service"
    said = rtscope("app", "unit", "100", "--out", out)

    assert (said.status, said.out) == (0, ""), said.err
    assert "ExecStart=/opt/control --fast\n" in out.read_text()


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (replace(SEEN, argv=()), "thread of the kernel"),
        (replace(SEEN, executable=""), "/proc/100/maps has no file"),
        (
            replace(SEEN, argv=(), denied={"cmdline": "permission denied"}),
            "/proc/100/cmdline: permission denied; type it as root",
        ),
    ],
)
def test_a_unit_that_would_start_nothing_is_not_written(
    seen: RunningProgram,
    why: str,
    rtscope: Rtscope,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    given(monkeypatch, seen)
    out = tmp_path / "control.service"
    written = rtscope("app", "unit", "100", "--out", out)
    printed = rtscope("app", "unit", "100")

    assert (written.status, written.out) == (3, "")
    assert not out.exists()
    assert (printed.status, printed.out) == (3, "")
    for said in (written, printed):
        assert "process 100" in said.err
        assert why in said.err
