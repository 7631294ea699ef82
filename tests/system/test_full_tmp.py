"""Where the place of temporary files is full, each verb that uses it says so."""

import io
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import rtscope

from fakes.measurements import record, thread
from rtscope.record.directory.records import create
from rtscope.record.pack import collect, pack

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("root")]

TMP_KIB = 64


@pytest.fixture
def small_tmp(tmp_path: Path) -> Iterator[Path]:
    """A place for temporary files with next to no room."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={TMP_KIB}k", "rtscope-test"]
    if subprocess.run([*mount, mounted], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount")
    yield mounted
    subprocess.run(["umount", mounted], check=True)


def packed(place: Path) -> Path:
    store = create(place / "a", {}, command=("rtscope", "run"))
    store.save(record([thread([5_000] * 500)], "idle"))
    (log,) = (path / "kernel.log" for path in (place / "a" / "runs").iterdir())
    log.write_text("a line of a kernel\n" * 10_000)
    file, files = place / "a.tar.gz", collect(place / "a")
    pack(file, files, name="a", limit_bytes=1 << 24, notes={}, left_out={})
    return file


def captured(place: Path) -> Path:
    file = place / "capture.tar"
    with tarfile.open(file, "w") as tar:
        for name in ("proc/version", "proc/cmdline", "proc/config"):
            member = tarfile.TarInfo(name)
            member.size = 40_000
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return file


def piped(_place: Path) -> Path:
    return Path("/dev/stdin")


VERBS: dict[str, tuple[Callable[[Path], Path], tuple[str, ...]]] = {
    "report": (packed, ("report", "FILE")),
    "compare": (packed, ("compare", "FILE", "NAMED")),
    "export": (packed, ("export", "FILE", "--to", "csv")),
    "explain": (packed, ("explain", "FILE")),
    "audit": (captured, ("audit", "--root", "FILE")),
    "import": (piped, ("import", "FILE", "--out", "OUT")),
    "explain a trace": (piped, ("explain", "--trace", "FILE")),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_place_for_temporary_files_is_named(
    verb: str, small_tmp: Path, tmp_path: Path
) -> None:
    make, words = VERBS[verb]
    file, out = make(tmp_path), tmp_path / "out"
    names = {"FILE": str(file), "NAMED": f"other={file}", "OUT": str(out)}
    typed = [names.get(word, word) for word in words]
    with rtscope(*typed, env={"TMPDIR": str(small_tmp)}) as run:
        if make is piped:
            run.tell(b"1000\n" * 40_000)
        done = run.finish()

    assert done.status == 3, done.stderr
    assert str(small_tmp) in done.stderr
    assert "name another directory in TMPDIR" in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()
    assert not list(small_tmp.iterdir())
