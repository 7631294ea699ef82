"""
A packed result without names, addresses, serial numbers and secrets.

A name becomes `name-1a2b3c4d`, an address `address-...`: the same one everywhere in one
archive, so that machines and boots still differ, and another one in the next archive,
so that nobody finds the name by trying. What was measured stays as it is. Recordings of
a machine are left out: they hold names of all that ran there, in a binary file.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rtscope.host.files.documents import json_object, json_value
from rtscope.host.files.jsontext import json_text
from rtscope.machine.redaction import (
    GONE,
    OF_MACHINES,
    OF_PEOPLE,
    Kind,
    Redactions,
    redact_text,
)
from rtscope.record.directory.place import CAMPAIGN
from rtscope.record.directory.records import INTERRUPTED, RECORD, UNFINISHED

_RECORDING = ".trace.dat"
_HARMLESS = frozenset({"localhost", "(none)", "rtscope", "local", ""})


@dataclass(frozen=True, slots=True)
class Redaction:
    """How to take out: a random salt, names to look for, and a tally."""

    salt: bytes
    names: tuple[str, ...]
    tally: Redactions

    def text(self, text: str) -> str:
        """Return a text without names, addresses, serial numbers and secrets."""
        text = redact_text(
            text, self.tally, kinds=(*OF_MACHINES, *OF_PEOPLE), replace=self._instead
        )
        for name in self.names:
            pattern = rf"(?<![\w-]){re.escape(name)}(?:\.[A-Za-z][\w-]*)*(?![\w-])"
            text = re.sub(pattern, self._name, text)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value with all its texts redacted; keys may hold addresses."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return {self._key(key): self.value(one) for key, one in value.items()}
        return value

    def _key(self, key: str) -> str:
        return redact_text(key, self.tally, replace=self._instead)

    def _instead(self, kind: Kind, word: str) -> str:
        alias = _ALIASES.get(kind.name)
        return self._alias(alias, word) if alias else GONE

    def _name(self, match: re.Match[str]) -> str:
        self.tally.count("names", 1)
        return self._alias("name", match[0])

    def _alias(self, alias: str, word: str) -> str:
        if _ALIAS.fullmatch(word):
            return word
        digest = hashlib.sha256(self.salt + word.encode()).hexdigest()
        return f"{alias}-{digest[:8]}"


_ALIASES = {"identifiers": "id", "names": "name", "addresses": "address"}
"""How the words of a kind are called; all other words are gone without a name."""
_ALIAS = re.compile(r"(?:id|name|address)-[0-9a-f]{8}")


def names_in(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the names of hosts and users that records name, longest first."""
    names: set[str] = set()
    for path, content in files.items():
        if not path.endswith((RECORD, INTERRUPTED)):
            continue
        record = json_object(content, name=path)
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
        if path.endswith(_RECORDING) or path.startswith(f"{UNFINISHED}/"):
            left_out[path] = "cannot be redacted"
        elif path == CAMPAIGN.file or path.endswith(".json"):
            document = redaction.value(json_value(content, name=path))
            kept[path] = json_text(document, indent=1, ascii_only=False).encode()
        elif path.endswith(".log"):
            text = content.decode("utf-8", "replace")
            kept[path] = redaction.text(text).encode()
        else:  # what a virtual board executed
            kept[path] = content
    return kept, left_out, redaction.tally


def _words(value: object) -> Iterable[str]:
    return (value,) if isinstance(value, str) and len(value) > 2 else ()
