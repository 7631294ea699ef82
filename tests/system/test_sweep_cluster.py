"""A sweep on workers of a real Dask scheduler finds what it finds on one machine."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from rig import NEEDS_APT, Program, rtscope, until

from rtscope.record.directory.records import ResultDir
from rtscope.record.model import RunRecord

pytestmark = [pytest.mark.system, pytest.mark.long, NEEDS_APT]

DASK = Path(sys.executable).with_name("dask")

FILE = """
[base]
target.address = "virtual:pc"
kernel.names = ["debian-6.12-rt"]
campaign = { seeds = 2, settle = "0s", warmup = "0s", record = false }
run = [{ load = "idle", duration = "1s", interval = "1ms" }]
[[axis]]
name = "tick"
level = [{ name = "nohz=off", kernel.append = "nohz=off" }]
"""

WEB = ("--dashboard-address", "127.0.0.1:0", "--no-dashboard")
PATIENCE_S = 600.0
YEAR = ("-days", "365")


@dataclass(frozen=True, slots=True)
class Place:
    """The files of these tests, with a local sweep to compare with."""

    folder: Path
    digests: dict[str, str]

    @property
    def env(self) -> dict[str, str]:
        """Results are stored here, and nothing else is taken."""
        return {"XDG_STATE_HOME": str(self.folder / "state")}

    def sweep(self, out: str, *words: str | Path) -> Program:
        """Start a sweep into a directory."""
        file, place = self.folder / "tick.toml", self.folder / out
        return rtscope("sweep", file, "--json", "--out", place, *words, env=self.env)

    def records(self, out: str) -> dict[str, RunRecord]:
        """Return what was measured so far, by cell and run."""
        return {
            f"{cell.name}/{record.run.id}": record
            for cell in (self.folder / out / "cells").glob("*")
            for record in ResultDir(cell).records()
        }

    def measured(self, out: str) -> dict[str, RunRecord]:
        """Return what was measured so far, none of it taken from stored results."""
        found = self.records(out)
        assert not any(one.require_virtual().reused for one in found.values())
        return found

    def results(self, out: str) -> dict[str, str]:
        """Return the digests of all results, each of which was measured."""
        measured = self.measured(out)
        return {name: one.result_digest for name, one in measured.items()}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "tick.toml").write_text(FILE)
    made = Place(folder, {})
    with made.sweep("local", "--no-reuse") as sweep:
        done = sweep.finish(PATIENCE_S)
    assert done.status == 0, done.stderr
    made.digests.update(made.results("local"))
    assert len(set(made.digests.values())) == 4
    return made


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextlib.contextmanager
def scheduler(port: int, *words: str | Path, kind: str = "tcp") -> Iterator[Program]:
    """Start a scheduler on this machine alone."""
    where = ("--host", f"{kind}://127.0.0.1", "--port", str(port), *WEB)
    with Program([DASK, "scheduler", *where, *words]) as one:
        until(lambda: answers(port), what="a scheduler that answers")
        yield one


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def worker(url: str, cache: Path, *words: str | Path) -> Program:
    """Start a worker that has no part of a board yet, as on another machine."""
    few = (
        "--host",
        "127.0.0.1",
        "--nthreads",
        "1",
        "--memory-limit",
        "0",
        "--no-nanny",
    )
    argv: Sequence[str | Path] = [DASK, "worker", url, *few, *WEB, *words]
    return Program(argv, env={"XDG_CACHE_HOME": str(cache)})


def has_kernel(cache: Path) -> bool:
    return any(cache.glob("rtscope/imported/kernel-*"))


def test_two_workers_of_which_one_is_killed_find_the_same(
    place: Place, tmp_path: Path
) -> None:
    url = f"tcp://127.0.0.1:{(port := free_port())}"
    with (
        scheduler(port),
        worker(url, tmp_path / "1"),
        worker(url, tmp_path / "2") as killed,
        place.sweep("killed", "--no-reuse", "--on", url) as sweep,
    ):
        until(
            lambda: has_kernel(tmp_path / "2") and bool(place.records("killed")),
            what="a result, and parts at the second worker",
            within_s=PATIENCE_S,
        )
        killed.send(signal.SIGKILL)
        done = sweep.finish(PATIENCE_S)

    assert done.status == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["checks"]["equal"] == 1
    assert place.results("killed") == place.digests
    assert has_kernel(tmp_path / "1")
    for record in place.records("killed").values():
        assert record.require_virtual().worker.startswith("tcp://127.0.0.1:")


def test_a_lost_scheduler_ends_the_sweep_in_words_and_it_resumes(
    place: Place, tmp_path: Path
) -> None:
    url = f"tcp://127.0.0.1:{(port := free_port())}"
    with (
        scheduler(port) as ended,
        worker(url, tmp_path / "1"),
        place.sweep("lost", "--no-reuse", "--on", url) as sweep,
    ):
        until(lambda: bool(place.records("lost")), what="a result", within_s=PATIENCE_S)
        ended.send(signal.SIGKILL)
        done = sweep.finish(PATIENCE_S)
    kept = place.results("lost")

    assert done.status == 3
    assert f"the scheduler at {url} does not answer" in done.stderr
    assert "to continue: rtscope sweep --resume" in done.stderr
    assert "Traceback" not in done.stderr
    assert 0 < len(kept) < 4

    lost = ("--resume", place.folder / "lost", "--no-reuse")
    with rtscope("sweep", *lost, env=place.env) as sweep:
        done = sweep.finish(PATIENCE_S)

    assert done.status == 0, done.stderr
    assert place.results("lost") == place.digests


def test_with_certificates_only_those_who_have_one_take_part(
    place: Place, tmp_path: Path
) -> None:
    keys = certificates(tmp_path)
    files = ("--tls-ca-file", keys[0], "--tls-cert", keys[1], "--tls-key", keys[2])
    ours = ("--tls-ca", keys[0], "--tls-cert", keys[1], "--tls-key", keys[2])
    url = f"tls://127.0.0.1:{(port := free_port())}"
    with (
        scheduler(port, *files, kind="tls"),
        worker(url, tmp_path / "1", *files),
    ):
        (tmp_path / "other").mkdir()
        other = certificates(tmp_path / "other")
        theirs = ("--tls-ca", keys[0], "--tls-cert", other[1], "--tls-key", other[2])
        with place.sweep("refused", "--on", url, *theirs) as sweep:
            refused = sweep.finish(PATIENCE_S)
        with place.sweep("tls", "--no-reuse", "--on", url, *ours) as sweep:
            done = sweep.finish(PATIENCE_S)
        # Results are stored: only the one that is checked boots.
        with place.sweep("stored", "--on", url, *ours) as sweep:
            taken = sweep.finish(PATIENCE_S)

    assert refused.status == 3
    assert f"no scheduler answers at {url}" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert done.status == 0, done.stderr
    assert json.loads(done.stdout)["checks"]["equal"] == 1
    assert place.results("tls") == place.digests
    for record in place.records("tls").values():
        assert record.require_virtual().worker.startswith("tls://127.0.0.1:")
    assert taken.status == 0, taken.stderr
    assert json.loads(taken.stdout)["checks"]["equal"] == 1
    assert "4 of 4 runs: stored results of equal inputs" in taken.stderr


def certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Make an authority and a certificate that it signed, as the how-to says."""

    def openssl(*words: str) -> None:
        subprocess.run(
            ["openssl", *words], cwd=folder, check=True, capture_output=True, timeout=60
        )

    new = ("req", "-newkey", "rsa:2048", "-nodes", "-subj")
    openssl(
        *new, "/CN=authority", "-x509", *YEAR, "-keyout", "ca.key", "-out", "ca.pem"
    )
    openssl(*new, "/CN=rtscope", "-keyout", "key.pem", "-out", "cert.csr")
    sign = ("x509", "-req", *YEAR, "-in", "cert.csr", "-out", "cert.pem")
    openssl(*sign, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
    return folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
