"""The stream beside a record: packed, named by digest, and not believed."""

import gzip
import tracemalloc
from dataclasses import asdict
from pathlib import Path

import pytest

from rtscope.host.errors import ContractError, RecordError, UsageError
from rtscope.record.instructions.file import note_of, pack, read_stream

RAW = (Path(__file__).parents[2] / "format/plugin-v2/riscv64.trace").read_bytes()


def test_a_stream_comes_back_and_the_note_tells_what_is_in_it(tmp_path: Path) -> None:
    content, note = pack(RAW, name="w.trace.gz")
    path = tmp_path / note.file
    path.write_bytes(content)

    assert (note.paths, note.truncated, note.omitted, note.complete) == (2, 1, 0, False)
    assert (note.bytes, note.unpacked_bytes) == (len(content), len(RAW))
    assert note_of(asdict(note), name="r") == note
    assert len(read_stream(path, sha256=note.sha256).sections) == 3
    assert pack(RAW, name="w.trace.gz")[0] == content


def test_a_damaged_stream_of_the_plugin_is_not_packed() -> None:
    with pytest.raises(ContractError):
        pack(RAW[:-1], name="w")


def test_another_stream_than_the_record_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w"
    path.write_bytes(pack(RAW, name="w")[0])

    with pytest.raises(RecordError, match="its digest is another"):
        read_stream(path, sha256="0" * 64)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        pack(RAW, name="w")[0][:-9],
        pack(RAW, name="w")[0] + b"more",
        gzip.compress(RAW[:-1]),
        gzip.compress(b"another file"),
    ],
    ids=["empty", "foreign", "cut", "longer", "breaks off", "no stream"],
)
def test_a_damaged_stream_is_refused_with_its_name(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "w.trace.gz"
    path.write_bytes(content)

    with pytest.raises(RecordError, match=r"w\.trace\.gz"):
        read_stream(path, sha256=None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "words"),
    [(b"", "not a trace of rtscope's plugin"), (RAW, "more than 8,388,608 bytes")],
)
def test_a_bomb_is_refused_before_it_is_unpacked(
    head: bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtscope.record.instructions.file.MAX_BYTES", 8 << 20)
    monkeypatch.setattr("rtscope.record.instructions.file.MAX_PACKED_BYTES", 1 << 20)
    path = tmp_path / "w.trace.gz"
    path.write_bytes(gzip.compress(head + bytes(128 << 20), 1))
    tracemalloc.start()
    try:
        with pytest.raises(RecordError, match=words):
            read_stream(path, sha256=None)
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()


def test_a_missing_stream_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="--replay"):
        read_stream(tmp_path / "none", sha256=None)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "w").symlink_to("/etc/hostname")

    with pytest.raises(RecordError, match="link"):
        read_stream(tmp_path / "w", sha256=None)


@pytest.mark.parametrize("trace", [None, {"reason": "--no-record"}])
def test_a_record_without_a_stream_says_how_to_get_one(
    trace: dict[str, str] | None,
) -> None:
    with pytest.raises(UsageError, match="--replay"):
        note_of(trace, name="001-idle")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/b", ".hidden"])
def test_a_name_in_a_record_is_no_path(name: str) -> None:
    note = asdict(pack(RAW, name="w")[1]) | {"file": name}

    with pytest.raises(RecordError, match="damaged record"):
        note_of(note, name="r")
