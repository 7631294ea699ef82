"""
Directories that a version wrote and did not finish: another one goes on with them.

`tests/net/inputs/unfinished.tar.gz` holds what the code of November 2026 left when it
was interrupted, as `begin` makes it: today's writes the same, and goes on with that.
"""

import json
import re
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.bootedboard import FakeBoard
from fakes.commandline import Rtscope
from fakes.searched import Measured as MeasuredKernels
from fakes.sweepfile import ONE_CELL
from net.fakes import kernels
from rtscope.boards.runs import runner
from rtscope.measure.assemble import Measured
from rtscope.record.directory.records import ResultDir, open_records
from rtscope.record.model import Run
from rtscope.verbs.run import run
from rtscope.verbs.sweep import sweep

ARCHIVE = Path(__file__).parents[1] / "net/inputs/unfinished.tar.gz"
NAMES = ("campaign", "sweep", "search")
RUN = ("run", "-t", "virtual:pc", "-l", "idle", "-d", "1s", "--interval", "1ms")
BISECT = ("bisect", "--tree", "linux", "--good", "start", "--bad", "HEAD")
MADE_OF_RECORDS = ("report.html", "sweep.html", "build.log")


class Board(FakeBoard):
    """A board whose latencies follow from the seed."""

    def _measure(self, run: Run) -> Measured:
        self.results = [10_000 + (run.seed or 0)]
        return super()._measure(run)


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, here: Path) -> FakeBoard:
    """A board in place of those that boot."""
    made = Board()
    monkeypatch.setattr(run, "prepare_campaign", made.prepare)
    monkeypatch.setattr(sweep, "prepare_campaign", made.prepare)
    monkeypatch.setattr(runner, "BoardRunner", lambda one, *_, **__: made.runner(one))
    return made


@pytest.fixture
def searched(here: Path) -> Iterator[None]:
    """A repository with a history, whose kernels are built and booted in no time."""
    with kernels():
        yield


def begin(name: str, rtscope: Rtscope, board: FakeBoard) -> int:
    """Start what is then interrupted; return the exit status."""
    if name == "search":
        return _begin_search(rtscope)
    board.fails = _interrupted
    if name == "campaign":
        said = rtscope(*RUN, "--seeds", "4", "--out", name)
        store = ResultDir(Path(name))
        first = store.records()[0]
        cut = replace(first, run=replace(first.run, id="004-idle-s4", seed=4))
        store.save(cut, interrupted=True)
        store.keep_unfinished("003-idle-s3", b'{"type": "tick"}\n')
    else:
        Path("ticks.toml").write_text(ONE_CELL)
        said = rtscope("sweep", "ticks.toml", "--out", name)
    board.fails = lambda _: False
    return said.status


def _interrupted(run: Run) -> bool:
    if run.id in ("003-idle-s3", "001-tick-off/002-idle-s2"):
        raise KeyboardInterrupt
    return run.id == "000-base/002-idle-s2"


def _begin_search(rtscope: Rtscope) -> int:
    built = list[str]()

    def late(image: str) -> bool:
        built.append(image)
        if len(built) == 5:  # of the third kernel
            raise KeyboardInterrupt
        found = re.search(r"return (\d+)", image)
        return found is not None and int(found[1]) > 40

    with pytest.MonkeyPatch.context() as patched:
        MeasuredKernels(late).install(patched)
        words = ("--recipe", "./my.toml", "--seeds", "2", "--out", "search")
        return rtscope(*BISECT, *words).status


def contents(name: str) -> dict[str, str]:
    """Each file of a directory, without times, places and versions."""
    rules = (
        (re.escape(str(Path.cwd())), "PLACE"),
        (r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)?", "TIME"),
        (r'("rtscope": ?)"[^"]+"', r"\1VERSION"),
        (r'("host_duration_s": ?)[0-9.e-]+', r"\1DURATION"),
        (r',\s*"(parts|keep_samples)": ?false', ""),  # which that code did not know
    )
    found: dict[str, str] = {}
    for path in sorted(Path(name).rglob("*")):
        if path.is_file() and path.name not in MADE_OF_RECORDS:
            text = path.read_text("utf-8")
            for old, new in rules:
                text = re.sub(old, new, text)
            found[str(path)] = text
    return found


def unpack() -> None:
    """Put what was left in this directory, with its tree here."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extraction_filter = getattr(  # of Python 3.11.2, of Debian 12, none
            tarfile, "data_filter", lambda member, path: member
        )
        archive.extractall()
    document = Path("search/bisect.json")
    document.write_text(document.read_text().replace("PLACE", str(Path.cwd())))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_interrupted_leaves_the_files_that_it_always_left(
    rtscope: Rtscope, board: FakeBoard, searched: None, name: str
) -> None:
    status = begin(name, rtscope, board)
    now = contents(name)
    unpack()

    assert status == 130
    assert contents(name) == now


def test_a_campaign_of_an_earlier_version_is_finished(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    unpack()
    before = contents("campaign")

    said = rtscope("run", "--resume", "campaign", "--yes")

    assert said.status == 0, said.err
    now = contents("campaign")
    kept = "campaign/runs/001-idle-s1/record.json"
    assert now[kept] == before[kept]
    assert [one.run.seed for one in open_records(Path("campaign"))] == [1, 2, 3, 4]
    assert set(before) - set(now) == {
        "campaign/runs/004-idle-s4/interrupted.json",
        "campaign/unfinished/003-idle-s3.jsonl",
    }


def test_a_sweep_of_an_earlier_version_is_finished(
    rtscope: Rtscope, board: FakeBoard
) -> None:
    unpack()
    before = contents("sweep")
    assert json.loads(before["sweep/failed.json"]).keys() == {"000-base/002-idle-s2"}
    assert json.loads(before["sweep/asked.json"]) == [0, 1]

    said = rtscope("sweep", "--resume", "sweep", "--yes", "--json")

    assert said.status == 0, said.err
    shown = json.loads(said.out)
    assert [cell["runs"] for cell in shown["cells"]] == [2, 2]
    now = contents("sweep")
    assert set(before) < set(now)
    assert {name for name in before if now[name] != before[name]} <= {
        "sweep/checked.json"
    }


@pytest.mark.slow
def test_a_search_of_an_earlier_version_is_finished(
    rtscope: Rtscope, searched: None
) -> None:
    unpack()
    before = contents("search")

    said = rtscope("bisect", "--resume", "search", "--yes", "--json")

    assert said.status == 0, said.err
    shown = json.loads(said.out)
    assert shown["located"]["changes"][0]["title"] == "init: Return 41"
    now = contents("search")
    assert now["search/steps.jsonl"].startswith(before["search/steps.jsonl"])
    records = [name for name in before if name.endswith("record.json")]
    assert len(records) == 4
    assert [name for name in records if now[name] != before[name]] == []
