"""The command line in this process, with its output caught and its effects undone."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes import targets
from fakes.bootedboard import FakeBoard
from fakes.commandline import Rtscope, Said
from fakes.drawn import drawn_once
from fakes.faketarget import FakeTarget
from fakes.forked import Forked, loaded
from fakes.sweepfile import FILE
from rtscope.boards.runs import runner
from rtscope.cli import main, start
from rtscope.machine import target
from rtscope.verbs.run import run
from rtscope.verbs.sweep import sweep

FIRST = """
from fakes import measurements, targets
from rtscope.cli import main, options
from rtscope.verbs.explain import explain
from rtscope.verbs.report import report
from rtscope.verbs.run import run
from rtscope.present.documents.pages import render_html
from rtscope.present.model.build import build_model
render_html(build_model([measurements.record([measurements.thread([7_000] * 60)])]))
"""


@pytest.fixture(scope="session")
def forked() -> Iterator[Forked]:
    """Processes with streams of their own that do not load what is loaded once."""
    with loaded(FIRST) as forked:
        yield forked


@pytest.fixture(scope="module", autouse=True)
def _each_chart_is_drawn_once(pytestconfig: pytest.Config) -> Iterator[None]:
    with drawn_once(pytestconfig):
        yield


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory to work in."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def rtscope(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Rtscope]:
    """
    Run the command, as typed in an empty directory, without a terminal.

    No agent is built, as after `make check` of a fresh clone.
    """
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(here.parent / "state"))
    monkeypatch.setattr(target, "_AGENTS", here.parent / "agents")

    def command(*words: str | Path) -> Said:
        monkeypatch.setattr(sys, "argv", ["rtscope", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main.main()
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, said.out, said.err)

    handlers = {signo: signal.getsignal(signo) for signo in start.ENDING}
    yield command
    for signo, handler in handlers.items():
        signal.signal(signo, handler)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeTarget:
    """A machine on which all goes well, in place of this one."""
    made = targets.target()
    monkeypatch.setattr(
        run, "open_target", lambda address, **_: contextlib.nullcontext(made)
    )
    return made


@pytest.fixture
def sweep_board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeBoard:
    """A board in place of those that boot, in a directory with the sweep ticks.toml."""
    made = FakeBoard()
    made.smaller = (5_000, 7_000)
    # The first one is measured twice, then the base, a level of twice, and one of none.
    base, twice = [10_000 + n for n in range(8)], [20_000 + n for n in range(8)]
    made.results = [base[0], *base, *twice, *base]
    monkeypatch.setattr(sweep, "prepare_campaign", made.prepare)
    monkeypatch.setattr(
        runner, "BoardRunner", lambda prepared, *_: made.runner(prepared)
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ticks.toml").write_text(FILE)
    return made
