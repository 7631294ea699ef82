"""
A packed result without names, addresses, serial numbers and secrets.

A name becomes `name-1a2b3c4d`, an address `address-...`: the same one everywhere in one
archive, so that machines and boots still differ, and another one in the next archive,
so that nobody finds the name by trying. What was measured stays as it is. Recordings of
a machine are left out: they hold names of all that ran there, in a binary file.
"""

import hashlib
import ipaddress
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rtscope.machine.redaction import Redactions, redact_text
from rtscope.record.resultdir import CAMPAIGN, INTERRUPTED, RECORD, UNFINISHED

_UUID = re.compile(
    r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
)
_HOME = re.compile(r"(?<=/home/)[^/\s\"':]+")
_AT = re.compile(r"(?<![\w.+/:-])[\w.+-]+@[\w.-]+")
_IPV4 = re.compile(r"(?<![\w.-])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![\w.])")
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9a-fA-F:]*:[0-9a-fA-F:]*:)[0-9a-fA-F:]{3,39}(?![\w:])"
)
_OF_MACHINES = ".trace.dat"
_HARMLESS = frozenset({"localhost", "(none)", "rtscope", "local", ""})


@dataclass(frozen=True, slots=True)
class Redaction:
    """How to take out: a random salt, names to look for, and a tally."""

    salt: bytes
    names: tuple[str, ...]
    tally: Redactions

    def text(self, text: str) -> str:
        """Return a text without names, addresses, serial numbers and secrets."""
        text = redact_text(text, self.tally)
        text = _UUID.sub(lambda match: self._alias("id", match[0]), text)
        for name in self.names:
            pattern = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
            text = re.sub(pattern, lambda match: self._alias("name", match[0]), text)
        text = _HOME.sub(lambda match: self._alias("name", match[0]), text)
        text = _AT.sub(lambda match: self._alias("name", match[0]), text)
        for pattern_of_address in (_IPV4, _IPV6):
            text = pattern_of_address.sub(self._address, text)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value with all its texts redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return {key: self.value(one) for key, one in value.items()}
        return value

    def _address(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.ip_address(match[0])
        except ValueError:
            return match[0]
        if address.is_loopback or address.is_unspecified:
            return match[0]
        return self._alias("address", match[0])

    def _alias(self, kind: str, word: str) -> str:
        if re.fullmatch(r"(?:id|name|address)-[0-9a-f]{8}", word):
            return word
        self.tally.count(f"{kind}s" if kind != "address" else "addresses", 1)
        digest = hashlib.sha256(self.salt + word.encode()).hexdigest()
        return f"{kind}-{digest[:8]}"


def names_in(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the names of hosts and users that records name, longest first."""
    names: set[str] = set()
    for path, content in files.items():
        if not path.endswith((RECORD, INTERRUPTED)):
            continue
        record = json.loads(content)
        for facts in (record.get("facts_before"), record.get("facts_after")):
            host = facts.get("hostname") if isinstance(facts, dict) else None
            names |= set(_words(host.get("value") if isinstance(host, dict) else host))
        kind, _, address = str(record["run"].get("target")).partition(":")
        if kind == "ssh":
            names |= set(address.replace("@", ":").split(":"))
    return tuple(sorted(names - _HARMLESS, key=lambda name: (-len(name), name)))


def redacted(
    files: Mapping[str, bytes], *, salt: bytes
) -> tuple[dict[str, bytes], dict[str, str], Redactions]:
    """Return redacted files, why others are left out, and how much was taken out."""
    redaction = Redaction(salt, names_in(files), Redactions())
    kept: dict[str, bytes] = {}
    left_out: dict[str, str] = {}
    for path, content in files.items():
        if path.endswith(_OF_MACHINES) or path.startswith(f"{UNFINISHED}/"):
            left_out[path] = "cannot be redacted"
        elif path == CAMPAIGN or path.endswith(".json"):
            document = redaction.value(json.loads(content))
            kept[path] = json.dumps(document, ensure_ascii=False, indent=1).encode()
        elif path.endswith(".log"):
            text = content.decode("utf-8", "replace")
            kept[path] = redaction.text(text).encode()
        else:  # what a virtual board executed
            kept[path] = content
    return kept, left_out, redaction.tally


def _words(value: object) -> Iterable[str]:
    return (value,) if isinstance(value, str) and len(value) > 2 else ()
