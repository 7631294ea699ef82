"""
Seeds and readers of what comes by mail: archives, recipes, units, folders of a search.

The first byte of a folder's input chooses which of its files the rest replaces.
"""

import base64
import contextlib
import gzip
import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fakes.bundles import prepared
from fakes.measurements import on_board, record, thread
from fakes.sweepfile import ONE_CELL
from fakes.trees import CPU, reader_of
from fakes.unitcases import CASES as UNITS
from rtscope.boards.kernels.recipe import configuration_digest, parse_recipe
from rtscope.boards.parts.bundle import export_bundle, import_bundle, prepare_bundle
from rtscope.boards.parts.cache import (
    MANIFEST,
    files_digest,
    part_key,
)
from rtscope.boards.runs.boot import Booted
from rtscope.boards.runs.outcome import pack_booted
from rtscope.host.escape import printable
from rtscope.host.files.archive import GZIP
from rtscope.host.files.documents import json_value
from rtscope.machine.audit.examine import auditing_a_unit, examine, read_context
from rtscope.machine.audit.unitfiles import load_unit
from rtscope.measure.campaign.file import load_campaign
from rtscope.present.document import Detail
from rtscope.present.model.build import build_model
from rtscope.record.directory.journal import STEPS, Tried, read_journal
from rtscope.record.directory.records import open_records
from rtscope.record.model import RunRecord, record_to_json
from rtscope.record.pack import collect, pack, unpacking
from rtscope.verbs.bisect.directory import (
    SearchOptions,
    read_resumed,
    resumed_work,
)
from rtscope.verbs.bisect.directory import create as create_search
from rtscope.verbs.bisect.directory import new_work as new_search
from rtscope.verbs.sweep import directory as sweeps
from rtscope.verbs.sweep.cluster.task import Answer, answer_of
from rtscope.verbs.sweep.file import load_sweep
from rtscope.verbs.sweep.show import show_sweep

TREE = Path(__file__).parents[2]


def small(seed: int = 1, *, worst_ns: int = 9_000) -> RunRecord:
    """Return the record of a short run on a virtual board."""
    made = record([thread([5_000, 7_000, worst_ns])], started="2026-01-02T03:04:05Z")
    return on_board(made, seed=seed)


# --- packed results -------------------------------------------------------------------


@cache
def packed() -> Sequence[bytes]:
    """Return a packed result as gzip, and the archive in it."""
    with tempfile.TemporaryDirectory() as folder:
        results, path = Path(folder, "results"), Path(folder, "p.rtscope.tar.gz")
        run = results / "runs" / "001-idle"
        run.mkdir(parents=True)
        (run / "record.json").write_bytes(record_to_json(small()))
        (results / "campaign.json").write_bytes(b'{"schema": 1}\n')
        pack(
            path,
            collect(results),
            name="results",
            limit_bytes=1 << 20,
            notes={"redacted": False},
            left_out={},
        )
        data = path.read_bytes()
    return [gzip.decompress(data)] * 9 + [data]


def read_packed(data: bytes) -> object:
    """Unpack it, and read every record."""
    with (
        given_file("p.rtscope.tar.gz", _compressed(data)) as path,
        unpacking() as opened,
    ):
        return open_records(opened(path))


def _compressed(data: bytes) -> bytes:
    return data if data[:2] == GZIP else gzip.compress(data, 1)


# --- bundles --------------------------------------------------------------------------


@cache
def bundles() -> Sequence[bytes]:
    """Return a bundle of one kernel, as it is and to be signed anew after a change."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "b.tar")
        files = {"campaign.json": b'{"schema": 1}'}
        made = prepared(Path(folder, "cache"), others=("agent", "plugin", "userland"))
        export_bundle(path, {"k": made}, files=files, rtscope="1")
        content = path.read_bytes()
        return [_AS_IT_IS + content, _SIGN_ANEW + content]


_AS_IT_IS, _SIGN_ANEW = b"\0", b"\1"


def read_bundle(data: bytes) -> object:
    """Import it into an empty cache, and boot nothing."""
    content = data[1:]
    with contextlib.suppress(
        *(tarfile.TarError, ValueError, LookupError, OSError),
        *(TypeError, AttributeError, RecursionError),
    ):
        content = signed(content) if data[:1] == _SIGN_ANEW else content
    with given_file("b.tar", content) as path:
        cached = path.parent / "cache"
        got = import_bundle(path, cache=cached, log=lambda _: None)
        return prepare_bundle(got, cache=cached)


def signed(bundle: bytes) -> bytes:
    """Return a bundle whose digests are those of what is in it, as far as it can be."""
    with tarfile.open(fileobj=io.BytesIO(bundle)) as old:
        members = [(one, old.extractfile(one)) for one in old.getmembers()]
        files = {one.name: opened.read() for one, opened in members if opened}
    rows: dict[str, dict[str, Any]] = {}
    for name, content in files.items():
        head, _, place = name.removeprefix("parts/").partition("/")
        if name.startswith("parts/") and place != MANIFEST:
            row = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
            rows.setdefault(head, {})[place] = {**row, "runs": place.startswith("bin")}
    contents = json.loads(files["bundle.json"])
    for folder, of_part in rows.items():
        manifest = json.loads(files[f"parts/{folder}/{MANIFEST}"])
        manifest |= {"files": of_part, "digest": files_digest(of_part)}
        files[f"parts/{folder}/{MANIFEST}"] = json.dumps(manifest).encode()
        contents["parts"][manifest["name"]]["digest"] = manifest["digest"]
    digests = {
        name.removeprefix("files/"): part_key(content.hex())
        for name, content in files.items()
        if name.startswith("files/")
    }
    files["bundle.json"] = json.dumps({**contents, "files": digests}).encode()
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as new:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            new.addfile(info, io.BytesIO(content))
    return written.getvalue()


# --- files of a user ------------------------------------------------------------------


@cache
def units() -> Sequence[bytes]:
    """Return every unit of the audit's own cases."""
    services = [one.service for three in UNITS.values() for one in three]
    head = "[Unit]\nDescription=a\n[Service]\nExecStart=/bin/true\n"
    return [f"{head}{service}".encode() for service in services]


def read_unit(data: bytes) -> object:
    """Every check of a unit, on a machine with four CPUs."""
    path = "/etc/systemd/system/loop.service"
    machine = {"/proc/sys/kernel/osrelease": "6.12.1", f"{CPU}/online": "0-3"}
    reader = reader_of({**machine, path: data.decode("utf-8", "replace")})
    kinds = auditing_a_unit()
    context = read_context(reader, kinds, cpus=(1,))
    return examine(replace(context, unit=load_unit("loop.service", reader)), kinds)


@cache
def recipes() -> Sequence[bytes]:
    """Return the recipes that come with rtscope."""
    folder = TREE / "src/rtscope/boards/kernels/recipes"
    return [path.read_bytes() for path in sorted(folder.glob("*.toml"))]


def read_recipe(data: bytes) -> object:
    """Read all its sizes, their fragments and their digest."""
    found = parse_recipe("mine", data.decode("utf-8", "replace"))
    return [configuration_digest(one) for one in found.values()]


@cache
def campaigns() -> Sequence[bytes]:
    """Return the campaign files of the examples."""
    return [text for text in _examples() if b"[[run]]" in text or b"[campaign]" in text]


@cache
def _examples() -> Sequence[bytes]:
    folders = (TREE / "examples", TREE / "src/rtscope/verbs/sweep")
    return [
        path.read_bytes() for one in folders for path in sorted(one.rglob("*.toml"))
    ]


def read_campaign(data: bytes) -> object:
    """Read a campaign file."""
    with given_file("c.toml", data) as path:
        return load_campaign(path)


@cache
def sweep_files() -> Sequence[bytes]:
    """Return the sweeps that come with rtscope, and those of the examples."""
    return [text for text in _examples() if b"[sweep]" in text]


def read_sweep_file(data: bytes) -> object:
    """Read a sweep file."""
    with given_file("s.toml", data) as path:
        return load_sweep(path)


# --- folders to continue --------------------------------------------------------------

_BASE, _OFF = "cells/000-base", "cells/001-tick-off"


@cache
def _sweep_folder() -> Mapping[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "ticks.toml"), Path(folder, "out")
        file.write_text(ONE_CELL)
        base = SimpleNamespace(target=None, kernels=None, run_seeds=None)
        work = sweeps.new_work(file, out, base, only=None)  # type: ignore[arg-type]
        with contextlib.ExitStack() as held:
            sweeps.create_directories(work, held)
        for cell in (_BASE, _OFF):
            for seed in (1, 2):
                run = out / cell / "runs" / f"00{seed}-idle-s{seed}"
                run.mkdir(parents=True)
                (run / "record.json").write_bytes(record_to_json(small(seed)))
        (out / "asked.json").write_bytes(b"[0, 1]\n")
        place = "001-tick-off/002-idle-s2"
        (out / "checked.json").write_text(f'{{"{place}": "a digest differs"}}\n')
        (out / "failed.json").write_text(f'{{"{place}": "the board stopped"}}\n')
        (out / "impossible.json").write_text("{}\n")
        return _files_of(out)


@cache
def sweep_folders() -> Sequence[bytes]:
    """Return each file of a sweep, behind its number."""
    return _numbered(_sweep_folder())


def read_sweep_folder(data: bytes) -> object:
    """Go on with it as far as without a board, and show what there is."""
    with _folder(_sweep_folder(), data) as out, silent():
        work = sweeps.resumed_work(out, only=None)
        return show_sweep(work, Detail.ALL, json=False, explain=False)


@cache
def _search_folder() -> Mapping[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        options = SearchOptions(good="pc-6.12-rt", bad="pc-6.12", margin="20us")
        work = new_search(options, Path(folder, "out"))
        work.path.mkdir()
        subject = SimpleNamespace(kind=None, identity="a", good="", bad="")
        create_search(work, subject)  # type: ignore[arg-type]
        journal = read_journal(work.path / STEPS)
        journal.add(Tried("good", "s", "d", {1: 5_000.0, 2: 5_100.0}))
        journal.add(Tried("bad", "s", "e", {1: 300_000.0, 2: 301_000.0}))
        journal.add(Tried("0a1b", why="it does not build", built=False))
        run = work.path / "records" / "good" / "runs" / "001-idle-s1"
        run.mkdir(parents=True)
        (run / "record.json").write_bytes(record_to_json(small()))
        return _files_of(work.path)


@cache
def search_folders() -> Sequence[bytes]:
    """Return each file of a search, behind its number."""
    return _numbered(_search_folder())


def read_search_folder(data: bytes) -> object:
    """Read what was searched, what was tried, and its records."""
    with _folder(_search_folder(), data) as out:
        work = resumed_work(read_resumed(out), yes=True)
        journal = read_journal(out / STEPS)
        for tried in journal.steps.values():
            place = out / "records" / tried.directory
            assert place.resolve().parent == (out / "records").resolve()
            if place.is_dir():
                build_model(open_records(place))
        return asdict(work.options)


# --- answers of a worker --------------------------------------------------------------


@cache
def worker_answers() -> Sequence[bytes]:
    """Return one of each kind, as JSON with the content in base64."""
    booted = Booted(
        files={"result.json": b"{}", "trace.dat": b"\0" * 400},
        counts={"icount": 1},
        initrd_digest="a" * 64,
        plugin_digest="b" * 64,
        host_seconds=1.5,
        stream=b"stream",
    )
    worker = "tcp://127.0.0.1:1"
    answers = [
        Answer("booted", worker, content=pack_booted(booted)),
        Answer("lacks", worker, lacking=("kernel", "qemu")),
        Answer("failed", worker, why="the board stopped"),
        Answer("unfit", worker, why="it has another rtscope"),
    ]
    return [
        json.dumps(
            {**asdict(one), "content": base64.b64encode(one.content).decode()}
        ).encode()
        for one in answers
    ]


def read_worker_answer(data: bytes) -> object:
    """Take it as what a worker said, and its results apart."""
    said = json_value(data, name="answer")
    if isinstance(said, dict) and isinstance(packed := said.get("content"), str):
        said["content"] = base64.b64decode(packed.encode("utf-8", "replace"))
    answer = answer_of(said)
    for text in (answer.worker, answer.why):  # odd blanks are no hidden characters
        assert printable(text, limit=len(text)) == text
    return answer.booted() if answer.kind == "booted" else answer


# --- files in a folder of their own ---------------------------------------------------


def _numbered(files: Mapping[str, bytes]) -> Sequence[bytes]:
    return [bytes([number]) + text for number, text in enumerate(files.values())]


def _files_of(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@contextlib.contextmanager
def _folder(files: Mapping[str, bytes], data: bytes) -> Iterator[Path]:
    """Give a folder of these files, one of which the data replaces."""
    names = list(files)
    changed = names[(data[0] if data else 0) % len(names)]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        for name, content in {**files, changed: data[1:]}.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield out


@contextlib.contextmanager
def given_file(name: str, data: bytes) -> Iterator[Path]:
    """Give a file of this name, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        yield path


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Print nothing."""
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        yield
