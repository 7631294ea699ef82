"""Temporary files that go away, or have no place, while a verb uses them."""

import errno
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fakes.commandline import Rtscope
from fakes.measurements import record, thread
from rtscope.boards.runs.prepare import PreparedCampaign
from rtscope.record import pack as packing
from rtscope.record.directory.records import create
from rtscope.verbs.audit import capture
from rtscope.verbs.kernel import check
from rtscope.verbs.pack import pack

Fault = Callable[[Path], None]
Typed = Callable[[str], tuple[str | Path, ...]]


def _files_deleted(place: Path) -> None:
    for path in place.rglob("*"):
        if path.is_file():
            path.unlink()


def _replaced_by_a_file(place: Path) -> None:
    shutil.rmtree(place)
    place.write_text("somebody else's")


def _replaced_by_a_folder(place: Path) -> None:
    place.rename(place.with_name("moved"))
    place.mkdir()


def _replaced_by_a_link(place: Path) -> None:
    moved = place.with_name("moved")
    place.rename(moved)
    place.symlink_to(moved)


def _error(number: int) -> Fault:
    def fail(place: Path) -> None:
        raise OSError(number, os.strerror(number), str(place / "file"))

    return fail


EMPTIED: dict[str, Fault] = {
    "its files are deleted": _files_deleted,
    "it is deleted": shutil.rmtree,
    "a file is in its place": _replaced_by_a_file,
    "another folder is in its place": _replaced_by_a_folder,
    "a link is in its place": _replaced_by_a_link,
}
UNWRITABLE: dict[str, tuple[Fault, str]] = {
    "its disk is full": (_error(errno.ENOSPC), "no space left in"),
    "a quota is used up": (_error(errno.EDQUOT), "no space left in"),
    "it is read-only": (_error(errno.EROFS), "Read-only file system"),
    "nobody may write there": (_error(errno.EACCES), "Permission denied"),
}
VERBS: dict[str, tuple[tuple[str, ...], Any, str]] = {
    "report": (("report", "a.tar.gz", "--html", "out"), packing, "unpack"),
    "compare": (("compare", "a.tar.gz", "b=a.tar.gz"), packing, "unpack"),
    "export": (
        ("export", "a.tar.gz", "--to", "csv", "--out", "out"),
        packing,
        "unpack",
    ),
    "explain": (("explain", "a.tar.gz", "--html", "out"), packing, "unpack"),
    "pack": (("pack", "a", "--out", "out.tar.gz"), pack, "open_records"),
    "audit": (("audit", "--root", "capture.tar"), capture, "open_tree"),
    "import": (("import", "PIPE", "--out", "out"), shutil, "copyfileobj"),
    "kernel check": (("kernel", "check", "pc-6.12-rt"), check, "create"),
}
"""What is typed, and what has just been done when the fault comes."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of temporary files."""
    made = tmp_path / "tmp"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


@pytest.fixture
def typed(here: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """The words of a verb, with the files that they name; no kernel is built."""
    nothing = PreparedCampaign(())
    monkeypatch.setattr(check, "prepare_campaign", lambda *_, **_named: nothing)
    store = create(here / "a", {}, command=("rtscope", "run"))
    store.save(record([thread([5_000] * 5000)], "idle"))
    packing.pack(
        here / "a.tar.gz",
        packing.collect(here / "a"),
        name="a",
        limit_bytes=1 << 20,
        notes={},
        left_out={},
    )
    with tarfile.open(here / "capture.tar", "w") as tar:
        (here / "version").write_text("Linux version 6.1.0\n")
        tar.add(here / "version", "proc/version")

    def words(verb: str) -> tuple[str | Path, ...]:
        reading, writing = os.pipe()
        os.write(writing, b"100\n200\n300\n")
        os.close(writing)
        pipe = f"/dev/fd/{reading}"
        return tuple(pipe if word == "PIPE" else word for word in VERBS[verb][0])

    return words


@pytest.fixture
def broken(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> Callable[[str, Fault], None]:
    """Let a fault happen to the temporary files of a verb, in the midst of its work."""

    def let(verb: str, fault: Fault) -> None:
        _, module, name = VERBS[verb]
        work = getattr(module, name)

        def then_fault(*words: Any, **named: Any) -> Any:
            done = work(*words, **named)
            for one in place.glob("rtscope-*"):
                fault(one)
            return done

        monkeypatch.setattr(module, name, then_fault)

    return let


def nothing_written(here: Path) -> bool:
    return not [*here.glob("out*"), *here.glob(".out*")]


@pytest.mark.slow
@pytest.mark.parametrize("fault", EMPTIED)
@pytest.mark.parametrize("verb", VERBS)
def test_emptied_temporary_files_are_told_and_nothing_is_written(
    verb: str,
    fault: str,
    rtscope: Rtscope,
    here: Path,
    typed: Typed,
    broken: Callable[[str, Fault], None],
) -> None:
    words = typed(verb)
    broken(verb, EMPTIED[fault])
    said = rtscope(*words)

    assert said.status == 3, said.err
    assert "was removed or emptied while rtscope used it" in said.err
    assert "name another directory in TMPDIR" in said.err
    assert said.out == ""
    assert nothing_written(here)


@pytest.mark.parametrize("fault", UNWRITABLE)
@pytest.mark.parametrize("verb", VERBS)
def test_temporary_files_that_cannot_be_written_are_told(
    verb: str,
    fault: str,
    rtscope: Rtscope,
    here: Path,
    place: Path,
    typed: Typed,
    broken: Callable[[str, Fault], None],
) -> None:
    words, (fails, why) = typed(verb), UNWRITABLE[fault]
    broken(verb, fails)
    said = rtscope(*words)

    assert said.status == 3, said.err
    assert why in said.err
    assert "name another directory in TMPDIR" in said.err
    assert nothing_written(here)
    assert not list(place.iterdir())


@pytest.mark.parametrize("verb", VERBS)
def test_without_a_place_for_temporary_files_it_is_named(
    verb: str, rtscope: Rtscope, here: Path, place: Path, typed: Typed
) -> None:
    words = typed(verb)
    place.rmdir()
    said = rtscope(*words)

    assert said.status == 3, said.err
    assert f"cannot write temporary files: {place}: No such file" in said.err
    assert nothing_written(here)
