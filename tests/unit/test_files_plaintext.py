"""Foreign text becomes plain lines, however it was packed, encoded or shown."""

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from rtscope.host.errors import RecordError
from rtscope.host.files import archive, plaintext
from rtscope.host.files.plaintext import plain_bytes, plain_file

TEXT = "# Histogram\n000001 000008\t000001\n# µs\n"

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
    "bzip2": bz2.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}

ENCODED = {
    "utf-8 with a mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "utf-16": TEXT.encode("utf-16"),
    "utf-16-be with a mark": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "utf-16-le": TEXT.encode("utf-16-le"),
    "utf-16-be": TEXT.encode("utf-16-be"),
    "utf-32": TEXT.encode("utf-32"),
    "utf-32-le": TEXT.encode("utf-32-le"),
    "utf-32-be": TEXT.encode("utf-32-be"),
    "crlf": TEXT.replace("\n", "\r\n").encode(),
    "lone cr": TEXT.replace("\n", "\r").encode(),
    "nul bytes": TEXT.replace("0000", "00\x0000").encode(),
    "colours": b"\x1b[1;32m" + TEXT.encode().replace(b"\n", b"\x1b[0m\x1b[K\n"),
    "title of a terminal": b"\x1b]0;board\x07\x1bc" + TEXT.encode(),
    "private modes": b"\x1b[?25l\x1b(B" + TEXT.encode(),
    "cat -v": TEXT.encode().replace(b"\n", b"^[[0m^M\n"),
    "rsyslog": b"#033[32m" + TEXT.encode(),
}


def lines_of(path: Path, content: bytes) -> list[str]:
    path.write_bytes(content)
    return list(plain_file(path).lines())


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("name", ["plain", *ENCODED])
def test_packed_and_encoded_text_is_read(
    tmp_path: Path, packing: str, name: str
) -> None:
    content = PACKERS[packing](ENCODED.get(name, TEXT.encode()))
    plain = plain_bytes(content, name="x")
    assert plain.content.decode() == TEXT
    assert plain.told[0] == f"compressed with {packing}"
    assert lines_of(tmp_path / "x", content) == TEXT.splitlines()


@pytest.mark.parametrize("name", ENCODED)
def test_text_of_any_encoding_is_read(tmp_path: Path, name: str) -> None:
    assert plain_bytes(ENCODED[name], name="x").content.decode() == TEXT
    assert lines_of(tmp_path / "x", ENCODED[name]) == TEXT.splitlines()


@pytest.mark.parametrize(("inner", "outer"), [("gzip", "gzip"), ("xz", "zstd")])
def test_what_was_packed_twice_is_unpacked_twice(
    tmp_path: Path, inner: str, outer: str
) -> None:
    content = PACKERS[outer](PACKERS[inner](TEXT.encode("utf-16")))
    plain = plain_bytes(content, name="x")
    assert plain.content.decode() == TEXT
    assert plain.told[0] == f"compressed with {inner}, then {outer}"
    assert lines_of(tmp_path / "x", content) == TEXT.splitlines()


def test_what_was_packed_more_often_is_refused(tmp_path: Path) -> None:
    content = TEXT.encode()
    for _ in range(4):
        content = gzip.compress(content)
    with pytest.raises(RecordError, match=r"x: compressed over 3 times; unpack it"):
        plain_bytes(content, name="x")
    with pytest.raises(RecordError, match=r"x: compressed over 3 times; unpack it"):
        lines_of(tmp_path / "x", content)


def test_plain_text_is_no_copy() -> None:
    content = TEXT.encode()
    assert plain_bytes(content, name="x").content is content


def test_a_line_drawn_again_gives_a_line_for_each_time(tmp_path: Path) -> None:
    assert lines_of(tmp_path / "x", b"C: 1\rC: 2\r\nC: 3\r") == ["C: 1", "C: 2", "C: 3"]


@pytest.mark.parametrize("at", range(-3, 4))
def test_nothing_is_lost_where_two_chunks_meet(tmp_path: Path, at: int) -> None:
    lines = ["x" * (64 * 1024 + at), "µ\x1b[0m", "", "end"]
    text = "\r\n".join(lines)
    found = lines_of(tmp_path / "x", text.encode())
    assert found == [line.replace("\x1b[0m", "") for line in lines]


@pytest.mark.parametrize("packing", ["gzip", "xz", "bzip2", "zstd"])
def test_streams_one_after_another_are_one_file(tmp_path: Path, packing: str) -> None:
    pack = PACKERS[packing]
    content = pack(b"a\n") + pack(b"b\n") + b"\0" * 20
    assert lines_of(tmp_path / "x", content) == ["a", "b"]


SKIPPED = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
"""A frame of zstd that holds no data of the file, as pzstd writes."""


@pytest.mark.parametrize(
    "content",
    [
        lzma.compress(b"a\n") + b"\0" * 8 + lzma.compress(b"b\n"),
        lzma.compress(b"a\n", check=lzma.CHECK_NONE)
        + b"\0" * 2052
        + lzma.compress(b"b"),
        gzip.compress(b"a\n") + b"\0" * 512 + gzip.compress(b"b\n") + b"\0" * 4,
        SKIPPED + PACKERS["zstd"](b"a\nb\n"),
        PACKERS["zstd"](b"a\n") + SKIPPED + PACKERS["zstd"](b"b\n") + SKIPPED,
    ],
    ids=["xz", "xz without sums", "gzip", "zstd before", "zstd between"],
)
def test_what_stands_between_two_streams_hides_none(
    tmp_path: Path, content: bytes
) -> None:
    assert lines_of(tmp_path / "x", content) == ["a", "b"]
    assert plain_bytes(content, name="x").content.split() == [b"a", b"b"]


@pytest.mark.parametrize("blank", ["\u00a0", "\u200b\u00a0 "])
def test_blanks_of_a_web_page_are_blanks(tmp_path: Path, blank: str) -> None:
    (line,) = lines_of(tmp_path / "x", f"{blank}T: 0{blank}1".encode())
    assert line.split() == ["T:", "0", "1"]
    assert plain_bytes(f"{blank}1".encode(), name="x").content.strip() == b"1"


@pytest.mark.parametrize("packing", PACKERS)
def test_what_is_cut_short_is_refused(tmp_path: Path, packing: str) -> None:
    content = PACKERS[packing](TEXT.encode() * 1000)
    with pytest.raises(RecordError, match=f"compressed with {packing}, and cut short"):
        lines_of(tmp_path / "x", content[: len(content) // 2])
    with pytest.raises(RecordError, match=r"cut short|damaged"):
        plain_bytes(content[:20], name="x")


@pytest.mark.slow
@pytest.mark.parametrize("packing", PACKERS)
def test_what_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packing: str
) -> None:
    monkeypatch.setattr(plaintext, "MAX_PLAIN_BYTES", 1 << 20)
    content = PACKERS[packing](b"\n" * (8 << 20))
    with pytest.raises(RecordError, match="over 1,048,576 bytes unpacked"):
        lines_of(tmp_path / "x", content)
    with pytest.raises(RecordError, match="over 1,000 bytes unpacked"):
        plain_bytes(content, name="x", limit=1000)


def test_millions_of_empty_lines_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plaintext, "MAX_UNPACKED_LINES", 1000)
    with pytest.raises(RecordError, match="over 1,000 lines unpacked"):
        lines_of(tmp_path / "x", gzip.compress(b"\n" * 1001))
    assert len(lines_of(tmp_path / "x", gzip.compress(b"\n" * 1000))) == 1000


def test_memory_that_a_stream_asks_for_is_bounded() -> None:
    buffer = io.BytesIO()
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=30)
    packer = zstandard.ZstdCompressor(compression_params=parameters)
    with packer.stream_writer(buffer, closefd=False) as writer:
        writer.write(TEXT.encode() * 10)
    with pytest.raises(RecordError, match="compressed with zstd, and damaged"):
        plain_bytes(buffer.getvalue(), name="x")
    assert archive.MAX_DICTIONARY_BYTES < 512 << 20


@pytest.mark.parametrize(
    ("content", "command"),
    [
        (b"\x04\x22\x4d\x18rest", "lz4 -d FILE"),
        (b"PK\x03\x04rest", "unzip FILE"),
        (b"7z\xbc\xaf\x27\x1c", "7z x FILE"),
        (b"\x1f\x9drest", "uncompress FILE"),
        (b"LZIP\x01rest", "lzip -d FILE"),
    ],
)
def test_another_compression_is_refused_with_the_command(
    tmp_path: Path, content: bytes, command: str
) -> None:
    with pytest.raises(RecordError, match=command):
        lines_of(tmp_path / "x", content)


def test_a_long_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="a line of over"):
        lines_of(tmp_path / "x", b"x" * (2 << 20))
