"""
Take out of texts what is nobody else's business: addresses, serial numbers, secrets.

For what is sent to others: a captured machine, a packed result.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

GONE = "REDACTED"

_ADDRESS = re.compile(
    r"(?<![0-9A-Fa-f:.])(?:"
    r"(?:[0-9A-Fa-f]{2}[:-]){5,7}[0-9A-Fa-f]{2}"
    r"|(?:[0-9A-Fa-f]{1,2}:){5}[0-9A-Fa-f]{1,2}"
    r"|(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}"
    r")(?![0-9A-Fa-f:.])"
    r"|(?i:(?<=mac=)|(?<=addr=)|(?<=mac:)|(?<=addr:))[0-9A-Fa-f]{12}\b"
)
_SERIAL = re.compile(
    r"(?im)(serial(?:[ _-]?(?:no|number|num))?\s*[:=][ \t]*[\"']?)([^\s\"',;]+)"
)
_SECRET = re.compile(
    r"(?i)((?:^|(?<=[\s\"]))(?:"
    r"[\w.:-]*(?:pass(?:wd|word|phrase)?|secret|token|credential|psk|key|auth|nonce)"
    r"[\w.-]*=|(?:[\w.:-]*[.:_-])?(?:pw|pwd|pin)="
    r"|[\w.-]*(?:pass(?:wd|word|phrase)|api[_-]?key|apikey|secret|token):"
    r"|systemd\.setenv=[\w.-]+="
    r"))(\"[^\"]*\"|\S+)"
)
# For init, behind the lone --, an option and its value may be two words.
_OPTION = re.compile(
    r"(?i)(--[\w-]*(?:pass(?:wd|word|phrase)|secret|token|key)[\w-]*[ ]+)([^-\s]\S*)"
)
# Of an address, also netroot=iscsi:USER:PASSWORD@HOST.
_LOGIN = re.compile(r"(://|(?i:iscsi:))[^/\s:@]+:[^/\s@]+@")

# Words of the kernel's own that hold no secret although they look so.
_HARMLESS = re.compile(r"(?i)(?:keymap|vconsole\.keymap|keyboard|bypass)[\w.-]*=$")


@dataclass(slots=True)
class Redactions:
    """How much was taken out, by kind."""

    counts: dict[str, int] = field(default_factory=dict)

    def count(self, kind: str, number: int) -> None:
        """Add to a kind."""
        if number:
            self.counts[kind] = self.counts.get(kind, 0) + number


def redact_text(text: str, tally: Redactions) -> str:
    """Return text without hardware addresses, serial numbers, passwords and keys."""
    text, addresses = _ADDRESS.subn(GONE, text)
    text, serials = _SERIAL.subn(rf"\1{GONE}", text)
    secrets = 0

    def secret(match: re.Match[str]) -> str:
        nonlocal secrets
        if _HARMLESS.search(match[1]) or match[2] == GONE:
            return match[0]
        secrets += 1
        return f"{match[1]}{GONE}"

    text = _SECRET.sub(secret, text)
    text, options = _OPTION.subn(rf"\1{GONE}", text)
    text, logins = _LOGIN.subn(rf"\1{GONE}@", text)
    tally.count("hardware addresses", addresses)
    tally.count("serial numbers", serials)
    tally.count("secrets", secrets + options + logins)
    return text


def redact_files(files: Mapping[str, bytes], tally: Redactions) -> Mapping[str, bytes]:
    """Redact every file that is text; what is binary stays."""
    kept: dict[str, bytes] = {}
    for path, content in files.items():
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            kept[path] = content
            continue
        kept[path] = redact_text(text, tally).encode()
    return kept
