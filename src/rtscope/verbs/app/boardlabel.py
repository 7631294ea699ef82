"""The virtual board of a checked program: its label, and the answer's digest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rtscope.contract import sha256_of_json

DIGITS = 12
"""Shown of a digest."""


@dataclass(frozen=True, slots=True)
class BoardLabel:
    """A board in words, and as a row of JSON."""

    name: str
    words: str
    """What its times are, and what is needed to get them again."""
    row: Mapping[str, Any]


def answer_digest(answer: Mapping[str, Any]) -> str:
    """Return the SHA-256 of all findings, counts, times and stacks of an answer."""
    return sha256_of_json(answer)


def board_row(label: BoardLabel | None, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a JSON document says of a board; nothing of a real machine."""
    if label is None:
        return {}
    return {"virtual": {**label.row, "answer_digest": answer_digest(answer)}}


def digest_words(answer: Mapping[str, Any]) -> str:
    """Return the digest for the last line of a terminal."""
    return (
        f"answer {answer_digest(answer)[:DIGITS]}: the same command gives it again, "
        "with the same rtscope and libraries"
    )
