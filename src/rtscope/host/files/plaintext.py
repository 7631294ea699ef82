"""
Foreign text as plain lines, however it was compressed, encoded or shown on a terminal.

Compression, byte-order marks, UTF-16 and UTF-32, CRLF, a lone CR, NUL bytes and a
terminal's escapes are undone. A line that a terminal drew again over itself, with CR,
gives a line for each time.

A part is decoded from the empty line behind its header to its end. Everything else of
the mail stays as it is.
"""

import binascii
import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtscope.host.errors import RecordError
from rtscope.host.files.archive import packed_with, unpacked
from rtscope.host.files.opening import open_named

# --- the text of a mail that was stored as it was sent: quoted-printable or base64 ----

_HEADER = r"content-transfer-encoding:[ \t]*(?P<how>quoted-printable|base64)[ \t]*\r?"
_IN_HEAD = re.compile(rf"^{_HEADER}$".encode(), re.IGNORECASE | re.MULTILINE)
_IN_LINE = re.compile(_HEADER, re.IGNORECASE)
_END = re.compile(r"--\S.*$")
_PACKED = re.compile(r"[A-Za-z0-9+/]+={0,2}\s*$")
MAX_JOINED = 1 << 20
"""Characters of a line that soft line breaks divide."""


def encoding_of_mail(head: bytes) -> str:
    """Return how a mail is encoded, by its first bytes; empty if it is none."""
    match = _IN_HEAD.search(head)
    return match["how"].decode().lower() if match else ""


def decoded(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a mail with its encoded parts as they were written."""
    how = waits = ""
    part = _Part()
    for line in lines:
        if match := _IN_LINE.fullmatch(line):
            waits = match["how"].lower()
        elif waits and not line.strip():
            how, waits, part = waits, "", _Part()
        elif how and _END.match(line):
            yield from part.rest()
            how = ""
        elif how == "base64" and _PACKED.match(line):
            yield from part.packed(line)
            continue
        elif how == "quoted-printable":
            yield from part.quoted(line)
            continue
        yield line
    yield from part.rest()


class _Part:
    """What of an encoded part is begun."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = ""
        self._bits = ""

    def quoted(self, line: str) -> Iterator[str]:
        soft = line.rstrip()
        self._begun += soft.removesuffix("=")
        if not soft.endswith("=") or len(self._begun) > MAX_JOINED:
            text, self._begun = self._begun, ""
            yield binascii.a2b_qp(text.encode()).decode("utf-8", "replace")

    def packed(self, line: str) -> Iterator[str]:
        self._bits += line.strip()
        whole = len(self._bits) // 4 * 4
        bits, self._bits = self._bits[:whole], self._bits[whole:]
        try:
            text = self._decoder.decode(binascii.a2b_base64(bits))
        except binascii.Error:
            text = f"{bits}\n"
        begun = f"{self._begun}{text}".replace("\r\n", "\n")
        *lines, self._begun = begun.split("\n")
        yield from lines

    def rest(self) -> Iterator[str]:
        if self._begun:
            yield self._begun
        self._begun = ""


# Foreign text as plain lines, however it was compressed, encoded or shown on a
# terminal.

MAX_PLAIN_BYTES = 256 << 20
"""Of a compressed file once unpacked."""

MAX_UNPACKED_LINES = 10_000_000
"""Of a compressed file: a few hundred bytes may hold millions of empty ones."""

MAX_LINE_BYTES = 1024 * 1024

MAX_PACKINGS = 3
"""One in another: a compressed file that was compressed once more."""

_CHUNK = 64 * 1024
_SNIFFED = 4096

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte-order marks; that of UTF-16 is how the one of UTF-32 begins."""

_WIDE = (
    ("utf-32-le", 4, 0),
    ("utf-32-be", 4, 3),
    ("utf-16-le", 2, 0),
    ("utf-16-be", 2, 1),
)
"""Encoding, bytes of a character, and which of them is not zero in plain ASCII."""

_ESCAPES = re.compile(
    r"(?:\x1b|\u241b|\^\[(?=\[)|#033(?=\[))"
    r"(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])"
    r"|[\x00\x07\ufeff\u200b]|\^M$",
    re.MULTILINE,
)
"""Of a terminal, also as `cat -v`, rsyslog and web pages write them."""

_UNPLAIN = re.compile("[\x1b\x00\x07\ufeff\u200b\u241b]|\\^[\\[M]|#033\\[")
_BLANK = "\u00a0"
"""Of a web page or a mail, in place of a space."""


@dataclass(frozen=True, slots=True)
class Plain:
    """The content of a file as UTF-8, each line ended by a line feed."""

    content: bytes
    told: tuple[str, ...] = ()
    """How it was compressed and encoded, in words; empty: as it is."""


def plain_bytes(content: bytes, *, name: str, limit: int = MAX_PLAIN_BYTES) -> Plain:
    """
    Return text as plain UTF-8; the same object if there is nothing to undo.

    Raises RecordError if it is compressed and damaged, cut short or over `limit` bytes,
    or compressed in a way that rtscope does not read.
    """
    packings: tuple[str, ...] = ()
    while packing := packed_with(content, name=name):
        packings = _once_more(packings, packing, name=name)
        content = b"".join(unpacked([content], name=name, limit=limit))
    encoding, mark = encoding_of(content)
    mailed = encoding_of_mail(content[:_CHUNK])
    told = in_words(packings, encoding, mailed)
    if encoding == "utf-8" and not (mark or mailed or _needs_work(content)):
        return Plain(content, told)
    text = without_escapes(_with_line_feeds(content[mark:].decode(encoding, "replace")))
    if mailed:
        text = "\n".join(decoded(text.split("\n")))
    return Plain(text.encode(), told)


def _once_more(
    packings: tuple[str, ...], packing: str, *, name: str
) -> tuple[str, ...]:
    """Return packings, the outermost first, with one more; RecordError if too many."""
    if len(packings) == MAX_PACKINGS:
        raise RecordError(
            f"{name}: compressed over {MAX_PACKINGS} times; unpack it first"
        )
    return (*packings, packing)


def in_words(
    packings: Sequence[str], encoding: str, mailed: str = ""
) -> tuple[str, ...]:
    """Return how a file was compressed and encoded, if it was."""
    told = [f"compressed with {', then '.join(reversed(packings))}"] if packings else []
    if encoding != "utf-8":
        told.append(f"in {encoding[:6].upper()}")
    if mailed:
        told.append(f"a mail in {mailed}")
    return tuple(told)


def encoding_of(head: bytes) -> tuple[str, int]:
    """Return the encoding by the first bytes, and the length of the byte-order mark."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, len(mark)
    sniffed = head[:_SNIFFED]
    for encoding, width, kept in _WIDE:
        whole = len(sniffed) // width
        zeros = [sniffed[at : whole * width : width].count(0) for at in range(width)]
        others = [number for at, number in enumerate(zeros) if at != kept]
        if whole > 1 and 10 * min(others) > 9 * whole and 10 * zeros[kept] < whole:
            return encoding, 0
    return "utf-8", 0


@dataclass(frozen=True, slots=True)
class PlainFile:
    """A file to read as plain lines, any number of times; never whole in memory."""

    path: Path
    packings: tuple[str, ...]
    """How it was compressed, the outermost first."""
    encoding: str
    mark: int
    """Bytes of the byte-order mark."""
    mailed: str
    """How the mail that it is is encoded; empty if it is none."""

    def lines(self) -> Iterator[str]:
        """Yield the lines without their ends; RecordError if one is over 1 MiB."""
        lines = _lines(self._texts(), name=str(self.path))
        if self.mailed:
            lines = decoded(lines)
        return self._counted(lines) if self.packings else lines

    @property
    def told(self) -> tuple[str, ...]:
        """How it is compressed and encoded, in words; empty: as it is."""
        return in_words(self.packings, self.encoding, self.mailed)

    def _counted(self, lines: Iterator[str]) -> Iterator[str]:
        for number, line in enumerate(lines, 1):
            if number > MAX_UNPACKED_LINES:
                raise RecordError(
                    f"{self.path}: over {MAX_UNPACKED_LINES:,} lines unpacked, the "
                    "most that rtscope reads of a compressed file; unpack it first, if "
                    "it is no mistake"
                )
            yield line

    def _texts(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder(self.encoding)("replace")
        skipped = self.mark
        for piece in _pieces(self.path, self.packings):
            text = decoder.decode(piece[skipped:])
            skipped = max(skipped - len(piece), 0)
            yield text
        yield decoder.decode(b"", final=True)


def plain_file(path: Path) -> PlainFile:
    """Look at the first bytes of a file; RecordError if it cannot be read."""
    if not path.is_file():  # it is opened again and again: see `at_hand`
        raise RecordError(f"{path}: not a regular file")
    packings: tuple[str, ...] = ()
    head = next(_pieces(path, packings), b"")
    while packing := packed_with(head, name=str(path)):
        packings = _once_more(packings, packing, name=str(path))
        head = next(_pieces(path, packings), b"")
    return PlainFile(path, packings, *encoding_of(head), encoding_of_mail(head))


def _pieces(path: Path, packings: Sequence[str]) -> Iterator[bytes]:
    pieces = _raw_pieces(path)
    for _ in packings:
        pieces = unpacked(pieces, name=str(path), limit=MAX_PLAIN_BYTES)
    return pieces


def _raw_pieces(path: Path) -> Iterator[bytes]:
    try:
        with open_named(path, kind="text") as file:
            while piece := file.read(_CHUNK):
                yield piece
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror}") from error


def _lines(texts: Iterable[str], *, name: str) -> Iterator[str]:
    begun = ""
    for more in texts:
        text = begun + more
        held = "\r" if text.endswith("\r") else ""  # its line feed may come
        body = _with_line_feeds(text.removesuffix(held))
        whole, ended, rest = body.rpartition("\n")
        begun = rest + held
        if len(begun) > MAX_LINE_BYTES:
            raise RecordError(f"{name}: a line of over {MAX_LINE_BYTES} B")
        if ended:
            yield from without_escapes(whole).split("\n")
    if begun:
        yield from without_escapes(_with_line_feeds(begun).removesuffix("\n")).split(
            "\n"
        )


def _with_line_feeds(text: str) -> str:
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n").replace("\r", "\n")


def without_escapes(text: str) -> str:
    """Return text without what only a terminal or a web page understands."""
    text = text.replace(_BLANK, " ")
    return _ESCAPES.sub("", text) if _UNPLAIN.search(text) else text


def _needs_work(content: bytes) -> bool:
    if any(odd in content for odd in (b"\r", b"\0", b"\x1b", b"\x07")):
        return True
    odd_texts = (b"^[[", b"^M", b"#033[", _BLANK.encode(), "\u200b".encode())
    return any(odd in content for odd in odd_texts)
