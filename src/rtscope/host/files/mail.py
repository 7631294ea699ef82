"""
The text of a mail that was stored as it was sent: quoted-printable or base64. Pure.

A part is decoded from the empty line behind its header to its end. Everything else of
the mail stays as it is.
"""

import binascii
import codecs
import re
from collections.abc import Iterable, Iterator

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
